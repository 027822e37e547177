"""Limits of MMAs with block scales, and of memories that hold scales; see `legality`."""

from __future__ import annotations

from collections.abc import Sequence

from .dtypes import ScaledMma
from .layout import BLOCKED, HALVED, SHIFTED, TileLayout
from .legality import RESERVED_BYTES
from .target import Target, targets_with

SCALED_ROWS = 128  # of one CTA's block-scaled MMA (PTX ISA, tcgen05.mma, shapes)
PAIRED_ROWS = 64  # of each CTA of the smaller MMA of a pair
SCALED_STEP = 32  # columns whose scales are one column of tensor memory
SCALED_BYTES_MAX = 256  # of a tile's row along K
SCALE_PLACES = 2  # in tensor memory for the scales of a K step, where several are under way


def scaled_kind(target: Target, mma: ScaledMma) -> str | None:
    """The MMA has the kind with block scales (PTX ISA, tcgen05.mma and mma.sync: target notes)."""
    if mma.kind in target.mma.scaled_kinds:
        return _scales_of_fragments(target, mma)
    others = targets_with(lambda other: mma.kind in other.mma.scaled_kinds)
    cure = "multiply operands without scales, or compile for that"
    return f"{target.mma.name} of {target.chip} takes no block scales, {others} does; {cure}"


def _scales_of_fragments(target: Target, mma: ScaledMma) -> str | None:
    """mma.sync takes four powers of two a row from PTX 9.1 on (ptxas 13.5)."""
    if not target.mma.fragments or (mma.scale, mma.block) != ("ue8m0", 16):
        return None
    rule = f"{target.mma.name} of {target.chip} takes {mma.scale} by {mma.block} from PTX 9.1 on"
    return f"{rule}, kernels are of PTX 8.8; scale by 32, or by ue4m3"


def scaled_rows(target: Target, m: int) -> str | None:
    """A block-scaled MMA has 128 rows, of a pair 64 or 128 a CTA (PTX ISA, tcgen05.mma, shapes)."""
    if (m % SCALED_ROWS == 0 and m <= target.box_max) or (target.mma.pairs and m == PAIRED_ROWS):
        return None
    or_less = f"{PAIRED_ROWS}, or " if target.mma.pairs else ""
    return (
        f"tile M must be {or_less}a multiple of {SCALED_ROWS} up to {target.box_max} with block "
        f"scales, got {m}"
    )


def scaled_pair(m: int, pair: bool) -> str | None:
    """Tiles of 64 rows are for pairs (PTX ISA, tcgen05.mma, shapes of block-scaled kinds)."""
    if m != PAIRED_ROWS or pair:
        return None
    rule = f"block scales with {PAIRED_ROWS} rows a CTA are for 2-CTA MMAs, got a CTA alone"
    return f"{rule}; run clustering{{shape=2x1 pair=true}}"


def scaled_columns(target: Target, n: int) -> str | None:
    """The scales of a tile's columns begin at a column of tensor memory."""
    if n % SCALED_STEP == 0 and n <= target.mma.n_max:
        return None
    most = target.mma.n_max
    return f"tile N must be a multiple of {SCALED_STEP} up to {most} with block scales, got {n}"


def scaled_depth(mma: ScaledMma, k: int) -> str | None:
    """A tile's K is whole atoms of scales."""
    if k % mma.unit == 0 and mma.operand_bytes(k) <= SCALED_BYTES_MAX:
        return None
    most = SCALED_BYTES_MAX * k // mma.operand_bytes(k)
    return f"tile K must be a multiple of {mma.unit} up to {most} for {mma.kind}, got {k}"


def scaled_extent(mma: ScaledMma, k: int) -> str | None:
    """The last MMA along K reads no scales but those of K: what pads an atom may be NaN."""
    if k % mma.k == 0:
        return None
    return f"the last {mma.kind} of {mma.k} reads what pads the scales of K {k}"


def scale_tiles(mma: ScaledMma, tile: Sequence[int]) -> tuple[TileLayout, TileLayout]:
    """How the scales of a tile's rows and columns lie in shared memory."""
    m, n, k = tile
    forms = (SHIFTED, HALVED) if m == PAIRED_ROWS else (BLOCKED, BLOCKED)
    a, b = (
        TileLayout(extent, k // mma.block, 1, "k", form)
        for extent, form in zip((m, n), forms, strict=True)
    )
    return a, b


def scaled_memory(target: Target, mma: ScaledMma, tile: Sequence[int]) -> str | None:
    """Tiles of A and B and their scales fit the shared memory of a CTA."""
    m, n, k = tile
    scales = sum(layout.slot_bytes for layout in scale_tiles(mma, tile))
    needed = (m + n) * mma.operand_bytes(k) + scales
    if needed + RESERVED_BYTES <= target.shared_bytes:
        return None
    return (
        f"tile {m}x{n}x{k} needs {needed} bytes of shared memory for A, B and scales and "
        f"{RESERVED_BYTES} for barriers, over the {target.shared_bytes} of {target.chip}"
    )


def scaled_tensor_memory(
    target: Target, mma: ScaledMma, tile: Sequence[int], buffers: int = 1, places: int = 1
) -> str | None:
    """Accumulators and the scales of `places` K steps fit tensor memory, where there is one."""
    if not target.has_tensor_memory:
        return None
    m, n, k = tile
    sums, scales = _held_columns(target, mma, tile, buffers, places)
    if sums + scales <= target.tmem_columns:
        return None
    return (
        f"tile {m}x{n}x{k} needs {sums} tensor-memory columns for sums and {scales} for scales, "
        f"over the {target.tmem_columns} of {target.chip}"
    )


def scaled_columns_over(
    target: Target, mma: ScaledMma, tile: Sequence[int], buffers: int, places: int = SCALE_PLACES
) -> int:
    """By how many columns accumulators of whole MMAs and scales are more than tensor memory has.

    0 where they fit, and where a tile has no MMA of 128 rows, whose columns are those of the tile.
    """
    if not target.has_tensor_memory or tile[0] != SCALED_ROWS:
        return 0
    return max(0, sum(_held_columns(target, mma, tile, buffers, places)) - target.tmem_columns)


def _held_columns(
    target: Target, mma: ScaledMma, tile: Sequence[int], buffers: int, places: int
) -> tuple[int, int]:
    """Columns of sums, and of scales."""
    scales = places * sum(layout.scale_columns for layout in scale_tiles(mma, tile))
    return buffers * target.accumulator_columns(*tile[:2]), scales
