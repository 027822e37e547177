"""The estimate of all rows of a table of times at once, for figures that are still looked for.

The compiler takes 60 microseconds to estimate a schedule, and a search for figures asks some
thousand times for ten thousand of them. So what does not depend on the figures in `FITTED` is asked
of the compiler once (`rows_of`), and the rest is written here for arrays: for `wgmma`, plain
products and 16-bit operands. A test holds it to the compiler's estimate with figures drawn at
random. Cycles are floats, and names are those of `compiler/schedule/estimates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tilewright.compiler.schedule.chips import chip_figures
from tilewright.compiler.schedule.chips.chip_figures import figures
from tilewright.compiler.schedule.chips.figure_sets import ChipFigures
from tilewright.compiler.schedule.edge_boxes import WHOLE, whole_boxes
from tilewright.compiler.schedule.estimates import costs, epilogue_costs, estimate, l2_costs
from tilewright.compiler.schedule.problem import LINE_BYTES, Problem, Schedule
from tilewright.compiler.schedule.search.candidates import margin, rank
from tilewright.compiler.schedule.waves import ctas_at_fullest, resident_ctas, tile_rounds
from tilewright.dialects.legality import PARTIAL_BYTES
from tilewright.dialects.target import Target

OF_CHIP = (
    "l2_rate", "l2_total_rate", "unaligned_line", "second_line", "outside_share", "shared_twice",
    "shared_row", "asked_again", "answered_together", "answered_apart", "dram_rate", "dram_share",
    "first_wave", "tma_latency", "cta_start", "cluster_start", "cluster_doubled", "step_least",
    "next_tile", "second_share", "direct_store_rate", "tma_store_rate", "store_request",
    "staged_piece",
)  # fmt: skip
OF_PARTS = (
    "split_first_rate", "split_l2_rate", "split_share", "split_multicast", "split_latency",
    "split_rate", "split_store", "split_start", "parts_write", "parts_read", "parts_meet",
)  # fmt: skip
FITTED = OF_CHIP + OF_PARTS
"""Figures that may differ from one call of `totals_us` to the next."""
UNIT = {"asked_again": 0, "shared_row": 1, "first_wave": 1, "dram_rate": 1}
"""Those with which the compiler says what a figure is multiplied with."""

Array = Any  # of numpy, a float for each row
Values = dict[str, float]
Times = Mapping[Problem, Sequence[tuple[Schedule, float, bool]]]


class Rows(NamedTuple):
    """Facts of schedules of a table, an array each; `problem` numbers what they multiply.

    `a` and `b` are rows of a CTA's tiles that L2 is asked for, `a_distance` and `b_distance` are
    from one CTA to the next with the same tile, 0 where there is none. `loaded` rows are those of a
    tile in a cluster without multicast, `multicast` of them come by it. What ends in `_cycles` and
    `_bytes` is as the compiler says. `first_rows` are those of all CTAs that no other one asks for.
    The choice multiplies an estimate by `margin`, and takes what has the least `simplicity` of
    equals.
    """

    problem: Array
    us: Array
    margin: Array
    simplicity: Array
    parts: Array
    split_k: Array
    split_grid: Array
    persistent: Array
    ping_pong: Array
    ctas_clustered: Array
    shared_twice: Array
    k_tiles: Array
    ring: Array
    rounds: Array
    k_bytes: Array
    own_cycles: Array
    shared_cycles: Array
    copy_cycles: Array
    narrow_cycles: Array
    arriving_rows: Array
    unaligned_rows: Array
    loaded_rows: Array
    multicast_rows: Array
    a: Array
    b: Array
    a_distance: Array
    b_distance: Array
    at_work: Array
    at_fullest: Array
    part: Array
    beyond_rows: Array
    outside_rows: Array
    first_rows: Array
    waiting_rows: Array
    dram_bytes: Array
    again_bytes: Array
    early_bytes: Array
    elements: Array
    stored_bytes: Array
    staged: Array
    pack_cycles: Array
    stored_lines: Array
    pieces: Array
    beside_share: Array
    sums_bytes: Array

    def of(self, kept: Array) -> Rows:
        """Some of the rows, whose problems are numbered anew."""
        found = Rows(*(each[kept] for each in self))
        return found._replace(problem=np.unique(found.problem, return_inverse=True)[1])


def rows_of(times: Times, target: Target) -> Rows:
    """The rows of a table in its order."""
    with with_figures(UNIT, target):
        facts = [
            _facts(number, row, problem.seen_by(row[0]), target)
            for number, (problem, rows) in enumerate(times.items())
            for row in rows
        ]
    table = Rows(*np.array(facts, dtype=float).T)
    schedules = [schedule for rows in times.values() for schedule, *_ in rows]
    order = {each: at for at, each in enumerate(sorted(set(schedules), key=_simplicity))}
    simplicity = np.array([order[each] for each in schedules])
    return table._replace(problem=table.problem.astype(int), simplicity=simplicity)


def _simplicity(schedule: Schedule) -> tuple[int, ...]:
    return rank(0, schedule)[1]


def _facts(
    number: int, row: tuple[Schedule, float, bool], problem: Problem, target: Target
) -> Rows:
    """A row, with a number for each array."""
    schedule, us, whole = row
    (m, n, k), (cluster_m, cluster_n) = schedule.tile, schedule.cluster
    parts, ctas = schedule.split_k * schedule.split_grid, problem.ctas(schedule)
    tiles, at_once = ctas / parts, resident_ctas(schedule, target)
    at_work = min(ctas, at_once) if parts > 1 else tiles / -(-tiles // at_once)
    grid = problem.matrix_grid(schedule)
    shares = WHOLE if whole else whole_boxes(problem, schedule, target)
    beyond, outside = l2_costs._rows_of_all(problem, schedule, grid, shares)
    loaded, saved = (l2_costs.loaded_rows(problem, schedule, share) for share in (0, 1))
    of_m, of_n = problem.tiles(schedule)
    alone = schedule.cluster_size == 1
    a_distance, b_distance = l2_costs._cta_distances((of_m, of_n), schedule)
    own = estimate.own_cycles(problem, schedule, target)
    columns, buffers = schedule.staging or (n, 1)
    hidden = buffers != (2 if schedule.ping_pong else 1)
    held = estimate.held_slots(problem, schedule, target)
    stored = problem.row_bytes(m * n)
    dram = costs.dram_bytes(problem, schedule, target)
    few = costs.few_columns(problem, schedule, target)
    return Rows(
        problem=number,
        us=us,
        margin=margin(schedule),
        simplicity=0,  # among those of the table, which `rows_of` knows
        parts=parts,
        split_k=schedule.split_k,
        split_grid=schedule.split_grid,
        persistent=schedule.scheduler != "none",
        ping_pong=schedule.ping_pong,
        ctas_clustered=schedule.cluster_size,
        shared_twice=min(schedule.cluster) > 1,
        k_tiles=problem.k_tiles(schedule),
        ring=max(1, schedule.stages - held),
        rounds=tile_rounds(problem, schedule, target),
        k_bytes=k * problem.element_bytes,
        own_cycles=own["tensor core"],
        shared_cycles=own["shared memory"],
        copy_cycles=own["thread copies"],
        narrow_cycles=figures(target).narrow_row
        * l2_costs._rows_of_narrow_boxes(problem, schedule),
        arriving_rows=l2_costs.loaded_rows(problem, schedule, figures(target).multicast),
        unaligned_rows=l2_costs._unaligned_rows(problem, schedule),
        loaded_rows=loaded,
        multicast_rows=loaded - saved,
        a=min(m, problem.m) / cluster_n,
        b=min(n, problem.n) / cluster_m,
        a_distance=a_distance * (alone and of_n > 1),
        b_distance=b_distance * (alone and of_m > 1),
        at_work=at_work,
        at_fullest=ctas_at_fullest(
            int(at_work), schedule.cluster_size * schedule.split_k, figures(target)
        ),
        part=at_work / tiles,
        beyond_rows=beyond,
        outside_rows=outside,
        first_rows=problem.batch * at_work / tiles * (problem.m + problem.n) * few,
        waiting_rows=estimate.shared_row_cycles(problem, schedule, target),
        dram_bytes=dram,
        again_bytes=_bytes_with_again(problem, schedule, target) - dram,
        early_bytes=estimate.first_wave_us(problem, schedule, target),
        elements=m * n,
        stored_bytes=stored,
        staged=schedule.staging is not None,
        pack_cycles=stored / figures(target).shared_rate,
        stored_lines=epilogue_costs._stored_lines(problem, schedule),
        pieces=n // columns,
        beside_share=columns / n if hidden else 1,
        sums_bytes=costs._sums_bytes(problem, schedule),
    )


def _bytes_with_again(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Those of DRAM, with all that `asked_again` is a share of."""
    with with_figures(UNIT | {"asked_again": 1}, target):
        return costs.dram_bytes(problem, schedule, target)


# -- the estimate ------------------------------------------------------------------------------


def totals_us(rows: Rows, values: Values, clock: float) -> Array:
    """Microseconds of each row with all figures of `FITTED`; `clock` in GHz."""
    step = _step_cycles(rows, values)
    main = np.maximum(rows.k_tiles * step, _refilled(rows, step, values["tma_latency"]))
    fill = values["tma_latency"] + values["shared_row"] * rows.waiting_rows
    before, epilogue = fill + _start_cycles(rows, values), _epilogue_cycles(rows, values)
    gathered = rows.split_grid * rows.sums_bytes / values["parts_read"] * (rows.split_grid > 1)
    cycles = 1e3 * clock
    work_us = (_work_cycles(rows, values, before, main, epilogue) + gathered) / cycles
    dram_us = (rows.dram_bytes + values["asked_again"] * rows.again_bytes) / values["dram_rate"]
    streaming_us = dram_us + (before + epilogue + gathered) / cycles
    loops_us = np.where(rows.parts > 1, 0, rows.rounds * main / cycles)
    overlap_us = values["dram_share"] * np.minimum(loops_us, dram_us)
    early_us = values["first_wave"] * rows.early_bytes / values["dram_rate"]
    return np.maximum(work_us, streaming_us) + overlap_us + early_us


def _step_cycles(rows: Rows, values: Values) -> Array:
    least = np.full_like(rows.us, values["step_least"])
    l2 = _l2_cycles(rows, values)
    busy = np.sort([rows.own_cycles, rows.shared_cycles, rows.copy_cycles, least, l2], axis=0)
    return busy[-1] + values["second_share"] * busy[-2]


def _l2_cycles(rows: Rows, values: Values) -> Array:
    arriving = rows.k_bytes * rows.arriving_rows / values["l2_rate"]
    unaligned = rows.k_bytes / LINE_BYTES * values["unaligned_line"] * rows.unaligned_rows
    of_all = np.where(rows.parts > 1, _parted(rows, values), _whole(rows, values))
    zeros = rows.part * rows.outside_rows * values["outside_share"] / LINE_BYTES
    of_all = rows.k_bytes * (of_all + zeros)
    return np.maximum.reduce([arriving, unaligned, rows.narrow_cycles, of_all])


def _whole(rows: Rows, values: Values) -> Array:
    """Cycles of L2 for a byte of K of all CTAs, where K is not split."""
    of_a, of_b = (
        np.where(apart > 0, np.maximum(apart, 1) ** -values["answered_apart"], 0)
        for apart in (rows.a_distance, rows.b_distance)
    )
    most = values["answered_together"]
    asked = rows.at_work * (rows.a * (1 - most * of_a) + rows.b * (1 - most * of_b))
    return np.maximum(asked / values["l2_total_rate"], _requested(rows, values))


def _parted(rows: Rows, values: Values) -> Array:
    """The same where it is."""
    loaded = rows.loaded_rows - values["split_multicast"] * rows.multicast_rows
    dram = rows.first_rows / values["split_first_rate"]
    l2 = np.maximum(rows.at_fullest * loaded / values["split_l2_rate"], _requested(rows, values))
    return np.maximum(dram, l2) + values["split_share"] * np.minimum(dram, l2)


def _requested(rows: Rows, values: Values) -> Array:
    return rows.part * rows.beyond_rows * values["second_line"] / LINE_BYTES


def _refilled(rows: Rows, step: Array, latency: float) -> Array:
    later = np.maximum(0, rows.k_tiles / rows.ring - 1)
    return later * (latency + step) + np.minimum(rows.ring, rows.k_tiles) * step


def _start_cycles(rows: Rows, values: Values) -> Array:
    doublings = np.log2(np.maximum(rows.ctas_clustered, 2) / 2)
    cluster = values["cluster_start"] + values["cluster_doubled"] * doublings
    cluster = np.where(rows.ctas_clustered > 1, cluster, 0)
    cluster = np.where(rows.split_k > 1, values["split_start"], cluster)
    return values["cta_start"] + values["shared_twice"] * rows.shared_twice + cluster


def _epilogue_cycles(rows: Rows, values: Values) -> Array:
    by_threads = rows.stored_bytes / values["direct_store_rate"]
    asked = rows.stored_lines * values["store_request"]
    store = np.maximum(rows.stored_bytes / values["tma_store_rate"], asked)
    slower, faster = np.maximum(rows.pack_cycles, store), np.minimum(rows.pack_cycles, store)
    by_tma = rows.pieces * values["staged_piece"] + slower + rows.beside_share * faster
    exchanged = rows.elements * PARTIAL_BYTES / values["split_rate"]
    part = rows.stored_bytes / rows.split_k / values["split_store"]
    reduced = values["split_latency"] * rows.split_k + exchanged + part
    written = rows.sums_bytes / values["parts_write"] + values["parts_meet"]
    return np.select(
        [rows.split_grid > 1, rows.split_k > 1, rows.staged > 0],
        [written, reduced, by_tma],
        by_threads,
    )


def _work_cycles(rows: Rows, values: Values, before: Array, main: Array, epilogue: Array) -> Array:
    """Cycles of the busiest multiprocessor, `before` the first main loop and from then on."""
    later, tile = rows.rounds - 1, main + epilogue
    alone = rows.rounds * (before + tile)
    turn = np.maximum(main, tile / 2) + values["second_share"] * np.minimum(main, epilogue)
    in_turns = before + later * turn + tile
    persistent = before + rows.rounds * tile + later * values["next_tile"]
    return np.select([rows.persistent == 0, rows.ping_pong > 0], [alone, in_turns], persistent)


# -- the figures -------------------------------------------------------------------------------


@contextmanager
def with_figures(values: Values, target: Target) -> Iterator[None]:
    """Lets the compiler's estimate use these in place of the GPU's own."""
    before = figures(target)
    known: dict[str, Any] = chip_figures.OF_GPUS if target.gpu else chip_figures.FIGURES
    name = target.gpu or target.chip
    known[name] = replaced(before, values)
    try:
        yield
    finally:
        known[name] = before


def replaced(before: ChipFigures, values: Values) -> ChipFigures:
    """Figures with these in place of its own."""
    changed: dict[str, Any] = {name: value for name, value in values.items() if name in OF_CHIP}
    for kind in ("split", "parts"):
        of_kind = {
            name.removeprefix(f"{kind}_"): value
            for name, value in values.items()
            if name.startswith(f"{kind}_")
        }
        changed[kind] = replace(getattr(before, kind), **of_kind)
    return replace(before, **changed)


def values_of(target: Target) -> Values:
    """The compiler's own figures of a GPU, by the names of `FITTED`."""
    chip = figures(target)
    kinds = {"split": chip.split, "parts": chip.parts}
    found = {name: float(getattr(chip, name)) for name in OF_CHIP}
    for name in OF_PARTS:
        kind, _, figure = name.partition("_")
        found[name] = float(getattr(kinds[kind], figure))
    return found
