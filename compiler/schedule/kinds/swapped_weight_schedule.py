"""Schedules with A and B exchanged, so that the MMA's A is a tile of narrow weights that threads
widen: for wgmma with their times, and for tcgen05.mma (`swapped_weight_tensor`).

    step    what the tensor core multiplies, and what threads widen and add at the same time: of
            several warpgroups one multiplies while another widens; a single one waits for itself
    round   the steps of a CTA, and the store of its tile; a multiprocessor has one CTA at a time
    parts   for CTAs of the grid that share K, the time in which their sums meet

A tile has rows of weights and columns that are rows of A. C is stored through shared memory where
TMA can: threads have neighbours along M, and would scatter them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ....dialects.dtypes import DTYPES
from ....dialects.legality import PARTIAL_BYTES, RESERVED_BYTES
from ....dialects.record import record
from ....dialects.target import WARP_THREADS, Target
from ....dialects.weight_legality import weight_columns, weight_depth
from ...spec import MatmulSpec
from ..chips.chip_figures import figures, tensor_figures
from .swapped_weight_tensor import stored_cycles, tensor_cycles

ROWS_MIN = 48  # of A, from which on mma.sync is not always faster
TILES: dict[bool, tuple[tuple[int, int], ...]] = {
    False: ((64, 128), (128, 128), (128, 64), (256, 64), (64, 64)),
    True: ((64, 128), (128, 128)),
}
"""Rows and K of a tile, without and with groups."""
COLUMNS = {False: (64, 128, 256), True: (64, 128, 160)}
TENSOR_TILES: dict[bool, tuple[tuple[int, int], ...]] = {
    False: ((128, 64), (128, 128), (64, 64), (64, 128)),
    True: ((128, 128), (64, 128)),
}
TENSOR_COLUMNS = {False: (64, 128, 256), True: (64, 128, 192)}
GROUPS_OF_WIDE = 2  # of a step, with more of which ptxas spilled from 192 columns on
"""The same for tcgen05.mma: tensor memory holds two products with groups."""
FEW, SQUARE = 64, 128  # columns up to which a tile has 64 rows, and up to which it has over 128
WIDE_BYTES, STAGING_BYTES = 2, 36 * 1024
STAGES_MIN, STAGES_MAX = 3, 8
AHEAD, PIECES = 2, (32, 16)  # pieces of what is as large as C, and their columns, that fit a tile
PARTS, STEPS_MIN = (1, 2, 4), 3
# Fitted to an H200's times of 170 kernels of 12 products, M of 64 to 4096.
PAIR_INSTRUCTIONS = {"s4": 4.5, "u4": 4.5, "s8": 7, "e4m3": 5, "e5m2": 5}
ISSUE_RATE = 4  # warp instructions a cycle of a multiprocessor
WIDENED, WIDENED_ALONE, ADDED = 1.2, 2.3, 2.0  # of what they take by instructions
WAIT_ALONE = 2.2  # cycles for each element of K of a warpgroup that has no other one beside it
LATER_ROUNDS = 1.1  # a step's time where several rounds keep the chip hot
STORED, STAGED = 0.25, 0.06  # cycles for each element of C
MEET_CYCLES, START_CYCLES = 2550, 2500
LAUNCH_US = 1.2


@record
class SwappedWeightSchedule:
    """A tile of N×M×K elements, the `mma` that multiplies it, and the slots of its ring; with
    `grouped`, threads add the products of groups.

    CTAs of the grid share a tile, each with one of `parts` parts of K. With `staged`, C is stored
    through shared memory, where `ahead` pieces of each other operand as large as C are prefetched;
    with `persistent`, a CTA computes several tiles.
    """

    tile: tuple[int, int, int]
    mma: str
    grouped: bool
    stages: int
    parts: int = 1
    staged: bool = False
    persistent: bool = False
    ahead: int = 0

    def label(self) -> str:
        """In words."""
        tile = "x".join(map(str, self.tile))
        more = [f"K split by {self.parts} over the grid"] if self.parts > 1 else []
        more += ["staged"] if self.staged else []
        more += [f"{self.ahead} pieces ahead"] if self.ahead else []
        more += ["static grouped by 8"] if self.persistent else []
        by = f"{tile} by {self.tensor_core} of exchanged operands"
        return ", ".join([f"{by}, {self.stages} stages", *more])

    @property
    def tensor_core(self) -> str:
        """The short name of the instruction that multiplies."""
        return "wgmma" if self.mma.startswith("wgmma") else "tcgen05.mma"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile, (_, n, _) = "x".join(map(str, self.tile)), self.tile
        ahead = f"{{columns={piece_columns(n)} ahead={self.ahead}}}" if self.ahead else ""
        passes = {
            f"tiling{{tile={tile} mma={self.mma} swap=true}},tma-insertion,swizzle-selection": True,
            f"epilogue-staging{ahead}": self.staged,
            f"split-k{{parts={self.parts} over=grid}}": self.parts > 1,
            f"pipelining{{stages={self.stages}}},warp-specialization": True,
            "persistence{order=grouped group=8}": self.persistent,
        }
        return ",".join(text for text, wanted in passes.items() if wanted)


def swapped_weight_schedules(spec: MatmulSpec, target: Target) -> Iterator[SwappedWeightSchedule]:
    """All candidates: for one output whose M a single tile covers, if a launch gives M. Those with
    wgmma read no operands as large as C, since nothing was measured with them."""
    grouped = spec.group_size not in (0, spec.k)
    unit, plain = target.widening_mma(grouped), not (spec.further or spec.neighbours)
    if unit is None or not plain or spec.m < ROWS_MIN or not _by_tma(spec, target):
        return
    used = target.using(unit.name)
    in_memory = used.adds_from_tensor_memory
    if spec.beside and not (in_memory and _beside_by_tma(spec, target)):
        return
    tiles = (TENSOR_TILES if in_memory else TILES)[grouped]
    usual = (TENSOR_COLUMNS if in_memory else COLUMNS)[grouped]
    if grouped and spec.beside:  # ptxas spilled with 192
        usual = tuple(each for each in usual if each <= SQUARE)
    columns = sorted({*usual, -(-spec.m // 16) * 16})
    for (rows, k), n, parts in itertools.product(tiles, columns, PARTS):
        tile = rows, n, k
        if _covers(spec, tile, max(usual), used) and used.mma_warpgroups(*tile[:2]):
            found = _schedule(spec, tile, grouped, parts, used)
            if found is not None:
                yield found


def _covers(spec: MatmulSpec, tile: tuple[int, int, int], most: int, used: Target) -> bool:
    """Whether a tile has the columns with which its rows were measured, or that tensor memory has;
    covers every M that a launch with bounded rows may give; and has whole groups."""
    rows, n, k = tile
    if used.adds_from_tensor_memory:
        several = spec.group_size and k > GROUPS_OF_WIDE * spec.group_size
        fits = weight_columns(used, n, k, spec.group_size, spec.k) is None
        usual = fits and n <= (SQUARE if several else most)
    else:
        usual = n <= most and (rows == 64 or n > FEW) and not (rows > SQUARE and n > SQUARE)
    said = not spec.dynamic_m or not spec.most_m or spec.most_m <= n
    bits = DTYPES[spec.b_dtype].bits
    whole = weight_depth(k, bits, spec.group_size, spec.k) is None
    return usual and said and whole and n < 2 * spec.m


def _schedule(
    spec: MatmulSpec, tile: tuple[int, int, int], grouped: bool, parts: int, target: Target
) -> SwappedWeightSchedule | None:
    """The schedule of a tile; None if its ring does not fit or its parts have too few steps."""
    steps = -(-spec.k // tile[2])
    used = -(-steps // -(-steps // parts))
    if parts > 1 and (spec.dynamic_m or steps < STEPS_MIN * parts or used != parts):
        return None
    staged = parts == 1 and spec.c_dtype in ("bf16", "f16") and spec.n % 8 == 0
    ahead = AHEAD if spec.beside else 0
    if ahead and not staged:
        return None  # threads would read rows across the columns that they have
    room = target.shared_bytes - RESERVED_BYTES - (STAGING_BYTES if staged else 0)
    room += STAGING_BYTES // 2 if ahead else 0  # whose pieces are half as wide
    room -= ahead * tile[0] * PIECES[0] * epilogue_operand_bytes(spec)
    stages = min(STAGES_MAX, -(-steps // parts), room // _stage_bytes(spec, tile))
    if stages < min(STAGES_MIN, steps):
        return None
    several = _ctas(spec, tile, parts) > target.multiprocessors
    persistent = several and staged and not spec.dynamic_m
    return SwappedWeightSchedule(
        tile, target.mma.name, grouped, stages, parts, staged, persistent, ahead
    )


def piece_columns(n: int) -> int:
    """The columns of a piece of a tile with this many columns, if further pieces are prefetched."""
    return next(each for each in PIECES if n % each == 0)


def epilogue_operand_bytes(spec: MatmulSpec) -> int:
    """The bytes per element of all operands as large as C."""
    return sum(DTYPES[dtype].bytes for dtype in spec.beside)


def swapped_weight_cycles(
    spec: MatmulSpec, schedule: SwappedWeightSchedule, target: Target
) -> float:
    """Cycles of a product, from the start of the first CTA."""
    if target.using(schedule.mma).adds_from_tensor_memory:
        return _tensor_cycles(spec, schedule, target)
    (rows, n, k), chip, parts = schedule.tile, figures(target), schedule.parts
    widen = rows * k / 2 / WARP_THREADS * PAIR_INSTRUCTIONS[spec.b_dtype] / ISSUE_RATE
    add = rows * n * k / spec.group_size / WARP_THREADS / ISSUE_RATE if schedule.grouped else 0
    step = 2 * rows * n * k / chip.mma_rate
    alone = 2 * 64 * n * k / chip.mma_rate + WIDENED_ALONE * widen * 64 / rows + WAIT_ALONE * k
    step = max(step + WIDENED * widen + ADDED * add, alone)
    steps = math.ceil(math.ceil(spec.k / k) / parts)
    rounds = math.ceil(_ctas(spec, schedule.tile, parts) / target.multiprocessors)
    store = rows * n * (STAGED if schedule.staged else STORED)
    if rounds > 1:
        step *= LATER_ROUNDS
    starts = 1 if schedule.persistent else rounds
    return rounds * (steps * step + store + _meet(spec, schedule, target)) + starts * START_CYCLES


def _tensor_cycles(spec: MatmulSpec, schedule: SwappedWeightSchedule, target: Target) -> float:
    """The same with tcgen05.mma: a CTA that follows another one waits until that one has ended."""
    tile, parts = schedule.tile, schedule.parts
    rounds = math.ceil(_ctas(spec, tile, parts) / target.multiprocessors)
    each = tensor_cycles(spec, tile, parts, schedule.stages, target)
    each += stored_cycles(tile, schedule.staged, target) + _meet(spec, schedule, target)
    each += _epilogue_operand_cycles(spec, schedule, target)
    between = 0 if schedule.persistent else tensor_figures(target).cta_turnover
    return rounds * each + (rounds - 1) * between


def _epilogue_operand_cycles(
    spec: MatmulSpec, schedule: SwappedWeightSchedule, target: Target
) -> float:
    """Cycles that operands as large as C add: threads read pieces from shared memory, and wait for
    those that have not arrived during the MMAs (`costs.epilogue_operand_cycles`)."""
    if not schedule.ahead:
        return 0
    chip, (rows, n, _) = figures(target), schedule.tile
    pieces = n // piece_columns(n)
    piece = stored_cycles(schedule.tile, True, target) / pieces
    late = max(0, pieces - schedule.ahead)
    waited = max(0, (chip.piece_latency + piece) / schedule.ahead - piece)
    return rows * n * epilogue_operand_bytes(spec) / chip.shared_rate + late * waited


def _meet(spec: MatmulSpec, schedule: SwappedWeightSchedule, target: Target) -> float:
    """Cycles in which parts of K write their sums and the last one reads all of them."""
    parts = figures(target).parts
    if schedule.parts == 1 or parts is None:
        return 0
    rows, n, _ = schedule.tile
    sums = rows * min(n, spec.m) * PARTIAL_BYTES
    return sums / parts.write + MEET_CYCLES + schedule.parts * sums / parts.read


def _ctas(spec: MatmulSpec, tile: tuple[int, int, int], parts: int) -> int:
    return -(-spec.n // tile[0]) * -(-spec.m // tile[1]) * parts


def _stage_bytes(spec: MatmulSpec, tile: tuple[int, int, int]) -> int:
    rows, n, k = tile
    return n * k * WIDE_BYTES + rows * k * DTYPES[spec.b_dtype].bits // 8


def _beside_by_tma(spec: MatmulSpec, target: Target) -> bool:
    """Whether TMA can load the rows of operands as large as C, for a known M."""
    pitches = (spec.n * DTYPES[dtype].bytes for dtype in spec.beside)
    whole = not any(pitch % target.tma_alignment_bytes for pitch in pitches)
    return whole and not spec.dynamic_m


def _by_tma(spec: MatmulSpec, target: Target) -> bool:
    """Whether TMA can address the rows of A and of the weights."""
    pitches = (spec.lda or spec.k) * WIDE_BYTES, spec.k * DTYPES[spec.b_dtype].bits // 8
    return not any(pitch % target.tma_alignment_bytes for pitch in pitches)
