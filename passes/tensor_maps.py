"""How a tile of a view becomes TMA boxes; shared by the passes that make and change maps.

A tile's chunks (see `dialects.layout`) are the boxes. Rank 2 describes the view as it is, so one
box is one chunk; rank 3 splits the contiguous axis into chunks, so one box is the whole tile:

    rank 2   dims [contiguous, rows]              box [span, rows]
    rank 3   dims [span, rows, contiguous/span]   box [span, rows, chunks]
"""

from __future__ import annotations

from collections.abc import Callable

from ..dialects import legality, store_legality
from ..dialects.dynamic import rows_times, up_to
from ..dialects.layout import ATOM_BYTES, LINEAR, TileLayout
from ..dialects.mlir import ir
from ..dialects.target import Target
from ..dialects.tile.batches import transposed_view
from ..dialects.tile_types import (
    DYNAMIC,
    SmemType,
    TensorMapType,
    bits_of,
    extent_of,
    is_padded,
    moved_bytes,
)
from ..dialects.verify import boxes_swizzle, scale_box
from .batches import is_dynamic_step


def tma_refusal(
    view: ir.MemRefType, layout: TileLayout, target: Target, multiple: int = 1
) -> str | None:
    """Why TMA can't copy tiles of `view` (cuTensorMapEncodeTiled), or None when it can.

    multiple: of which number the rows are multiples that a launch says.
    """
    if layout.is_of_scales:
        return legality.tma(target) or _scales_refusal(view)
    if layout.swizzle == LINEAR:
        return "its tile is linear, as threads read it"
    return _rows_refusal(view, layout, target, multiple)


def piece_refusal(view: ir.MemRefType, layout: TileLayout, target: Target) -> str | None:
    """Why TMA can't move pieces that threads write or read row by row, or None when it can."""
    odd = layout.has_odd_rows
    return vector_refusal(view, layout, target) if odd else tma_refusal(view, layout, target)


def vector_refusal(
    view: ir.MemRefType, layout: TileLayout, target: Target, multiple: int = 1
) -> str | None:
    """Why TMA can't copy vectors out of the rows of `view`, or None when it can."""
    del multiple  # such rows are of scales, or of C
    broken = legality.tma(target) or _rows_refusal(view, layout, target)
    if broken or layout.k <= target.box_max:
        return broken
    return f"a box can have {target.box_max} elements, the tile has {layout.k}"


def _rows_refusal(
    view: ir.MemRefType, layout: TileLayout, target: Target, multiple: int = 1
) -> str | None:
    """What a view breaks of the rules for rows of boxes."""
    contiguous, rows, pitch_bytes = _geometry(view, layout.major)
    broken = legality.tma(target)
    if pitch_bytes < 0:
        broken = broken or legality.open_pitch(target, -pitch_bytes, multiple)
    else:
        broken = broken or legality.row_pitch(target, pitch_bytes, rows)
    broken = broken or legality.box_rows(target, layout.rows)
    if is_padded(view.element_type):
        broken = broken or legality.padded_rows(contiguous, pitch_bytes)
    if broken:
        return broken
    if pitch_bytes >= 2**40 or max(contiguous, rows) > 2**32:
        return f"the view {view} is larger than a tensor map can say"
    return None


def byte_refusal(view: ir.MemRefType, layout: TileLayout, target: Target) -> str | None:
    """Why TMA can't store pieces of packed elements as bytes, or None when it can."""
    contiguous, rows, pitch_bytes = _geometry(view, layout.major)
    broken = legality.tma(target) or legality.row_pitch(target, pitch_bytes, rows)
    broken = broken or legality.box_rows(target, layout.rows)
    if not broken and (pitch_bytes >= 2**40 or max(contiguous, rows) > 2**32):
        return f"the view {view} is larger than a tensor map can say"
    return broken or store_legality.stored_rows(contiguous * bits_of(view.element_type) // 8)


def map_type(
    view: ir.MemRefType, smem: SmemType, rank: int, remark: Callable[[str], None]
) -> TensorMapType:
    """The tensor map that fills `smem` from `view`; falls back to rank 2 with a remark.

    A rank-3 map can't say where a row ends inside a chunk, so it needs whole chunks in a row.
    """
    layout, element = smem.layout, smem.element
    if layout.is_of_scales:
        return scale_map(view, smem)
    rank = 2 if layout.is_vector else rank
    contiguous, rows, pitch_bytes = _geometry(view, layout.major)
    if rows == 1 and pitch_bytes > 0:
        pitch_bytes = _round_up(pitch_bytes, 16)
    span = layout.span
    if rank == 3 and (contiguous == DYNAMIC or contiguous % span):
        known = "any number of" if contiguous == DYNAMIC else str(contiguous)
        remark(
            f"2d boxes instead of 3d: {known} contiguous elements are not a multiple of "
            f"the {span} of one chunk"
        )
        rank = 2
    if rank == 2:
        dims, strides, box = [contiguous, rows], [pitch_bytes], [span, layout.rows]
    else:
        dims = [span, rows, contiguous // span]
        strides = [pitch_bytes, moved_bytes(element, layout.span_bytes)]
        box = [span, layout.rows, layout.chunks]
    return TensorMapType.of(element, dims, strides, box, boxes_swizzle(layout))


def transposed_map(view: ir.MemRefType, smem: SmemType) -> TensorMapType | None:
    """The map of a view whose rows are the columns of a tile that holds them so, else None."""
    transposed = smem.layout.major == "mn"
    return map_type(transposed_view(view), smem, 2, lambda _: None) if transposed else None


def gather_map(view: ir.MemRefType, smem: SmemType) -> TensorMapType:
    """The map of a view's rows, of which a copy gathers several: its box is one row of a chunk."""
    whole = map_type(view, smem, 2, lambda _: None)
    return TensorMapType.of(
        whole.element, whole.dims, whole.strides, [whole.box[0], 1], whole.swizzle
    )


def byte_map(view: ir.MemRefType, smem: SmemType) -> TensorMapType:
    """The map by which pieces of packed elements are stored, as bytes."""
    contiguous, rows, pitch_bytes = _geometry(view, "k")
    row_bytes, layout = contiguous * bits_of(view.element_type) // 8, smem.layout
    box = [layout.span, layout.rows]
    return TensorMapType.of(smem.element, [row_bytes, rows], [pitch_bytes], box, layout.swizzle)


def vector_map_type(view: ir.MemRefType, smem: SmemType) -> TensorMapType:
    """The map of a view of one axis, as a matrix of one row, whose boxes fill `smem`."""
    columns = extent_of(view, 0)
    pitch_bytes = _round_up(columns * smem.layout.element_bytes, 16)
    return TensorMapType.of(smem.element, [columns, 1], [pitch_bytes], [smem.layout.k, 1], "none")


def load_map_type(
    view: ir.MemRefType, smem: SmemType, rank: int, remark: Callable[[str], None], least: int
) -> TensorMapType:
    """`map_type` for a load by one CTA: a view with fewer rows than a K-major tile has boxes of its
    own rows, since TMA takes longer for a row that it fills with zeros than for one it copies.

    In the tile such boxes lie a chunk apart, so several chunks are several boxes of rank 2. A view
    whose rows a launch says has at least `least`; where a tile has more, boxes do as the launch
    says.
    """
    layout = smem.layout
    in_rows = layout.major == "k" and not layout.is_of_scales
    rows = extent_of(view, 0)
    known = least if rows == DYNAMIC else rows
    if not in_rows or known >= layout.rows:
        return map_type(view, smem, rank, remark)
    whole = map_type(view, smem, rank if layout.chunks == 1 else 2, remark)
    own = up_to(layout.rows) if rows == DYNAMIC else rows
    box = [whole.box[0], own, *whole.box[2:]]
    return TensorMapType.of(whole.element, whole.dims, whole.strides, box, whole.swizzle)


def multicast_refusal(layout: TileLayout, parts: int) -> str | None:
    """Why no box is one of `parts` equal parts of a tile, or None where one is."""
    if not layout.is_of_scales:
        return legality.multicast_rows(layout, parts)
    if scale_box(layout, parts) is not None:
        return None
    along_mn, along_k = layout.atoms
    return f"{along_mn}x{along_k} atoms of scales are not {parts} parts of whole halves"


def multicast_map(view: ir.MemRefType, smem: SmemType, parts: int) -> TensorMapType:
    """The rank-2 map whose boxes are one of `parts` equal parts of each chunk's rows."""
    whole = map_type(view, smem, 2, lambda _: None)
    scales = smem.layout.is_of_scales
    box = scale_box(smem.layout, parts) if scales else [whole.box[0], whole.box[1] // parts]
    assert box is not None  # `multicast_refusal` has asked
    return TensorMapType.of(whole.element, whole.dims, whole.strides, box, whole.swizzle)


def scale_map(view: ir.MemRefType, smem: SmemType) -> TensorMapType:
    """The map whose boxes are the atoms of a tile of scales; an atom is two rows of a box."""
    along_mn, along_k = smem.layout.atoms
    rows, blocks = view.shape[:2]
    half = ATOM_BYTES // 2
    dims, strides = [half, 2 * blocks, rows], [half, ATOM_BYTES * blocks]
    return TensorMapType.of(smem.element, dims, strides, [half, 2 * along_k, along_mn], "none")


def _scales_refusal(view: ir.MemRefType) -> str | None:
    """Why no map brings the atoms of a view."""
    if view.rank == 2:
        return "its scales are linear, and no box puts them into atoms"
    if ATOM_BYTES * view.shape[1] < 2**40 and max(view.shape[:2]) < 2**31:
        return None
    return f"the view {view} is larger than a tensor map can say"


def _geometry(view: ir.MemRefType, major: str) -> tuple[int, int, int]:
    """(contiguous extent, rows, row pitch in bytes) of a logical [MN, K] view; rows may be dynamic.

    The pitch of rows that are as long as a launch says is negative, as a map's strides have it.
    Strides alone can't tell the contiguous axis: both are 1 when M or N is.
    """
    strides, _ = view.get_strides_and_offset()
    inner = 1 if major == "k" else 0
    pitch = rows_times(1) if is_dynamic_step(strides[1 - inner]) else strides[1 - inner]
    pitch_bytes = pitch * bits_of(view.element_type) // 8
    return extent_of(view, inner), extent_of(view, 1 - inner), pitch_bytes


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
