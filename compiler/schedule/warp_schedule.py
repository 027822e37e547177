"""The schedule of a matmul on a chip whose warps multiply by themselves (mma.sync).

    step    the longest of what its MMAs, its fragments and what it asks L2 for take, and a part of
            the others
    round   the CTAs that share a multiprocessor at once: K steps × their steps one after another,
            or one and its latency where that is longer
    least   the rounds of the busiest multiprocessor, then the largest tile and the deepest ring

C goes through shared memory where its rows are pairs of elements. CTAs take tiles in groups where C
has many of them along M.

Figures are those of data sheets. Latency, what is hidden, staging and order fit the times of the
same kernels on an H100 and an H200 (docs/appendix/mma-sync.md); nothing was measured on the chips
themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from ...dialects.dtypes import DTYPES
from ...dialects.errors import CompileError
from ...dialects.legality import RESERVED_BYTES, tile_memory
from ...dialects.target import WARP, WARP_THREADS, Target, warp_grid
from ..spec import MatmulSpec
from .chip_figures import figures

TILES = (
    (128, 256), (256, 128), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64),
    (32, 128), (16, 128), (16, 64), (32, 32), (16, 32),
)  # fmt: skip
K_BYTES = (128, 64)  # of a tile: a row of the widest swizzle, or of half of it
STAGES_MIN, STAGES_MAX = 3, 4
NOT_HIDDEN = 0.2  # assumed: of what a step does beside what takes it longest
STEP_LATENCY = 300  # cycles from the meeting of a step to its last MMA, beside the MMAs themselves
GROUPED_TILES = 32  # along M, from which a grouped order was faster on an H200
OTHER_REGISTERS = 82  # of a thread, beside its sums: fragments and addresses


@dataclass(frozen=True)
class WarpSchedule:
    """A tile of M×N×K elements, the warps that share it, and the slots of its ring.

    `staged` sums go through shared memory; `grouped` tiles share more operands in L2.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    staged: bool = False
    grouped: bool = False

    def label(self) -> str:
        """In words."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        order = ", grouped" if self.grouped else ""
        return f"{tile} by mma.sync of {warps} warps, {self.stages} stages{order}"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        order = " order=grouped" if self.grouped else ""
        passes = [f"tiling{{tile={tile} warps={warps}{order}}}", "copy-insertion"]
        passes += ["swizzle-selection", *(["epilogue-staging"] if self.staged else [])]
        return ",".join([*passes, *([f"pipelining{{stages={self.stages}}}"] * (self.stages > 1))])


@dataclass(frozen=True)
class WarpEstimate:
    """Microseconds of one schedule, and `bound`: what limits a step or the whole."""

    total_us: float
    bound: str


def is_by_warps(target: Target) -> bool:
    """Whether the chip's own MMA is one that warps issue by themselves."""
    return target.mma.issuer == WARP


def candidates(spec: MatmulSpec, target: Target) -> list[tuple[WarpSchedule, float]]:
    """Each schedule with its microseconds by estimate, the least first; of equals the largest."""
    item = DTYPES[spec.a_dtype].bytes
    found = []
    for (m, n), k_bytes in itertools.product(TILES, K_BYTES):
        tile, grid = (m, n, k_bytes // item), warp_grid(m, n, target.mma)
        if grid is None or tile_memory(target, tile, item):
            continue
        slot = (m + n) * k_bytes
        steps = -(-spec.k // tile[2])
        most = max(1, min(STAGES_MAX, steps, (target.shared_bytes - RESERVED_BYTES) // slot))
        for stages in range(min(STAGES_MIN, most), most + 1):
            grouped = -(-spec.m // m) >= GROUPED_TILES
            schedule = WarpSchedule(tile, grid, stages, spec.n % 2 == 0, grouped)
            found.append((schedule, estimate_us(spec, schedule, target)))
    return sorted(found, key=_order)


def _order(found: tuple[WarpSchedule, float]) -> tuple[float, int, int]:
    """The least time first; of equals the largest tile of C, then the deepest ring."""
    (m, n, _), stages = found[0].tile, found[0].stages
    return found[1], -m * n, -stages


def warp_schedule(spec: MatmulSpec, target: Target) -> WarpSchedule:
    """The fastest by estimate."""
    found = candidates(spec, target)
    if not found:
        raise CompileError(f"schedule: a tile must fit {target.chip}, got none for {spec.a_dtype}")
    return found[0][0]


def estimate_us(spec: MatmulSpec, schedule: WarpSchedule, target: Target) -> float:
    """Microseconds of the waves, at least those in which DRAM moves everything once."""
    busy = step_cycles(spec, schedule, target)
    return estimate(spec, schedule, target, busy, STEP_LATENCY).total_us


def step_cycles(spec: MatmulSpec, schedule: WarpSchedule, target: Target) -> dict[str, float]:
    """Cycles that each resource needs for one K tile of one CTA."""
    (m, n, k), chip = schedule.tile, figures(target)
    item = DTYPES[spec.a_dtype].bytes
    warp_m, warp_n = m // schedule.warps[0], n // schedule.warps[1]
    fragments = math.prod(schedule.warps) * (warp_m + warp_n) * k * item
    return {
        "tensor core": 2 * m * n * k / chip.mma_rate * item / 2,
        "shared memory": fragments / chip.shared_rate,
        "L2": (min(m, spec.m) + min(n, spec.n)) * k * item / chip.l2_rate,
    }


def estimate(
    spec: MatmulSpec,
    schedule: WarpSchedule,
    target: Target,
    busy: Mapping[str, float],
    latency: float,
) -> WarpEstimate:
    """Of steps in which each resource is busy so long, and that last `latency` cycles more."""
    (m, n, k), chip = schedule.tile, figures(target)
    item, result = DTYPES[spec.a_dtype].bytes, DTYPES[spec.c_dtype].bytes
    room = _ctas_at_once(schedule, target, item)
    *others, slowest = sorted(busy.values())
    step = slowest + NOT_HIDDEN * sum(others)
    ctas = max(1, spec.batch) * -(-spec.m // m) * -(-spec.n // n)
    rounds, left = divmod(-(-ctas // target.multiprocessors), room)
    rate = chip.tma_store_rate if schedule.staged else chip.direct_store_rate
    stored = m * n * result / rate

    def round_of(count: int) -> float:
        """Cycles in which `count` CTAs of one multiprocessor run together."""
        loop = -(-spec.k // k) * max(count * step, step + latency)
        return loop + count * stored + chip.cta_start + chip.tma_latency

    cycles = rounds * round_of(room) + (round_of(left) if left else 0)
    moved = (spec.m + spec.n) * spec.k * item + spec.m * spec.n * result
    work_us = cycles / (chip.clock * 1e3)
    dram_us = max(1, spec.batch) * moved / chip.dram_rate
    waits = (room if rounds else left) * step < step + latency
    bound = "latency" if waits else max(busy, key=busy.__getitem__)
    return WarpEstimate(max(work_us, dram_us), "DRAM" if dram_us > work_us else bound)


def _ctas_at_once(schedule: WarpSchedule, target: Target, item: int) -> int:
    """CTAs that shared memory and registers of a multiprocessor have room for."""
    m, n, k = schedule.tile
    threads = WARP_THREADS * math.prod(schedule.warps)
    registers = threads * min(255, m * n // threads + OTHER_REGISTERS)
    shared = schedule.stages * (m + n) * k * item + target.cta_reserved_shared_bytes
    by_shared = target.multiprocessor_shared_bytes // shared
    return max(1, min(by_shared, target.registers // registers))
