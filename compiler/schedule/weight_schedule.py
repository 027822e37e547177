"""The schedule of a product whose weights threads widen, by an estimate of each tile's time.

    step    the longest of what warps issue, what shared memory and L2 move and what the tensor core
            multiplies, and a part of the others
    round   the CTAs that share a multiprocessor at once: K steps × their steps one after another,
            or one and its latency where that is longer
    least   at least the time in which DRAM reads the weights and scales

With few rows of C nearly all that is read is weights. Then a tile has as many rows as there are,
and columns enough that all multiprocessors have some. Where the chip has TMA and it can address A
and B, a role loads them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from ...dialects.dtypes import DTYPES
from ...dialects.errors import CompileError
from ...dialects.legality import RESERVED_BYTES
from ...dialects.target import WARP_THREADS, Target, fits_warps
from ...dialects.weight_legality import weight_depth, weight_memory, weight_type
from ..spec import MatmulSpec
from .chip_figures import figures
from .warp_schedule import NOT_HIDDEN, STEP_LATENCY

ROWS = (16, 32, 64, 128)
COLUMNS = (32, 64, 128, 256)
DEPTHS = (128, 256, 64, 512, 32)
WARPS = (2, 4, 8)
STAGES_MIN, STAGES_MAX = 3, 8
SUMS_MAX = 64  # of a thread beside those of a group, from which on ptxas spills
WIDE_BYTES = 2
MMA = 16, 8, 16
ISSUE_RATE = 3.0  # instructions a cycle of a multiprocessor's four schedulers, assumed
PAIR_INSTRUCTIONS = {"s4": 4, "u4": 4, "s8": 6, "e4m3": 5, "e5m2": 5}
"""Of a pair of weights, with its load, in SASS."""
STEP_INSTRUCTIONS = 60  # of a warp: waits, addresses and scales
REGISTERS = 60  # of a thread, beside its sums


@dataclass(frozen=True)
class WeightSchedule:
    """A tile of M×N×K elements, the warps that share it and the slots of its ring.

    With `roles` a warp of its own loads tiles by TMA.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    roles: bool

    def label(self) -> str:
        """In words."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        roles = ", roles" if self.roles else ""
        return f"{tile} by mma.sync of {warps} warps, {self.stages} stages{roles}"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        copies = "tma-insertion" if self.roles else "copy-insertion"
        passes = {
            f"tiling{{tile={tile} warps={warps}}},{copies},swizzle-selection": True,
            f"pipelining{{stages={self.stages}}}": self.stages > 1,
            "warp-specialization": self.roles,
        }
        return ",".join(text for text, wanted in passes.items() if wanted)


@dataclass(frozen=True)
class WeightEstimate:
    """What a schedule takes, in microseconds; what bounds it, and what DRAM alone would take."""

    schedule: WeightSchedule
    total_us: float
    dram_us: float
    bound: str


def weight_schedule(spec: MatmulSpec, target: Target) -> WeightSchedule:
    """The fastest by estimate."""
    return estimates(spec, target)[0].schedule


def estimates(spec: MatmulSpec, target: Target) -> list[WeightEstimate]:
    """All candidates, the fastest first; of equals the largest tile, then the deepest ring."""
    broken = weight_type(target, spec.b_dtype)
    if broken:
        raise CompileError(f"schedule: {broken}")
    found = [_estimate(spec, each, target) for each in _candidates(spec, target)]
    if not found:
        rule = f"schedule: a tile of weights must fit {target.chip}"
        raise CompileError(f"{rule}, got none for {spec.b_dtype} in groups of {spec.group_size}")

    def order(each: WeightEstimate) -> tuple[float, int, int]:
        m, n, k = each.schedule.tile
        return each.total_us, -m * n * k, -each.schedule.stages

    return sorted(found, key=order)


def dram_bytes(spec: MatmulSpec) -> float:
    """Of one product: weights, their scales and zero points, A and C."""
    weights = spec.n * spec.k * DTYPES[spec.b_dtype].bits / 8
    groups = spec.n * spec.k // spec.group_size if spec.group_size else 0
    of_group = DTYPES[spec.scale_dtype].bytes + spec.zero_points if groups else 0
    others = spec.m * spec.k * WIDE_BYTES + spec.m * spec.n * DTYPES[spec.outputs[0]].bytes
    return weights + groups * of_group + others


def _candidates(spec: MatmulSpec, target: Target) -> list[WeightSchedule]:
    bits, found = DTYPES[spec.b_dtype].bits, []
    roles = target.async_agents and _by_tma(spec, bits, target)
    rows = [m for m in ROWS if m < 2 * spec.m or m == ROWS[0]]
    for m, n, k, warps in itertools.product(rows, COLUMNS, DEPTHS, WARPS):
        tile = m, n, k
        grids = [(along_m, warps // along_m) for along_m in (1, 2) if warps % along_m == 0]
        broken = weight_depth(k, bits, spec.group_size, spec.k) or weight_memory(target, tile, bits)
        steps = -(-spec.k // k)
        room = target.shared_bytes - RESERVED_BYTES
        stages = min(STAGES_MAX, steps, room // stage_bytes(tile, bits))
        if broken or (k > DEPTHS[-1] and k >= 2 * spec.k):
            continue
        found += [
            WeightSchedule(tile, grid, count, roles)
            for grid in grids
            if fits_warps(m, n, grid, target.mma) and _fits_registers(spec, tile, warps)
            for count in sorted({min(stages, most) for most in (3, 4, 6, 8)})
            if count >= min(STAGES_MIN, steps)
        ]
    return found


def _fits_registers(spec: MatmulSpec, tile: tuple[int, int, int], warps: int) -> bool:
    """Whether threads can hold the sums of a group beside those of all, where there are scales."""
    return not spec.group_size or tile[0] * tile[1] <= SUMS_MAX * warps * WARP_THREADS


def stage_bytes(tile: tuple[int, int, int], bits: int) -> int:
    """Of a slot: a tile of A and one of weights."""
    m, n, k = tile
    return m * k * WIDE_BYTES + n * k * bits // 8


def _by_tma(spec: MatmulSpec, bits: int, target: Target) -> bool:
    """Whether TMA can address the rows of A and of the weights."""
    pitches = (spec.lda or spec.k) * WIDE_BYTES, spec.k * bits // 8
    return not any(pitch % target.tma_alignment_bytes for pitch in pitches)


def _estimate(spec: MatmulSpec, schedule: WeightSchedule, target: Target) -> WeightEstimate:
    (m, n, k), chip = schedule.tile, figures(target)
    busy = _busy(spec, schedule, target)
    *others, slowest = sorted(busy.values())
    step = slowest + NOT_HIDDEN * sum(others)
    room = _ctas_at_once(spec, schedule, target)
    ctas = -(-spec.m // m) * -(-spec.n // n)
    each = -(-ctas // target.multiprocessors)
    rounds, left = divmod(each, room)
    steps = -(-spec.k // k)
    stored = m * n * DTYPES[spec.outputs[0]].bytes / chip.direct_store_rate
    moved = stage_bytes(schedule.tile, DTYPES[spec.b_dtype].bits)
    rate = chip.dram_rate / chip.clock / 1e3 / target.multiprocessors

    def round_of(count: int) -> float:
        """Cycles in which `count` CTAs of one multiprocessor run together."""
        ahead = max(1, schedule.stages - 1)
        awaited = (chip.tma_latency + moved / rate) / ahead
        loop = steps * max(count * step, step + STEP_LATENCY / ahead, awaited)
        return loop + count * stored + chip.cta_start + chip.tma_latency

    cycles = rounds * round_of(room) + (round_of(left) if left else 0)
    work_us = cycles / (chip.clock * 1e3)
    dram_us = dram_bytes(spec) / chip.dram_rate
    bound = "DRAM" if dram_us > work_us else max(busy, key=busy.__getitem__)
    return WeightEstimate(schedule, max(work_us, dram_us), dram_us, bound)


def _busy(spec: MatmulSpec, schedule: WeightSchedule, target: Target) -> dict[str, float]:
    """Cycles that each resource needs for one K tile of one CTA."""
    (m, n, k), chip = schedule.tile, figures(target)
    bits, (along_m, along_n) = DTYPES[spec.b_dtype].bits, schedule.warps
    pairs = along_m * n * k // 2 // WARP_THREADS  # that each warp along M widens by itself
    mmas = math.prod(extent // each for extent, each in zip((m, n, k), MMA, strict=True))
    fragments = along_n * m * k * WIDE_BYTES
    loads = fragments // 512 + STEP_INSTRUCTIONS * along_m * along_n
    issued = pairs * PAIR_INSTRUCTIONS[spec.b_dtype] + mmas + loads
    rate = chip.dram_rate / chip.clock / 1e3 / target.multiprocessors
    return {
        "instructions": issued / ISSUE_RATE,
        "shared memory": fragments / chip.shared_rate + pairs,
        "tensor core": 2 * m * n * k / chip.mma_rate,
        "L2": (min(m, spec.m) * k * WIDE_BYTES + n * k * bits / 8) / chip.l2_rate,
        "DRAM": n * k * bits / 8 / rate,
    }


def _ctas_at_once(spec: MatmulSpec, schedule: WeightSchedule, target: Target) -> int:
    """CTAs that shared memory and registers of a multiprocessor have room for."""
    (m, n, _), warps = schedule.tile, math.prod(schedule.warps)
    sums = m * n // (WARP_THREADS * warps) * (2 if spec.group_size else 1)
    registers = WARP_THREADS * (warps + schedule.roles) * (sums + REGISTERS)
    shared = schedule.stages * stage_bytes(schedule.tile, DTYPES[spec.b_dtype].bits)
    shared += target.cta_reserved_shared_bytes + RESERVED_BYTES
    most = target.multiprocessor_shared_bytes // shared
    return max(1, min(most, target.registers // registers))
