"""Checks of views, tiles and indices of loads and stores."""

from __future__ import annotations

from typing import Any

from ....dialects import legality
from ....dialects.dtypes import operand_dtype, scaled_dtype, stored_dtype
from ....dialects.layout import TileLayout
from ....dialects.mlir import ir
from ....dialects.ragged_maps import is_ragged, plain_rank, ragged_map
from ....dialects.target import Target
from ....dialects.tile import CopyOp, KernelOp, LoadOp, PairMmaOp, PairRankOp, TmaMulticastOp
from ....dialects.tile.batches import map_of_stack
from ....dialects.tile.blockwise import BLOCKWISE_MMAS
from ....dialects.tile.boxes import MulticastBoxesOp
from ....dialects.tile.duals import DUAL_MMAS
from ....dialects.tile.sums import DualLaneMmaOp
from ....dialects.tile_types import TensorMapType, dynamic_dims, integers_of
from ...argument_layouts import any_extents, is_non_overlapping
from ...base import refused, require, target_of, walk
from ...batches import (
    loaded_argument,
    map_definition,
    matrix_of,
    steps_of,
    transposed_of,
    view_of_map,
)
from ...duals import B2, arg_names, is_dual, operand_names
from ...dynamic_rows import (
    counted_extent,
    has_dynamic_depth,
    has_dynamic_rows,
    has_dynamic_stack,
    is_of_any_depth,
    module_of,
    rows_multiple,
)
from ...groups import columns_of_group, part_of_group
from ...indices import LinearForm, known_part, linear_form, place_of, span
from ...outputs import SCALES as SCALES_OF_C
from ...outputs import count_outputs
from ...shared_scales import scale_names
from ...tensor_maps import map_type
from ...weights import weight_names
from .scales import SCALES, check_scale_load, check_scale_views, scales_stack

GLOBAL = 1
REACH = 2**31
AXES = "mn"


def check_views(kernel: KernelOp) -> None:
    """The kernel's arguments: their names, where they lie and how."""
    check_scale_views(kernel)
    scales = [*scale_names(kernel), *weight_names(kernel)]
    names, operands = arg_names(kernel), operand_names(kernel)
    if bool(walk(kernel, (*DUAL_MMAS, DualLaneMmaOp))) != is_dual(kernel):
        rule = f"views: the third must be {B2} where MMAs have two products, and nowhere else"
        raise refused(kernel, f"{rule}, got {names}; rename them")
    outputs, first = count_outputs(names), tuple(names[: len(operands)])
    if first != operands or not outputs or len(set(names)) != len(names):
        wanted = ", ".join(operands)
        raise refused(
            kernel,
            f"views: must be named {wanted}, what the epilogue reads, c, got {names}; rename them",
        )
    _check_outputs(kernel, outputs)
    for number, argument in enumerate(kernel.body.blocks[0].arguments):
        type_ = ir.MemRefType(argument.type)
        space = type_.memory_space
        if not isinstance(space, ir.IntegerAttr) or space.value != GLOBAL:
            raise refused(
                kernel, f"views: {names[number]} must be in memory space {GLOBAL}, got {type_}"
            )
        if names[number] not in (*scales, SCALES_OF_C):
            _check_strides(kernel, names[number], type_, number < len(operands))


def _check_outputs(kernel: KernelOp, count: int) -> None:
    """All outputs have the rows of c; how many columns, those say that store them."""
    c, *others = list(kernel.body.blocks[0].arguments)[-count:]
    if SCALES_OF_C in arg_names(kernel):
        scales = others.pop()
        if scales_stack(ir.MemRefType(scales.type)) is None:
            raise refused(
                kernel,
                "views: c_scales must be atoms, "
                f"got {scales.type}; give the argument the type of atoms",
            )
    for number, other in enumerate(others, 1):
        wanted, got = (list(ir.MemRefType(each.type).shape)[:-1] for each in (c, other))
        if got != wanted:
            raise refused(
                kernel,
                f"views: c{number} must have the rows of c, {wanted}, "
                f"got {got}; give it as many rows",
            )


def _check_strides(kernel: KernelOp, name: str, type_: ir.MemRefType, is_operand: bool) -> None:
    known = [extent for extent in type_.shape if extent >= 0]
    if len(known) < type_.rank and not _has_dynamic_size(kernel, name, type_):
        rule = (
            f"views: {name} must have a known shape, but for rows of a, c and what is read beside c"
            ", matrices of stacks, or K of a and b"
        )
        raise refused(kernel, f"{rule}, got {type_}")
    try:
        strides, offset = type_.get_strides_and_offset()
    except RuntimeError:  # a layout that no strides say
        strides, offset = [], 0
    shape = any_extents(type_.shape)
    ranks = (2, 3) if is_operand else (0, 1, 2, 3)
    apart = is_non_overlapping(shape, strides) or (
        is_operand and is_non_overlapping(_transposed(shape), _transposed(strides))
    )
    fits = type_.rank in ranks and len(strides) == type_.rank and apart
    if offset or not fits or min(known, default=1) < 1:
        rule = f"views: {name} must have rows whose elements lie side by side, apart from others"
        raise refused(kernel, f"{rule}, got {type_}")
    element = str(type_.element_type)
    known = operand_dtype(element) or scaled_dtype(element) if is_operand else stored_dtype(element)
    if known is None:
        raise refused(kernel, f"views: {name} has elements that no kernel takes, got {type_}")


def _has_dynamic_size(kernel: KernelOp, name: str, type_: ir.MemRefType) -> bool:
    """Whether of a view's extents those alone are dynamic that a launch says, and it may have
    such."""
    dims, of_b, is_operand = dynamic_dims(type_), name in ("b", B2), name in operand_names(kernel)
    has_rows = has_dynamic_rows(kernel)
    if has_dynamic_depth(kernel):
        return is_operand and dims == [1] and not has_rows and _is_of_any_depth(kernel)
    if not has_dynamic_stack(kernel):
        return has_rows and dims == [0] and not of_b and type_.rank <= 2
    if not has_rows or of_b:
        return dims == [0] and (type_.rank == 3 or not is_operand)
    if is_operand:
        return dims == ([0, 1] if type_.rank == 3 else [0])
    return dims == [0] or (dims == [0, 1] and type_.rank > 1)


def _is_of_any_depth(kernel: KernelOp) -> bool:
    """Whether K is dynamic of both operands, and the rows of each in memory."""
    views = [ir.MemRefType(each.type) for each in list(kernel.body.blocks[0].arguments)[:2]]
    steps = [view.get_strides_and_offset()[0] for view in views]
    return all(map(is_of_any_depth, views)) and all(each[0] == 1 for each in steps)


def _transposed(dims: list[int]) -> list[int]:
    """With the last two exchanged."""
    return [*dims[:-2], *dims[:-3:-1]]


def check_load(kernel: KernelOp, op: Any, target: Target) -> None:
    """One copy of an operand's tile, or of its scales."""
    if op.tile.type.layout.is_of_scales:
        check_scale_load(kernel, op)
        if not isinstance(op, LoadOp | CopyOp):
            check_map(op, op.map, op.tile.type)
        forms = _check_extents(kernel, op)
        if isinstance(op, TmaMulticastOp | MulticastBoxesOp):
            _check_line(kernel, op, forms)
        return
    if isinstance(op, LoadOp | CopyOp) and transposed_of(op.view) is not None:
        raise refused(op, "views: must load from a view as it lies, got a tile.transposed; drop it")
    view, tile = loaded_argument(op), op.tile.type
    names = operand_names(kernel)
    known = range(len(names))
    if tile.layout.is_vector and walk(kernel, BLOCKWISE_MMAS):
        names, known = list(SCALES), range(2, 4)
    if not isinstance(view.owner, ir.Block) or ir.BlockArgument(view).arg_number not in known:
        wanted = " or ".join(names)
        raise refused(op, f"views: must load from {wanted}, got another view; swap it")
    _check_major(op, _type_of(op), tile.layout)
    if not isinstance(op, LoadOp | CopyOp):
        check_map(op, op.map, tile)
    forms = _check_extents(kernel, op)
    m, n, _ = integers_of(kernel.cluster)
    if isinstance(op, LoadOp) and m * n > 1:
        raise refused(
            op,
            f"cluster: tiles in no pipe are waited for by their own CTA, got clusters of {m}x{n}; "
            "load into a pipe",
        )
    if isinstance(op, TmaMulticastOp | MulticastBoxesOp):
        _check_line(kernel, op, forms)


def _check_extents(kernel: KernelOp, op: Any) -> list[LinearForm]:
    layout = op.tile.type.layout
    extents = (op.i, layout.mn), (op.j, layout.k)
    return [check_index(kernel, op, index, extent) for index, extent in extents]


def _type_of(op: Any) -> ir.MemRefType:
    """The view of one matrix that an op loads from."""
    return op.view.type if isinstance(op, LoadOp | CopyOp) else view_of_map(op.map)


def _check_major(op: Any, view: ir.MemRefType, layout: TileLayout) -> None:
    strides, _ = view.get_strides_and_offset()
    along, across = (1, 0) if layout.major == "k" else (0, 1)
    fits = strides[along] == 1 and strides[across] >= view.shape[along]
    if not fits and 1 not in view.shape:
        raise refused(
            op,
            f"views: the tile's contiguous axis must be the view's, got {layout.major!r} of {view}",
        )


def check_map(
    op: Any, map_: ir.Value[TensorMapType], smem: Any, whole: TensorMapType | None = None
) -> None:
    """Whether a map says what its view is, the whole one if it is told; the boxes are for the op's
    own verifier."""
    view, found = view_of_map(map_), map_.type
    whole = whole or map_type(view, smem, plain_rank(found), lambda _: None)
    if is_ragged(found) and part_of_group(map_) is not None:
        whole = ragged_map(whole)
    if matrix_of(map_) is not None:
        define = map_definition(map_)
        view, found = define.view.type, define.map.type
        whole = map_of_stack(whole, *steps_of(define.view))
    if columns_of_group(map_) is not None and not is_ragged(found):
        rule = "views: a map of what a group has of K must end with it"
        raise refused(op, f"{rule}, got dims {found.dims}; take a ragged map")
    if whole.strides[:1] < [0]:
        target, multiple = target_of(module_of(op).opview), rows_multiple(op)
        broken = legality.open_pitch(target, -whole.strides[0], multiple)
        require(op, broken, "copy it by threads, or say tile.rows_multiple", "views: ")
    wanted = (whole.element, whole.dims, whole.strides)
    got = (found.element, found.dims, found.strides)
    if wanted != got:
        raise refused(
            op,
            f"views: the tensor map of {view} must have dims {wanted[1]} and strides {wanted[2]} "
            f"of {wanted[0]}, got {got[1]} and {got[2]} of {got[0]}",
        )


def check_index(kernel: KernelOp, op: Any, index: ir.Value, extent: int) -> LinearForm:
    """The linear form of an index of tiles of `extent`."""
    form = linear_form(index)
    parts = max(1, counted_extent(kernel) // extent)  # halves of a tile, in a pair
    reach = None if form is None else span(kernel, known_part(kernel, form, parts))
    if form is None or reach is None:
        raise refused(
            op,
            "indices: must be sums and products by constants of counters and places, got another; "
            "compute them by arith.addi, subi and muli",
        )
    furthest = (max(abs(end) for end in reach) + 1) * extent
    if furthest > REACH:
        rule = f"indices: tiles of {extent} must end at {REACH} or before"
        got = f"{reach[0]} to {reach[1]}, of which one ends at {furthest}"
        raise refused(op, f"{rule}, got {got}; multiply in parts, or shorten the loop")
    return form


def _check_line(kernel: KernelOp, op: Any, forms: list[LinearForm]) -> None:
    """Whether the CTAs of a multicast need one tile, and are as many as it has parts."""
    m, n, _ = integers_of(kernel.cluster)
    pair, axis, parts = bool(walk(kernel, PairMmaOp)), op.axis.value, op.parts.value
    line = n if axis == "n" else m // 2 if pair else m
    if parts != line:
        raise refused(
            op, f"cluster: the parts must be the {line} CTAs of a line along {axis}, got {parts}"
        )
    for value in (value for form in forms for value in form.factors):
        rank = not isinstance(value.owner, ir.Block) and isinstance(value.owner.opview, PairRankOp)
        if place_of(value) == AXES.index(axis) or (rank and not pair):
            raise refused(
                op,
                f"cluster: CTAs along {axis} must need the same tile, got an index that differs "
                "between them; load it for each",
            )
