"""The estimate of any pipeline, also of one that would not be chosen.

For kernels with tensor memory, `tensor_estimate` knows all pipelines. For others, `estimate` knows
those that keep several stages of swizzled tiles under way, with one CTA per multiprocessor. The
first rungs of a ladder do neither:

    rows        without a swizzle, a tile is copied in rows of 16 bytes, one after another
    residents   CTAs of one stage share a multiprocessor, as many as shared memory allows: while one
                waits for its tiles, the tiles of another are multiplied
    work        waves of all of them, a partial wave as such, × (start + fill + the longer of one
                CTA's chain of loads and MMAs and what its multiprocessor does for all + epilogue)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....dialects.target import Target
from ..chips.chip_figures import FIGURES, figures
from ..chips.figure import Figure
from ..problem import Problem
from ..schedule import THREADS, Schedule
from ..waves import resident_ctas
from .costs import Estimate, dram_bytes
from .epilogue_costs import epilogue_cycles
from .estimate import estimate, refill_cycles, start_cycles, step_cycles, together
from .tensor_estimate import tensor_estimate
from .tensor_steps import Traits

ROW_BYTES = 16
ROW_RATE = Figure(0.59, "rows/cycle", "an H200: the time of h2")
"""Rows of 16 bytes that the copy engine of one multiprocessor moves."""
KNOWN = {
    "normalize", "tiling", "tma-insertion", "swizzle-selection", "split-k", "epilogue-staging",
    "clustering", "pipelining", "warp-specialization", "persistence", "ping-pong", "expand-loops",
}  # fmt: skip
"""The passes whose kernels the estimate describes."""

Passes = Sequence[tuple[str, Mapping[str, str]]]


def predict(
    problem: Problem,
    passes: Passes,
    target: Target,
    columns: int | None = None,
    inputs: str = "random",
    clock: float = 0,
    joined: bool = False,
) -> Estimate | None:
    """The estimate of the kernel that the passes make, given by name with options; None if it is
    not described.

    `columns`, `inputs`, `clock` and `joined` are those of `Traits`, for kernels of other authors.
    Not described are copies by threads, options that a pass chooses by itself, and chips without
    figures.
    """
    calls = dict(passes)
    described = "tma-insertion" in calls and set(calls) <= KNOWN
    described &= calls.get("tiling", {}).get("mma", "auto") == "auto"
    if target.chip not in FIGURES or not described:
        return None
    try:
        schedule = schedule_of_passes(calls)
    except (KeyError, ValueError):  # left to the pass, or auto
        return None
    if target.has_tensor_memory:
        traits = Traits(
            swizzled="swizzle-selection" in calls,
            roles=joined or "warp-specialization" in calls,
            joined=joined,
            columns=columns,
            half_sectors=calls.get("expand-loops", {}).get("reads") == "matrices",
            inputs=inputs,
            clock=clock,
        )
        return tensor_estimate(problem, schedule, target, traits)
    if schedule.stages > 1 and "swizzle-selection" in calls:
        return estimate(problem, schedule, target)
    return _one_stage(problem, schedule, target, "swizzle-selection" in calls)


def schedule_of_passes(calls: Mapping[str, Mapping[str, str]]) -> Schedule:
    """The schedule that the options of passes name; KeyError or ValueError if they leave something
    open."""
    m, n, k = _numbers(calls["tiling"]["tile"])
    schedule = Schedule((m, n, k), ping_pong="ping-pong" in calls, **_raster(calls["tiling"]))
    if "pipelining" in calls:
        schedule = replace(schedule, stages=int(calls["pipelining"]["stages"]))
    if "clustering" in calls:
        options = calls["clustering"]  # multicast saves no time, and fallback clusters find room
        rows, columns = _numbers(options.get("fallback", options["shape"]))
        pair = calls["clustering"].get("pair") == "true"
        schedule = replace(schedule, cluster=(rows, columns), pair=pair)
    if (options := calls.get("persistence")) is not None:
        scheduler = options.get("scheduler", "static")
        raster = {"order": "grouped"} | _raster(options)
        schedule = replace(schedule, scheduler=scheduler, **raster)
    if (options := calls.get("epilogue-staging")) is not None:
        pieces = int(options.get("columns", "64")), int(options.get("buffers", "2"))
        vectors = options.get("vectors", THREADS)
        ahead = int(options.get("ahead", "0"))
        schedule = replace(schedule, staging=pieces, ahead=ahead, vectors=vectors)
    split = calls.get("split-k", {})
    field = "split_grid" if split.get("over") == "grid" else "split_k"
    return replace(schedule, **{field: int(split.get("parts", "1"))})


def _raster(options: Mapping[str, str]) -> dict[str, Any]:
    """The order of tiles that the options of a pass name."""
    named = {"order": options["order"]} if "order" in options else {}
    return named | ({"group": int(options["group"])} if "group" in options else {})


def _one_stage(problem: Problem, schedule: Schedule, target: Target, swizzled: bool) -> Estimate:
    busy = step_cycles(problem, schedule, target)
    if not swizzled:
        rows = problem.a_tile_bytes(schedule) + problem.b_tile_bytes(schedule)
        busy["rows of 16 bytes"] = rows / ROW_BYTES / ROW_RATE
    step, residents = together(busy, target), residents_of(problem, schedule, target)
    streamed = residents * problem.k_tiles(schedule) * step
    chain = refill_cycles(problem, schedule, step, target)
    main, epilogue = max(streamed, chain), residents * epilogue_cycles(problem, schedule, target)
    fill, start = figures(target).tma_latency, start_cycles(schedule, target)
    waves = max(1.0, problem.ctas(schedule) / (residents * resident_ctas(schedule, target)))
    cycles = figures(target).clock * 1e3
    work_us = waves * (start + fill + main + epilogue) / cycles
    dram_us = dram_bytes(problem, schedule, target) / figures(target).dram_rate
    bound = max(busy, key=busy.__getitem__) if streamed >= chain else "latency"
    return Estimate(
        total_us=max(work_us, dram_us),
        work_us=work_us,
        dram_us=dram_us,
        main_loop_us=main / cycles,
        epilogue_us=epilogue / cycles,
        fill_us=fill / cycles,
        start_us=start / cycles,
        rounds=-(-problem.ctas(schedule) // resident_ctas(schedule, target)),
        bound="DRAM" if dram_us > work_us else bound,
    )


def residents_of(problem: Problem, schedule: Schedule, target: Target) -> int:
    """The number of CTAs that share a multiprocessor, by shared memory and registers."""
    used = schedule.stages * problem.stage_bytes(schedule) + problem.staging_bytes(schedule)
    fit = target.multiprocessor_shared_bytes // (used + target.cta_reserved_shared_bytes)
    m, n, _ = schedule.tile
    return max(1, min(fit, target.registers // (2 * m * n)))


def _numbers(text: str) -> list[int]:
    return [int(extent) for extent in text.split("x")]
