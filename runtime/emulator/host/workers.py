"""One launch in several processes, where its clusters have nothing to do with each other.

Each process is forked from this one, runs a share of the clusters on copies of the arrays, and
marks which bytes it reads and writes. If no byte that one writes is touched by another, the shares
one after the other are a legal order of the launch, and what they have written is put together. If
there is such a byte, or a share ends with any error, all of that is thrown away, and the caller
runs the launch as a whole: so races, traps and communication are found as they always are.

Kernels whose instructions say that clusters communicate are not tried.
"""

from __future__ import annotations

import mmap
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import NoReturn

import numpy as np

from ...child import dying_with_us
from ..interface import Launch
from ..machine.memory import WRITTEN
from ..observe.report import Report
from .planned import Planned

RunShare = Callable[[list[Planned]], None]
_COMMUNICATES = re.compile(
    r"clusterlaunchcontrol\.|multimem\.|cp\.reduce\..*\.global\."
    r"|(atom|red|ld\.(volatile|relaxed|acquire|mmio))\b(?!.*\.shared)"
)
"""Opcodes of what is hardly ever used but between CTAs: trying such a kernel would cost time."""
_PIECE = 1 << 22


def run_shares(
    launch: Launch, clusters: list[Planned], workers: int, max_steps: int | None, run: RunShare
) -> list[Report] | None:
    """What each process reports; None, and nothing has happened, where one must run them all.

    run: runs some clusters of the launch to their end.
    """
    count = min(workers, len(clusters))
    if count < 2 or not hasattr(os, "fork") or _must_be_one(launch):
        return None

    def work(number: int) -> Report:
        launch.rng.seed(launch.rng.getrandbits(64) + number)
        results.begin(number)
        run(clusters[number::count])
        results.keep(number)
        return launch.report

    try:
        results = Results(launch, count)
        with _started(count, work) as pipes:
            reports = _collected(pipes)
    except OSError:  # no memory or no process for them
        return None
    if reports is None or results.meet() or _too_long(reports, max_steps):
        return None
    results.hand_over()
    return reports


def _must_be_one(launch: Launch) -> bool:
    communicates = any(_COMMUNICATES.match(each.opcode) for each in launch.program.source)
    return bool(launch.observers or launch.grid_workspace or communicates)


def _too_long(reports: Sequence[Report], max_steps: int | None) -> bool:
    return max_steps is not None and sum(report.steps for report in reports) > max_steps


class Results:
    """Memory that the processes share: what they have written, and who has touched what."""

    def __init__(self, launch: Launch, count: int):
        self._regions = [region for region in launch.global_memory.regions if region.writable]
        sizes = [len(region.data) for region in self._regions]
        self._written = [_shared_bytes(size) for size in sizes]
        self._touched = [[_shared_bytes(size) for size in sizes] for _ in range(count)]

    def begin(self, number: int) -> None:
        """In a process: work on its own copies from now on, which arrays that the host shares with
        others need too."""
        for region, touched in zip(self._regions, self._touched[number], strict=True):
            region.separate(touched)

    def keep(self, number: int) -> None:
        """In a process: the bytes that it has written are as they shall be."""
        for region, written, touched in self._with_marks(number):
            _copy_written(written, region.data, touched)

    def meet(self) -> bool:
        """Whether a process has touched a byte that another has written."""
        return any(
            _meet(piece) for marks in zip(*self._touched, strict=True) for piece in _pieces(*marks)
        )

    def hand_over(self) -> None:
        """Put what the processes have written where the host looks for it."""
        for number in range(len(self._touched)):
            for region, written, touched in self._with_marks(number):
                _copy_written(region.data, written, touched)
                for tell in region.heard("touched_apart"):
                    tell(touched)

    def _with_marks(self, number: int) -> Iterator[tuple]:
        return zip(self._regions, self._written, self._touched[number], strict=True)


def _shared_bytes(size: int) -> np.ndarray:
    """uint8[size], zero, which stays one memory over a fork."""
    return np.frombuffer(mmap.mmap(-1, size), np.uint8) if size else np.zeros(0, np.uint8)


def _pieces(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Arrays of one size, a piece at a time, so that what is computed of them stays small."""
    for start in range(0, len(arrays[0]), _PIECE):
        yield tuple(array[start : start + _PIECE] for array in arrays)


def _copy_written(target: np.ndarray, source: np.ndarray, touched: np.ndarray) -> None:
    for to, new, marks in _pieces(target, source, touched):
        np.copyto(to, new, where=marks & WRITTEN != 0)


def _meet(marks: Sequence[np.ndarray]) -> bool:
    before = np.zeros_like(marks[0])
    for each in marks:
        if np.any((each != 0) & (before != 0) & ((each | before) & WRITTEN != 0)):
            return True
        before |= each
    return False


@contextmanager
def _started(count: int, work: Callable[[int], Report]) -> Iterator[list[Connection]]:
    """Processes that run `work` with the numbers from 0, and are gone in the end, as pipes from
    which each sends its report, or nothing."""
    children: list[int] = []
    pipes: list[Connection] = []
    try:
        for number in range(count):
            reader, writer = Pipe(duplex=False)
            pipes.append(reader)
            die = dying_with_us()
            child = os.fork()
            if child == 0:
                _work(die, writer, lambda number=number: work(number))
            children.append(child)
            writer.close()
        yield pipes
    finally:
        for child in children:
            with suppress(OSError):  # the host may have all its children reaped
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        for pipe in pipes:
            pipe.close()


def _work(die: Callable[[], None], pipe: Connection, work: Callable[[], Report]) -> NoReturn:
    """In a process: whatever happens, it ends here, and says nothing but its report."""
    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        die()
        pipe.send(work())
    finally:
        os._exit(0)


def _collected(pipes: Sequence[Connection]) -> list[Report] | None:
    """The reports in the order of the processes; None as soon as one has ended without."""
    found: dict[int, Report] = {}
    while len(found) < len(pipes):
        ready = wait([pipe for number, pipe in enumerate(pipes) if number not in found])
        for number, pipe in enumerate(pipes):
            if pipe in ready:
                try:
                    found[number] = pipe.recv()
                except EOFError:
                    return None
    return [found[number] for number in range(len(pipes))]
