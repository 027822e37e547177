"""`scaled_mm`: matmuls of scaled operands, like torch.nn.functional.scaled_mm.

one scale a tensor, a row or a column   →  factors in the epilogue
one scale a block of 16 or 32 along K   →  block scales, which the MMA multiplies by itself
one scale for 128 along K               →  f32, by which threads of sm_90a and sm_100a multiply
                                           the sums of 128; or powers of two, each for four blocks
                                           of an MMA with block scales
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....dialects.dtypes import COARSE_FORMATS
from ....dialects.errors import OptionError
from ....dialects.target import find_target
from ....runtime.element_types import torch_dtype
from ....runtime.launch.kernel import Kernel
from ....runtime.operands.dlpack import gpu_of
from ....runtime.operands.results import new_zeros
from ...importers.epilogue_function import Frame, import_epilogue
from ...importers.linalg_text import LinalgText
from ...importers.traced_function import TensorLike
from ...spec import BLOCKED, LINEAR, MatmulSpec
from ..kernels.found_kernels import FoundKernels
from ..kernels.lookup import How, bundle_for, check_passes, default_target, is_seen_by_torch
from ..operands.coarse_scales import laid_out
from ..operands.operands import (
    check_flags,
    check_no_dims,
    check_options,
    check_tensors,
    given,
    operand_type,
    result_type,
)
from ..operands.scaled_sides import FORMS, Side, are_added, kind_of, side_of, sums_of
from .fused import multiply_fused, must_be_two_steps, two_steps
from .matmul import matmul
from .quantized import in_blocks
from .quantized_product import QuantizedProduct, is_format

_kernels: FoundKernels[Kernel] = FoundKernels()


def scaled_mm(
    mat_a: Any,
    mat_b: Any,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    output_dtype: Any = "bf16",
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
    *,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
) -> Any:
    """(mat_a · scales) [m, k] · (mat_b · scales) [k, n] + bias [n], with torch's signature.

    All arguments up to use_fast_accum are those of torch.nn.functional.scaled_mm (torch 2.13).

    mat_a, mat_b: torch tensors [m, k] and [k, n]. mat_b is K-major: pass `w.T` for a weight [n, k].
    scale_a, scale_b, scale_recipe_a, scale_recipe_b: the scales, or a list of two, and their kinds,
        torch.nn.functional.ScalingType: TensorWise (one f32), RowWise (f32 [m, 1] and [1, n]),
        BlockWise1x32 (e8m0, for e4m3, e5m2 or e2m1), BlockWise1x16 (e4m3, for e2m1, with or without
        a TensorWise f32 as the second), or BlockWise1x128 and BlockWise128x128, as below.
    swizzle_a, swizzle_b: SWIZZLE_32_4_4 for scales of 16 or 32 elements, 512 bytes per 128 rows and
        4 blocks; None or NO_SWIZZLE for linear scales.
    bias: [n] or None.
    contraction_dim: must be ().
    output_dtype: "bf16", "f16", "f32", "e4m3" or "e5m2", or a torch dtype; None for that of mat_a.
        Or a block-scaled format, such as "nvfp4": the result is then a pair of `data` and blocked
        `scales`, as for `matmul`.
    use_fast_accum: True accumulates products of 8-bit floats as the tensor core does, which keeps
        14 bits on sm_89 and sm_90a. With False, threads on sm_90a add the results of 128 elements
        of K in f32, as they always do with scales of 128 elements; on sm_89 it must be True.
        Elsewhere accumulation is in f32 either way.
    target, pipeline, preset: as for `matmul`.

    BlockWise1x128 scales are f32 [m, k/128] and [n, k/128] with contiguous rows. One operand may
    have BlockWise128x128 instead: f32 [l, n/128] with K contiguous, where l is k/128 rounded up to
    a multiple of 4 (docs/block-scales.md). On sm_100a and sm_120a, scales of e4m3 operands that are
    powers of two may also be e8m0, for one or both operands, in any order, and both may be 128x128.
    Beside e8m0, and always on sm_120a, f32 scales that are not powers of two are refused: by an
    error on the CPU; on a GPU, which nobody waits for, they become NaN, as do the elements of C
    that they scale. On sm_100a two f32 scales with another layout are copied.

    Raises OptionError for what a recipe does not support, CompileError if the product cannot be
    compiled, DeviceError if it cannot be launched.
    """
    texts = {"target": target, "pipeline": pipeline, "preset": preset}
    check_options("scaled_mm", out_dtype=output_dtype, **texts)
    check_tensors("scaled_mm", mat_a=mat_a, mat_b=mat_b, **given(bias=bias))
    check_flags("scaled_mm", use_fast_accum=use_fast_accum)
    check_no_dims("scaled_mm", contraction_dim)
    if len(mat_a.shape) != 2 or len(mat_b.shape) != 2:
        shapes = f"{list(mat_a.shape)} and {list(mat_b.shape)}"
        raise OptionError(f"scaled_mm: mat_a and mat_b must be matrices, got {shapes}")
    if mat_a.shape[1] != mat_b.shape[0]:
        got = f"{mat_a.shape[1]} and {mat_b.shape[0]}"
        raise OptionError(f"scaled_mm: mat_a and mat_b must have the same k, got {got}")
    chip = target or default_target(gpu_of(mat_a))
    matrices, scales = (mat_a, mat_b.T), (scale_a, scale_b)
    recipes, swizzles = (scale_recipe_a, scale_recipe_b), (swizzle_a, swizzle_b)
    a, b = _sides(chip, matrices, scales, recipes, swizzles)
    output_dtype = mat_a.dtype if output_dtype is None else output_dtype
    how = How(result_type(output_dtype), chip, pipeline or "", preset or "")
    if not (a.form or a.format):
        how = how._replace(sums=sums_of("scaled_mm", chip, mat_a, use_fast_accum))
    _check_together(a, b, bias)
    return _product(a, b, bias, how)


def _sides(chip: str, matrices: Any, scales: Any, recipes: Any, swizzles: Any) -> tuple[Side, Side]:
    """A [m, k] and B [n, k] with their scales, as the MMA of the chip or its threads take them."""
    native = bool(find_target(chip).mma.scaled_kinds)
    by_threads = native and find_target(chip).added_mma is not None
    kinds = [kind_of(each) for each in recipes]
    if by_threads and are_added(kinds, scales):
        native = False
        scales = [
            laid_out(scale, FORMS[kind], *rows.shape)
            for scale, kind, rows in zip(scales, kinds, matrices, strict=True)
        ]
    parts = zip("ab", matrices, scales, recipes, swizzles, strict=True)
    a, b = (side_of(*each, native) for each in parts)
    return a, b


def _check_together(a: Side, b: Side, bias: Any) -> None:
    if bias is not None and list(bias.shape) != [b.rows.shape[0]]:
        rule = f"bias must be [{b.rows.shape[0]}]"
        raise OptionError(f"scaled_mm: {rule}, got {list(bias.shape)}")
    if bool(a.format) != bool(b.format):
        raise OptionError("scaled_mm: both or none must have scales of blocks, got one that has")
    if bool(a.form) != bool(b.form):
        raise OptionError("scaled_mm: both or none must have scales of 128, got one that has")


def _product(a: Side, b: Side, bias: Any, how: How) -> Any:
    """By a kernel for scales of blocks, for two-level sums, or as any product of `matmul`."""
    operands = [each for each in (a.factor, b.factor, bias) if each is not None]
    epilogue = _EPILOGUES[len(operands), bias is not None]
    if a.format or a.form:
        return _by_blocks(a, b, how, epilogue, operands)
    if how.sums:
        return _by_two_levels(a, b, how, epilogue, operands)
    return matmul(
        a.rows,
        b.rows,
        out_dtype=how.out_dtype,
        epilogue=epilogue,
        operands=operands,
        target=how.target,
        pipeline=how.pipeline or None,
        preset=how.preset or None,
    )


def _by_two_levels(
    a: Side, b: Side, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    """The product whose sums threads add in f32, times factors."""
    from .matmul_operator import product

    if not must_be_two_steps(a.rows, b.rows, operands):
        return multiply_fused(a.rows, b.rows, None, how, epilogue, operands)

    def sums(dtype: str) -> list[Any]:
        return [product(a.rows, b.rows, how._replace(out_dtype=dtype))]

    return two_steps(sums, epilogue, operands, a.rows, how.out_dtype)


def _scaled(acc: Any, *factors: Any) -> Any:
    for factor in factors:
        acc = acc * factor
    return acc


def _scaled_and_shifted(acc: Any, *operands: Any) -> Any:
    return _scaled(acc, *operands[:-1]) + operands[-1]


_EPILOGUES: dict[tuple[int, bool], Callable[..., Any]] = {
    **{(count, False): _scaled for count in range(3)},
    **{(count, True): _scaled_and_shifted for count in range(1, 4)},
}


def _by_blocks(
    a: Side, b: Side, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    """The product with scales of blocks."""
    if any(is_seen_by_torch(each, each) for each in (a.rows, b.rows, *operands)):
        rule = "scales of blocks have neither gradients nor an operator of torch.compile"
        raise OptionError(f"scaled_mm: {rule}, got a call that needs one; call it under no_grad")
    likes = tuple(TensorLike(tuple(each.shape), each.dtype) for each in operands)
    if a.form and "1x128" not in (a.form, b.form):
        rule = "one of scale_recipe_a and scale_recipe_b must be BlockWise1x128"
        raise OptionError(f"scaled_mm: {rule}, got BlockWise128x128 twice; spread one to rows")
    fine = [each for each in (a, b) if each.format not in COARSE_FORMATS and not each.form]
    if len({each.blocks.dim() for each in fine}) > 1:
        raise OptionError(
            "scaled_mm: swizzle_a and swizzle_b must be alike, got linear and blocked"
        )
    if 0 in (*a.rows.shape, *b.rows.shape):
        return _of_nothing(a, b, how, epilogue, operands)
    sides = tuple(
        (each.format, each.form, each.rows.shape, each.rows.dtype, each.blocks.dim())
        for each in (a, b)
    )
    key = sides, likes, epilogue, how, gpu_of(a.rows)
    kernel = _kernels.of(key, lambda: _find(a, b, how, epilogue, likes))
    given = a.rows, b.rows, a.blocks, b.blocks, *(_dense(each) for each in operands)
    result = kernel(*given)
    return QuantizedProduct(*result) if is_format(how.out_dtype) else result


def _of_nothing(
    a: Side, b: Side, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    """The product where a size is 0: no elements, or what factors and bias make of zeros."""
    check_passes(how)
    shape = a.rows.shape[0], b.rows.shape[0]
    made = epilogue(new_zeros(shape, "f32", a.rows), *operands)
    return in_blocks(made, how) if is_format(how.out_dtype) else made.to(torch_dtype(how.out_dtype))


def _dense(operand: Any) -> Any:
    """The operand without its dims of one element, as the kernel has it."""
    return operand.squeeze()


def _find(
    a: Side, b: Side, how: How, epilogue: Callable[..., Any], likes: Sequence[TensorLike]
) -> Kernel:
    find_target(how.target)
    spec = _spec_by_form(a, b, how) if a.form else _spec_by_format(a, b, how)
    spec, made, *_ = import_epilogue(spec, Frame.of([spec.m, spec.n], 0), epilogue, likes)
    source = LinalgText(spec.mlir_text(made), "scaled_mm") if likes else spec
    bundle = bundle_for(source, spec, how.target, how)
    return Kernel(bundle, copies=True)


def _spec_by_form(a: Side, b: Side, how: How) -> MatmulSpec:
    """The spec of operands with scales of 128."""
    a_dtype, b_dtype = (
        operand_type("mat_a", str(a.rows.dtype)),
        operand_type("mat_b", str(b.rows.dtype)),
    )
    (m, k), n = a.rows.shape, b.rows.shape[0]
    out_dtype = how.out_dtype or "bf16"
    return MatmulSpec(m, n, k, a_dtype, b_dtype, out_dtype, a_scales=a.form, b_scales=b.form)


def _spec_by_format(a: Side, b: Side, how: How) -> MatmulSpec:
    """The spec of operands with scales that MMAs take."""
    packed = 2 if a.format in ("mxfp4", "nvfp4") else 1
    (m, depth), n = a.rows.shape, b.rows.shape[0]
    atoms = any(each.blocks.dim() > 2 for each in (a, b))
    layout = BLOCKED if atoms else LINEAR
    types = a.format, b.format, how.out_dtype
    return MatmulSpec(m, n, depth * packed, *types, scale_layout=layout)
