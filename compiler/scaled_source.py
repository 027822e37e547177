"""The spec of a `tile.scaled_matmul`, which linalg cannot express."""

from __future__ import annotations

from typing import Any

from ..dialects.dtypes import (
    DTYPES,
    OPERAND_FORMATS,
    ScaledMma,
    linear_sharing,
    stored_dtype,
)
from ..dialects.quantized import format_of
from ..dialects.tile import MatmulOp
from ..dialects.tile.grouped_products import GroupedScaledMatmulOp
from ..dialects.tile.outputs import KeepGroupsOp, kept_by, kept_of
from ..dialects.tile.quantized import quantize_of
from ..dialects.tile.scales import ScaledMatmulOp
from ..dialects.verify import logical_shape
from .spec import BLOCKED, LINEAR, MatmulSpec


def scaled_spec_of(matmul: ScaledMatmulOp) -> MatmulSpec:
    """The spec of a product with block scales."""
    m, k = logical_shape(matmul.a.type, matmul.a_major.value)
    n, mma = matmul.c.type.shape[-1], matmul.mma
    assert mma is not None  # its verifier has asked
    sides = (matmul.a, matmul.a_scales, m), (matmul.b, matmul.b_scales, n)
    formats = [_format_of(value, scales, (rows, k), mma) for value, scales, rows in sides]
    ranks = [
        scales.type.rank
        for (_, scales, _), each in zip(sides, formats, strict=True)
        if not OPERAND_FORMATS[each].linear
    ]
    grouped = isinstance(matmul, GroupedScaledMatmulOp)
    groups = {"groups": matmul.offsets.type.shape[0]} if grouped else {}
    is_stack, size = matmul.c.type.rank == 3, matmul.c.type.shape[0]
    a_major, b_major = (each.value for each in (matmul.a_major, matmul.b_major))
    return MatmulSpec(
        *(m, n, k, formats[0], formats[1], c_dtype_of(matmul)),
        a_major="k" if a_major == "k" else "m",
        b_major="k" if b_major == "k" else "n",
        scale_layout=BLOCKED if min(ranks, default=5) >= 5 else LINEAR,
        batch=size if is_stack else 0,
        a_stacked=not is_stack or matmul.a.type.rank == 3,
        b_stacked=not is_stack or matmul.b.type.rank == 3,
        **groups,
        **outputs_of(matmul),
    )


def _format_of(value: Any, scales: Any, extents: tuple[int, int], mma: ScaledMma) -> str:
    """The name of an operand's format; how many blocks share a scale tells the shape of these."""
    rows, k = extents
    shape, element = list(scales.type.shape), str(value.type.element_type)
    shared = linear_sharing(shape[-2:], rows, k // mma.block, mma.block) if len(shape) < 5 else None
    wanted = mma.scale, mma.block, *(shared or (1, 1))
    return next(
        each.name
        for each in OPERAND_FORMATS.values()
        if DTYPES[each.element].mlir == element
        and (each.scale, each.block, each.rows, each.blocks) == wanted
    )


def c_dtype_of(matmul: MatmulOp) -> str:
    """The type of C, or the name of its format where it has block scales."""
    element = str(matmul.c.type.element_type)
    quantize = quantize_of(matmul.epilogue.blocks[0])
    if quantize is not None:
        form = format_of(element, str(quantize.scale.value), quantize.block.value)
        assert form is not None  # its verifier has asked
        return form.name
    stored = stored_dtype(element)
    assert stored is not None  # normalize has asked
    return stored.name


def outputs_of(matmul: MatmulOp) -> dict[str, Any]:
    """What a spec says of outputs, beside the type of C."""
    quantize = quantize_of(matmul.epilogue.blocks[0])
    rounding = "" if quantize is None else quantize.rounding.value
    scales = {} if quantize is None else {"scale_rounding": rounding}
    return {"further": further_of(matmul), "neighbours": neighbours_of(matmul), **scales}


def neighbours_of(matmul: MatmulOp) -> int:
    """Neighbours in a row that an output reduces, the most of any; 0 where none does."""
    keeps = kept_by(matmul.epilogue.blocks[0])
    groups = [keep.group.value for keep in keeps if isinstance(keep, KeepGroupsOp)]
    return max(groups, default=0)


def further_of(matmul: MatmulOp) -> tuple[str, ...]:
    """The types of the outputs after C."""
    quantized = quantize_of(matmul.epilogue.blocks[0]) is not None
    kept = kept_of(matmul)[: -1 if quantized else None]
    elements = [each.output.type.element_type for each in kept]
    found = [stored_dtype(str(element)) for element in elements]
    return tuple(dtype.name for dtype in found if dtype is not None)
