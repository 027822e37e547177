"""The estimate of block-scaled products by tcgen05.mma, from the parts of `tensor_estimate`.

    step        the longest of MMAs, loads of A, B and scales, copies of scales to tensor memory,
                and the chain of one slot shared by the stages
    tile        steps; where tensor memory has one accumulator, the epilogue after them; where two
                share columns, the part of the epilogue that reads these
    kernel      start + first load + tiles × the longer of steps and epilogue + the last epilogue
    parts of K  waves of CTAs, each from start to the sums of its part; the last adds up all parts

A tile's K is 128 bytes, so MMAs, clock and DRAM are those of a problem whose elements are bytes.

Nothing here imports MLIR.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress

from ....dialects import legality, scaled_legality, store_legality
from ....dialects.dtypes import DTYPES, ScaledMma
from ....dialects.layout import TileLayout, widest_swizzle
from ....dialects.record import record
from ....dialects.target import Target
from ...spec import MatmulSpec, element_of
from ..chips.chip_figures import figures, tensor_figures
from ..extents import expected_tiles
from ..problem import Problem, Schedule
from ..quantized_costs import bits_of, instructions, scale_bytes
from ..schedule import THREADS
from .accumulators import held_sums, late_share, shared_columns
from .costs import (
    computed_cycles,
    dram_bytes,
    epilogue_operand_cycles,
    gathered_cycles,
    once_bytes,
    part_cycles,
    vector_cycles,
)
from .tensor_estimate import clock_under_load, combined_us
from .tensor_steps import CHOSEN, mma_cycles

ROW_BYTES = 128  # of a tile along K: the widest swizzle
PIECE_BYTES, BUFFERS = 128, 2  # of a staged store: the widest swizzle
AUTO_STAGES_MAX, STAGES_MAX = 8, 12  # `pipelining{stages=auto}`, and what is ever asked for
CTAS_OF_PAIR = 2


@record
class ScaledSchedule:
    """A tile of M×N×K elements of one CTA, and whether two CTAs share an MMA.

    C is stored in pieces of `columns` columns, or with 0 of the widest that a swizzle spans.
    `ahead` and `vectors` say how other operands are read, as in `Schedule`. `stages` is the depth
    of the ring, 0 for what `pipelining` takes by itself. With several `parts`, that many CTAs or
    pairs of the grid share a tile, each with a part of K.
    """

    tile: tuple[int, int, int]
    pair: bool
    columns: int = 0
    ahead: int = 0
    vectors: str = THREADS
    stages: int = 0
    parts: int = 1

    def label(self) -> str:
        """In words."""
        parts = ["x".join(map(str, self.tile))]
        parts += ["2-CTA MMAs"] if self.pair else []
        parts += [f"staged by {self.columns}"] if self.columns else []
        parts += [f"{self.ahead} pieces ahead"] if self.ahead else []
        parts += ["vectors ahead"] if self.vectors != THREADS else []
        parts += [f"{self.stages} stages"] if self.stages else []
        parts += [f"K split by {self.parts} over the grid"] if self.parts > 1 else []
        return ", ".join(parts)

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile = "x".join(map(str, self.tile))
        shape = "shape=2x1 pair=true" if self.pair else "shape=1x1"
        ring = f"{{stages={self.stages}}}" if self.stages else ""
        store, last = self._staging(), ",persistence"
        if self.parts > 1:
            store, last = f"split-k{{parts={self.parts} over=grid}}", ""
        return (
            f"tiling{{tile={tile}}},tma-insertion,swizzle-selection,{store},"
            f"clustering{{{shape}}},pipelining{ring},warp-specialization{last}"
        )

    def _staging(self) -> str:
        options = [f"columns={self.columns}"] if self.columns else []
        options += [f"ahead={self.ahead}"] if self.ahead else []
        options += [f"vectors={self.vectors}"] if self.vectors != THREADS else []
        return "epilogue-staging" + (f"{{{' '.join(options)}}}" if options else "")


@record
class ScaledEstimate:
    """The costs of a schedule: `waves` of tiles per CTA, each with cycles to multiply, to copy
    scales to tensor memory, to load A, B and scales, and to store; and the total in microseconds.
    Tensor memory holds `accumulators`, or two that have `shared` columns, and the scales of
    `places` K steps of so many columns each; a K step loads `scale_bytes`. Copies by threads may
    take longer (`by_threads`). `dram_us` is the time of DRAM alone, `clock` the clock in GHz where
    it is known under load. `waits` is "DRAM" or "latency" where that takes longer than everything
    else."""

    schedule: ScaledSchedule
    accumulators: int
    waves: int
    multiply: float
    load: float
    store: float
    total_us: float
    copy: float = 0
    shared: int = 0
    places: int = 0
    scale_columns: int = 0
    scale_bytes: int = 0
    by_threads: bool = False
    dram_us: float = 0
    clock: float | None = None
    waits: str = ""

    @property
    def bound(self) -> str:
        """What the K loop of a tile waits for, or what bounds the whole kernel."""
        if self.waits:
            return self.waits
        if self.multiply >= self.load:
            return "tensor core"
        return "threads that copy" if self.by_threads else "L2"


@record
class Steps:
    """A K step of a CTA in cycles: its MMAs with the copies that they wait for, its load, the
    longest of all, the time until a slot is free again, and what comes before and after all
    steps."""

    multiply: float
    copy: float
    load: float
    by_threads: bool
    step: float
    around: float
    before: float
    completion: float


def scaled_estimate(
    spec: MatmulSpec,
    target: Target,
    mma: ScaledMma,
    schedule: ScaledSchedule,
    sharing: int = 1,
    inputs: str = "random",
    overlaps: bool = True,
) -> ScaledEstimate:
    """The estimate if `sharing` pairs share B, each loading its part by multicast; `inputs` are
    those of `Power`. Accumulators of two tiles that do not fit side by side share columns, unless
    the kernel is another's that never `overlaps` them."""
    problem, tensor = in_bytes(spec, mma, target), tensor_figures(target)
    one = as_plain(schedule, problem)
    steps = _steps(spec, target, mma, schedule, sharing)
    ring = schedule.stages or min(AUTO_STAGES_MAX, fitting_stages(problem, mma, schedule, target))
    ring = max(1, ring)
    store = _store_cycles(spec, problem, one, target)
    held, places = held_sums(target, mma, schedule.tile, schedule.parts)
    count = problem.k_tiles(one)
    main = count * max(steps.step, steps.around / ring)
    ends = steps.before + steps.completion + store
    shared = _shared(spec, problem, mma, schedule, target) if overlaps else 0
    late = store * late_share(held, shared, schedule.tile[1], (one.staging or (1, 1))[0])
    each = max(main + (steps.completion + late if late else 0), store)
    waves = -(-_tiles(spec, schedule) * schedule.parts // _at_once(schedule, sharing, target))
    cycles = tensor.cold_fill + ends + waves * each
    if schedule.parts > 1:
        cycles = tensor.cold_fill + waves * (ends + main) + (waves - 1) * tensor.cta_turnover
        gathered = gathered_cycles(problem, one, target)
        cycles, ends = cycles + gathered, ends + gathered
    traits = replace(CHOSEN, inputs=inputs)
    clock = clock_under_load(problem, one, target, cycles, steps.multiply, traits)
    dram_us = _dram_us(spec, problem, one, mma, target)
    work_us = _us(cycles, clock)
    loops = waves * count * steps.step
    streaming_us = dram_us + _us(tensor.cold_fill + ends, figures(target).clock)
    waits = "latency" if steps.around / ring > steps.step else ""
    of_a, of_b = scaled_legality.scale_tiles(mma, schedule.tile)
    return ScaledEstimate(
        schedule=schedule,
        accumulators=held,
        shared=shared,
        waves=waves,
        multiply=count * steps.multiply,
        load=count * steps.load,
        store=store,
        total_us=tensor.launch + combined_us(target, work_us, streaming_us, loops, dram_us),
        copy=count * steps.copy,
        places=places,
        scale_columns=of_a.scale_columns + of_b.scale_columns,
        scale_bytes=of_a.size_bytes + of_b.size_bytes // sharing,
        by_threads=steps.by_threads,
        dram_us=dram_us,
        clock=clock,
        waits="DRAM" if streaming_us > work_us else waits,
    )


def in_bytes(spec: MatmulSpec, mma: ScaledMma, target: Target) -> Problem:
    """The problem with A and B as bytes of shared memory."""
    groups, form = spec.groups or 1, spec.quantized
    return Problem(
        m=-(-spec.m // groups),
        n=spec.n,
        k=mma.operand_bytes(spec.k),
        element_bytes=1,
        k_per_mma=mma.operand_bytes(mma.k),
        c_bytes=DTYPES[form.element if form else spec.outputs[0]].bytes,
        a_major="k" if spec.a_major == "k" else "mn",
        b_major="k" if spec.b_major == "k" else "mn",
        tma_alignment_bytes=target.tma_alignment_bytes,
        batch=max(groups, spec.batch),
        further_bytes=tuple(DTYPES[dtype].bytes for dtype in spec.further),
        grouped=spec.group_axis if spec.groups else "",
        epilogue_instructions=spec.epilogue_instructions + instructions(form),
        quantized=form,
        beside=tuple(DTYPES[dtype].bytes for dtype in spec.beside),
        beside_columns=tuple(DTYPES[dtype].bytes for dtype in spec.beside_columns),
        beside_rows=tuple(DTYPES[dtype].bytes for dtype in spec.beside_rows),
    )


def as_plain(schedule: ScaledSchedule, problem: Problem) -> Schedule:
    """The same tile in bytes, with tiles handed out in bands of 8; each part of K has CTAs of its
    own."""
    m, n, _ = schedule.tile
    plain = Schedule((m, n, ROW_BYTES), 1, (1, 1), schedule.pair, "static", "grouped")
    if schedule.parts > 1:
        alone = {"scheduler": "none", "order": "m", "split_grid": schedule.parts}
        return plain.but(cluster=(2, 1) if schedule.pair else (1, 1), **alone)
    columns = schedule.columns or min(n, widest_piece(problem))
    return plain.but(
        cluster=(2, 1) if schedule.pair else (1, 1),
        staging=(columns, BUFFERS),
        ahead=schedule.ahead,
        vectors=schedule.vectors,
    )


def widest_piece(problem: Problem) -> int:
    """The columns of C that a swizzle spans."""
    return PIECE_BYTES * 8 // problem.c_bits


def _steps(
    spec: MatmulSpec, target: Target, mma: ScaledMma, schedule: ScaledSchedule, sharing: int
) -> Steps:
    """The K step if each of `sharing` pairs loads its part of B and of B's scales."""
    chip, tensor, (m, n, _) = figures(target), tensor_figures(target), schedule.tile
    of_a, of_b = scaled_legality.scale_tiles(mma, schedule.tile)
    ctas = CTAS_OF_PAIR if schedule.pair else 1
    sides = m, n // (ctas * sharing)
    arriving = sum(map(min, sides, (spec.m, spec.n)))
    scales = of_a.size_bytes + of_b.size_bytes // sharing
    from_l2 = (arriving * ROW_BYTES + scales) / chip.l2_rate
    copied = compress((m, n // ctas), _copied(spec, mma, target))
    by_threads = sum(copied) * ROW_BYTES / chip.shift_rate
    load = max(from_l2, by_threads)
    problem = in_bytes(spec, mma, target)
    multiply = mma_cycles(problem, as_plain(schedule, problem), target)
    copy = (of_a.size_bytes + of_b.size_bytes) / chip.shared_rate
    beside = (
        held_sums(target, mma, schedule.tile, schedule.parts)[1] == scaled_legality.SCALE_PLACES
    )
    multiplied = max(multiply, copy) if beside else multiply + copy
    heard = tensor.peer_signal if schedule.pair else 0.0
    completion = tensor.pair_latency + heard if schedule.pair else float(tensor.mma_latency)
    chain = chip.tma_latency + load + heard + copy + multiply + completion
    start = chip.cta_start + (chip.cluster_start if schedule.pair else 0)
    return Steps(
        multiply=multiply,
        copy=copy,
        load=load,
        by_threads=by_threads > from_l2,
        step=max(multiplied, load),
        around=chain + tensor.load_queue,
        before=start + chip.tma_latency + load,
        completion=completion,
    )


def fitting_stages(
    problem: Problem, mma: ScaledMma, schedule: ScaledSchedule, target: Target
) -> int:
    """The most stages for which shared memory has room beside the staging buffers."""
    one = as_plain(schedule, problem)
    slot = problem.stage_bytes(one)
    slot += sum(each.slot_bytes for each in scaled_legality.scale_tiles(mma, schedule.tile))
    room = target.shared_bytes - legality.RESERVED_BYTES - problem.staging_bytes(one)
    return max(0, min(STAGES_MAX, room // slot))


def _shared(
    spec: MatmulSpec, problem: Problem, mma: ScaledMma, schedule: ScaledSchedule, target: Target
) -> int:
    """Columns that two tiles share; none where pieces of other operands come in their order."""
    if schedule.parts > 1 or schedule.ahead:
        return 0
    return shared_columns(target, mma, schedule.tile, spec.n * problem.c_bits // 8)


def _store_cycles(spec: MatmulSpec, problem: Problem, one: Schedule, target: Target) -> float:
    """Cycles in which a tile of C is read, computed and stored: two pieces are under way."""
    (m, n, _), (columns, _) = one.tile, one.staging or (one.tile[1], 1)
    read = m * n / tensor_figures(target).read_rate
    if one.split_grid > 1:
        return read + part_cycles(problem, one, target)
    read += computed_cycles(problem, one, target)
    read += vector_cycles(problem, one, target)
    stored = stored_cycles(spec, target, (m, n))
    staged = max(read, stored) + min(read, stored) * columns / n
    return staged + epilogue_operand_cycles(problem, one, target, staged * columns / n)


def stored_cycles(spec: MatmulSpec, target: Target, tile: tuple[int, int]) -> float:
    """Cycles in which TMA, or threads where it cannot, store a tile of C and its scales."""
    chip, (m, n), form = figures(target), tile, spec.quantized
    further = sum(DTYPES[dtype].bytes for dtype in spec.further) * m * n / chip.direct_store_rate
    if form is None:
        return m * n * DTYPES[spec.outputs[0]].bytes / chip.tma_store_rate + further
    bits = bits_of(form)
    piece = TileLayout(m, n * bits // 8, 1, "k")
    piece_bytes = replace(piece, swizzle=widest_swizzle(piece)).span
    broken = store_legality.staged_quantized(target, m, n, piece_bytes, bits, form.block)
    broken = broken or store_legality.stored_rows(spec.n * bits // 8)
    rate = chip.direct_store_rate if broken else chip.tma_store_rate
    scales = scale_bytes(m, n, n if broken else piece_bytes * 8 // bits, form)
    return m * n * bits / 8 / rate + scales / chip.direct_store_rate + further


def _copied(spec: MatmulSpec, mma: ScaledMma, target: Target) -> tuple[bool, bool]:
    """Whether threads copy A and B because TMA cannot address their rows (cuTensorMapEncodeTiled,
    strides)."""
    sides = (spec.a_major, spec.m, spec.a_dtype), (spec.b_major, spec.n, spec.b_dtype)
    a, b = (
        _no_tma(spec.k if major == "k" else rows, DTYPES[element_of(dtype)].bits, mma, target)
        for major, rows, dtype in sides
    )
    return a, b


def _no_tma(extent: int, bits: int, mma: ScaledMma, target: Target) -> bool:
    pitch = extent * bits // 8
    padded = bits < 8 and not mma.packed
    broken = legality.padded_rows(extent, pitch) if padded else None
    return bool(pitch % target.tma_alignment_bytes or broken)


def _tiles(spec: MatmulSpec, schedule: ScaledSchedule) -> int:
    m, n, _ = schedule.tile
    rows = m * (CTAS_OF_PAIR if schedule.pair else 1)
    return tiles_along_m(spec, rows) * -(-spec.n // n)


def tiles_along_m(spec: MatmulSpec, rows: int) -> int:
    """Tiles of `rows` rows, of all matrices or groups."""
    if not spec.groups:
        return max(spec.batch, 1) * -(-spec.m // rows)
    return expected_tiles(spec.m, spec.groups, rows)


def _at_once(schedule: ScaledSchedule, sharing: int, target: Target) -> int:
    """Tiles that are computed at the same time, by CTAs or by pairs."""
    ctas = CTAS_OF_PAIR if schedule.pair else 1
    if sharing == 1:
        return target.multiprocessors // ctas
    return sharing * int(figures(target).clusters_at_once[sharing * ctas])


def _dram_us(
    spec: MatmulSpec, problem: Problem, one: Schedule, mma: ScaledMma, target: Target
) -> float:
    """The time of DRAM alone: operands as they are stored, with their scales."""
    moved = dram_bytes(problem, one.plan, target)
    c = problem.moved_bytes
    in_shared = once_bytes(problem) - c
    stored = (
        problem.batch
        * spec.k
        * sum(
            rows * (DTYPES[element_of(dtype)].bits + 8 / mma.block) / 8
            for rows, dtype in ((problem.m, spec.a_dtype), (problem.n, spec.b_dtype))
        )
    )
    return (c + (moved - c) * stored / in_shared) / figures(target).dram_rate


def _us(cycles: float, clock: float) -> float:
    return cycles / (clock * 1e3)
