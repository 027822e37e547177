"""Kernels of many regions compiled before the first run, in several processes.

A process compiles into the cache on disk, from which the others read. Few kernels are compiled
here, sooner than a process starts.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from ...dialects.errors import CompileError
from ...runtime.bundles.bundle import Bundle
from ..calls.kernel_cache import cache_folder, cached_bundle
from ..importers.linalg_text import LinalgText
from ..spec import MatmulSpec

Job = tuple[MatmulSpec | LinalgText, str, str, str]  # source, target, pipeline, math
FEW = 4


def compile_all(jobs: dict[str, Job], processes: int = 0) -> dict[str, Bundle | CompileError]:
    """A kernel for each key, or why there is none."""
    missing = {
        key: job for key, job in jobs.items() if not (cache_folder() / f"{key}.zip").exists()
    }
    count = min(processes or _processors(), len(missing))
    if len(missing) >= FEW and count > 1:
        _in_processes(list(missing.values()), count)
    return {key: _bundle(job) for key, job in jobs.items()}


def _bundle(job: Job) -> Bundle | CompileError:
    try:
        return cached_bundle(*job)
    except CompileError as error:
        return error


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_processes(jobs: Sequence[Job], count: int) -> None:
    """Let others fill the cache; what one of them fails at is compiled here, and refused here."""
    command = [sys.executable, "-P", "-m", __name__]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    children = []
    for number in range(count):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, **quiet)
        assert child.stdin is not None
        try:
            child.stdin.write(pickle.dumps(list(jobs[number::count])))
            child.stdin.close()
        except BrokenPipeError:
            pass
        children.append(child)
    for child in children:
        child.wait()


def main() -> None:
    """Compile the jobs that the parent wrote."""
    for job in pickle.load(sys.stdin.buffer):
        _bundle(job)


if __name__ == "__main__":
    main()
