"""The schedule of kernels with mma.sync.

    step    the longest of what its MMAs, its fragments and its requests to L2 take, and a share of
            the others
    round   the CTAs that share a multiprocessor at once: K steps × their steps one after another,
            or one CTA and its latency if that is longer
    least   the rounds of the busiest multiprocessor, then the largest tile and the deepest ring

C goes through shared memory if its rows are pairs of elements. CTAs take tiles in bands if C has
many of them along M. If the chip has TMA and it can address A and B, a role loads them.

The figures are those of data sheets. Latency, what is hidden, staging and order are fitted to times
of the same kernels on an H100 and an H200 (docs/appendix/mma-sync.md); nothing was measured on the
chips themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....dialects.dtypes import DTYPES, SPLITS
from ....dialects.errors import CompileError
from ....dialects.legality import RESERVED_BYTES, tile_memory
from ....dialects.mma_units import WARP, warp_grid
from ....dialects.record import record
from ....dialects.split_legality import terms_bytes
from ....dialects.target import WARP_THREADS, Target
from ...spec import MatmulSpec
from ..chips.chip_figures import figures
from ..problem import Problem
from .split_schedule import STAGES_MAX as SPLIT_STAGES_MAX
from .split_schedule import STAGES_MIN as SPLIT_STAGES_MIN
from .split_schedule import split_cycles, split_mma, split_tiles, split_warps, stages_sums
from .split_wgmma import narrow_tiles, parts_of, wgmma_us

TILES = (
    (128, 256), (256, 128), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64),
    (32, 128), (16, 128), (16, 64), (32, 32), (16, 32),
)  # fmt: skip
K_BYTES = (128, 64)  # of a tile: a row of the widest swizzle, or of half of it
STAGES_MIN, STAGES_MAX = 3, 4
NOT_HIDDEN = 0.2  # assumed: of what a step does beside what takes it longest
STEP_LATENCY = 300  # cycles from the meeting of a step to its last MMA, beside the MMAs themselves
TMA_BUFFERS, PIECE_BYTES = 2, 64  # of a row that TMA stores at a time: room for a second CTA
PAIR_STORE_RATE = 16  # bytes a cycle, of sums that threads store as they have them
GROUPED_TILES = 32  # along M, from which a grouped order was faster on an H200
ROLE_REGISTERS = 42  # the same where another warp loads tiles (ptxas, tiles of 64x64 and 128x128)
THREAD_RATE = 128
"""Instructions of threads a cycle (CUDA C++ Programming Guide, arithmetic throughput)."""


@record
class Splitting:
    """What splitting f32 takes: the MMAs per product, the bytes of their elements, instructions per
    element of a fragment and per sum of an MMA, and K of an MMA."""

    mmas: int
    mma_bytes: int
    instructions: float
    additions: int
    depth: int


SPLITTING: dict[str, Splitting] = dict(
    zip(SPLITS, (Splitting(3, 4, 3, 1, 8), Splitting(9, 2, 11, 5, 16)), strict=True)
)
"""For bf16x9, an element takes two subtractions, products, truncations and half of four
conversions, and three instructions to tell whether it is a number; a sum takes four products."""
MMA_SYNC_SHARE = {"sm_90a": 0.62, "sm_100a": 0.25}
"""The share of the rate of the chip's own MMA that mma.sync reaches (Luo et al., Benchmarking and
Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499; assumed for sm_100a)."""
MEASURED = {("sm_90a", "bf16x9"): 1.9}
"""How many times as long as estimated an H200 took, 1.7 to 2.1 in five shapes: what wgmma is
compared with."""
OTHER_REGISTERS = 82  # of a thread, beside its sums: fragments and addresses


@record
class WarpSchedule:
    """A tile of M×N×K elements, the warps that share it, and the slots of its ring.

    `staged` sums go through shared memory; `grouped` tiles share more operands in L2. With `roles`,
    a separate warp loads tiles by TMA, and TMA stores what is staged, `columns` at a time. `mma` is
    an MMA for which all warps split tiles (`split_schedule`); without it each warp multiplies by
    itself. CTAs of the grid may then share K in `parts`, and A and B may be exchanged (`swap`).
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    staged: bool = False
    grouped: bool = False
    roles: bool = False
    columns: int | None = None
    mma: str = ""
    parts: int = 1
    swap: bool = False

    def label(self) -> str:
        """In words."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        more = [name for name in ("grouped", "staged", "roles") if getattr(self, name)]
        more += ["A and B exchanged"] if self.swap else []
        more += [f"K split by {self.parts} over the grid"] if self.parts > 1 else []
        by = self.mma or f"mma.sync of {warps} warps"
        return ", ".join([f"{tile} by {by}, {self.stages} stages", *more])

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        order = " order=grouped" if self.grouped else ""
        copies = "tma-insertion" if self.roles else "copy-insertion"
        how = f"mma={self.mma}" if self.mma else f"warps={warps}"
        how += " swap=true" if self.swap else ""
        passes = {
            f"tiling{{tile={tile} {how}{order}}},{copies},swizzle-selection": True,
            f"epilogue-staging{self._pieces()}": self.staged,
            f"split-k{{parts={self.parts} over=grid}}": self.parts > 1,
            f"pipelining{{stages={self.stages}}}": self.stages > 1,
            "warp-specialization": self.roles,
        }
        return ",".join(text for text, wanted in passes.items() if wanted)

    def _pieces(self) -> str:
        return "" if self.columns is None else f"{{columns={self.columns}}}"

    def staging_bytes(self, c_bytes: int) -> int:
        """Shared memory of the buffers from which TMA stores; others reuse the memory of
        operands."""
        return TMA_BUFFERS * self.tile[0] * (self.columns or 0) * c_bytes


@record
class WarpEstimate:
    """The microseconds of one schedule, and `bound`: what limits a step or the whole kernel."""

    total_us: float
    bound: str


def is_by_warps(target: Target) -> bool:
    """Whether the chip's own MMA is one that each warp issues by itself."""
    return target.mma.issuer == WARP


def candidates(spec: MatmulSpec, target: Target) -> list[tuple[WarpSchedule, float]]:
    """Each schedule with its estimated microseconds, the fastest first; among equals the largest
    tile."""
    item, c_bytes = DTYPES[spec.a_dtype].bytes, DTYPES[spec.outputs[0]].bytes
    found = []
    for (m, n), k_bytes in itertools.product(TILES, K_BYTES):
        tile, grid = (m, n, k_bytes // item), warp_grid(m, n, target.mma, spec.products)
        if grid is None or tile_memory(target, tile, item):
            continue
        columns = n // grid[1] // spec.products
        if spec.grouped_columns and columns % spec.grouped_columns:
            continue  # each warp reduces groups of its own
        steps = -(-spec.k // tile[2])
        for one in _one_stage(spec, target, tile, grid):
            free = target.shared_bytes - RESERVED_BYTES - one.staging_bytes(c_bytes)
            most = min(STAGES_MAX, steps, free // ((m + n) * k_bytes))
            for stages in range(min(STAGES_MIN, steps), most + 1):
                schedule = replace(one, stages=stages)
                found.append((schedule, estimate_us(spec, schedule, target)))
    split = _split_candidates(spec, target)
    found += [(schedule, estimate_us(spec, schedule, target)) for schedule in split]
    return sorted(found, key=_order)


def _split_candidates(spec: MatmulSpec, target: Target) -> Iterator[WarpSchedule]:
    """The schedules whose tiles all warps split, if TMA can load A and B."""
    item, c_bytes = DTYPES[spec.a_dtype].bytes, DTYPES[spec.outputs[0]].bytes
    mma = split_mma(spec, target)
    if mma is None:
        return
    used = target.using(mma)
    for tile, swap in _split_tiles(spec, target, used):
        (m, n, k), steps = tile, -(-spec.k // tile[2])
        if spec.grouped_columns and n // spec.products % spec.grouped_columns:
            continue  # a thread has all columns of the groups that it reduces
        for one in _one_stage(spec, target, tile, (split_warps(tile, used), 1)):
            if swap and one.staged:
                continue  # rows of C are columns of a tile
            if one.staged and not stages_sums(tile, c_bytes, used):
                continue
            one = replace(one, mma=mma, swap=swap)
            free = target.shared_bytes - RESERVED_BYTES - one.staging_bytes(c_bytes)
            free -= terms_bytes(used, tile)
            for parts in _parts(spec, one, target) if one.roles else ():
                each = -(-steps // parts)
                most = min(SPLIT_STAGES_MAX, each, free // ((m + n) * k * item))
                for stages in range(min(SPLIT_STAGES_MIN, each), most + 1):
                    yield replace(one, stages=stages, parts=parts)


def _split_tiles(
    spec: MatmulSpec, target: Target, used: Target
) -> list[tuple[tuple[int, int, int], bool]]:
    """Tiles that all warps may split, and whether A and B are exchanged for them."""
    found = list(split_tiles(spec, target))
    narrow: list[tuple[int, int]] = []
    if found and not used.adds_from_tensor_memory:
        narrow = narrow_tiles(spec)
    depths = sorted({k for _, _, k in found})
    exchanged = [(m, n, k) for m, n in narrow for k in depths]
    return [(tile, False) for tile in found] + [(tile, True) for tile in exchanged]


def _parts(spec: MatmulSpec, one: WarpSchedule, target: Target) -> list[int]:
    """The numbers of parts in which the grid may share K; the last CTA stores a tile from
    registers."""
    if target.using(one.mma).adds_from_tensor_memory:
        return [1]
    found = parts_of(spec, one.tile, target, one.swap)
    return [parts for parts in found if parts == 1 or not one.staged]


def _one_stage(
    spec: MatmulSpec, target: Target, tile: tuple[int, int, int], warps: tuple[int, int]
) -> list[WarpSchedule]:
    """Everything but the ring: roles if TMA can load A and B, the order, and how C is stored.

    TMA stores whole units of a row, from memory that the ring could have, too. Without roles,
    threads store whole pairs, from the memory of the ring.
    """
    problem = Problem.of(spec, target)
    roles = target.async_agents and problem.by_tma("a") and problem.by_tma("b")
    row_bytes = problem.contiguous("c") * problem.c_bytes
    whole = problem.by_tma("c") and row_bytes % target.tma_alignment_bytes == 0
    staged = whole if roles else spec.n % 2 == 0
    grouped = -(-spec.m // tile[0]) >= GROUPED_TILES
    staged = staged and not problem.quantized  # whose threads store by themselves
    one = WarpSchedule(tile, warps, 1, staged, grouped, roles)
    if not (staged and whole and target.async_agents):
        return [one]
    columns = math.gcd(tile[1] // spec.products, PIECE_BYTES // DTYPES[spec.outputs[0]].bytes)
    return [replace(one, columns=columns), replace(one, staged=False)]


def _order(found: tuple[WarpSchedule, float]) -> tuple[float, int, int]:
    """By time; among equals the largest tile of C, then the deepest ring."""
    (m, n, _), stages = found[0].tile, found[0].stages
    return found[1], -m * n, -stages


def warp_schedule(spec: MatmulSpec, target: Target) -> WarpSchedule:
    """The fastest schedule by the estimate."""
    found = candidates(spec, target)
    if not found:
        raise CompileError(f"schedule: a tile must fit {target.chip}, got none for {spec.a_dtype}")
    return found[0][0]


def estimate_us(spec: MatmulSpec, schedule: WarpSchedule, target: Target) -> float:
    """The microseconds of the waves, and at least those in which DRAM moves everything once."""
    if schedule.mma and not target.using(schedule.mma).adds_from_tensor_memory:
        return _wgmma_us(spec, schedule, target)
    busy = step_cycles(spec, schedule, target)
    found = estimate(spec, schedule, target, busy, STEP_LATENCY).total_us
    return found * MEASURED.get((target.chip, spec.a_dtype), 1)


def _wgmma_us(spec: MatmulSpec, schedule: WarpSchedule, target: Target) -> float:
    used = target.using(schedule.mma)
    shape = schedule.tile, schedule.stages, schedule.parts
    work_us = wgmma_us(spec, *shape, schedule.staged, used, schedule.swap)
    return max(work_us, _dram_us(spec, target))


def _dram_us(spec: MatmulSpec, target: Target) -> float:
    """The microseconds in which DRAM moves everything once."""
    item, result = DTYPES[spec.a_dtype].bytes, DTYPES[spec.outputs[0]].bytes
    columns = spec.products * spec.n
    moved = (spec.m + columns) * spec.k * item + spec.m * spec.n * result
    return max(1, spec.batch) * moved / figures(target).dram_rate


def step_cycles(spec: MatmulSpec, schedule: WarpSchedule, target: Target) -> dict[str, float]:
    """Cycles that each resource needs for one K tile of one CTA."""
    if schedule.mma:
        return split_cycles(spec, schedule.tile, target.using(schedule.mma))
    (m, n, k), chip = schedule.tile, figures(target)
    item = DTYPES[spec.a_dtype].bytes
    warp_m, warp_n = m // schedule.warps[0], n // schedule.warps[1]
    fragments = math.prod(schedule.warps) * (warp_m + warp_n) * k * item
    split = SPLITTING.get(spec.a_dtype)
    of_mma = split.mma_bytes if split else item
    products = split.mmas / MMA_SYNC_SHARE.get(target.chip, 1) if split else 1
    return {
        "tensor core": products * 2 * m * n * k / chip.mma_rate * of_mma / 2,
        **(
            {"threads": _split_instructions(schedule, fragments / item, split) / THREAD_RATE}
            if split
            else {}
        ),
        "shared memory": fragments / chip.shared_rate,
        "L2": (min(m, spec.m) + min(n, spec.products * spec.n)) * k * item / chip.l2_rate,
    }


def _split_instructions(schedule: WarpSchedule, elements: float, split: Splitting) -> float:
    """The instructions of a step that splits f32: for the elements of fragments, and for each
    element of C and K of each MMA, which add what the MMAs gave."""
    m, n, k = schedule.tile
    return split.instructions * elements + split.additions * m * n * k / split.depth


def estimate(
    spec: MatmulSpec,
    schedule: WarpSchedule,
    target: Target,
    busy: Mapping[str, float],
    latency: float,
) -> WarpEstimate:
    """The estimate for steps in which each resource is busy for the given cycles, and that last
    `latency` cycles longer."""
    (m, n, k), chip = schedule.tile, figures(target)
    item, result = DTYPES[spec.a_dtype].bytes, DTYPES[spec.outputs[0]].bytes
    columns = spec.products * spec.n  # of the sums, as a tile's
    room = _ctas_at_once(schedule, target, item, result)
    *others, slowest = sorted(busy.values())
    step = slowest + NOT_HIDDEN * sum(others)
    ctas = max(1, spec.batch) * -(-spec.m // m) * -(-columns // n)
    rounds, left = divmod(-(-ctas // target.multiprocessors), room)
    rate = chip.tma_store_rate if schedule.staged else PAIR_STORE_RATE
    stored = m * n // spec.products * result / rate

    def round_of(count: int) -> float:
        """Cycles in which `count` CTAs of one multiprocessor run together."""
        loop = -(-spec.k // k) * max(count * step, step + latency)
        return loop + count * stored + chip.cta_start + chip.tma_latency

    cycles = rounds * round_of(room) + (round_of(left) if left else 0)
    work_us, dram_us = cycles / (chip.clock * 1e3), _dram_us(spec, target)
    waits = (room if rounds else left) * step < step + latency
    bound = "latency" if waits else max(busy, key=busy.__getitem__)
    return WarpEstimate(max(work_us, dram_us), "DRAM" if dram_us > work_us else bound)


def _ctas_at_once(schedule: WarpSchedule, target: Target, item: int, c_bytes: int) -> int:
    """The CTAs for which shared memory and registers of a multiprocessor have room."""
    m, n, k = schedule.tile
    threads = WARP_THREADS * math.prod(schedule.warps)
    others = ROLE_REGISTERS if schedule.roles else OTHER_REGISTERS
    each = min(255, m * n // threads + others)
    registers = (threads + WARP_THREADS * schedule.roles) * each
    shared = schedule.stages * (m + n) * k * item + target.cta_reserved_shared_bytes
    shared += schedule.staging_bytes(c_bytes)
    shared += terms_bytes(target.using(schedule.mma), schedule.tile) if schedule.mma else 0
    by_shared = target.multiprocessor_shared_bytes // shared
    return max(1, min(by_shared, target.registers // registers))
