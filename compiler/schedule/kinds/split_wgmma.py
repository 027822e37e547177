"""The estimate of f32 operands that threads split for wgmma (`passes/lowering/wgmma/split.py`).

    step    MMAs, followed by splitting the next tiles: a warpgroup that issues MMAs with A in
            registers can do nothing else, and the warpgroups of a CTA meet in each step. So both
            add up. A single CTA also waits for itself; two share a multiprocessor where they fit
    round   the steps of a CTA, the store of its tile, and what comes before
    parts   CTAs of the grid that share K write their sums, and the last one reads all of them

The figures are fitted to an H200's times of 24 kernels: tiles of 64x32 to 128x128 for three square
shapes, for 64x4096x4096 and for 4096x128x4096, with all of K and with two to four parts. NARROW is
fitted to tiles of 64x8 to 128x16 for 1 and 16 rows (docs/split-f32.md).

Where A and B are exchanged (`swap`), the rows of a tile are columns of C, so that tiles of few
columns hold few rows of A.
"""

from __future__ import annotations

import math

from ....dialects.legality import PARTIAL_BYTES, RESERVED_BYTES
from ....dialects.split_legality import terms_bytes
from ....dialects.target import WARP_THREADS, WARPGROUP_THREADS, Target
from ....dialects.terms import PLAIN_PRODUCTS
from ...spec import MatmulSpec
from ..chips.chip_figures import figures, part_figures

F32_BYTES = 4
THREADS = 128  # lanes that issue at once
MMA_SHARE = 1.07  # cycles of an MMA for each of its own
NARROW = 22  # cycles that an MMA of 64 rows and 16 elements along K takes at least
SPLITTING, ADDING = 15.0, 0.6  # cycles of a lane for an element, and for a sum
ALONE = 430  # cycles of a step in which a CTA waits for itself
STARTS = 6000  # cycles before the first step, and until a following CTA may start
PAIR_STORE_RATE = 16  # bytes a cycle, as of `warp_schedule`
REGISTERS = 88  # of a thread, beside its sums and the product under way
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
STEPS_MIN = 8  # of a part
FEW = (8, 16, 32)  # columns of tiles for as many rows of A
MMA_ROWS, MMA_DEPTH = 64, 16


def is_alone(spec: MatmulSpec) -> bool:
    """Whether the problem is a plain product of two matrices of known sizes, with one output."""
    plain = not (spec.groups or spec.open_sizes or spec.further)
    return plain and spec.batch <= 1 and not spec.grouped_columns


def narrow_tiles(spec: MatmulSpec) -> list[tuple[int, int]]:
    """Tiles of few columns for few rows of A, if A and B may be exchanged."""
    columns = next((each for each in FEW if spec.m <= each), None)
    if columns is None or not is_alone(spec) or spec.products > 1:
        return []
    return [(rows, columns) for rows in (64, 128)]


def parts_of(
    spec: MatmulSpec, tile: tuple[int, int, int], target: Target, swap: bool = False
) -> list[int]:
    """The numbers of parts in which the grid may share K: for plain products with few tiles of many
    steps each."""
    tiles = _tiles(spec, tile, swap)
    if not is_alone(spec) or tiles > target.multiprocessors:
        return [1]
    steps = -(-spec.k // tile[2])
    return [each for each in PARTS if _is_whole(steps, each) and each * tiles <= _most(target)]


def _most(target: Target) -> int:
    return 4 * target.multiprocessors


def _is_whole(steps: int, parts: int) -> bool:
    """Whether each part has enough steps."""
    each = -(-steps // parts)
    return parts == 1 or (steps // parts >= STEPS_MIN and -(-steps // each) == parts)


def wgmma_us(
    spec: MatmulSpec,
    tile: tuple[int, int, int],
    stages: int,
    parts: int,
    staged: bool,
    target: Target,
    swap: bool = False,
) -> float:
    """The microseconds of a kernel; `staged` tiles are stored by TMA."""
    (m, n, k), chip = tile, figures(target)
    least = NARROW * (m // MMA_ROWS) * (k // MMA_DEPTH)
    mma = len(PLAIN_PRODUCTS) * max(MMA_SHARE * 2 * m * n * k / chip.mma_rate, least)
    threads = (SPLITTING * (m + n) * k + ADDING * m * n) / THREADS
    step, steps = mma + threads, math.ceil(math.ceil(spec.k / k) / parts)
    room = _ctas_at_once(tile, stages, target)
    stored = m * n * F32_BYTES / (chip.tma_store_rate if staged else PAIR_STORE_RATE)
    if parts > 1:
        stored = _met(spec, tile, parts, target, swap)

    def round_of(count: int) -> float:
        """Cycles in which `count` CTAs of one multiprocessor run together."""
        return steps * max(count * step, step + ALONE) + count * stored + STARTS

    ctas = _tiles(spec, tile, swap) * parts
    rounds, left = divmod(-(-ctas // target.multiprocessors), room)
    cycles = rounds * round_of(room) + (round_of(left) if left else 0)
    return cycles / (chip.clock * 1e3)


def _met(
    spec: MatmulSpec, tile: tuple[int, int, int], parts: int, target: Target, swap: bool
) -> float:
    """Cycles in which parts of K write their sums and the last one reads all of them."""
    figure = part_figures(target)
    sums = min(tile[0], spec.n if swap else spec.m) * tile[1] * PARTIAL_BYTES
    return sums / figure.write + figure.meet + parts * sums / figure.read


def _ctas_at_once(tile: tuple[int, int, int], stages: int, target: Target) -> int:
    """The CTAs that share a multiprocessor, by shared memory and by the registers of a thread;
    several warpgroups take all registers."""
    m, n, k = tile
    warpgroups = target.mma_warpgroups(m, n) or 1
    if warpgroups > 1:
        return 1
    registers = min(255, 2 * m * n // WARPGROUP_THREADS + REGISTERS)
    by_registers = target.registers // (registers * (WARPGROUP_THREADS + WARP_THREADS))
    staging = 2 * m * 16 * F32_BYTES
    shared = stages * (m + n) * k * F32_BYTES + terms_bytes(target, tile) + staging
    shared += RESERVED_BYTES + target.cta_reserved_shared_bytes
    return max(1, min(by_registers, target.multiprocessor_shared_bytes // shared))


def _tiles(spec: MatmulSpec, tile: tuple[int, int, int], swap: bool) -> int:
    m, n, _ = tile
    m, n = (n, m) if swap else (m, n)
    return max(1, spec.batch) * -(-spec.m // m) * -(-spec.products * spec.n // n)
