"""Kernels of many regions compiled before the first run, in several processes.

A process loads the compiler while the graph is still searched, then compiles into the cache on
disk, from which the others read. Few kernels are compiled here, sooner than a process starts.
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


class Workers:
    """Processes for up to so many kernels, ended with the block.

    kernels: how many there will be at most. processes: the most that may run, this one with them;
        0 for as many as there are processors.
    """

    def __init__(self, kernels: int, processes: int = 0):
        count = min(processes or _processors(), kernels) if kernels >= FEW else 1
        self._children = [_child() for _ in range(count - 1)]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *raised: Any) -> None:
        for child in self._children:
            child.kill()
            child.wait()

    def compile_all(self, jobs: dict[str, Job]) -> dict[str, Bundle | CompileError]:
        """A kernel for each key, or why there is none."""
        missing = [job for key, job in jobs.items() if not (cache_folder() / f"{key}.zip").exists()]
        missing.sort(key=_length, reverse=True)  # so that each process has some of the long ones
        shares = len(self._children) + 1
        busy = [
            child
            for number, child in enumerate(self._children, start=1)
            if _give(child, missing[number::shares])
        ]
        for job in missing[::shares]:
            _bundle(job)
        for child in busy:
            child.wait()
        return {key: _bundle(job) for key, job in jobs.items()}  # what failed there fails here


def _bundle(job: Job) -> Bundle | CompileError:
    try:
        return cached_bundle(*job)
    except CompileError as error:
        return error


def _length(job: Job) -> int:
    """How long a job takes beside others: a kernel with more behind its product takes longer."""
    source = job[0]
    return len(source.text) if isinstance(source, LinalgText) else 0


def _processors() -> int:
    """Those of this process; of a machine that torchrun's ranks share, its part of them."""
    known = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, count // int(ranks)) if ranks.isdigit() and int(ranks) else count


def _child() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", __name__]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)


def _give(child: subprocess.Popen[bytes], jobs: Sequence[Job]) -> bool:
    """Whether a process has something to do."""
    if not jobs:
        return False
    assert child.stdin is not None
    try:
        child.stdin.write(pickle.dumps(list(jobs)))
        child.stdin.close()
    except BrokenPipeError:
        return False
    return True


def main() -> None:
    """Compile the jobs that the parent wrote."""
    for job in pickle.load(sys.stdin.buffer):
        _bundle(job)


if __name__ == "__main__":
    main()
