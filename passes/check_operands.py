"""The rules of `check_kernel` on views, tiles and indices: what loads and stores say."""

from __future__ import annotations

from typing import Any

from ..dialects import legality
from ..dialects.dtypes import (
    BESIDE_DTYPES,
    operand_dtype,
    scaled_dtype,
    stored_dtype,
)
from ..dialects.epilogue import NARROW
from ..dialects.layout import TileLayout
from ..dialects.mlir import ir
from ..dialects.ragged_maps import is_ragged, plain_rank, ragged_map
from ..dialects.target import Target
from ..dialects.tile import (
    CopyOp,
    ElementOp,
    GatheredStoreOp,
    KernelOp,
    LoadOp,
    PairMmaOp,
    PairRankOp,
    ReducedStoreOp,
    StagedStoreOp,
    TmaMulticastOp,
)
from ..dialects.tile_batches import map_of_stack, turned_view
from ..dialects.tile_duals import DUAL_MMAS
from ..dialects.tile_groups import GroupOp
from ..dialects.tile_outputs import StoreGroupsOp
from ..dialects.tile_parts import ANY, ZERO
from ..dialects.tile_quantized import StoreQuantizedOp
from ..dialects.tile_staged_quantized import StagedQuantizedOp
from ..dialects.tile_types import TensorMapType, bits_of, dynamic_dims, integers_of
from ..dialects.verify import products_of, tile_of_c
from .argument_layouts import is_apart
from .base import SWAPPED_ATTRIBUTE, defining_op, is_swapped, refused, require, walk
from .batches import (
    argument_of,
    map_definition,
    matrix_of,
    steps_of,
    transposed_of,
    view_of_map,
)
from .check_scales import (
    check_scale_load,
    check_scale_views,
    scale_names,
    scales_stack,
)
from .duals import B2, arg_names, first_other, is_dual, operand_names
from .groups import columns_of_group, part_of_group, rows_of_group
from .indices import LinearForm, known_part, linear_form, place_of, span
from .outputs import SCALES as SCALES_OF_C
from .outputs import count_outputs, output_of, outputs_of
from .tensor_maps import byte_map, map_type

GLOBAL = 1
QUANTIZING = (StoreQuantizedOp.OPERATION_NAME, StagedQuantizedOp.OPERATION_NAME)
GROUPED = (StoreGroupsOp.OPERATION_NAME, *QUANTIZING)
REACH = 2**31
AXES = "mn"


def check_views(kernel: KernelOp) -> None:
    """The kernel's arguments: their names, where they lie and how."""
    check_scale_views(kernel)
    scales = scale_names(kernel)
    names, operands = arg_names(kernel), operand_names(kernel)
    if bool(walk(kernel, DUAL_MMAS)) != is_dual(kernel):
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
            raise refused(kernel, f"views: c_scales must be atoms, got {scales.type}; fix it")
    for number, other in enumerate(others, 1):
        wanted, got = (list(ir.MemRefType(each.type).shape)[:-1] for each in (c, other))
        if got != wanted:
            raise refused(
                kernel, f"views: c{number} must have the rows of c, {wanted}, got {got}; fix it"
            )


def _check_strides(kernel: KernelOp, name: str, type_: ir.MemRefType, is_operand: bool) -> None:
    known = [extent for extent in type_.shape if extent >= 0]
    if len(known) < type_.rank and not _has_dynamic_rows(name, type_):
        rule = (
            f"views: {name} must have a known shape, but for rows of a, c and what is read beside c"
        )
        raise refused(kernel, f"{rule}, got {type_}")
    try:
        strides, offset = type_.get_strides_and_offset()
    except RuntimeError:  # a layout that no strides say
        strides, offset = [], 0
    shape = [2 if axis in dynamic_dims(type_) else size for axis, size in enumerate(type_.shape)]
    ranks = (2, 3) if is_operand else (0, 1, 2, 3)
    apart = is_apart(shape, strides) or (is_operand and is_apart(_turned(shape), _turned(strides)))
    fits = type_.rank in ranks and len(strides) == type_.rank and apart
    if offset or not fits or min(known, default=1) < 1:
        rule = f"views: {name} must have rows whose elements lie side by side, apart from others"
        raise refused(kernel, f"{rule}, got {type_}")
    element = str(type_.element_type)
    known = operand_dtype(element) or scaled_dtype(element) if is_operand else stored_dtype(element)
    if known is None:
        raise refused(kernel, f"views: {name} has elements that no kernel takes, got {type_}")


def _has_dynamic_rows(name: str, type_: ir.MemRefType) -> bool:
    """Whether of a view's extents the rows alone are dynamic, and it may have such."""
    return name != "b" and dynamic_dims(type_) == [0] and type_.rank <= 2


def _turned(dims: list[int]) -> list[int]:
    """With the last two exchanged."""
    return [*dims[:-2], *dims[:-3:-1]]


def check_load(kernel: KernelOp, op: Any, target: Target) -> None:
    """One copy of an operand's tile, or of its scales."""
    if op.tile.type.layout.is_of_scales:
        check_scale_load(kernel, op)
        forms = _check_extents(kernel, op)
        if isinstance(op, TmaMulticastOp):
            _check_line(kernel, op, forms)
        return
    view, tile = loaded_argument(op), op.tile.type
    names = operand_names(kernel)
    if not isinstance(view.owner, ir.Block) or ir.BlockArgument(view).arg_number >= len(names):
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
    if isinstance(op, TmaMulticastOp):
        _check_line(kernel, op, forms)


def _check_extents(kernel: KernelOp, op: Any) -> list[LinearForm]:
    layout = op.tile.type.layout
    extents = (op.i, layout.mn), (op.j, layout.k)
    return [check_index(kernel, op, index, extent) for index, extent in extents]


def loaded_argument(op: Any) -> Any:
    """The kernel's argument that an op loads from."""
    by_threads = isinstance(op, LoadOp | CopyOp)
    return argument_of(op.view) if by_threads else map_definition(op.map).view


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
    reach = None if form is None else span(kernel, known_part(kernel, form))
    if form is None or reach is None:
        raise refused(
            op,
            "indices: must be sums and products by constants of counters and places, got another; "
            "compute them by arith.addi, subi and muli",
        )
    if max(abs(end) for end in reach) * extent + extent > REACH:
        raise refused(
            op,
            f"indices: tiles of {extent} must start below {REACH}, got {reach[0]} to {reach[1]}; "
            "shorten the loop",
        )
    return form


def _check_line(kernel: KernelOp, op: TmaMulticastOp, forms: list[LinearForm]) -> None:
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


def check_store(kernel: KernelOp, op: Any, target: Target) -> None:
    """Where the sums go, and what the epilogue reads."""
    staged = isinstance(op, StagedStoreOp)
    by_tma = staged and isinstance(op.to.type, TensorMapType)
    to = op.to if staged else op.view
    if output_of(op) not in outputs_of(kernel):
        raise refused(op, "views: must store to c, the last view, got another; swap it")
    element = str(ir.MemRefType(output_of(op).type).element_type)
    if element in NARROW and not target.narrow_floats:
        rule = f"views: {target.chip} converts nothing to 8-bit floats"
        raise refused(op, f"{rule}, got an output of {element}; convert it outside")
    if op.operation.name in QUANTIZING:
        _check_quantized(kernel, op, target)
    split, over_grid = integers_of(kernel.cluster)[2], integers_of(kernel.grid)[2]
    if (split > 1) != isinstance(op, ReducedStoreOp):
        raise refused(
            op, f"cluster: a tile.reduced_store sums over CTAs along z, got {split} of them"
        )
    if split == 1:
        _check_gathered(op, over_grid)
    if over_grid > 1 and products_of(op) > 1:
        require(op, legality.dual_split(target), "drop split-k", "cluster: ")
    stored = view_of_map(to) if by_tma else to.type
    turned = is_turned(op)
    if turned != is_swapped(kernel):
        wanted = f"{SWAPPED_ATTRIBUTE} says whether rows of sums are columns of c"
        raise refused(op, f"views: {wanted}, got a store of the other kind; transpose its view")
    stored = turned_view(stored) if by_tma and turned else stored
    if stored.rank != 2:
        raise refused(op, f"views: must store to one matrix, got {stored}; take it by tile.matrix")
    shape = list(ir.MemRefType(outputs_of(kernel)[0].type).shape)[-2:]
    shape = shape[::-1] if turned else shape
    grouped = op.operation.name in GROUPED
    columns = getattr(op, "columns", None)
    if (columns.value if columns else stored.shape[1]) != shape[1]:
        raise refused(op, f"views: must store the {shape[1]} columns of c, got others; fix it")
    if grouped and walk(kernel, GroupOp):
        raise refused(op, "views: rows in groups reduce no neighbours, got one; drop it")
    if grouped and target.threads_multiply:
        raise refused(op, f"views: threads of {target.mma.name} reduce no groups; take another MMA")
    for axis, index in enumerate((op.i, op.j)):
        _check_place(kernel, op, axis, index, shape[axis])
    ring = op.staging if staged else op.partials if split > 1 else None
    if ring is not None and len(list(ring.uses)) != 1:
        raise refused(
            op, "views: the buffers of a store must be its own, got others' too; give it a ring"
        )
    if by_tma:
        _check_staging(op, stored, target)
    elif staged:
        _check_staging_by_threads(op, stored, target)


def is_turned(op: Any) -> bool:
    """Whether a store has the rows of C for its columns."""
    if isinstance(op, StagedStoreOp) and isinstance(op.to.type, TensorMapType):
        return op.staging.type.tiles[0].layout.major == "mn"
    return transposed_of(op.to if isinstance(op, StagedStoreOp) else op.view) is not None


def _check_gathered(op: Any, parts: int) -> None:
    """Sums of the parts of a grid: as many as there are CTAs along z, in memory of their own."""
    gathers = isinstance(op, GatheredStoreOp)
    if gathers != (parts > 1) or (gathers and op.parts != parts):
        got = f"{op.operation.name} and {parts} CTAs along z"
        raise refused(op, f"grid: a tile.gathered_store sums the parts of a grid, got {got}")
    starts = (("partials", ANY), ("arrivals", ZERO)) if gathers else ()
    for name, start in starts:
        memory = getattr(op, name)
        if defining_op(memory).start.value != start or len(list(memory.uses)) != 1:
            rule = f"grid: {name} must be a workspace of their own that starts with {start}"
            raise refused(op, f"{rule}, got {defining_op(memory).start.value}")


def _check_quantized(kernel: KernelOp, op: Any, target: Target) -> None:
    """Whether the chip converts to the elements, and the scales are an output of their own."""
    dtype = stored_dtype(str(ir.MemRefType(output_of(op).type).element_type))
    assert dtype is not None  # its verifier knows the format
    if dtype.bits < 8:
        require(op, legality.small_floats(target, dtype.name), where="views: ")
    if dtype.bits == 6 and not target.has_tensor_memory:
        rule = f"views: threads of {target.mma.name} have pairs of a row, and no whole bytes"
        raise refused(op, f"{rule} of {dtype.name}; store mxfp8, which holds its values")
    if argument_of(op.scales) != outputs_of(kernel)[-1] or SCALES_OF_C not in arg_names(kernel):
        raise refused(op, f"views: scales must be those of {SCALES_OF_C}, got others; swap them")


def _check_place(kernel: KernelOp, op: Any, axis: int, index: ir.Value, extent: int) -> None:
    tile = tile_of_c(op)[axis]
    form = check_index(kernel, op, index, tile)
    if not form.is_just(index) or place_of(index) != axis:
        raise refused(
            op,
            f"tiles: must store to the {'MN'[axis]} place of its tile, got another index; fix it",
        )
    count = (span(kernel, form) or (0, 0))[1] + 1
    if form != known_part(kernel, form):
        return  # there is a CTA for each tile, or a loop over all of them
    if count * tile < extent:
        raise refused(
            op,
            f"tiles: {-(-extent // tile)} tiles of {tile} must cover c along {'MN'[axis]}, got "
            f"{count}; launch more CTAs, or loop over more tiles",
        )


def _check_staging(op: StagedStoreOp, view: ir.MemRefType, target: Target) -> None:
    smem, map_ = op.staging.type.tiles[0], op.to.type
    if isinstance(op, StagedQuantizedOp):
        check_map(op, op.to, smem, byte_map(view, smem))
        if op.element.value != view.element_type:
            rule = f"views: must store the {view.element_type} of c"
            raise refused(op, f"{rule}, got {op.element.value}; swap it")
    else:
        whole = map_type(view, smem, 2, lambda _: None) if is_turned(op) else None
        check_map(op, op.to, smem, whole)
    if rows_of_group(op.to) is not None and not is_ragged(map_):
        rule = "views: a map that stores rows of a group must end with them"
        raise refused(op, f"{rule}, got dims {map_.dims}; take a ragged map")
    layout = smem.layout
    lines = layout.chunks == 1 or layout.major == "mn"
    if not lines or layout.swizzle != map_.swizzle:
        raise refused(
            op, f"views: staging must be rows of one chunk in the map's swizzle, got {smem}"
        )
    contiguous = view.shape[0 if is_turned(op) else 1]
    row_bytes = contiguous * bits_of(view.element_type) // 8
    if row_bytes % target.tma_alignment_bytes:
        raise refused(
            op,
            f"views: rows of c must be whole units of {target.tma_alignment_bytes} bytes for TMA, "
            f"got {row_bytes} bytes; store by threads",
        )


def _check_staging_by_threads(op: StagedStoreOp, view: ir.MemRefType, target: Target) -> None:
    smem = op.staging.type.tiles[0]
    if smem.layout.major != "k" or smem.layout.chunks != 1 or smem.element != view.element_type:
        raise refused(
            op, f"views: staging must be rows of one chunk of {view.element_type}, got {smem}"
        )
    broken = legality.staged_pairs(target, view.shape[1])
    require(op, broken, "store by threads without staging", "views: ")


def check_element(kernel: KernelOp, op: ElementOp) -> None:
    """What an epilogue reads beside the sum: a view of the kernel, as large as C is along it."""
    arguments, outputs = list(kernel.body.blocks[0].arguments), outputs_of(kernel)
    shape = list(ir.MemRefType(outputs[0].type).shape)[-2:]
    wanted = {"": [], "m": shape[:1], "n": shape[1:], "mn": shape}.get(op.axes.value)
    known = argument_of(op.source) in arguments[first_other(kernel) : -len(outputs)]
    stored = stored_dtype(str(op.value.type))
    if stored is None or stored.name not in BESIDE_DTYPES:
        known_types = ", ".join(BESIDE_DTYPES)
        raise refused(op, f"views: must read elements of {known_types}, got {op.value.type}")
    if not known or list(op.source.type.shape) != wanted:
        raise refused(
            op,
            f"views: must read a view of shape {wanted} between b and c, got {op.source.type}",
        )
