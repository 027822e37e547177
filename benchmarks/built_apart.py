"""Contenders that processes build at the same time, and that are measured one after the other."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

CACHES = "TORCHINDUCTOR_CACHE_DIR"
_shared: dict[str, Any] = {}
"""Of a process: `barrier`, and `turn`, within which no other uses the GPU."""


def built_apart(
    parts: Sequence[str], build: Callable[..., Any], measure: Callable[..., Any], options: Any
) -> list[Any]:
    """`measure(case, options)` of each case that `build(part, options, alone)` yields.

    Each part has a process. One at a time uses the GPU, so that none disturbs another's times: that
    which is within `alone()`, or where Inductor measures what it tunes; and none measures cases
    before all are built. Where `TORCHINDUCTOR_CACHE_DIR` names a folder, each part has one in it.
    """
    context = multiprocessing.get_context("spawn")
    workers = max(2, (os.cpu_count() or 1) // len(parts))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(workers))
    barrier = context.Barrier(len(parts))
    with tempfile.TemporaryDirectory() as folder:
        given = barrier, str(Path(folder) / "turns")
        with ProcessPoolExecutor(len(parts), context, _begin, given) as pool:
            found = [pool.submit(_part, part, build, measure, options) for part in parts]
            errors = [each.exception() for each in found]
            for error in sorted(filter(None, errors), key=_waited_in_vain):
                raise error
            return [row for each in found for row in each.result()]


def _waited_in_vain(error: BaseException) -> bool:
    """Whether another process failed."""
    return isinstance(error, threading.BrokenBarrierError)


def _begin(barrier: Any, turns: str) -> None:
    import model_times

    _shared["barrier"] = barrier
    _shared["turn"] = model_times.take_turns(turns)
    model_times.load_candidates_ahead()


def own_caches(part: str) -> None:
    """Let this process keep what Inductor tunes apart: it rewrites the file of all times whole."""
    if CACHES in os.environ:
        os.environ[CACHES] = str(Path(os.environ[CACHES]) / part)


def _part(part: str, build: Any, measure: Any, options: Any) -> list[Any]:
    turn = _shared["turn"]
    own_caches(part)
    try:
        built = list(build(part, options, turn))
    except BaseException:
        _shared["barrier"].abort()
        raise
    _shared["barrier"].wait()
    with turn():
        return [measure(case, options) for case in built]
