"""Decides between our kernel and Inductor's: by measuring both, or by rules without a GPU.

    emulator          every region is taken: nothing else runs there
    race              ours and what Inductor makes of the same operators, in CUDA graphs with a
                      small kernel between; taken where it is at least 1 % faster, first than
                      Inductor's products without what follows
    without a race    also where Inductor is asked to be deterministic, as it measures nothing then
                      that rounding depends on: taken where the table of measured schedules has
                      the product, or where the estimate with the epilogue beats the product's and
                      the traffic of a kernel after it
    batch_invariant   nothing is taken: how a kernel splits K depends on the rows

Races are kept on disk, for the same region, GPU, versions and Inductor's options.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ...dialects.errors import CompileError
from ...dialects.target import find_target
from ...runtime.atomic import write_file
from ...runtime.private_folders import UnsafePlace, check_private_file, make_private
from ..backend import versions
from ..calls.kernels.kernel_cache import FILE_MODE, cache_folder
from ..own_sources import source_digest
from ..schedule.chips.chip_figures import figures
from ..schedule.problem import Problem
from ..schedule.search.choice import measured_schedule
from .describe import Estimate
from .products import is_truth
from .race import Raced, race
from .region import Region, bytes_of, truth_behind
from .row_regions import AnyPrepared
from .settings import Settings

LEAST_GAIN = 0.01
AUTOTUNING = (
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "coordinate_descent_tuning",
)
FOLDER = "races"


class Verdict(NamedTuple):
    """Whether a region is taken, why, and the times of the race."""

    taken: bool
    reason: str
    ours_us: float | None = None
    inductor_us: float | None = None
    at_least: bool = False


def judge(region: Region, prepared: AnyPrepared, text: str, settings: Settings) -> Verdict:
    """Whether our kernel computes a region; raises DeviceError where it cannot be launched."""
    device = region.reads[0].meta["val"].device
    if _asks_for("batch_invariant"):
        return Verdict(False, "rows decide on the kernel, and Inductor must be batch_invariant")
    if device.type == "cpu":
        return Verdict(True, "runs on the emulator")
    if not settings.race or _asks_for("deterministic"):
        return _by_estimate(region, prepared)
    place = race_file(torch.cuda.get_device_name(device), text, prepared)
    found = read_race(place)
    kept = ", measured before" if found else ""
    if found is None:
        found = race(region, prepared, autotuning(), 1 - LEAST_GAIN)
        keep_race(place, found)
    ours, theirs, at_least = found
    taken = ours <= theirs * (1 - LEAST_GAIN)
    more = "more than " if at_least else ""
    reason = f"{more}{theirs / ours:.2f} of Inductor's speed{kept}"
    return Verdict(taken, reason, ours, theirs, at_least)


def _asks_for(name: str) -> bool:
    """Whether a setting of Inductor is on, which older ones do not have."""
    from torch._inductor import config

    return bool(getattr(config, name, False))


def autotuning() -> dict[str, Any]:
    """The options of Inductor that its products depend on, as they are set now."""
    from torch._inductor import config

    return {name: getattr(config, name) for name in AUTOTUNING if hasattr(config, name)}


def race_file(device: str, text: str, prepared: AnyPrepared) -> Path:
    """Where the race of a region is kept."""
    about = [device, text, prepared.target, prepared.math, source_digest(), torch.__version__]
    parts = [*about, sorted(versions().items()), sorted(autotuning().items())]
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return cache_folder() / FOLDER / f"{name}.json"


def read_race(place: Path) -> Raced | None:
    """What was measured before; None where nothing is kept that can be believed."""
    try:
        check_private_file(place)
        found = json.loads(place.read_text())
        ours, theirs = float(found["ours_us"]), float(found["inductor_us"])
        raced = Raced(ours, theirs, bool(found["at_least"]))
    except (OSError, UnsafePlace, ValueError, LookupError, TypeError):
        return None
    return raced if min(ours, theirs) > 0 else None


def keep_race(place: Path, times: Raced) -> None:
    """Keep the times where the folder lets us."""
    text = json.dumps(times._asdict())
    try:
        make_private(place.parent)
        write_file(place, text.encode(), FILE_MODE)
    except (OSError, UnsafePlace):
        return


def _by_estimate(region: Region, prepared: AnyPrepared) -> Verdict:
    target, spec = find_target(prepared.target), prepared.spec
    if measured_schedule(Problem.of(spec, target), target):
        return Verdict(True, "a measured schedule is known")
    if not region.fused():
        return Verdict(False, "nothing is fused, and nothing was measured")
    alone = replace(spec, epilogue_instructions=0, further=(), products=1)
    ours = Estimate(spec, prepared.target)()
    product = Estimate(alone, prepared.target)()
    if ours is None or product is None:
        return Verdict(False, "no estimate is known")
    ours += memory_us(3 * _converted(region), prepared)  # bytes that are read, numbers written
    theirs = product * len(region.products) + traffic_us(region, prepared)
    reason = f"by estimate {theirs / ours:.2f} of Inductor's speed"
    return Verdict(ours <= theirs * (1 - LEAST_GAIN), reason)


def _converted(region: Region) -> int:
    """How many elements of bools are converted for the region's kernel."""
    return sum(each.meta["val"].numel() for each in region.operands if is_truth(truth_behind(each)))


def traffic_us(region: Region, prepared: AnyPrepared) -> float:
    """What a kernel after the product reads and writes."""
    values = [each.node for each in region.products] + region.operands + region.outputs
    return memory_us(sum(map(bytes_of, values)), prepared)


def memory_us(moved: int, prepared: AnyPrepared) -> float:
    """The time in which the memory moves `moved` bytes."""
    target = find_target(prepared.target)
    try:
        return moved / figures(target).dram_rate
    except (CompileError, AttributeError):
        return 0.0
