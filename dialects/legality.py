"""Limits of a chip, its MMAs and its memories: each rule once, without MLIR.

A function says how its rule is broken, as `rule, got value`, or gives None. Passes raise what it
says, with the op and a cure; the rules of the schedule (`compiler/schedule/rules/`) reject a
candidate by it. So what the choice calls legal is what the passes take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .dtypes import BLOCKWISE, FMA, PADDED_ALIGNMENT_BYTES, PADDED_ROW, DType
from .dynamic import joined
from .hilbert import CELLS_MAX
from .layout import (
    VECTOR_ALIGNMENT,
    TileLayout,
)
from .mma_units import WARP, WARP_COUNTS, WARP_N, fits_warps
from .split_legality import terms_bytes
from .store_legality import STAGED_PAIR_ROWS
from .target import Target, targets_with
from .thread_tiles import ThreadTile

RESERVED_BYTES = 1024  # of a CTA's shared memory: barriers, claims, the tensor-memory address
REGISTER_BYTES = 4
PARTIAL_BYTES = 4  # of an element of a split K's sums, which are added in f32
TILES_MAX = 2**30  # counted in 32 bits, with a step of the whole grid past the last one
HALF_STEP_TYPES = ("bf16", "f16")  # of which 2-CTA MMAs have halves of B of 8 rows
STRIDE_BYTES_MAX = 2**40  # of a tensor map (cuTensorMapEncodeTiled, globalStrides)


def operand_type(target: Target, dtype: str) -> str | None:
    """The MMA multiplies elements of the type (PTX ISA, mma: target notes)."""
    if dtype in target.mma.operands:
        return None
    others = targets_with(lambda other: dtype in other.mma.operands)
    return f"{target.mma.name} of {target.chip} takes no {dtype}, which {others} take"


def tma(target: Target) -> str | None:
    """TMA copies tiles (PTX ISA, cp.async.bulk.tensor: target notes)."""
    if target.async_agents:
        return None
    return f"{target.chip} has no TMA, which {targets_with(lambda other: other.async_agents)} have"


def agents(target: Target) -> str | None:
    """Warps of a CTA do different things where they can sleep at mbarriers (PTX ISA, try_wait)."""
    if target.async_agents:
        return None
    others = targets_with(lambda other: other.async_agents)
    return f"roles wait for each other at mbarriers, which {others} can, got {target.chip}"


def grid_dependencies(target: Target) -> str | None:
    """A grid waits for those before it by griddepcontrol (PTX ISA: sm_90 and later)."""
    if target.async_agents:
        return None
    others = targets_with(lambda other: other.async_agents)
    return f"{target.chip} has no griddepcontrol, which {others} have"


def tile_rows(target: Target, m: int) -> str | None:
    """A tile's rows are whole MMAs and fit a TMA box (PTX ISA, shapes; cuTensorMapEncodeTiled)."""
    if target.mma_rows(m) is not None and m <= target.box_max:
        return None
    return f"tile M must be a multiple of {target.mma.m[0]} up to {target.box_max}, got {m}"


def tile_columns(target: Target, m: int, n: int, integers: bool = False) -> str | None:
    """A tile's columns are those of one MMA, of floats or of integers (PTX ISA, shapes)."""
    rows = target.mma_rows(m) or m
    step = target.mma_n_step(rows, n, integers)
    if n % step == 0 and n <= target.mma.n_max:
        return None
    most = target.mma.n_max
    return f"tile N must be a multiple of {step} up to {most} for an MMA of {rows} rows, got {n}"


def tile_depth(target: Target, k: int, k_per_mma: int, dtype: str) -> str | None:
    """A tile's K is whole MMAs, of `k_per_mma` elements of a type, and fits a TMA box."""
    step = target.k_step(k_per_mma)
    if k % step == 0 and k <= target.box_max:
        return None
    return f"tile K must be a multiple of {step} up to {target.box_max} for {dtype}, got {k}"


def added_depth(target: Target, k: int) -> str | None:
    """Where threads add the products of tiles, they do so at least every 128 elements of K."""
    if not target.adds_products or BLOCKWISE % k == 0:
        return None
    return f"tile K must divide {BLOCKWISE} for {target.mma.name}, got {k}"


def tile_memory(target: Target, tile: Sequence[int], element_bytes: int) -> str | None:
    """One tile of A and one of B fit the shared memory of a CTA, beside what is reserved."""
    m, n, k = tile
    needed = (m + n) * k * element_bytes + terms_bytes(target, tile)
    if needed + RESERVED_BYTES <= target.shared_bytes:
        return None
    terms = ", their terms" if target.mma.splits else ""
    return (
        f"tile {m}x{n}x{k} needs {needed} bytes of shared memory for A and B{terms} and "
        f"{RESERVED_BYTES} for barriers, over the {target.shared_bytes} of {target.chip}"
    )


def accumulator_registers(target: Target, m: int, n: int) -> str | None:
    """An accumulator in registers leaves its threads enough of them."""
    if target.mma_warpgroups(m, n) is not None:
        return None
    return f"tile {m}x{n} needs more than {target.accumulator_limits()} of {target.chip}"


def warp_grid(target: Target, m: int, n: int, grid: Sequence[int], products: int = 1) -> str | None:
    """Each warp of a grid has whole MMAs of a tile, and registers for their sums."""
    if math.prod(grid) <= max(WARP_COUNTS) and fits_warps(
        m, n, (grid[0], grid[1]), target.mma, products
    ):
        return None
    most = target.mma.accumulator_registers_max[0]
    return (
        f"each of up to {max(WARP_COUNTS)} warps must have whole {target.mma.m[0]}x{WARP_N} of a "
        f"{m}x{n} tile and up to {most} registers of sums, got {grid[0]}x{grid[1]} warps"
    )


def accumulator_columns(target: Target, m: int, n: int, buffers: int = 1) -> str | None:
    """Accumulators in tensor memory fit it together."""
    columns = buffers * target.accumulator_columns(m, n)
    if not target.has_tensor_memory or columns <= target.tmem_columns:
        return None
    times = f" for {buffers} accumulators" if buffers > 1 else ""
    limit = f"the {target.tmem_columns} of {target.chip}"
    return f"tile {m}x{n} needs {columns} tensor-memory columns{times}, over {limit}"


def pair_step(target: Target, m: int, b: TileLayout, elements: Sequence[str]) -> int:
    """What N of a 2-CTA MMA is a multiple of, whose CTAs each have half of B, such as `b`.

    Halves of 8 rows are legal but for integers and for 8 bits with N contiguous (PTX ISA, shapes of
    .cta_group::2); published kernels have them for 16-bit floats.
    """
    step = target.mma.pair_n_step
    halves = m % STAGED_PAIR_ROWS == 0 and b.major == "k" and set(elements) <= set(HALF_STEP_TYPES)
    return step // 2 if halves else step


def pair_tile(target: Target, m: int, n: int, step: int | None = None) -> str | None:
    """What one CTA of a 2-CTA MMA computes (PTX ISA, tcgen05, shapes of .cta_group::2)."""
    step = step or target.mma.pair_n_step
    if not target.mma.pairs:
        others = [unit.name for unit in target.other_mmas if unit.pairs and not unit.products]
        if others:
            return f"only {' and '.join(others)} is of two CTAs, got {target.mma.name}"
        return f"{target.chip} has no 2-CTA MMAs"
    if target.mma_rows(m) is None or (m > 128 and m % 128):
        return f"a pair needs 64, 128 or 256 rows a CTA, got {m}"
    if target.adds_products and m != target.mma.m[-1]:
        return f"a pair whose threads add products needs {target.mma.m[-1]} rows a CTA, got {m}"
    if n % step:
        return f"a pair needs N a multiple of {step}, got {n}"
    return None


def dual_tile(target: Target, m: int, n: int, integers: bool = False) -> str | None:
    """Each of two products has half of a tile's columns, which is whole MMAs by itself."""
    if target.threads_multiply:
        return f"{target.mma.name} adds up one product, got two"
    step = 2 * target.mma_n_step(target.mma_rows(m) or m, n // 2, integers)
    if n % step == 0:
        return None
    return f"tile N must be a multiple of {step} for two products, half of it for each, got {n}"


def dual_split(target: Target) -> str | None:
    """Warps that multiply by themselves have columns of each product, which lie apart."""
    if target.mma.issuer != WARP:
        return None
    return f"two products of {target.mma.name} are summed by one CTA, got a split K"


def dual_pair(target: Target, m: int, n: int) -> str | None:
    """A pair of 64-row CTAs keeps half of N in the upper lanes; of each product, a pair has N."""
    if m < STAGED_PAIR_ROWS:
        return f"two products of a pair need {STAGED_PAIR_ROWS} rows a CTA, got {m}"
    step = 2 * target.mma.pair_n_step
    return None if n % step == 0 else f"two products of a pair need N of {step}, got {n}"


def pair_cluster(shape: Sequence[int]) -> str | None:
    """Pairs are neighbours along M."""
    if shape[0] % 2 == 0:
        return None
    return f"2-CTA MMAs need an even cluster M, got {shape[0]}x{shape[1]}"


def cluster_size(target: Target, shape: Sequence[int], parts: int = 1) -> str | None:
    """A cluster has only so many CTAs."""
    ctas, split = math.prod(shape) * parts, f" in {parts} parts" if parts > 1 else ""
    if ctas <= target.cluster_max:
        return None
    got = f"{shape[0]}x{shape[1]}{split} = {ctas}"
    most = "1 CTA" if target.cluster_max == 1 else f"{target.cluster_max} CTAs"
    return f"a cluster of {target.chip} has at most {most}, got {got}"


def split_clusters(tiles: Sequence[int], shape: Sequence[int]) -> str | None:
    """Where a cluster adds parts of sums, none of its CTAs is without a tile."""
    if not any(extent % size for extent, size in zip(tiles, shape, strict=True)):
        return None
    got = f"{joined(tiles)} tiles and {joined(shape)}"
    return f"where K is split the tiles must be whole clusters, got {got}"


def multicast_rows(layout: TileLayout, parts: int) -> str | None:
    """Each peer loads as many whole rows, which begin where TMA may write.

    That may be within a swizzle's pattern, which lies by addresses (CUDA C++ Programming Guide,
    TMA swizzle).
    """
    rows, rest = divmod(layout.rows, parts)
    if not rest and rows * layout.span_bytes % VECTOR_ALIGNMENT == 0:
        return None
    lines = VECTOR_ALIGNMENT // layout.span_bytes
    return f"{layout.rows} rows are not {parts} parts of whole rows, {lines} at a time"


def box_rows(target: Target, rows: int) -> str | None:
    """A TMA box has only so many rows (cuTensorMapEncodeTiled)."""
    if rows <= target.box_max:
        return None
    return f"a box can have {target.box_max} rows, the tile has {rows}"


def row_pitch(target: Target, pitch_bytes: int, rows: int) -> str | None:
    """The bytes from row to row that a tensor map can say (cuTensorMapEncodeTiled, strides).

    One row needs none; `rows` is negative where only a launch knows them.
    """
    unit = target.tma_alignment_bytes
    if rows in (0, 1) or pitch_bytes % unit == 0:
        return None
    return f"its row pitch must be a multiple of {unit} bytes, got {pitch_bytes}"


def open_pitch(target: Target, element_bytes: int, multiple: int) -> str | None:
    """Rows as long as a launch says, a multiple of so many elements, as a tensor map can say them
    (cuTensorMapEncodeTiled, strides)."""
    unit = target.tma_alignment_bytes
    if multiple * element_bytes % unit == 0:
        return None
    rule = f"its rows, which a launch says the length of, must be multiples of {unit} bytes"
    return f"{rule}, got any multiple of {multiple * element_bytes}"


def stack_pitch(target: Target, step_bytes: int) -> str | None:
    """The bytes from matrix to matrix that a tensor map can say, 0 where there is one matrix."""
    unit = target.tma_alignment_bytes
    if step_bytes % unit == 0 and step_bytes < STRIDE_BYTES_MAX:
        return None
    return f"its matrices must be a multiple of {unit} bytes apart, got {step_bytes}"


def padded_rows(elements: int, pitch_bytes: int) -> str | None:
    """Rows of elements that TMA spreads out in shared memory (cuTensorMapEncodeTiled)."""
    if elements % PADDED_ROW == 0 and pitch_bytes % PADDED_ALIGNMENT_BYTES == 0:
        return None
    return f"its rows must be a multiple of {PADDED_ROW} packed elements, got {elements}"


def counted_tiles(tiles: Sequence[int]) -> str | None:
    """A static share of the tiles is counted in 32 bits."""
    if tiles[0] * tiles[1] <= TILES_MAX:
        return None
    return f"at most {TILES_MAX} tiles can be counted, got {tiles[0]}x{tiles[1]}"


def curve_tiles(tiles: Sequence[int]) -> str | None:
    """A Hilbert curve is a table in the kernel's module."""
    if tiles[0] * tiles[1] <= CELLS_MAX:
        return None
    return f"the table of order=hilbert has at most {CELLS_MAX} tiles, got {tiles[0]}x{tiles[1]}"


def grid_extents(target: Target, grid: Sequence[int]) -> str | None:
    """The extents of a grid that can be launched (CUDA programming guide)."""
    limits = (target.grid_x_max, target.grid_y_max, target.grid_y_max)
    for axis, extent, limit in zip("MNz", grid, limits, strict=False):
        if extent > limit:
            return f"a grid can have {limit} CTAs along {axis}, got {extent}"
    return None


def fallback_cluster(
    target: Target, shape: Sequence[int], fallback: Sequence[int], pair: bool, parts: int
) -> str | None:
    """Several fallback clusters are a preferred one, and each has whole pairs and all of K (CUDA
    driver API, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)."""
    if not target.launch_control:
        return f"{target.chip} has clusters of one shape a launch, got fallback={joined(fallback)}"
    if parts > 1:
        return f"the parts of a split K are in one cluster, got {parts} and a fallback"
    if any(map(int.__mod__, shape, fallback)) or math.prod(fallback) >= math.prod(shape):
        return f"a fallback must be a part of {joined(shape)}, got {joined(fallback)}"
    if pair and fallback[0] % 2:
        return f"2-CTA MMAs need an even fallback M, got {joined(fallback)}"
    return None


def launch_control(target: Target) -> str | None:
    """Tiles are handed out by cluster launch control where the chip has it."""
    if target.launch_control:
        return None
    return f"{target.chip} has no cluster launch control, got scheduler=clc"


def alternating_consumers(target: Target) -> str | None:
    """Two consumers take turns where each holds an accumulator of its own."""
    if target.mma.splits:
        return f"shared memory has terms of one consumer of {target.mma.name}"
    if target.adds_from_tensor_memory:
        return f"tensor memory has two products, those of one consumer of {target.mma.name}"
    if target.issuers_store:
        return None
    return f"{target.chip} has accumulators in tensor memory, of which persistence takes two"


def consumer_warpgroups(m: int, n: int, warpgroups: int) -> str | None:
    """Each of two consumers is one warpgroup."""
    if warpgroups == 1:
        return None
    return f"each warpgroup holds a whole tile, {m}x{n} takes {warpgroups}"


def one_program(target: Target) -> str | None:
    """Threads that multiply by themselves run one program, and store what each has."""
    if not target.threads_multiply:
        return None
    return f"{target.mma.name} is of each thread by itself, which has sums of its own"


def thread_registers(
    target: Target, tile: Sequence[int], threads: int, sum_bytes: int
) -> str | None:
    """Where threads multiply by themselves, each holds its elements of C in registers."""
    share = ThreadTile.of(tile[0], tile[1], threads)
    most = target.using(FMA).mma.accumulator_registers_max[0]
    if share is None:
        return f"tile {tile[0]}x{tile[1]} has no share for each of {threads} threads"
    registers = share.m * share.n * sum_bytes // REGISTER_BYTES
    if registers <= most:
        return None
    return (
        f"tile {tile[0]}x{tile[1]} needs {registers} registers for sums in each of {threads} "
        f"threads, over {most}"
    )


def lanes(
    target: Target,
    tile: Sequence[int],
    threads: int,
    lanes: int,
    products: int,
    dtype: DType,
) -> str | None:
    """Where lanes share elements, a thread has all rows of a tile, and columns of each product."""
    m, n, k = tile
    if dtype.accumulator_bytes != REGISTER_BYTES:
        return f"lanes add up sums in f32, got those of {dtype.name}"
    if n % products:
        return f"tile N must be a multiple of {products} for two products, got {n}"
    if threads < lanes:
        return f"{lanes} lanes must be threads of a CTA, got {threads}"
    if k % lanes:
        return f"tile K must be a multiple of {lanes} lanes, got {k}"
    share = ThreadTile.of_lanes(m, n, threads, lanes, products)
    most = target.using(FMA).mma.accumulator_registers_max[0]
    if share.m * share.n <= most:
        return None
    return (
        f"tile {m}x{n} needs {share.m * share.n} registers for sums in each of {threads} threads, "
        f"over {most}"
    )


def small_floats(target: Target, dtype: str) -> str | None:
    """The chip converts f32 to elements of 6 or 4 bits (PTX ISA, cvt: target notes)."""
    if target.small_floats:
        return None
    others = targets_with(lambda other: other.small_floats)
    cure = "store mxfp8, or compile for that"
    return f"{target.chip} converts nothing to {dtype}, {others} does; {cure}"
