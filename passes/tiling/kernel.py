"""Builds the kernel: its views, and the program of one CTA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from ...dialects.mlir import arith, ir, scf
from ...dialects.sm.types import attribute_of
from ...dialects.tile import AccumulatorOp, ElementOp, KernelOp, MatmulOp
from ...dialects.tile.grouped_products import GROUPED_PRODUCTS, groups_rows
from ...dialects.tile.groups import GroupedMatmulOp, tiles_of_groups
from ...dialects.tile.outputs import kept_of
from ...dialects.tile.quantized import quantize_of
from ...dialects.tile.sums import AddLanesOp
from ...dialects.tile_types import (
    DYNAMIC,
    AccumulatorType,
    dynamic_dims,
    extent_of,
    integer,
    integers,
)
from ..argument_layouts import result_strides
from ..base import SWAPPED_ATTRIBUTE, refused, walk
from ..batches import batch_of
from ..clone import iterations_of
from ..dynamic_rows import is_of_any_depth, row_bounds
from ..groups import group_of
from ..outputs import output_names
from ..weights import stored_weights
from .operands import Operands, beside_of, block_scales, operands_of
from .places import read_group, read_view, steps_at, steps_of_any, tiles_along
from .scaled import stored_tensor
from .steps import Step, TileChoice, emit_step
from .stores import store_outputs
from .swap import transpose_elements
from .views import major_of, say_source, strides_of, view_as


def epilogue_tensors(matmul: MatmulOp) -> list[ir.Value]:
    """What the epilogue reads beside the sum, in the order in which the kernel takes it."""
    sources = dict.fromkeys(element.source for element in walk(matmul, ElementOp))
    return sorted(sources, key=lambda source: ir.BlockArgument(source).arg_number)


def build_kernel(tiling: TileChoice, threads: int) -> KernelOp:
    """The kernel in front of the function of the product, which stays for the pass to drop."""
    matmul = tiling.matmul
    _check_dynamic(tiling)
    _check_reads(matmul, tiling.reads)
    beside, read = beside_of(matmul), epilogue_tensors(matmul)
    kernel = _empty_kernel(tiling, threads, _names(matmul, beside, len(read)))
    say_source(kernel, matmul, [*beside.values(), *read])
    if tiling.swap:
        kernel.operation.attributes[SWAPPED_ATTRIBUTE] = ir.UnitAttr.get()
    block = kernel.body.blocks.append(*_views_of(matmul, [*beside.values(), *read]))
    a, b, *others = block.arguments
    views_beside = dict(zip(beside, others, strict=False))
    views_read = dict(zip(read, others[len(beside) :], strict=False))
    with ir.InsertionPoint(block), matmul.location:
        outputs = others[len(beside) + len(read) :]
        operands = operands_of(matmul, (a, b), views_beside, outputs, tiling.tile, tiling.swap)
        _build_body(tiling, operands)
    _read_views(kernel, views_read)
    if tiling.swap:
        transpose_elements(kernel)
    return kernel


def _names(matmul: MatmulOp, beside: Iterable[str], read: int) -> list[str]:
    """What the kernel's arguments are called: operands, what the epilogue reads, outputs."""
    quantized = quantize_of(matmul.epilogue.blocks[0]) is not None
    outputs = output_names(1 + len(kept_of(matmul)), quantized)
    return ["a", "b", *beside, *(f"e{index}" for index in range(read)), *outputs]


def _empty_kernel(tiling: TileChoice, threads: int, names: Sequence[str]) -> KernelOp:
    """The kernel in front of the function, without a body."""
    matmul = tiling.matmul
    function = matmul.operation.parent.opview
    with ir.InsertionPoint(function), matmul.location:
        return KernelOp(
            sym_name=function.attributes["sym_name"],
            grid=integers(_grid_of(tiling)),
            cluster=integers([1, 1, 1]),
            threads=integer(threads),
            arg_names=ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names]),
        )


def _grid_of(tiling: TileChoice) -> list[int]:
    """CTAs along the MMA's rows, of all matrices, and along its columns."""
    matmul, (m, n, _) = tiling.matmul, tiling.tile
    *stack, columns = (extent_of(matmul.c.type, dim) for dim in range(matmul.c.type.rank))
    rows_per_tile = n if tiling.swap else m
    along_rows = tiles_along(max(1, stack[-1]) if tiling.swap else stack[-1], rows_per_tile)
    if stack[-1] == DYNAMIC:
        along_rows = 1 if row_bounds(matmul)[1] <= rows_per_tile else DYNAMIC
    if groups_rows(matmul) and stack[0] == DYNAMIC:
        along_rows = DYNAMIC
    elif groups_rows(matmul):
        along_rows = tiles_of_groups(stack[0], matmul.b.type.shape[0], rows_per_tile, 1)
    if tiling.swap:
        return [_of_all(stack[:-1], tiles_along(columns, m)), along_rows, 1]
    along_rows = _of_all(stack[:-1], along_rows)
    return [along_rows, tiles_along(matmul.products * columns, n), 1]


def _of_all(stack: list[int], tiles: int) -> int:
    """The tiles of all matrices of a stack; a launch says how many those are where it does."""
    return DYNAMIC if DYNAMIC in stack else prod(stack) * tiles


def _views_of(matmul: MatmulOp, others: list[ir.Value]) -> list[ir.Type]:
    """The types of the kernel's arguments: A, B, the `others` that it reads, and the outputs."""
    function = matmul.operation.parent.opview
    sides = ((matmul.a, matmul.a_major), (matmul.b, matmul.b_major))
    read = [
        view_as(_stored(matmul, each.type), major.value, strides_of(function, each))
        for each, major in sides
    ]
    for each in others:
        type_, major = ir.RankedTensorType(each.type), major_of(matmul, each)
        read.append(view_as(type_, major, strides_of(function, each)))
    kept = [view_as(each.output.type, "k", None) for each in kept_of(matmul)]
    return [*read, view_as(matmul.c.type, "k", result_strides(function)), *kept]


def _read_views(kernel: KernelOp, views: Mapping[ir.Value, ir.Value]) -> None:
    """Let the epilogue read the kernel's views in place of the function's tensors."""
    batch, group = batch_of(kernel), group_of(kernel)
    for element in walk(kernel, ElementOp):
        if group is not None:
            read_group(element, views[element.source], group)
        else:
            read_view(element, views[element.source], batch)


def _stored(matmul: MatmulOp, tensor: ir.RankedTensorType) -> ir.RankedTensorType:
    """A tensor as its tiles are taken: of elements that share bytes, these."""
    return stored_weights(matmul, stored_tensor(matmul, tensor))


def _check_dynamic(tiling: TileChoice) -> None:
    """Refuse dynamic extents but rows, which are those of A as it lies, and the number of matrices
    in a stack."""
    matmul = tiling.matmul
    shapes = {"A": matmul.a.type, "B": matmul.b.type, "C": matmul.c.type}
    dynamic = {name: dynamic_dims(type_) for name, type_ in shapes.items()}
    if not any(dynamic.values()):
        return
    if block_scales(matmul):
        what = "a dynamic M" if matmul.c.type.rank == 2 else "a dynamic batch"
        raise refused(matmul, f"tiling: {what} has no block scales; give it a number")
    if not dynamic["C"] and dynamic["A"] == dynamic["B"] == [0] and matmul.a.type.rank == 2:
        _check_depth(matmul)
        return
    if matmul.c.type.rank == 3:
        _check_stack(matmul, shapes, dynamic, tiling)
        return
    rows_of_a = 1 if matmul.a_major.value == "mn" else 0
    if dynamic != {"A": [rows_of_a], "B": [], "C": [0]} or matmul.c.type.rank != 2:
        got = ", ".join(str(type_) for type_ in shapes.values())
        rule = "tiling: M alone or K alone may be dynamic, of one matrix"
        raise refused(matmul, f"{rule}, got {got}")


def _check_depth(matmul: MatmulOp) -> None:
    """A dynamic K is that of both operands, and the rows of each in memory; it may be in groups."""
    majors = matmul.a_major.value, matmul.b_major.value
    if majors != ("mn", "mn"):
        rule = "tiling: A and B of a dynamic K must have M and N contiguous"
        raise refused(matmul, f"{rule}, got majors {majors}; transpose them before the kernel")
    grouped = isinstance(matmul, GroupedMatmulOp) and matmul.of_depth
    if type(matmul) is not MatmulOp and not grouped:
        rule = "tiling: K may be dynamic of one product of matrices, or in groups"
        raise refused(matmul, f"{rule}, got {matmul.operation.name}; give K a number")


def _check_stack(
    matmul: MatmulOp, shapes: dict[str, Any], dynamic: dict[str, list[int]], tiling: TileChoice
) -> None:
    """Check that the only dynamic sizes of a stack are its number of matrices, or that and their
    rows."""
    stacked = {name: [0] if type_.rank == 3 else [] for name, type_ in shapes.items()}
    rows_of_a = matmul.a.type.rank - (1 if matmul.a_major.value == "mn" else 2)
    with_rows = {**stacked, "C": [0, 1], "A": [*stacked["A"], rows_of_a]}
    grouped = isinstance(matmul, (GroupedMatmulOp, *GROUPED_PRODUCTS))
    if grouped or dynamic not in (stacked, with_rows):
        got = ", ".join(str(type_) for type_ in shapes.values())
        rule = "tiling: of a stack the number of matrices may be dynamic, and with it their rows"
        raise refused(matmul, f"{rule}, got {got}; give the others numbers")
    if dynamic == stacked:
        return
    most, rows = row_bounds(matmul)[1], tiling.tile[1]
    if tiling.swap and most > rows:
        rule = f"tiling: swap of stacks of any M must have all rows in a tile of {rows}"
        raise refused(matmul, f"{rule}, got up to {most}; bound tile.rows, or leave swap out")


def _check_reads(matmul: MatmulOp, reads: str) -> None:
    """Refuse views of what a group, or a launch, has of K: its steps are of whole tiles."""
    of_groups = isinstance(matmul, GroupedMatmulOp) and matmul.of_depth
    of_any = type(matmul) is MatmulOp and not matmul.a.type.has_static_shape
    of_any = of_any and not dynamic_dims(matmul.c.type)
    if reads != "tiles" and (of_groups or of_any):
        which = "grouped" if of_groups else "dynamic"
        rule = f"tiling: operands must be tiles where K is {which}, got {reads}"
        raise refused(matmul, f"{rule}; leave it out")


def _build_body(tiling: TileChoice, operands: Operands) -> None:
    """The loop over K tiles that adds to the accumulator, and the stores of what it then holds."""
    m, n, k = tiling.tile
    kind = tiling.matmul.epilogue.blocks[0].arguments[0].type
    acc = AccumulatorOp(acc=AccumulatorType.of(m, n, kind)).acc
    first, one = _index(0), _index(1)
    if operands.group_depth:
        steps = steps_at(operands.group_depth, k)
    elif is_of_any_depth(operands.a.type):
        steps = steps_of_any(operands.a, k)
    else:
        steps = _index(tiles_along(operands.depth, k))
    loop = scf.ForOp(first, steps, one)
    with ir.InsertionPoint(loop.body):
        emit_step(tiling, operands, Step(acc, loop.induction_variable, first))
        scf.YieldOp([])
    if tiling.lanes > 1:
        AddLanesOp(acc=acc, lanes=attribute_of(tiling.lanes))
    where = {"acc": acc, "i": operands.row, "j": operands.column}
    store_outputs(tiling.matmul, operands.outputs, where)


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result


def k_tiles(kernel: KernelOp) -> int:
    """Steps along K of the one loop, 0 where a launch says them."""
    return len(iterations_of(walk(kernel, scf.ForOp)[0]) or ())
