"""Timed launches on the emulator whose result is right, and the memory that they take."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PEAK_RESET = Path("/proc/self/clear_refs")  # writing 5 starts the peak anew (proc(5))


@dataclass(frozen=True)
class Run:
    """One launch. seconds: wall; cpu_seconds: of all its threads and processes; peak_bytes: the
    most memory that this process held during it, everything that is loaded included."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    instructions: int


@dataclass(frozen=True)
class Row:
    """Several launches of one kernel: the median wall and CPU seconds, the greatest peak."""

    size: tuple[int, ...]
    kernel: str
    check: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    instructions: int

    @property
    def products(self) -> int:
        """Multiply-adds of the matmul."""
        m, n, k = self.size
        return m * n * k

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "instructions_per_second": self.instructions / self.seconds}


def measure(
    size: tuple[int, ...], kernel: dict[str, str], repeat: int, check: str, workers: int = 1
) -> Row:
    """Compile once, launch `repeat` times with different seeds."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec

    bundle = as_bundle(compile_matmul(MatmulSpec(*size), **kernel))
    runs = [launch(bundle, seed, check, workers) for seed in range(repeat)]
    return Row(
        size=size,
        kernel=next(iter(kernel.values())),
        check=check,
        seconds=statistics.median(run.seconds for run in runs),
        cpu_seconds=statistics.median(run.cpu_seconds for run in runs),
        peak_bytes=max(run.peak_bytes for run in runs),
        instructions=runs[0].instructions,
    )


def launch(bundle: Any, seed: int, check: str, workers: int = 1) -> Run:
    """One launch; inputs and the comparison with torch are not counted."""
    from tilewright.runtime.launch.devices import open_device
    from tilewright.tools.runs.references import OfManifest, compare_with

    reference = OfManifest()
    tensors = reference.tensors(bundle.manifest, seed)
    reset_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    report = open_device("emulator").launch(bundle, tensors, seed, check=check, workers=workers)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    run = Run(wall, cpu, peak_bytes(), sum(report.instructions.values()))
    comparison = compare_with(reference, bundle.manifest, tensors)
    assert comparison.passed, comparison
    return run


def cpu_seconds() -> float:
    """CPU seconds so far, of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def reset_peak() -> None:
    """Forget the peak so far, where the system can."""
    if PEAK_RESET.exists():
        PEAK_RESET.write_text("5")


def peak_bytes() -> int:
    """The most memory that the process held since `reset_peak`, in bytes."""
    status = Path("/proc/self/status")
    if PEAK_RESET.exists() and status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else peak * 1024
