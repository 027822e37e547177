"""The estimate of any mma.sync pipeline, also of one that would not be chosen.

`warp_schedule` knows rings of swizzled tiles. The first rungs of a ladder have neither:

    no swizzle   a row of a tile is written in as many passes over the banks as it has conflicts
    no ring      every step waits for its own tiles: one more latency, which only other CTAs hide

Whether threads copy tiles through their registers or by cp.async makes no difference here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ....dialects.dtypes import DTYPES
from ....dialects.layout import TileLayout, row_conflicts
from ....dialects.mma_units import warp_grid
from ....dialects.target import Target
from ...spec import MatmulSpec
from ..chips.chip_figures import figures
from .warp_schedule import (
    STEP_LATENCY,
    WarpEstimate,
    WarpSchedule,
    estimate,
    is_by_warps,
    step_cycles,
)

KNOWN = {
    *("normalize", "tiling", "copy-insertion", "swizzle-selection", "epilogue-staging"),
    "pipelining",
}
"""The passes whose kernels the estimate describes."""

Passes = Sequence[tuple[str, Mapping[str, str]]]


def predict_warps(spec: MatmulSpec, passes: Passes, target: Target) -> WarpEstimate | None:
    """The estimate of the kernel that the passes make, given by name with options; None if it is
    not described.

    Not described are MMAs other than the chip's own, and options that a pass chooses by itself.
    """
    calls = dict(passes)
    own = is_by_warps(target) and spec.a_dtype in target.mma.operands
    if not own or not set(calls) <= KNOWN or calls.get("swizzle-selection"):
        return None
    schedule = _schedule(calls, target)
    if schedule is None:
        return None
    busy, latency = step_cycles(spec, schedule, target), float(STEP_LATENCY)
    if "swizzle-selection" not in calls:
        busy["shared memory"] += _conflict_cycles(spec, schedule, target)
    if schedule.stages == 1:
        latency += figures(target).tma_latency
    return estimate(spec, schedule, target, busy, latency)


def _schedule(calls: Mapping[str, Mapping[str, str]], target: Target) -> WarpSchedule | None:
    """The schedule that the options of the passes name; None if they leave something to a pass."""
    tiling, stages = calls.get("tiling", {}), calls.get("pipelining", {"stages": "1"})
    if tiling.get("mma", "auto") not in ("auto", target.mma.name):
        return None
    if "tile" not in tiling or not stages.get("stages", "auto").isdigit():
        return None
    m, n, k = _numbers(tiling["tile"])
    named = tiling.get("warps", "auto")
    grid = warp_grid(m, n, target.mma) if named == "auto" else _numbers(named)
    if grid is None:
        return None
    staged = "epilogue-staging" in calls
    return WarpSchedule((m, n, k), (grid[0], grid[1]), int(stages["stages"]), staged)


def _conflict_cycles(spec: MatmulSpec, schedule: WarpSchedule, target: Target) -> float:
    """The cycles that bank conflicts add to writing a step's tiles."""
    m, n, k = schedule.tile
    item = DTYPES[spec.a_dtype].bytes
    cycles = 0.0
    for extent, major in ((m, spec.a_major), (n, spec.b_major)):
        layout = TileLayout(extent, k, item, "k" if major == "k" else "mn", "none")
        written = prod((extent, k, item)) / figures(target).shared_rate
        cycles += (row_conflicts(layout) - 1) * written
    return cycles


def _numbers(text: str) -> list[int]:
    return [int(extent) for extent in text.split("x")]
