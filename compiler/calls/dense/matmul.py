"""`matmul`: a kernel for these very arrays, compiled when they first come.

Torch is imported only where it must see the call, as it then has been already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ....dialects.dtypes import SCALED_FORMATS
from ....dialects.epilogue import NO_FUNCTION
from ....dialects.errors import OptionError
from ....runtime.math_policies import POLICIES
from ....runtime.tracing import is_traced, is_watched
from ..kernels.lookup import (
    BOTH,
    DEPTH,
    OF_STACKS,
    ROWS,
    STACKS,
    How,
    differentiates,
    is_seen_by_torch,
    multiply,
    recall,
    relaunched,
    remember,
    seen,
)
from ..operands.leading_dims import flattened, has_leading_dims, is_stack, rows_of, stacks_of
from ..operands.operands import check_dense, check_operands, check_options, operand_of, result_type
from ..operands.placement import NO_GAPS, gaps_of, is_column_major
from ..operands.precision import check_precision
from .quantized_product import is_format

NO_STACK = (
    "matmul: b must be a stack of matrices with batch='dynamic', got {}; "
    "take m='dynamic' where all share b"
)
ASKED = ("out_dtype", "target", "pipeline", "preset", "m", "precision")


def matmul(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    out_dtype: Any = None,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
    m: str | None = None,
    batch: str | None = None,
    k: str | None = None,
    math: str | None = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
    scale_rounding: str = "",
    precision: str | None = None,
) -> Any:
    """a [..., m, k] · b [n, k]ᵀ, as torch.nn.functional.linear(a, b): b's rows are the output's
    columns. b may be a stack [..., n, k], too: each matrix of `a` is multiplied with that of `b`.

    It runs on the GPU that holds `a`, or on the emulator for tensors in the CPU's memory. torch
    records gradients, and torch.compile keeps the call as one operator.

    a, b: torch tensors, numpy arrays, or anything with DLPack, of bf16, f16, f32 (multiplied as
        tf32, with `mma=fma` in the pipeline as it is), f64 (as it is), float8_e4m3fn, float8_e5m2,
        int8 or uint8. Either major order is taken as it lies,
        where the target's MMA reads the type so (pass `w.T` for a `w` stored k × n), rows and
        matrices with gaps between them, too. Other strides, gaps of other than multiples of 16
        bytes where TMA would read a copy, and addresses that are not such multiples are copied,
        with a CopyWarning from 1 MiB on. Dims of `a`
        before its rows are rows of one matrix, and those before the matrices of stacks are one dim:
        where they do not step evenly, as those of a contiguous tensor do, it is copied. Where both
        are stacks, these dims broadcast as torch's do; a matrix that all share is not copied. Sizes
        may be 0: without K the product is 0.
    b may be a pair of matrices [n, k], too, as the gate and the up of SwiGLU: then `epilogue` takes
        the sums of both, `lambda gate, up: silu(gate) * up`, and one kernel makes both. Halves of
        one weight are `(w[:n], w[n:])`, its alternating rows `(w[0::2], w[1::2])`; both are read in
        place. A second one that lies otherwise than the first is copied.
    out: [..., m, n], row-major or column-major, with gaps or without; it is written and returned.
        It may be one of `operands`. Without it a new one is made.
    out_dtype: "bf16", "f16", "f32", "f64", "s32", "e4m3", "e5m2" (too large a sum becomes the
        largest number), or torch's; by default that of `a`, bf16 for floats of 8 bits, and s32 for
        integers. Or the name of a block-scaled format, as "mxfp8" or "nvfp4": the kernel quantises
        blocks of each row, and the result is a pair of `data` and blocked `scales`, which
        `scaled_mm` takes.
    target: the chip; by default the GPU's own, and sm_100a on the emulator.
    pipeline, preset: the passes as text, or the name of a preset. Without them the compiler chooses
        a schedule. The kernel is kept in memory and on disk.
    m: "dynamic" takes kernels for any number of rows, so that another one compiles nothing: a few
        share all M, each for a range of rows and compiled when it is first needed. `a` is then
        [..., m, k] with K contiguous, and `b` a matrix.
    batch: "dynamic" likewise takes kernels for stacks of any number of matrices: `b` is then
        [..., n, k], and `a` a matrix or as many. With `m` both are any; `a` is then read in place
        where its matrices lie behind one another.
    k: "dynamic" takes one kernel for any K of matrices `x.T` and `y.T` of an x [k, m] and a y
        [k, n], as gradients of weights are, without an epilogue.
    epilogue: a function (acc, *operands) of torch tensors that makes C of the sums, element by
        element, in the same kernel. acc is [..., m, n], f32 (s32 for integers); what it returns is
        rounded to C's type. It is traced, not called again: it must not depend on values. Where it
        returns a tuple, the first is C and the others are outputs of the types that it gives them;
        matmul then returns a tuple, and takes one as `out`.
    math: how exact functions of the epilogue are, as tanh: "exact", as float32 code computes them,
        or "fast", within half a unit in the last place of C before it is rounded; by default fast
        where every output has 16 or 8 bits.
    operands: the tensors that `epilogue` takes after acc, of shapes that broadcast to acc's.
    scale_rounding: how a scale is made of the largest magnitude of its block, one of
        `tilewright.scales.ROUNDINGS`, by default the first of the format's.
    precision: of f32 operands: "tf32" multiplies them on a tensor core, by 10 fraction bits;
        "3xtf32" does so three times, by two tf32 that make up each of them, within 2^-20 of each
        product; "bf16x9" nine times, by the three bf16 that are each of them, with errors as those
        of f32; "ieee" as they are, by the threads' fma. Without it they are tf32, with a
        PrecisionWarning where torch's own setting (torch.backends.cuda.matmul) asks for more.

    Raises CompileError if the product cannot be compiled, DeviceError if it cannot be launched.
    """
    if k is not None:
        m = _of_any_depth(k, m or batch, out_dtype, epilogue)
    elif batch is not None:
        m = _of_any_batch(b, batch, m, out_dtype)
    asked = out_dtype, target, pipeline, preset, m, precision
    if epilogue is None and math is None and not scale_rounding and type(operands) is tuple:
        known = None if operands else _again(a, b, out, asked)
        if known is not None:
            return known
    check_dense("matmul", a=a, b=b, out=out)
    _check_call(a, out, asked, math, epilogue, operands)
    if is_format(out_dtype) or scale_rounding:
        return _quantized(a, b, out, asked, scale_rounding, math, epilogue, operands)
    if m not in (None, ROWS) and batch is None and k is None:
        raise OptionError(f"matmul: m must be 'dynamic', got {m!r}; leave it out")
    if epilogue is not None:
        return _fused(a, b, out, asked, math, epilogue, operands)
    _check_plain(b, operands)
    if is_column_major(out):
        return _column_major(a, b, out, asked, batch)
    return _plain(a, b, out, asked)


def _check_call(
    a: Any,
    out: Any,
    asked: tuple[Any, ...],
    math: str | None,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[Any],
) -> None:
    """Refuse what no call takes, whatever its product."""
    check_options("matmul", **_options(asked))
    *_, precision = asked
    if precision is not None:
        check_precision(a, precision)
    if math not in (None, *POLICIES):
        raise OptionError(
            f"matmul: math must be {' or '.join(POLICIES)}, got {math!r}; leave it out"
        )
    if math is not None and epilogue is None:
        raise OptionError(f"matmul: {NO_FUNCTION}")
    check_operands("matmul", operands)
    _check_out(out)


def _quantized(
    a: Any,
    b: Any,
    out: Any,
    asked: tuple[Any, ...],
    scale_rounding: str,
    math: str | None,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[Any],
) -> Any:
    """The product as blocks with scales."""
    out_dtype, target, pipeline, preset, m, precision = asked
    _check_quantized(out_dtype, m, epilogue, operands)
    named = target or "", pipeline or "", preset or ""
    how = How(out_dtype, *named, "", scale_rounding, math or "")
    from .quantized import multiply_quantized

    how = how._replace(precision=precision or "")
    return multiply_quantized(a, b, out, how, epilogue, operands)


def _check_plain(b: Any, operands: Sequence[Any]) -> None:
    """Refuse what only an epilogue reads."""
    if isinstance(b, tuple | list):
        for each in b:
            operand_of("b", each)
        raise OptionError(
            "matmul: two b are for an epilogue of both sums, got none; pass epilogue="
        )
    if len(operands):
        raise OptionError("matmul: operands are those of an epilogue, got none; pass epilogue=")


def _column_major(a: Any, b: Any, out: Any, asked: tuple[Any, ...], batch: str | None) -> Any:
    """The product as its transpose, b · aᵀ, whose output is row-major."""
    if asked[ASKED.index("m")] == BOTH:
        rule = "out must be row-major where rows and matrices are dynamic"
        raise OptionError(f"matmul: {rule}, got column-major; leave m out")
    if batch is not None and not has_leading_dims(a):
        rule = "out must be row-major with batch='dynamic' where all share a"
        raise OptionError(f"matmul: {rule}, got column-major; leave batch out")
    matmul(b, a, out=out.swapaxes(-1, -2), **_options(asked))
    return out


def _plain(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> Any:
    """The product alone: by the kernel of a call like it, of matrices, of stacks or of rows."""
    out_dtype, target, pipeline, preset, m, precision = asked
    plain = out is None or gaps_of(out) == NO_GAPS
    kernel = recall(a, b, asked) if plain and not is_traced() else None
    if kernel is not None:
        return kernel(a, b, out=out)
    if has_leading_dims(b):
        if not is_stack(a, b, m in OF_STACKS):
            return _of_stacks(a, b, out, asked)
    elif has_leading_dims(a):
        return _of_rows(a, b, out, asked)
    how = How(result_type(out_dtype), target or "", pipeline or "", preset or "", m or "")
    how = how._replace(precision=precision or "")
    if is_seen_by_torch(a, b):
        from .matmul_operator import product

        result = product(a, b, how)
        if not (is_traced() or is_watched(a, b)):
            remember(a, b, asked, how)
        return _into(out, result)
    return multiply(a, b, out, asked, how)


def _again(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> Any:
    """The product, where a kernel took tensors like these before; else None, and nothing is done.

    Into `out` only if the kernel's last call wrote one like it.
    """
    if is_traced():
        return None
    try:
        if out is not None:
            return out if relaunched(a, b, out, asked) else None
        known = seen(a, b, asked)
    except TypeError:  # of a list, which has no hash
        check_options("matmul", **_options(asked))
        raise
    except RuntimeError:  # of a nested tensor, which has no shape
        check_dense("matmul", a=a, b=b)
        raise
    if known is None:
        return None
    if not differentiates(known.requires_gradients):
        return known.kernel(a, b)
    from .matmul_operator import again

    _, target, _, _, m, precision = asked
    return again(a, b, known.kernel, target or "", precision or "", m or "")


def _check_out(out: Any) -> None:
    """Refuse outputs that torch would have to differentiate."""
    given = out if isinstance(out, tuple | list) else (out,)
    wanting = [each for each in given if getattr(each, "requires_grad", False)]
    if wanting and sys.modules["torch"].is_grad_enabled():
        raise OptionError("matmul: out must not require gradients, got one that does; drop out=")


def _check_quantized(
    out_dtype: Any, m: Any, epilogue: Callable[..., Any] | None, operands: Sequence[Any]
) -> None:
    """Refuse what does not go with a result that has scales of blocks."""
    if not is_format(out_dtype):
        known = ", ".join(SCALED_FORMATS)
        rule = f"scale_rounding must come with an out_dtype of {known}"
        raise OptionError(f"matmul: {rule}, got {out_dtype}; leave it out")
    if m is not None:
        raise OptionError(f"matmul: m must be None for a result of {out_dtype}, got {m!r}")
    if epilogue is None and len(operands):
        raise OptionError("matmul: operands are those of an epilogue, got none; pass epilogue=")
    if epilogue is not None and not callable(epilogue):
        got = type(epilogue).__name__
        raise OptionError(f"matmul: epilogue must be a function of acc and operands, got {got}")


def _fused(
    a: Any,
    b: Any,
    out: Any,
    asked: tuple[Any, ...],
    math: str | None,
    epilogue: Callable[..., Any],
    operands: Sequence[Any],
) -> Any:
    """The product and what the epilogue makes of it."""
    from .fused import bs_of, multiply_fused, must_be_two_steps, two_steps

    if not callable(epilogue):
        got = type(epilogue).__name__
        raise OptionError(f"matmul: epilogue must be a function of acc and operands, got {got}")
    out_dtype, target, pipeline, preset, m, precision = asked
    how = How(result_type(out_dtype), target or "", pipeline or "", preset or "", m or "")
    how = how._replace(precision=precision or "", math=math or "")
    if not must_be_two_steps(a, b, operands):
        if any(map(is_column_major, out if isinstance(out, tuple | list) else (out,))):
            rule = "out must be row-major with an epilogue"
            raise OptionError(f"matmul: {rule}, got column-major; copy the result there")
        if not m:
            return multiply_fused(a, b, out, how, epilogue, operands)
        from .fused_rows import multiply_fused_rows

        return multiply_fused_rows(a, b, out, how, epilogue, operands)
    options = {name: each for name, each in _options(asked).items() if name != ASKED[0]}

    def sums(dtype: str) -> list[Any]:
        if math and is_traced():  # for who fuses the function with the product
            from .matmul_operator import product

            return [product(a, each, how._replace(out_dtype=dtype)) for each in bs_of(b)]
        return [matmul(a, each, out_dtype=dtype, **options) for each in bs_of(b)]

    return _into(out, two_steps(sums, epilogue, operands, a, how.out_dtype))


def _options(asked: tuple[Any, ...]) -> dict[str, Any]:
    options: dict[str, Any] = dict(zip(ASKED, asked, strict=True))
    if options["m"] == DEPTH:
        options |= {"m": None, "k": "dynamic"}
    if options["m"] in OF_STACKS:
        options |= {"m": ROWS if options["m"] == BOTH else None, "batch": "dynamic"}
    return options


def _of_any_depth(k: str, other: Any, out_dtype: Any, epilogue: Any) -> str:
    """The size that is dynamic, as kernels are asked for it; refuses what has no such kernels."""
    if k != "dynamic":
        raise OptionError(f"matmul: k must be 'dynamic', got {k!r}; leave it out")
    if other is not None:
        raise OptionError("matmul: k must be dynamic alone, got m or batch too; leave one out")
    if is_format(out_dtype) or epilogue is not None:
        what = f"a result of {out_dtype}" if is_format(out_dtype) else "an epilogue"
        raise OptionError(f"matmul: k must be None for {what}, got {k!r}; leave it out")
    return DEPTH


def _of_any_batch(b: Any, batch: str, m: Any, out_dtype: Any) -> str:
    """The sizes that are dynamic, as kernels are asked for them; refuses what has no other
    matrices."""
    if batch != "dynamic":
        raise OptionError(f"matmul: batch must be 'dynamic', got {batch!r}; leave it out")
    if m not in (None, ROWS):
        raise OptionError(f"matmul: m must be 'dynamic', got {m!r}; leave it out")
    if is_format(out_dtype):
        rule = f"batch must be None for a result of {out_dtype}"
        raise OptionError(f"matmul: {rule}, got {batch!r}; leave it out")
    check_dense("matmul", b=b)
    if isinstance(b, tuple | list) or len(getattr(b, "shape", ())) < 3:
        got = "a pair" if isinstance(b, tuple | list) else list(getattr(b, "shape", ()))
        raise OptionError(NO_STACK.format(got))
    return STACKS if m is None else BOTH


def _of_rows(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> Any:
    """The product of all rows of `a` as one matrix."""
    options = _options(asked)
    rows = rows_of("a", a)
    if out is None:
        c = matmul(rows, b, **options)
        return c.reshape(*a.shape[:-1], c.shape[-1])
    if tuple(out.shape[:-1]) != tuple(a.shape[:-1]):
        wanted = [*a.shape[:-1], b.shape[0]]
        raise OptionError(f"matmul: out must be {wanted}, got {list(out.shape)}")
    matmul(rows, b, out=rows_of("out", out), **options)
    return out


def _of_stacks(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> Any:
    """The products of a stack of several dims, as one of one."""
    options = _options(asked)
    of_any = options.get("batch") == "dynamic"
    batch, left, right = stacks_of(a, b, of_any)
    if of_any and len(right.shape) == 2:
        raise OptionError(NO_STACK.format(list(b.shape)))
    wanted = [*batch, a.shape[-2], b.shape[-2]]
    if out is None:
        return matmul(left, right, **options).reshape(*wanted)
    if list(out.shape) != wanted:
        raise OptionError(f"matmul: out must be {wanted}, got {list(out.shape)}")
    place = flattened("out", out, 2)
    is_one = len(left.shape) == len(right.shape) == 2
    matmul(left, right, out=place[0] if is_one else place, **options)
    return out


def _into(out: Any, result: Any) -> Any:
    """What torch made, in `out` if that is given, which is refused as a kernel refuses it."""
    if out is None:
        return result
    results = result if isinstance(result, tuple) else (result,)
    from .fused import given_outputs

    places = given_outputs(out, len(results)) or ()
    for place, value in zip(places, results, strict=True):
        if not isinstance(place, sys.modules["torch"].Tensor):
            got = type(place).__name__
            raise OptionError(f"matmul: out must be a torch tensor for such operands, got {got}")
        wanted, got = ([list(each.shape), each.dtype] for each in (value, place))
        if wanted != got:
            rule = f"out must be {wanted[0]} of {wanted[1]}"
            raise OptionError(f"matmul: {rule}, got {got[0]} of {got[1]}; pass another")
    for place, value in zip(places, results, strict=True):
        place.copy_(value)
    return out
