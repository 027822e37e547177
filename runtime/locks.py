"""Locks that remain usable after a fork.

A child has the one thread that forked. A lock that another thread of the parent held at that moment
would never be released there, and whoever asks for it would wait for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def shared_lock() -> Any:
    """A lock that one thread at a time holds, as often as it likes; free in a child unless the
    thread that forked holds it."""
    lock: Any = threading.RLock()
    free_in_children(lock)
    return lock


def free_in_children(lock: Any) -> None:
    """Let an RLock of another package be as one of `shared_lock`."""
    _locks.add(lock)


def _free() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


os.register_at_fork(after_in_child=_free)
