"""Launch files: any kernel's PTX and a JSON description of its launch, run on the emulator.

docs/emulate.md has the schema. Nothing slow is imported before a launch runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from ..child import DEFAULT_MEMORY_BYTES

if TYPE_CHECKING:
    from .options import RunOptions
    from .running import LaunchResult

DEFAULT_MAX_STEPS = 100_000_000
"""Warp instructions after which a launch is stopped unless told otherwise."""


def run_launch_file(
    ptx_path: str | PathLike[str],
    launch: str | PathLike[str] | Mapping[str, Any],
    seed: int = 0,
    *,
    max_steps: int | None = DEFAULT_MAX_STEPS,
    max_seconds: float | None = None,
    max_memory_bytes: int = DEFAULT_MEMORY_BYTES,
    trace: str | PathLike[str] | None = None,
    profile: bool = False,
    check: str = "full",
    workers: int = 1,
    fp8_sums: str = "f32",
    whole: bool = False,
) -> LaunchResult:
    """Run the kernel in the PTX file at `ptx_path` as the launch file says; returns its report and
    tensors.

    launch: the file's path, or a dict that says the same, in which a tensor's `contents` may be an
    array. seed: fixes the order of events and the poison. max_steps: warp instructions after which
    to give up. max_seconds: wall seconds after which the launch is killed; it then runs in a
    process of its own, which may hold max_memory_bytes. trace, profile, check, workers, fp8_sums:
    as of `emulator.launch`. whole: every element of every output must be written, and of every
    input should be read. Raises LaunchError when a file is wrong or the two do not fit,
    PtxSyntaxError, and Trap when the kernel breaks a rule, deadlocks or exceeds a limit.
    """
    from .options import RunOptions

    trace = None if trace is None else fspath(trace)
    limits = max_steps, max_seconds, trace, profile, check, max_memory_bytes
    options = RunOptions(*limits, workers, fp8_sums, whole)
    if not isinstance(launch, Mapping):
        return _run(ptx_path, launch, seed, options)
    from .written import written

    with written(launch) as path:
        return _run(ptx_path, path, seed, options)


def _run(
    ptx_path: str | PathLike[str],
    launch_path: str | PathLike[str],
    seed: int,
    options: RunOptions,
) -> LaunchResult:
    if options.max_seconds is None:
        from .running import run_once

        return run_once(ptx_path, launch_path, seed, options)
    from .isolation import run_seeds

    return run_seeds(ptx_path, launch_path, [seed], options)
