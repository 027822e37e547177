"""The schedule of a product with block scales, by an estimate of each tile's time.

A tile is 128 rows by 128 bytes along K, so that rows have the widest swizzle; its columns are a
choice, and whether two CTAs share an MMA of 256 rows. Two accumulators let the epilogue of a tile
overlap the next one; beside the scales of a K step they leave tensor memory for 224 columns at
most, since 2 x 256 are all 512. So a tile of 256 columns has one accumulator and waits for its
epilogue.

The scales of a K step take copies to tensor memory. Where it has room for those of two K steps,
copies run beside the MMAs of the step before, else in front of their own. Two pairs in a cluster
could share B and its scales by multicast; `of_multicast` is what that takes.

Where warps multiply by themselves, sums are in registers: a tile has up to 128 columns, and threads
copy what it reads into a ring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import compress

from ...dialects import legality, scaled_legality
from ...dialects.dtypes import DTYPES, OPERAND_FORMATS, ScaledMma, scaled_mma
from ...dialects.errors import CompileError
from ...dialects.layout import TileLayout, widest_swizzle
from ...dialects.target import WARP, Target
from ..spec import MatmulSpec, element_of
from .chip_figures import figures
from .quantized_costs import bits_of, instructions, scale_bytes

ROWS, ROW_BYTES = 128, 128
COLUMNS = (256, 224, 192, 160, 128, 96, 64, 32)
RATES = {"mxf8f6f4": 2, "mxf4": 4, "mxf4nvf4": 4}
"""How many times the products of 16-bit operands a cycle (NVIDIA B200: dense fp8 and fp4)."""
OVERLAPPING, CTAS_OF_PAIR = 2, 2
WARP_COLUMNS, WARP_STAGES_MAX = (128, 96, 64, 32), 4
RULE = "the least estimated time; two accumulators where tensor memory holds them beside the scales"
WARP_RULE = (
    "the least estimated time; sums in registers, in a ring as many stages as shared memory and K "
    f"allow, up to {WARP_STAGES_MAX}"
)


@dataclass(frozen=True)
class ScaledSchedule:
    """A tile of M×N×K elements of one CTA, and whether two CTAs share an MMA."""

    tile: tuple[int, int, int]
    pair: bool

    def label(self) -> str:
        """In words."""
        return f"{'x'.join(map(str, self.tile))}{', 2-CTA MMAs' if self.pair else ''}"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile = "x".join(map(str, self.tile))
        shape = "shape=2x1 pair=true" if self.pair else "shape=1x1"
        return (
            f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,epilogue-staging,"
            f"clustering{{{shape}}},pipelining,warp-specialization,persistence"
        )


@dataclass(frozen=True)
class WarpScaledSchedule(ScaledSchedule):
    """The same where warps multiply by themselves: threads copy, and a ring has `stages` slots."""

    stages: int = 1

    def label(self) -> str:
        """In words."""
        return f"{'x'.join(map(str, self.tile))} by mma.sync, {self.stages} stages"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile = "x".join(map(str, self.tile))
        ring = f",pipelining{{stages={self.stages}}}" if self.stages > 1 else ""
        return f"tiling{{tile={tile}}},copy-insertion,swizzle-selection{ring}"


@dataclass(frozen=True)
class ScaledEstimate:
    """What a schedule takes: `waves` of tiles a CTA, each of so many cycles to multiply, to copy
    scales to tensor memory, to load A, B and scales, and to store; the time of all of them in
    microseconds. Tensor memory holds `accumulators` and the scales of `places` K steps, of so many
    columns each; a K step loads `scale_bytes`. Where threads copy rows, that may take longer
    (`by_threads`)."""

    schedule: ScaledSchedule
    accumulators: int
    waves: int
    multiply: float
    load: float
    store: float
    total_us: float
    copy: float = 0
    places: int = 0
    scale_columns: int = 0
    scale_bytes: int = 0
    by_threads: bool = False

    @property
    def bound(self) -> str:
        """What a tile's K loop waits for."""
        if self.multiply >= self.load:
            return "tensor core"
        return "threads that copy" if self.by_threads else "L2"


def mma_of_spec(spec: MatmulSpec) -> ScaledMma:
    """The kind of MMA that multiplies the operands of a spec."""
    a, b = (OPERAND_FORMATS[dtype] for dtype in (spec.a_dtype, spec.b_dtype))
    found = scaled_mma(DTYPES[a.element], DTYPES[b.element], DTYPES[a.scale], a.block)
    assert found is not None  # the spec has asked
    return found


def estimates(spec: MatmulSpec, target: Target) -> list[ScaledEstimate]:
    """Every candidate that tensor memory holds, the quickest first."""
    mma = mma_of_spec(spec)
    broken = scaled_legality.scaled_kind(target, mma)
    if broken is not None:
        raise CompileError(f"schedule: {broken}")
    depth = ROW_BYTES * 2 if mma.packed else ROW_BYTES
    if target.mma.issuer == WARP:
        return _estimates_of_warps(spec, target, mma, depth)
    pairs = (True, False) if spec.m > ROWS else (False,)
    found = [
        _estimate(spec, target, mma, ScaledSchedule((ROWS, n, depth), pair))
        for n in COLUMNS
        for pair in pairs
        if scaled_legality.scaled_tensor_memory(target, mma, (ROWS, n, depth)) is None
    ]
    return sorted(found, key=lambda each: each.total_us)


def rule_of(target: Target) -> str:
    """What the choice goes by, in words."""
    return WARP_RULE if target.mma.issuer == WARP else RULE


def _copied(spec: MatmulSpec, target: Target) -> tuple[bool, bool]:
    """Whether threads copy A and B, since TMA cannot address their rows (cuTensorMapEncodeTiled,
    strides)."""
    sides = (spec.a_major, spec.m, spec.a_dtype), (spec.b_major, spec.n, spec.b_dtype)
    a, b = (
        _no_tma(spec, target, spec.k if major == "k" else rows, DTYPES[element_of(dtype)].bits)
        for major, rows, dtype in sides
    )
    return a, b


def _no_tma(spec: MatmulSpec, target: Target, extent: int, bits: int) -> bool:
    pitch = extent * bits // 8
    padded = bits < 8 and not mma_of_spec(spec).packed
    broken = legality.padded_rows(extent, pitch) if padded else None
    return bool(pitch % target.tma_alignment_bytes or broken)


def scaled_schedule(spec: MatmulSpec, target: Target) -> ScaledSchedule:
    """The quickest by the estimate."""
    return estimates(spec, target)[0].schedule


def _estimates_of_warps(
    spec: MatmulSpec, target: Target, mma: ScaledMma, depth: int
) -> list[ScaledEstimate]:
    """Tiles whose sums four to eight warps hold; rings as deep as shared memory and K allow."""
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
    tiles = _along_m(spec, m) * -(-spec.n // n)
    waves = -(-tiles // target.multiprocessors)
    cycles = chip.cta_start + waves * (max(multiply, load) + store)
    total_us = cycles / (chip.clock * 1e3)
    return ScaledEstimate(schedule, 1, waves, multiply, load, store, total_us)


def of_multicast(spec: MatmulSpec, target: Target) -> ScaledEstimate | None:
    """What the choice would take in clusters of two pairs that share B; None without pairs.

    Each CTA loads half as much of B and of its scales, but fewer clusters find room at a time.
    """
    chosen = scaled_schedule(spec, target)
    if not chosen.pair or 2 * CTAS_OF_PAIR not in figures(target).clusters_at_once:
        return None
    return _estimate(spec, target, mma_of_spec(spec), chosen, 2)


def _estimate(
    spec: MatmulSpec,
    target: Target,
    mma: ScaledMma,
    schedule: ScaledSchedule,
    sharing: int = 1,
) -> ScaledEstimate:
    """Where so many pairs are `sharing` B, each loads its part of it, by multicast."""
    chip, (m, n, k) = figures(target), schedule.tile
    steps, ctas = -(-spec.k // k), CTAS_OF_PAIR if schedule.pair else 1
    of_a, of_b = scaled_legality.scale_tiles(mma, schedule.tile)
    rows, scales = m + n // (ctas * sharing), of_a.size_bytes + of_b.size_bytes // sharing
    multiply = steps * 2 * m * n * k / (chip.mma_rate * RATES[mma.kind])
    by_threads = sum(compress((m, n // ctas), _copied(spec, target))) * ROW_BYTES / chip.shift_rate
    from_l2 = (rows * ROW_BYTES + scales) / chip.l2_rate
    load = steps * max(from_l2, by_threads)
    copy = steps * (of_a.size_bytes + of_b.size_bytes) / chip.shared_rate
    assert chip.tmem_rate is not None  # only chips with tensor memory have such MMAs
    read = m * n * (4 / chip.tmem_rate + instructions(spec.quantized) / chip.epilogue_rate)
    store = read + _store_cycles(spec, target, (m, n))
    buffers, places = _held(target, mma, schedule.tile)
    beside = places == scaled_legality.SCALE_PLACES
    work = max(load, multiply, copy) if beside else max(load, multiply + copy)
    each = max(work, store) if buffers == OVERLAPPING else work + read
    tiles = _along_m(spec, m * ctas) * -(-spec.n // n)
    at_once = target.multiprocessors // ctas
    if sharing > 1:
        at_once = sharing * int(chip.clusters_at_once[sharing * ctas])
    waves = -(-tiles // at_once)
    start = chip.cta_start + chip.tma_latency + (chip.cluster_start if schedule.pair else 0)
    cycles = start + waves * each + store
    total_us = cycles / (chip.clock * 1e3)
    columns = of_a.scale_columns + of_b.scale_columns
    held = {"copy": copy, "places": places, "scale_columns": columns, "scale_bytes": scales}
    held["by_threads"] = by_threads > from_l2
    return ScaledEstimate(schedule, buffers, waves, multiply, load, store, total_us, **held)


def _along_m(spec: MatmulSpec, rows: int) -> int:
    """Tiles of so many rows, of all matrices or groups.

    A group ends anywhere, so that its last tile is half full in the mean; it has one at least.
    """
    if not spec.groups:
        return max(spec.batch, 1) * -(-spec.m // rows)
    return max(min(spec.groups, spec.m), math.ceil(spec.m / rows + spec.groups / 2))


def _store_cycles(spec: MatmulSpec, target: Target, tile: tuple[int, int]) -> float:
    """Cycles in which TMA stores a tile of C, or threads where it cannot, and its scales."""
    chip, (m, n), form = figures(target), tile, spec.quantized
    if form is None:
        return m * n * DTYPES[spec.outputs[0]].bytes / chip.tma_store_rate
    bits = bits_of(form)
    piece = TileLayout(m, n * bits // 8, 1, "k")
    piece_bytes = replace(piece, swizzle=widest_swizzle(piece)).span
    broken = legality.staged_quantized(target, m, n, piece_bytes, bits, form.block)
    broken = broken or legality.stored_rows(spec.n * bits // 8)
    rate = chip.direct_store_rate if broken else chip.tma_store_rate
    scales = scale_bytes(m, n, n if broken else piece_bytes * 8 // bits, form)
    return m * n * bits / 8 / rate + scales / chip.direct_store_rate


def _held(target: Target, mma: ScaledMma, tile: tuple[int, int, int]) -> tuple[int, int]:
    """How many accumulators tensor memory holds, and the scales of how many K steps."""
    most = scaled_legality.SCALE_PLACES
    for held in ((OVERLAPPING, most), (1, most)):
        if scaled_legality.scaled_tensor_memory(target, mma, tile, *held) is None:
            return held
    return 1, 1
