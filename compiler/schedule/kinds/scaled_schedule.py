"""The schedule of block-scaled products, by the estimated time of each tile.

A tile is 128 rows by 128 bytes along K, so that rows have the widest swizzle. Its columns, and
whether two CTAs share an MMA of 256 rows, are chosen. Two accumulators let the epilogue of a tile
overlap the next one. Beside the scales of a K step they leave tensor memory for at most 224
columns, since 2 x 256 are all of its 512. So tiles of 256 columns share some with the next tile,
whose MMAs wait until these are read.

Scales must be copied to tensor memory for each K step. If it has room for those of two K steps,
copies overlap the MMAs of the previous step; otherwise they precede their own. Two pairs in a
cluster could share B and its scales by multicast; `of_multicast` is the time of that. Where tiles
are few and K is long, CTAs of the grid share a tile (`split-k`).

On chips where warps multiply by themselves, sums are in registers: a tile has up to 128 columns,
and threads copy what it reads into a ring.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ....dialects import legality, scaled_legality
from ....dialects.dtypes import DTYPES, OPERAND_FORMATS, ScaledMma, scaled_mma
from ....dialects.errors import CompileError
from ....dialects.mma_units import WARP
from ....dialects.record import record
from ....dialects.target import Target
from ...spec import MatmulSpec
from ..chips.chip_figures import figures
from ..estimates.scaled_estimate import (
    AUTO_STAGES_MAX,
    CTAS_OF_PAIR,
    ROW_BYTES,
    ScaledEstimate,
    ScaledSchedule,
    as_plain,
    fitting_stages,
    in_bytes,
    scaled_estimate,
    tiles_along_m,
    widest_piece,
)
from ..problem import Problem
from ..quantized_costs import bits_of, scale_bytes
from ..rules.rules import grid_parts
from ..rules.staging_rules import pieces_ahead, staged_store
from ..search.candidates import PART_MARGIN, parts_in_waves
from ..search.stagings import AHEAD_LEAST
from ..vectors import with_vectors
from ..waves import resident_ctas

ROWS, STAGES_MIN = 128, 2
COLUMNS = (256, 224, 192, 160, 128, 96, 64, 32)
RATES = {"mxf8f6f4": 2, "mxf4": 4, "mxf4nvf4": 4}
"""The rate of products relative to that of 16-bit operands, on chips where warps multiply by
themselves (NVIDIA RTX PRO 6000: dense fp8 and fp4)."""
WARP_COLUMNS, WARP_STAGES_MAX = (128, 96, 64, 32), 4
RULE = (
    "the least estimated time; two accumulators, which share columns of tensor memory where it "
    "cannot hold both beside the scales; "
    f"parts of K over the grid where all else takes {PART_MARGIN} times as long"
)
WARP_RULE = (
    "the least estimated time; sums in registers, in a ring as many stages as shared memory and K "
    f"allow, up to {WARP_STAGES_MAX}"
)


@record
class WarpScaledSchedule(ScaledSchedule):
    """A tile for chips where warps multiply by themselves: threads copy, and a ring has `stages`
    slots."""

    stages: int = 1

    def label(self) -> str:
        """In words."""
        return f"{'x'.join(map(str, self.tile))} by mma.sync, {self.stages} stages"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile = "x".join(map(str, self.tile))
        ring = f",pipelining{{stages={self.stages}}}" if self.stages > 1 else ""
        return f"tiling{{tile={tile}}},copy-insertion,swizzle-selection{ring}"


def mma_of_spec(spec: MatmulSpec) -> ScaledMma:
    """The kind of MMA that multiplies the operands of a spec."""
    a, b = (OPERAND_FORMATS[dtype] for dtype in (spec.a_dtype, spec.b_dtype))
    found = scaled_mma(DTYPES[a.element], DTYPES[b.element], DTYPES[a.scale], a.block)
    assert found is not None  # the spec has asked
    return found


def estimates(spec: MatmulSpec, target: Target) -> list[ScaledEstimate]:
    """Every candidate that fits tensor memory, the fastest first."""
    mma = mma_of_spec(spec)
    broken = scaled_legality.scaled_kind(target, mma)
    if broken is not None:
        raise CompileError(f"schedule: {broken}")
    depth = ROW_BYTES * 2 if mma.packed else ROW_BYTES
    if target.mma.issuer == WARP:
        return _estimates_of_warps(spec, target, mma, depth)
    pairs = (True, False) if spec.m > ROWS else (False,)
    found = [
        _best(spec, target, mma, ScaledSchedule((ROWS, n, depth), pair))
        for n in COLUMNS
        for pair in pairs
        if scaled_legality.scaled_tensor_memory(target, mma, (ROWS, n, depth)) is None
    ]
    for pair in pairs:
        found += _in_parts(spec, target, mma, depth, pair)
    return sorted(found, key=lambda each: each.total_us * _margin(each.schedule))


def _margin(schedule: ScaledSchedule) -> float:
    """The same factor as for schedules without block scales."""
    return PART_MARGIN if schedule.parts > 1 else 1


def _in_parts(
    spec: MatmulSpec, target: Target, mma: ScaledMma, depth: int, pair: bool
) -> Iterator[ScaledEstimate]:
    """Tiles whose K is shared by CTAs of the grid, in as many parts as fill a few waves of CTAs."""
    problem = in_bytes(spec, mma, target)
    for n in COLUMNS:
        tile = ScaledSchedule((ROWS, n, depth), pair)
        if scaled_legality.scaled_tensor_memory(target, mma, tile.tile) is not None:
            continue
        plain = as_plain(tile, problem).but(scheduler="none")
        steps, tiles = problem.k_tiles(plain), math.prod(problem.grid(plain))
        for _, each in parts_in_waves(steps, tiles, resident_ctas(plain, target)):
            parted = replace(tile, parts=-(-steps // each))
            stages = min(fitting_stages(problem, mma, parted, target), each)
            broken = grid_parts(problem, as_plain(parted, problem), target)
            if parted.parts > 1 and stages >= STAGES_MIN and broken is None:
                yield scaled_estimate(spec, target, mma, replace(parted, stages=stages))


def _best(spec: MatmulSpec, target: Target, mma: ScaledMma, tile: ScaledSchedule) -> ScaledEstimate:
    """The fastest way to store C for a tile, with the depth of ring that it leaves room for."""
    problem = in_bytes(spec, mma, target)
    found = []
    for each in _stores(problem, tile, target):
        fitting = fitting_stages(problem, mma, each, target)
        if fitting < STAGES_MIN and found:
            continue
        stages = min(fitting, problem.k_tiles(as_plain(each, problem)))
        deeper = not problem.quantized and stages > AUTO_STAGES_MAX
        one = replace(each, stages=stages if deeper else 0)
        found.append(scaled_estimate(spec, target, mma, one))
    return min(found, key=lambda each: each.total_us)


def _stores(problem: Problem, tile: ScaledSchedule, target: Target) -> Iterator[ScaledSchedule]:
    """The ways to store: in pieces as wide as `epilogue-staging` takes by itself, or half as wide,
    which leaves room to the ring; with operands as large as C prefetched, if TMA can bring them."""
    yield tile
    if problem.quantized:
        return
    half = widest_piece(problem) // 2
    for columns in (0, half):
        one = replace(tile, columns=columns)
        plain = with_vectors(problem, as_plain(one, problem), target)
        if staged_store(problem, plain, target):
            continue
        one = replace(one, vectors=plain.vectors)
        if one != tile:
            yield one
        if not problem.beside:
            continue
        for ahead in (AHEAD_LEAST, problem.pieces(plain)):
            if not pieces_ahead(problem, plain.but(ahead=ahead), target):
                yield replace(one, ahead=ahead)


def rule_of(target: Target) -> str:
    """The rule of the choice, in words."""
    return WARP_RULE if target.mma.issuer == WARP else RULE


def scaled_schedule(spec: MatmulSpec, target: Target) -> ScaledSchedule:
    """The fastest schedule by the estimate."""
    return estimates(spec, target)[0].schedule


def _estimates_of_warps(
    spec: MatmulSpec, target: Target, mma: ScaledMma, depth: int
) -> list[ScaledEstimate]:
    """Tiles whose sums four to eight warps hold, with rings as deep as shared memory and K
    allow."""
    found, steps = [], -(-spec.k // depth)
    for n in WARP_COLUMNS:
        tile = (ROWS, n, depth)
        scales = sum(layout.slot_bytes for layout in scaled_legality.scale_tiles(mma, tile))
        slot = (ROWS + n) * ROW_BYTES + scales
        room = (target.shared_bytes - legality.RESERVED_BYTES) // slot
        if room:
            schedule = WarpScaledSchedule(tile, False, min(room, steps, WARP_STAGES_MAX))
            found.append(_estimate_of_warps(spec, target, mma, schedule))
    return sorted(found, key=lambda each: each.total_us)


def _estimate_of_warps(
    spec: MatmulSpec, target: Target, mma: ScaledMma, schedule: WarpScaledSchedule
) -> ScaledEstimate:
    chip, (m, n, k) = figures(target), schedule.tile
    steps = -(-spec.k // k)
    scales = sum(layout.size_bytes for layout in scaled_legality.scale_tiles(mma, schedule.tile))
    multiply = steps * 2 * m * n * k / (chip.mma_rate * RATES[mma.kind])
    load = steps * ((m + n) * ROW_BYTES + scales) / chip.l2_rate
    stored, form = m * n * DTYPES[spec.outputs[0]].bytes, spec.quantized
    if form is not None:
        stored = m * n * bits_of(form) / 8 + scale_bytes(m, n, n, form)
    store = stored / chip.direct_store_rate
    tiles = tiles_along_m(spec, m) * -(-spec.n // n)
    waves = -(-tiles // target.multiprocessors)
    cycles = chip.cta_start + waves * (max(multiply, load) + store)
    total_us = cycles / (chip.clock * 1e3)
    return ScaledEstimate(schedule, 1, waves, multiply, load, store, total_us)


def of_multicast(spec: MatmulSpec, target: Target) -> ScaledEstimate | None:
    """The time of the choice in clusters of two pairs that share B; None without pairs.

    Each CTA loads half as much of B and of its scales, but fewer clusters run at a time.
    """
    chosen, places = scaled_schedule(spec, target), figures(target).clusters_at_once
    if chosen.parts > 1 or not chosen.pair or 2 * CTAS_OF_PAIR not in places:
        return None
    return scaled_estimate(spec, target, mma_of_spec(spec), chosen, sharing=2)
