"""Options for running a launch file."""

from __future__ import annotations

from dataclasses import dataclass

from ..child import DEFAULT_MEMORY_BYTES


@dataclass(frozen=True)
class RunOptions:
    """max_steps: warp instructions of each run, None for any number. max_seconds: wall seconds of
    all runs together, None for no limit. trace: a file for the trace of the run that fails, or
    else of the last one. profile: fill `report.profile`. check: as of `emulator.launch`.
    max_memory_bytes: address space of the process that `isolation` starts. workers: processes
    among which a launch divides its clusters, fp8_sums: how 8-bit floats are summed, both as of
    `emulator.launch`. whole: every element of every output must be written, and of every input
    should be read."""

    max_steps: int | None = None
    max_seconds: float | None = None
    trace: str | None = None
    profile: bool = False
    check: str = "full"
    max_memory_bytes: int = DEFAULT_MEMORY_BYTES
    workers: int = 1
    fp8_sums: str = "f32"
    whole: bool = False
