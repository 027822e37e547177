"""The schedule of a matmul on a chip whose warps multiply by themselves (mma.sync).

    waves   CTAs over those that find room at once
    step    the longest of what its MMAs, its fragments and what it asks L2 for take, and a part of
            the others; a CTA alone also waits for its first fragments
    least   waves × (K steps × step + latency), then the largest tile and the deepest ring

Figures are those of data sheets: nothing was measured on these chips.
"""

from __future__ import annotations

import math
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
K_BYTES = 64  # of a tile, a row of a 64-byte swizzle
STAGES_MIN, STAGES_MAX = 3, 4
NOT_HIDDEN = 0.2  # assumed: of what a step does beside what takes it longest
STEP_LATENCY = 150  # cycles, assumed: from the meeting of a step to its first MMA
OTHER_REGISTERS = 82  # of a thread, beside its sums: fragments and addresses


@dataclass(frozen=True)
class WarpSchedule:
    """A tile of M×N×K elements, the warps that share it, and the slots of its ring."""

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int

    def label(self) -> str:
        """In words."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        return f"{tile} by mma.sync of {warps} warps, {self.stages} stages"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        stages = f",pipelining{{stages={self.stages}}}" if self.stages > 1 else ""
        return f"tiling{{tile={tile} warps={warps}}},copy-insertion,swizzle-selection{stages}"


def is_by_warps(target: Target) -> bool:
    """Whether the chip's own MMA is one that warps issue by themselves."""
    return target.mma.issuer == WARP


def candidates(spec: MatmulSpec, target: Target) -> list[tuple[WarpSchedule, float]]:
    """Each schedule with its microseconds by estimate, the least first; of equals the largest."""
    item = DTYPES[spec.a_dtype].bytes
    found = []
    for m, n in TILES:
        tile, grid = (m, n, K_BYTES // item), warp_grid(m, n, target.mma)
        if grid is None or tile_memory(target, tile, item):
            continue
        slot = (m + n) * K_BYTES
        steps = -(-spec.k // tile[2])
        most = max(1, min(STAGES_MAX, steps, (target.shared_bytes - RESERVED_BYTES) // slot))
        for stages in range(min(STAGES_MIN, most), most + 1):
            schedule = WarpSchedule(tile, grid, stages)
            found.append((schedule, estimate_us(spec, schedule, target)))
    return sorted(found, key=lambda pair: (pair[1], -math.prod(pair[0].tile), -pair[0].stages))


def warp_schedule(spec: MatmulSpec, target: Target) -> WarpSchedule:
    """The fastest by estimate."""
    found = candidates(spec, target)
    if not found:
        raise CompileError(f"schedule: a tile must fit {target.chip}, got none for {spec.a_dtype}")
    return found[0][0]


def estimate_us(spec: MatmulSpec, schedule: WarpSchedule, target: Target) -> float:
    """Microseconds of the waves, at least those in which DRAM moves everything once."""
    (m, n, k), chip = schedule.tile, figures(target)
    item, room = DTYPES[spec.a_dtype].bytes, _ctas_at_once(schedule, target)
    mma = 2 * m * n * k / chip.mma_rate * item / 2
    warp_m, warp_n = m // schedule.warps[0], n // schedule.warps[1]
    fragments = math.prod(schedule.warps) * (warp_m + warp_n) * k * item / chip.shared_rate
    loads = (min(m, spec.m) + min(n, spec.n)) * k * item / chip.l2_rate
    *others, slowest = sorted((mma, fragments, loads))
    step = slowest + NOT_HIDDEN * sum(others)
    step += max(0, STEP_LATENCY - (room - 1) * step)
    ctas = -(-spec.m // m) * -(-spec.n // n)
    busiest = -(-ctas // target.multiprocessors)
    waves = -(-busiest // room)
    steps = -(-spec.k // k)
    stored = m * n * DTYPES[spec.c_dtype].bytes / chip.direct_store_rate
    work = busiest * (steps * step + stored)
    cycles = work + waves * (chip.cta_start + chip.tma_latency)
    moved = (spec.m + spec.n) * spec.k * item + spec.m * spec.n * DTYPES[spec.c_dtype].bytes
    return max(cycles / (chip.clock * 1e3), moved / chip.dram_rate)


def _ctas_at_once(schedule: WarpSchedule, target: Target) -> int:
    """CTAs that shared memory and registers of a multiprocessor have room for."""
    m, n, _ = schedule.tile
    threads = WARP_THREADS * math.prod(schedule.warps)
    registers = threads * min(255, m * n // threads + OTHER_REGISTERS)
    shared = schedule.stages * (m + n) * K_BYTES + target.cta_reserved_shared_bytes
    by_shared = target.multiprocessor_shared_bytes // shared
    return max(1, min(by_shared, target.registers // registers))
