"""`matmul`: multiplies arrays by a kernel for their shapes, types and layouts.

Torch is imported only where it must see the call, as it then has been already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ....dialects.errors import OptionError
from ....runtime.operands.copies import warn_of_copy
from ....runtime.tracing import is_traced, is_watched
from ..kernels.lookup import (
    BOTH,
    OF_STACKS,
    ROWS,
    differentiates,
    is_seen_by_torch,
    multiply,
    recall,
    relaunched,
    remember,
    seen,
)
from ..operands.leading_dims import flattened, has_leading_dims, is_stack, rows_of, stacks_of
from ..operands.operands import check_dense, check_options
from ..operands.placement import NO_GAPS, gaps_of, is_column_major, why_unwritten
from ..operands.precision import set_precision
from .matmul_options import (
    ASKED,
    NO_STACK,
    check_call,
    check_plain,
    check_quantized,
    how_of,
    of_any_batch,
    of_any_depth,
    options_of,
)
from .quantized_product import is_format

ANY_ROWS = "a kernel for any number of rows"


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
    """a [..., m, k] · b [n, k]ᵀ, like torch.nn.functional.linear(a, b): rows of b are columns of
    the output. b may also be a stack [..., n, k]; then each matrix of `a` is multiplied by that of
    `b`.

    It runs on the GPU that holds `a`, or on the emulator for tensors in CPU memory. It supports
    torch's autograd, and torch.compile keeps the call as one operator.

    a, b: torch tensors, numpy arrays, or anything with DLPack, of bf16, f16, f32 (see `precision`),
        f64, float8_e4m3fn, float8_e5m2, int8 or uint8. Both major orders are read in place, as far
        as the MMA of the target reads the type so (pass `w.T` for a `w` stored k × n), and so is
        padding between rows and matrices. These are copied, with a CopyWarning from 1 MiB on: other
        strides, addresses that are no multiples of 16 bytes, and padding that is no such multiple
        if TMA could read a copy. Leading dims of `a` are further rows of one matrix if b is a
        matrix; leading dims of stacks count as one dim. If such dims cannot be merged without a
        copy, the tensor is copied. Leading dims of two stacks broadcast as in torch, without
        copying a shared matrix. Sizes may be 0; with K = 0 the product is 0.
    b as a pair of matrices [n, k], such as the gate and up weights of SwiGLU: `epilogue` takes the
        accumulators of both, `lambda gate, up: silu(gate) * up`, and one kernel computes both. The
        pair may be halves of one weight, `(w[:n], w[n:])`, or its alternating rows, `(w[0::2],
        w[1::2])`; both are read in place. If the second has another layout than the first, it is
        copied.
    out: [..., m, n], row-major or column-major, with or without padding. It is written and
        returned, and may be one of `operands`. Without it, the result is a new tensor. If no kernel
        can write the tensor in place, as at addresses that are no multiples of 16 bytes, the result
        is copied to it, with a CopyWarning from 1 MiB on.
    out_dtype: "bf16", "f16", "f32", "f64", "s32", "e4m3", "e5m2" (saturating), or a torch dtype; by
        default the type of `a`, bf16 for 8-bit floats, and s32 for integers. Or the name of a
        block-scaled format, such as "mxfp8" or "nvfp4": the kernel quantizes blocks of each row,
        and the result is a pair of `data` and blocked `scales`, which `scaled_mm` takes.
    target: the chip; by default that of the GPU, and sm_100a on the emulator.
    pipeline, preset: the passes as text, or the name of a preset. Without them the compiler chooses
        a schedule. The kernel is cached in memory and on disk.
    m: "dynamic" uses kernels for any number of rows, so that a new number compiles nothing: a few
        kernels share all M, each for a range of rows, and each is compiled when it is first needed.
        `a` is then [..., m, k], and `b` a matrix. An `a` with M contiguous and padding is copied,
        with a CopyWarning.
    batch: "dynamic" likewise uses kernels for any number of matrices: `b` is [..., n, k], and `a` a
        matrix or a stack. With `m` both are dynamic, and `a` is read in place if there is no
        padding between its matrices.
    k: "dynamic" uses one kernel for any K, for `x.T` and `y.T` of an x [k, m] and a y [k, n], as in
        gradients of weights; an epilogue is allowed.
    epilogue: a function (acc, *operands) of torch tensors that computes C from the accumulator,
        element by element, in the same kernel. acc is [..., m, n], f32 (s32 for integers), and the
        result is rounded to the type of C. The function is traced, not run, so it must not depend
        on values; docs/python.md says when it is traced again. If it returns a tuple, the first
        element is C and the others are further outputs of their own types; matmul then returns a
        tuple, and takes one as `out`.
    math: the accuracy of functions of the epilogue such as tanh: "exact", as float32 code computes
        them, or "fast", within half a unit in the last place of C before rounding; by default fast
        if every output has 16 or 8 bits.
    operands: the tensors that `epilogue` takes after acc, of shapes that broadcast to that of acc.
    scale_rounding: how a scale follows from the largest magnitude of its block, one of
        `tilewright.scales.ROUNDINGS`; by default the first of the format.
    precision: of f32 operands. "tf32" multiplies them on a tensor core with 10 fraction bits;
        "3xtf32" by three such products, with errors up to 2^-20 of each product; "bf16x9" by nine
        products of bf16, with errors like those of f32; "ieee" by FMA on CUDA cores. By default
        torch's own setting decides (torch.backends.cuda.matmul,
        torch.set_float32_matmul_precision): "bf16x9" if it asks for full precision, which is its
        default, else "tf32". With a given pipeline or preset it is "tf32".

    Raises CompileError if the product cannot be compiled, DeviceError if it cannot be launched.
    """
    if k is not None:
        m = of_any_depth(k, m or batch, out_dtype)
    elif batch is not None:
        m = of_any_batch(b, batch, m, out_dtype)
    asked = out_dtype, target, pipeline, preset, m, precision
    if epilogue is None and math is None and not scale_rounding and type(operands) is tuple:
        known = None if operands else _repeated(a, b, out, asked)
        if known is not None:
            return known
    check_dense("matmul", a=a, b=b, out=out)
    check_call(a, out, asked, math, epilogue, operands)
    if precision is None:  # `_repeated` knows no product of f32 by this, since a setting may change
        asked = *asked[:-1], set_precision(a, pipeline, preset)
    if is_format(out_dtype) or scale_rounding:
        return _quantized(a, b, out, asked, scale_rounding, math, epilogue, operands)
    if m not in (None, ROWS) and batch is None and k is None:
        raise OptionError(f"matmul: m must be 'dynamic', got {m!r}; leave it out")
    if epilogue is not None:
        return _fused(a, b, out, asked, math, epilogue, operands)
    check_plain(b, operands)
    by_rows = ANY_ROWS if m in (ROWS, BOTH) else ""
    is_seen = is_seen_by_torch(a, b)
    if is_seen and by_rows and is_column_major(out):
        return _into(out, _plain(a, b, None, asked))
    reason = None if is_seen else why_unwritten(out, by_rows)
    if reason:
        return _copied_there(out, reason, _plain(a, b, None, asked))
    if is_column_major(out):
        return _column_major(a, b, out, asked, batch)
    return _plain(a, b, out, asked)


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
    out_dtype, *_, m, _ = asked
    check_quantized(out_dtype, m, epilogue, operands)
    from .quantized import multiply_quantized

    how = how_of(asked)._replace(scale_rounding=scale_rounding, math=math or "")
    return multiply_quantized(a, b, out, how, epilogue, operands)


def _column_major(a: Any, b: Any, out: Any, asked: tuple[Any, ...], batch: str | None) -> Any:
    """The product as its transpose, b · aᵀ, whose output is row-major."""
    if asked[ASKED.index("m")] in (ROWS, BOTH):
        rule = "out must be row-major with m='dynamic', or a torch tensor, to which rows are copied"
        raise OptionError(f"matmul: {rule}, got column-major; leave m out")
    if batch is not None and not has_leading_dims(a):
        rule = "out must be row-major with batch='dynamic' where all share a"
        raise OptionError(f"matmul: {rule}, got column-major; leave batch out")
    matmul(b, a, out=out.swapaxes(-1, -2), **options_of(asked))
    return out


def _plain(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> Any:
    """The product alone: by the kernel of a call like it, of matrices, of stacks or of rows."""
    plain = out is None or gaps_of(out) == NO_GAPS
    kernel = recall(a, b, asked) if plain and not is_traced() else None
    if kernel is not None:
        return kernel(a, b, out=out)
    how = how_of(asked)
    if has_leading_dims(b):
        if not is_stack(a, b, how.m in OF_STACKS):
            return _of_stacks(a, b, out, asked)
    elif has_leading_dims(a):
        return _of_rows(a, b, out, asked)
    if is_seen_by_torch(a, b):
        from .matmul_operator import product

        result = product(a, b, how)
        if not (is_traced() or is_watched(a, b)):
            remember(a, b, asked, how)
        return _into(out, result)
    return multiply(a, b, out, asked, how)


def _repeated(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> Any:
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
        check_options("matmul", **options_of(asked))
        raise
    except RuntimeError:  # of a nested tensor, which has no shape
        check_dense("matmul", a=a, b=b)
        raise
    if known is None:
        return None
    if not differentiates(known.requires_gradients):
        return known.kernel(a, b)
    from .matmul_operator import repeat_product

    _, target, _, _, m, precision = asked
    return repeat_product(a, b, known.kernel, target or "", precision or "", m or "")


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
    how = how_of(asked)._replace(math=math or "")
    if not must_be_two_steps(a, b, operands):
        reason = why_unwritten(out, "an epilogue")
        if reason:
            result = _fused(a, b, None, asked, math, epilogue, operands)
            return _copied_there(out, reason, result)
        if any(map(is_column_major, out if isinstance(out, (tuple, list)) else (out,))):
            rule = "out must be row-major with an epilogue"
            raise OptionError(f"matmul: {rule}, got column-major; copy the result there")
        if not how.m:
            return multiply_fused(a, b, out, how, epilogue, operands)
        from .fused_rows import multiply_fused_rows

        return multiply_fused_rows(a, b, out, how, epilogue, operands)
    options = {name: each for name, each in options_of(asked).items() if name != ASKED[0]}

    def sums(dtype: str) -> list[Any]:
        if math and is_traced():  # for who fuses the function with the product
            from .matmul_operator import product

            return [product(a, each, how._replace(out_dtype=dtype)) for each in bs_of(b)]
        return [matmul(a, each, out_dtype=dtype, **options) for each in bs_of(b)]

    return _into(out, two_steps(sums, epilogue, operands, a, how.out_dtype))


def _of_rows(a: Any, b: Any, out: Any, asked: tuple[Any, ...]) -> Any:
    """The product of all rows of `a` as one matrix."""
    options = options_of(asked)
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
    options = options_of(asked)
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


def _copied_there(out: Any, reason: str, result: Any) -> Any:
    """The result in an output that no kernel writes, which a warning tells of if it is large."""
    made = result[0] if isinstance(result, tuple) else result
    if made.device != out.device:
        rule = f"out must be on {made.device}"
        raise OptionError(f"matmul: {rule}, got one on {out.device}; pass another")
    warn_of_copy("matmul: out", out, reason)
    return _into(out, result)


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
