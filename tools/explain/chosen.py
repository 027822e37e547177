"""What -v prints about the chosen schedule."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...compiler.compiled import Compiled
    from ...compiler.spec import MatmulSpec

TARGET = "sm_100a"


def chosen_line(source: MatmulSpec | Path, options: argparse.Namespace) -> str:
    """The schedule of a spec or an .mlir file in one line, and how to see why it was chosen."""
    from ...compiler.schedule.kinds.lane_schedule import is_by_lanes, lane_schedule
    from ...compiler.schedule.kinds.scaled_schedule import scaled_schedule
    from ...compiler.schedule.kinds.thread_schedule import is_by_threads, thread_schedule
    from ...compiler.schedule.kinds.warp_schedule import is_by_warps, warp_schedule
    from ...compiler.schedule.kinds.weight_schedule import weight_schedule
    from ...compiler.schedule.search.choice import choose_schedule, target_for
    from ...compiler.schedule.tuned_pipelines import tuned_pipeline

    spec = as_spec(source, options.target)
    target = target_for(spec, options.target)
    measured = tuned_pipeline(spec, target)
    choose = warp_schedule if is_by_warps(target) else choose_schedule
    if spec.is_scaled:
        choose = scaled_schedule
    elif spec.has_weights:
        choose = weight_schedule
    elif is_by_threads(spec):
        choose = thread_schedule
    elif is_by_lanes(spec, target):
        choose = lane_schedule
    label = (measured or choose(spec, target)).label()
    cut = f", cut after {options.stop_after}" if options.stop_after else ""
    return f"{label}{cut}; why: {_explain_command(source, options.target)}"


def compile_taken(compile_: Callable[..., Compiled], source: Any, how: dict[str, Any]) -> Compiled:
    """The kernel up to the kind that is asked for, of a schedule that is chosen the one for which
    ptxas finds room; of the first one where no ptxas is there, or has room for any."""
    from ...compiler.backend import find_ptxas
    from ...dialects.errors import CompileError

    named = how["pipeline"] or how["preset"] or how["stop_after"]
    if named or how["until"] == "cubin":
        return compile_(source, **how)
    ends_before = how["until"] == "mlir"
    try:
        find_ptxas()  # first, since an observer would hear of all passes twice
        unseen = {"observer": None} if ends_before else {}
        found = compile_(source, **how | {"until": "cubin"} | unseen)
    except CompileError:
        return compile_(source, **how)
    if not ends_before:
        return found
    taken = {"pipeline": found.pipeline} if found.given_up else {}
    again = compile_(source, **how | taken)
    again.given_up, again.chosen, again.remarks = found.given_up, found.chosen, found.remarks
    return again


def given_way(source: MatmulSpec | Path, target: str) -> Compiled | None:
    """The kernel in whose favour the chosen schedule gives way, as ptxas has no room for it; None
    where it does not, or neither ptxas nor what compiles is there."""
    from ...dialects.errors import CompileError

    try:
        from ...compiler.driver import compile_matmul

        found = compile_matmul(source, target=target)
    except (CompileError, ModuleNotFoundError):
        return None
    return found if found.given_up else None


def as_spec(source: MatmulSpec | Path, target: str) -> MatmulSpec:
    """The spec that the schedule of a spec or a file is chosen for."""
    if not isinstance(source, Path):
        return source
    from ...compiler.driver import read_spec

    return read_spec(source, target)


def _explain_command(source: MatmulSpec | Path, target: str) -> str:
    words = ["tilewright", "explain", "schedule"]
    words += [str(source)] if isinstance(source, Path) else _flags(source)
    words += ["--target", target] if target != TARGET else []
    return shlex.join(words)


def _flags(spec: MatmulSpec) -> list[str]:
    defaults = type(spec)(1, 1, 1).as_dict()
    return [
        word
        for name, value in spec.as_dict().items()
        if name in ("m", "n", "k") or value != defaults.get(name, value in ("", 0))
        for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))
    ]
