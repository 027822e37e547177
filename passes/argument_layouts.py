"""Strides of a function's tensors, with padding between rows or matrices.

    func.func @f(%a: tensor<64x48xbf16> {bufferization.buffer_layout = strided<[56, 1]>}, …)

The attribute is MLIR's own, of an argument or a result: the layout of the buffer that stands for
the tensor (MLIR, bufferization dialect). Without it a tensor is dense. Steps are in elements.
Those between matrices with any number of rows are as many rows, `strided<[?, 136, 1]>`, and those
between rows in memory of any length are that, `strided<[?, 1]>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..dialects.mlir import func, ir
from .base import refused
from .batches import is_dynamic_step

LAYOUT_ATTRIBUTE = "bufferization.buffer_layout"
ANY_NUMBER = 2**31
RULE = "must be strided<[…]> without an offset, the last dim 1 apart and elements apart"


def argument_strides(function: func.FuncOp, number: int) -> list[int] | None:
    """The steps along the dims of an argument as it is stored, None where it is dense."""
    return _strides(function, "arg_attrs", number, function.type.inputs[number])


def result_strides(function: func.FuncOp) -> list[int] | None:
    """The strides of the first result; `check_layouts` refuses layouts of the others."""
    return _strides(function, "res_attrs", 0, function.type.results[0])


def has_layouts(function: func.FuncOp) -> bool:
    """Whether any tensor of the function says how it lies."""
    return any(name in function.operation.attributes for name in ("arg_attrs", "res_attrs"))


def check_layouts(function: func.FuncOp) -> None:
    """Refuse attributes of arguments and results that are no layout, and layouts that no kernel
    reads."""
    for number in range(len(function.type.inputs)):
        argument_strides(function, number)
    for number, type_ in enumerate(function.type.results):
        if _strides(function, "res_attrs", number, type_) is not None and number > 0:
            rule = (
                f"result {number}: outputs beside the first must be dense, got a layout with gaps"
            )
            raise refused(function, f"{rule}; remove it")


def dense_strides(shape: Sequence[int]) -> list[int]:
    """The steps along the dims of a tensor without gaps, `?` over dims that only a launch knows."""
    any_step = ir.ShapedType.get_dynamic_stride_or_offset()
    inner = [shape[axis + 1 :] for axis in range(len(shape))]
    return [any_step if min(each, default=1) < 0 else prod(each) for each in inner]


def _strides(function: func.FuncOp, which: str, number: int, type_: Any) -> list[int] | None:
    attributes = function.operation.attributes
    if which not in attributes:
        return None
    named = dict(_named(ir.ArrayAttr(attributes[which])[number]))
    layout = named.pop(LAYOUT_ATTRIBUTE, None)
    what = f"{'argument' if which == 'arg_attrs' else 'result'} {number}"
    if named:
        name, value = next(iter(named.items()))
        rule = f"{what}: attributes must be {LAYOUT_ATTRIBUTE}"
        raise refused(function, f"{rule}, got {name} = {value}; remove it")
    if layout is None:
        return None
    sizes = list(type_.shape) if isinstance(type_, ir.RankedTensorType) else []
    shape = any_extents(sizes)
    strides = _read(layout)
    if strides is None or len(strides) != len(shape) or not is_non_overlapping(shape, strides):
        rule = f"{what}: {LAYOUT_ATTRIBUTE} {RULE}"
        raise refused(function, f"{rule}, got {layout} of {type_}; transpose or copy the tensor")
    if is_dynamic_step(strides[0]) and strides[1:] == dense_strides(shape[1:]):
        return None
    return None if strides == dense_strides(shape) else strides


def _named(attributes: ir.Attribute) -> list[tuple[str, ir.Attribute]]:
    return [(each.name, each.attr) for each in ir.DictAttr(attributes)]


def _read(layout: ir.Attribute) -> list[int] | None:
    if not isinstance(layout, ir.StridedLayoutAttr) or layout.offset:
        return None
    return list(layout.strides)


def any_extents(shape: Sequence[int]) -> list[int]:
    """The extents, of any number as more than there may be: nothing lies between those."""
    return [ANY_NUMBER if extent < 0 else extent for extent in shape]


def is_non_overlapping(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no two elements share a place, those of a row side by side.

    Matrices of any number of rows may be `?` apart, which is then as many rows.
    """
    if len(shape) > 1 and shape[-1] == ANY_NUMBER and is_dynamic_step(strides[-2]):
        strides = [*strides[:-2], ANY_NUMBER, strides[-1]]  # rows in memory are those of C
    any_rows = list(shape[:1]) == [ANY_NUMBER] and ANY_NUMBER in shape[1:]
    if any_rows and is_dynamic_step(strides[0]):
        return is_non_overlapping(shape[1:], strides[1:])
    if strides[-1:] not in ([], [1]):
        return False
    reached = 0
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1 and stride <= reached:
            return False
        reached += (extent - 1) * stride
    return True
