"""The schedule of products with narrow weights, by the estimated time of each tile.

    step    the longest of what warps issue, what shared memory and L2 move, and what the tensor
            core multiplies
    round   the CTAs that share a multiprocessor at once: K steps × their steps one after another,
            or the latency of one warp's loads and MMAs if that is longer
    parts   for CTAs of the grid that share K, the time in which their sums meet
    least   at least the time in which DRAM reads the weights and scales

For many rows, Hopper has wgmma, which takes weights from registers, and Blackwell tcgen05.mma,
which takes them from tensor memory (`swapped_weight_schedule`).

If C has few rows, nearly everything that is read is weights. Then a tile has as many rows as there
are, and few enough columns that all multiprocessors have some. If the chip has TMA and it can
address A and B, a role loads them.
"""

from __future__ import annotations

import itertools
import math

from ....dialects.dtypes import DTYPES
from ....dialects.errors import CompileError
from ....dialects.legality import PARTIAL_BYTES, RESERVED_BYTES
from ....dialects.mma_units import WARP, fits_warps
from ....dialects.record import record
from ....dialects.target import TARGETS, WARP_THREADS, Target
from ....dialects.weight_legality import weight_depth, weight_memory, weight_type
from ...spec import MatmulSpec
from ..chips.chip_figures import figures
from .swapped_weight_schedule import (
    LAUNCH_US,
    SwappedWeightSchedule,
    swapped_weight_cycles,
    swapped_weight_schedules,
)

ROWS = (16, 32, 64, 128)
COLUMNS = (32, 64, 128, 256)
DEPTHS = (128, 256, 64, 512, 32)
WARPS = (2, 4, 8)
STAGES_MIN, STAGES_MAX = 3, 8
SUMS_MAX = 64  # of a thread beside those of a group, from which on ptxas spills
GROUPS_BESIDE = 4  # of a step, with more of which it spills with as many sums
WIDE_BYTES = 2
MMA = 16, 8, 16
# Fitted to an H200's times of 280 kernels of 22 products, M of 1 to 4096, within 11 %.
ISSUE_RATE = 1.7  # instructions a cycle of a multiprocessor
PAIR_INSTRUCTIONS = {"s4": 4, "u4": 4, "s8": 6, "e4m3": 5, "e5m2": 5}
"""Instructions per pair of weights, with its load, in SASS."""
PAIR_LOAD_CYCLES = 1.9  # of shared memory, for a warp
STEP_INSTRUCTIONS = 26  # of a warp: waits, addresses and scales
SLICE_LATENCY, MMA_LATENCY, STEP_LATENCY = 54, 10, 80  # cycles of a warp
MMA_SHARE = 0.38  # of the tensor core's rate that mma.sync reaches where it has another MMA
MEET_CYCLES = 2550  # of parts of K over the grid, beside what they write and read
MARGIN = 1.05
FRAGMENT_BYTES = 512  # of an ldmatrix
REGISTERS = 60  # of a thread, beside its sums
PARTS, STEPS_MIN, CTAS_MAX = (1, 2, 4, 8), 3, 8
RINGS = (3, 4, 6, 8)


@record
class WeightSchedule:
    """A tile of M×N×K elements, the warps that share it, and the slots of its ring.

    With `roles`, a separate warp loads tiles by TMA. CTAs of the grid share a tile, each with one
    of `parts` parts of K.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    roles: bool
    parts: int = 1

    def label(self) -> str:
        """In words."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        more = [f"K split by {self.parts} over the grid"] if self.parts > 1 else []
        more += ["roles"] if self.roles else []
        return ", ".join([f"{tile} by mma.sync of {warps} warps, {self.stages} stages", *more])

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile, warps = ("x".join(map(str, extents)) for extents in (self.tile, self.warps))
        copies = "tma-insertion" if self.roles else "copy-insertion"
        passes = {
            f"tiling{{tile={tile} warps={warps}}},{copies},swizzle-selection": True,
            f"split-k{{parts={self.parts} over=grid}}": self.parts > 1,
            f"pipelining{{stages={self.stages}}}": self.stages > 1,
            "warp-specialization": self.roles,
        }
        return ",".join(text for text, wanted in passes.items() if wanted)


@record
class WeightEstimate:
    """The microseconds of a schedule, what bounds it, and the time of DRAM alone."""

    schedule: WeightSchedule | SwappedWeightSchedule
    total_us: float
    dram_us: float
    bound: str


def weight_schedule(spec: MatmulSpec, target: Target) -> WeightSchedule | SwappedWeightSchedule:
    """The fastest schedule by the estimate."""
    return estimates(spec, target)[0].schedule


def estimates(spec: MatmulSpec, target: Target) -> list[WeightEstimate]:
    """All candidates, the chosen one first, then by time.

    Those within `MARGIN` of the fastest count as equal. Among them the largest tile, which reads A
    the fewest times, is chosen, then the deepest ring.
    """
    broken = weight_type(target, spec.b_dtype)
    if broken:
        raise CompileError(f"schedule: {broken}")
    found = [_estimate(spec, each, target) for each in _candidates(spec, target)]
    found += [_transposed(spec, each, target) for each in swapped_weight_schedules(spec, target)]
    if not found:
        rule = f"schedule: a tile of weights must fit {target.chip}"
        raise CompileError(f"{rule}, got none for {spec.b_dtype} in groups of {spec.group_size}")

    limit = MARGIN * min(each.total_us for each in found)

    def order(each: WeightEstimate) -> tuple[float, ...]:
        m, n, k = each.schedule.tile
        size = m * n * k, each.schedule.stages
        near = each.total_us <= limit
        return limit if near else each.total_us, *(-one for one in size), each.total_us

    return sorted(found, key=order)


def dram_bytes(spec: MatmulSpec) -> float:
    """Bytes of one product: weights, their scales and zero points, A and C."""
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
        if broken or (k > DEPTHS[-1] and k >= 2 * spec.k):
            continue
        found += [
            WeightSchedule(tile, grid, stages, roles, parts)
            for grid in grids
            if fits_warps(m, n, grid, target.mma) and fits_registers(spec, tile, warps)
            for parts in PARTS
            if parts == 1 or _may_split(spec, tile, parts, target)
            for stages in _stages(spec, tile, parts, target)
        ]
    return found


def _may_split(spec: MatmulSpec, tile: tuple[int, int, int], parts: int, target: Target) -> bool:
    """Whether each part has several steps, and not too many CTAs share L2; for a single output."""
    m, n, k = tile
    ctas = -(-spec.m // m) * -(-spec.n // n) * parts
    steps = -(-spec.k // k)
    used = -(-steps // -(-steps // parts))
    plain = not spec.dynamic_m and not spec.further and not spec.neighbours
    fits = steps >= STEPS_MIN * parts and ctas <= CTAS_MAX * target.multiprocessors
    return plain and fits and used == parts and target.async_agents


def _stages(spec: MatmulSpec, tile: tuple[int, int, int], parts: int, target: Target) -> list[int]:
    """The depths of rings for which shared memory has room, no deeper than there are steps."""
    bits, steps = DTYPES[spec.b_dtype].bits, -(-spec.k // tile[2] // parts)
    room = (target.shared_bytes - RESERVED_BYTES) // stage_bytes(tile, bits)
    most = min(STAGES_MAX, steps, room)
    least = min(STAGES_MIN, steps)
    return [each for each in sorted({min(most, count) for count in RINGS}) if each >= least]


def fits_registers(spec: MatmulSpec, tile: tuple[int, int, int], warps: int) -> bool:
    """Whether threads can hold the sums of a group in addition to the total sums, if there are
    scales, and the scales of a step."""
    if not spec.group_size:
        return True
    m, n, k = tile
    most = SUMS_MAX * warps * WARP_THREADS
    return m * n < most or (m * n == most and k <= GROUPS_BESIDE * spec.group_size)


def stage_bytes(tile: tuple[int, int, int], bits: int) -> int:
    """Bytes of a slot: a tile of A and one of weights."""
    m, n, k = tile
    return m * k * WIDE_BYTES + n * k * bits // 8


def _by_tma(spec: MatmulSpec, bits: int, target: Target) -> bool:
    """Whether TMA can address the rows of A and of the weights."""
    pitches = (spec.lda or spec.k) * WIDE_BYTES, spec.k * bits // 8
    return not any(pitch % target.tma_alignment_bytes for pitch in pitches)


def _estimate(spec: MatmulSpec, schedule: WeightSchedule, target: Target) -> WeightEstimate:
    (m, n, k), chip, parts = schedule.tile, figures(target), schedule.parts
    busy, warps = _busy(spec, schedule, target), math.prod(schedule.warps)
    mmas = m * n * k // math.prod(MMA) // warps
    chain = k // MMA[2] * SLICE_LATENCY + mmas * MMA_LATENCY + STEP_LATENCY
    awaited = chip.tma_latency / max(1, schedule.stages - 1)
    room = _ctas_at_once(spec, schedule, target)
    ctas = -(-spec.m // m) * -(-spec.n // n) * parts
    rounds, left = divmod(-(-ctas // target.multiprocessors), room)
    steps = math.ceil(math.ceil(spec.k / k) / parts)
    stored = m * n * DTYPES[spec.outputs[0]].bytes / chip.direct_store_rate
    gathered = _gather_cycles(spec, schedule, target)

    def round_of(count: int) -> float:
        """Cycles in which `count` CTAs of one multiprocessor run together."""
        alone = 1 + 1 / (count * warps)  # with few warps less is hidden
        loop = steps * max(count * max(busy.values()) * alone, chain, awaited)
        return loop + count * stored + gathered + chip.cta_start + chip.tma_latency

    cycles = rounds * round_of(room) + (round_of(left) if left else 0)
    work_us = cycles / (chip.clock * 1e3) + LAUNCH_US
    dram_us = dram_bytes(spec) / chip.dram_rate
    bound = max(busy, key=busy.__getitem__) if max(busy.values()) > chain else "latency"
    bound = "DRAM" if dram_us + LAUNCH_US > work_us else bound
    return WeightEstimate(schedule, max(work_us, dram_us + LAUNCH_US), dram_us, bound)


def _transposed(
    spec: MatmulSpec, schedule: SwappedWeightSchedule, target: Target
) -> WeightEstimate:
    """The estimate of a schedule of wgmma or tcgen05.mma with exchanged operands."""
    chip = figures(target)
    work_us = swapped_weight_cycles(spec, schedule, target) / (chip.clock * 1e3) + LAUNCH_US
    dram_us = dram_bytes(spec) / chip.dram_rate
    least = dram_us + LAUNCH_US
    bound = "DRAM" if least > work_us else schedule.tensor_core
    return WeightEstimate(schedule, max(work_us, least), dram_us, bound)


def _gather_cycles(spec: MatmulSpec, schedule: WeightSchedule, target: Target) -> float:
    """Cycles in which parts of K write their sums and the last one reads all of them."""
    parts = figures(target).parts
    if schedule.parts == 1 or parts is None:
        return 0
    m, n, _ = schedule.tile
    sums = min(m, spec.m) * n * PARTIAL_BYTES
    return sums / parts.write + MEET_CYCLES + schedule.parts * sums / parts.read


def _busy(spec: MatmulSpec, schedule: WeightSchedule, target: Target) -> dict[str, float]:
    """Cycles for which each resource is busy with one K tile of one CTA."""
    (m, n, k), chip = schedule.tile, figures(target)
    bits, (along_m, along_n) = DTYPES[spec.b_dtype].bits, schedule.warps
    pairs = along_m * n * k // 2 // WARP_THREADS  # that each warp along M widens by itself
    mmas = m * n * k // math.prod(MMA)
    fragments = along_n * m * k * WIDE_BYTES
    issued = pairs * PAIR_INSTRUCTIONS[spec.b_dtype] + mmas + fragments // FRAGMENT_BYTES
    issued += STEP_INSTRUCTIONS * along_m * along_n
    rate = chip.dram_rate / chip.clock / 1e3 / target.multiprocessors
    share = 1 if TARGETS[target.chip].mma.issuer == WARP else MMA_SHARE
    return {
        "instructions": issued / ISSUE_RATE,
        "shared memory": fragments / chip.shared_rate + pairs * PAIR_LOAD_CYCLES,
        "tensor core": 2 * m * n * k / (chip.mma_rate * share),
        "L2": (min(m, spec.m) * k * WIDE_BYTES + n * k * bits / 8) / chip.l2_rate,
        "DRAM": n * k * bits / 8 / rate,
    }


def _ctas_at_once(spec: MatmulSpec, schedule: WeightSchedule, target: Target) -> int:
    """The CTAs for which shared memory and registers of a multiprocessor have room."""
    (m, n, _), warps = schedule.tile, math.prod(schedule.warps)
    sums = m * n // (WARP_THREADS * warps) * (2 if spec.group_size else 1)
    registers = WARP_THREADS * (warps + schedule.roles) * (sums + REGISTERS)
    shared = schedule.stages * stage_bytes(schedule.tile, DTYPES[spec.b_dtype].bits)
    shared += target.cta_reserved_shared_bytes + RESERVED_BYTES
    most = target.multiprocessor_shared_bytes // shared
    return max(1, min(most, target.registers // registers))
