"""Pauses Python's garbage collector while many objects are created."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, NEVER = 50_000, 2**31 - 1
"""Objects after which the youngest are collected, where Python's own threshold is 700."""
_counting = threading.Lock()
_mine = threading.local()
_running = 0
_thresholds = (0, 0, 0)


@contextmanager
def no_full_collections() -> Iterator[None]:
    """Collect inside in the two young generations alone, and seldom, in all blocks at once.

    A full collection visits every object of the process: with torch and MLIR loaded a million. Of
    those, a launch, an import and an export by torch turn none to garbage. Their own circles are
    freed young, or behind the end.
    """
    global _running, _thresholds
    with _counting:
        if not _running:
            _thresholds = gc.get_threshold()
            first, second, _ = _thresholds
            gc.set_threshold(max(first, YOUNG) if first else 0, second, NEVER)
        _running += 1
    _mine.running = getattr(_mine, "running", 0) + 1
    try:
        yield
    finally:
        _mine.running -= 1
        with _counting:
            _running -= 1
            if not _running:
                gc.set_threshold(*_thresholds)


def _forget_other_threads() -> None:
    """In a child that was forked: only the thread that forked is there."""
    global _counting, _running
    _counting, others = threading.Lock(), _running
    _running = getattr(_mine, "running", 0)
    if others and not _running:
        gc.set_threshold(*_thresholds)


os.register_at_fork(after_in_child=_forget_other_threads)
