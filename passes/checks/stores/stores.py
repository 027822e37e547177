"""Checks of stores: their destination, their pieces, and what epilogues read."""

from __future__ import annotations

from typing import Any

from ....dialects import legality, store_legality
from ....dialects.dtypes import BESIDE_DTYPES, stored_dtype
from ....dialects.epilogue import NARROW
from ....dialects.mlir import ir
from ....dialects.ragged_maps import is_ragged
from ....dialects.target import Target
from ....dialects.tile import ElementOp, GatheredStoreOp, KernelOp, ReducedStoreOp, StagedStoreOp
from ....dialects.tile.batches import transposed_view
from ....dialects.tile.groups import GroupOp
from ....dialects.tile.outputs import StoreGroupsOp
from ....dialects.tile.parts import ANY, ZERO
from ....dialects.tile.quantized import StoreQuantizedOp
from ....dialects.tile.staged_quantized import StagedQuantizedOp
from ....dialects.tile_types import TensorMapType, bits_of, integers_of
from ....dialects.verify import boxes_swizzle, lies_in_rows, products_of, tile_of_c
from ...base import SWAPPED_ATTRIBUTE, defining_op, is_swapped, refused, require, walk
from ...batches import argument_of, transposed_of, view_of_map
from ...duals import arg_names, first_other
from ...dynamic_rows import row_bounds
from ...groups import rows_of_group
from ...indices import known_part, place_of, span
from ...outputs import SCALES as SCALES_OF_C
from ...outputs import output_of, outputs_of
from ...tensor_maps import byte_map, map_type
from ..products.operands import check_index, check_map
from ..products.swapped import is_transposed_element

QUANTIZING = (StoreQuantizedOp.OPERATION_NAME, StagedQuantizedOp.OPERATION_NAME)
GROUPED = (StoreGroupsOp.OPERATION_NAME, *QUANTIZING)


def check_store(kernel: KernelOp, op: Any, target: Target) -> None:
    """Where the sums go, and what the epilogue reads."""
    _check_output(kernel, op, target)
    if op.operation.name in QUANTIZING:
        _check_quantized(kernel, op, target)
    _check_parts(kernel, op, target)
    stored = _stored_matrix(kernel, op)
    _check_matrix(kernel, op, stored, target)
    if _is_by_tma(op):
        _check_staging(op, stored, target)
    elif isinstance(op, StagedStoreOp):
        _check_staging_by_threads(op, stored, target)


def _is_by_tma(op: Any) -> bool:
    return isinstance(op, StagedStoreOp) and isinstance(op.to.type, TensorMapType)


def _check_output(kernel: KernelOp, op: Any, target: Target) -> None:
    """It is one of the kernel's outputs, of a type that this chip converts to."""
    if output_of(op) not in outputs_of(kernel):
        raise refused(op, "views: must store to c, the last view, got another; swap it")
    element = str(ir.MemRefType(output_of(op).type).element_type)
    if element in NARROW and not target.narrow_floats:
        rule = f"views: {target.chip} converts nothing to 8-bit floats"
        raise refused(op, f"{rule}, got an output of {element}; convert it outside")


def _check_parts(kernel: KernelOp, op: Any, target: Target) -> None:
    """Parts of K, over a cluster or the grid, are added up where there are any."""
    split, over_grid = integers_of(kernel.cluster)[2], integers_of(kernel.grid)[2]
    if (split > 1) != isinstance(op, ReducedStoreOp):
        raise refused(
            op, f"cluster: a tile.reduced_store sums over CTAs along z, got {split} of them"
        )
    if split == 1:
        _check_gathered(op, over_grid)
    if over_grid > 1 and products_of(op) > 1:
        require(op, legality.dual_split(target), "drop split-k", "cluster: ")


def _stored_matrix(kernel: KernelOp, op: Any) -> ir.MemRefType:
    """The matrix that it stores to, with rows as the sums have them."""
    transposed, to = is_transposed(op), op.to if isinstance(op, StagedStoreOp) else op.view
    if transposed != is_swapped(kernel):
        wanted = f"{SWAPPED_ATTRIBUTE} says whether rows of sums are columns of c"
        raise refused(op, f"views: {wanted}, got a store of the other kind; transpose its view")
    stored = view_of_map(to) if _is_by_tma(op) else to.type
    stored = transposed_view(stored) if _is_by_tma(op) and transposed else stored
    if stored.rank != 2:
        raise refused(op, f"views: must store to one matrix, got {stored}; take it by tile.matrix")
    return stored


def _check_matrix(kernel: KernelOp, op: Any, stored: ir.MemRefType, target: Target) -> None:
    """It covers the matrix of c, from the tile's place on, through buffers of its own."""
    shape = list(ir.MemRefType(outputs_of(kernel)[0].type).shape)[-2:]
    shape = shape[::-1] if is_transposed(op) else shape
    grouped = op.operation.name in GROUPED
    columns = getattr(op, "columns", None)
    if (columns.value if columns else stored.shape[1]) != shape[1]:
        raise refused(
            op,
            f"views: must store the {shape[1]} columns of c, "
            "got others; store to a view of all of them",
        )
    if grouped and walk(kernel, GroupOp):
        raise refused(op, "views: rows in groups reduce no neighbours, got one; drop it")
    if grouped and target.threads_multiply:
        raise refused(op, f"views: threads of {target.mma.name} reduce no groups; take another MMA")
    for axis, index in enumerate((op.i, op.j)):
        _check_place(kernel, op, axis, index, shape[axis])
    staging = op.staging if isinstance(op, StagedStoreOp) else None
    ring = op.partials if isinstance(op, ReducedStoreOp) else staging
    if ring is not None and len(list(ring.uses)) != 1:
        raise refused(
            op, "views: the buffers of a store must be its own, got others' too; give it a ring"
        )


def is_transposed(op: Any) -> bool:
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
            f"tiles: must store to the {'MN'[axis]} place of its tile, "
            "got another index; store there",
        )
    count = (span(kernel, form) or (0, 0))[1] + 1
    if form != known_part(kernel, form):
        return  # there is a CTA for each tile, or a loop over all of them
    extent = row_bounds(kernel)[1] if extent < 0 else extent
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
        whole = map_type(view, smem, 2, lambda _: None) if is_transposed(op) else None
        check_map(op, op.to, smem, whole)
    if rows_of_group(op.to) is not None and not is_ragged(map_):
        rule = "views: a map that stores rows of a group must end with them"
        raise refused(op, f"{rule}, got dims {map_.dims}; take a ragged map")
    layout = smem.layout
    lines = layout.chunks == 1 or layout.major == "mn"
    lines = lines and lies_in_rows(layout, layout.major)
    if not lines or boxes_swizzle(layout) != map_.swizzle:
        raise refused(
            op, f"views: staging must be rows of one chunk in the map's swizzle, got {smem}"
        )
    contiguous = view.shape[0 if is_transposed(op) else 1]
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
    broken = store_legality.staged_pairs(target, view.shape[1])
    require(op, broken, "store by threads without staging", "views: ")


def check_element(kernel: KernelOp, op: ElementOp, transposed: bool) -> None:
    """What an epilogue reads beside the sum: a view of the kernel, as large as C is along it.

    `transposed` says whether the rows of what is stored are columns of C.
    """
    arguments, outputs = list(kernel.body.blocks[0].arguments), outputs_of(kernel)
    shape = list(ir.MemRefType(outputs[0].type).shape)[-2:]
    shape = shape[::-1] if transposed else shape
    if is_transposed_element(op) != (transposed and op.axes.value == "mn"):
        wanted = f"{SWAPPED_ATTRIBUTE} says whether operands as large as c are transposed"
        raise refused(op, f"views: {wanted}, got a read of the other kind; transpose its view")
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
