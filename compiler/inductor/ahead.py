"""Compiles the kernels of many regions before the first run, in several processes.

A process loads the compiler while the graph is still searched. It is told what to choose, the
kernels that share any number of rows, and then what to compile. Both go into the cache on disk,
from which the others read. Little is done here, sooner than a process starts.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...dialects.errors import CompileError
from ...runtime.bundles.bundle import Bundle
from ..calls.kernels.kept_choices import are_kept, kept_buckets
from ..calls.kernels.kernel_cache import cache_folder, cached_bundle
from ..importers.linalg_text import LinalgText
from ..spec import MatmulSpec

Job = tuple[MatmulSpec | LinalgText, str, str, str]  # source, target, pipeline, math
FEW = 4


class Choice(NamedTuple):
    """Which kernels shall share all sizes of a spec: what `kept_buckets` is asked."""

    spec: MatmulSpec
    target: str


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
            child.communicate()

    def choose_all(self, choices: Iterable[Choice]) -> None:
        """Leave in the cache what `kept_buckets` chooses of each.

        What cannot be chosen or kept is chosen where it is asked for, and so is all where there are
        no other processes.
        """
        if not self._children:
            return
        missing = [each for each in dict.fromkeys(choices) if not are_kept(*each)]
        for child in self._shared(missing, _choose):
            assert child.stdout is not None
            child.stdout.readline()  # of a child that has ended, nothing

    def compile_all(self, jobs: dict[str, Job]) -> dict[str, Bundle | CompileError]:
        """A kernel for each key, or why there is none."""
        missing = [job for key, job in jobs.items() if not (cache_folder() / f"{key}.zip").exists()]
        missing.sort(key=_length, reverse=True)  # so that each process has some of the long ones
        for child in self._shared(missing, _bundle):
            child.communicate()
        return {key: _bundle(job) for key, job in jobs.items()}  # what failed there fails here

    def _shared(
        self, jobs: Sequence[Any], do: Callable[[Any], Any]
    ) -> list[subprocess.Popen[bytes]]:
        """Do a share of the jobs, and give others to processes, which are then busy."""
        shares = len(self._children) + 1
        busy = [
            child
            for number, child in enumerate(self._children, start=1)
            if _give(child, jobs[number::shares])
        ]
        for job in jobs[::shares]:
            do(job)
        return busy


def _choose(choice: Choice) -> None:
    try:
        kept_buckets(*choice)
    except CompileError:
        return


def _bundle(job: Job) -> Bundle | CompileError:
    try:
        return cached_bundle(*job)
    except CompileError as error:
        return error


def _length(job: Job) -> int:
    """How long a job takes beside others: a kernel with more after its product takes longer."""
    source = job[0]
    return len(source.text) if isinstance(source, LinalgText) else 0


def _processors() -> int:
    """The processors of this process; if torchrun's ranks share the machine, its share of them."""
    known = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, count // int(ranks)) if ranks.isdigit() and int(ranks) else count


def _child() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def _give(child: subprocess.Popen[bytes], jobs: Sequence[Choice | Job]) -> bool:
    """Whether a process has something to do."""
    if not jobs:
        return False
    assert child.stdin is not None
    try:
        child.stdin.write(pickle.dumps(list(jobs)))
        child.stdin.flush()
    except BrokenPipeError:
        return False
    return True


def main() -> None:
    """Do what the parent writes, list by list, and answer each by a line, until it writes no more.

    What others print is none of it.
    """
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    while True:
        try:
            jobs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        for job in jobs:
            if isinstance(job, Choice):
                _choose(job)
            else:
                _bundle(job)
        answers.write(b"\n")
        answers.flush()
