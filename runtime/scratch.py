"""Temporary folders that are removed with their processes.

A folder goes when its block ends, by an exception too. What a process left that was killed, the
next one finds and removes: a folder in use has a file that its process holds locked (flock(2)), so
that neither a process of another container nor a folder of the user's is mistaken for one.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "tilewright-"
MARK = ".in-use-by-tilewright"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder in the system's folder for temporary files, removed at the end of the block."""
    place = tempfile.gettempdir()
    _sweep_once(place)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place) as name:
        lock = _lock(Path(name))
        try:
            yield Path(name)
        finally:
            os.close(lock)


def _lock(folder: Path) -> int:
    """Mark the folder as in use; it is locked before it has the name that `sweep` looks for."""
    lock = os.open(folder / ".new", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(folder / ".new", folder / MARK)
    except OSError:  # a file system without locks: nobody sweeps there
        (folder / ".new").unlink(missing_ok=True)
    return lock


@functools.cache
def _sweep_once(place: str) -> None:
    sweep(place)


def sweep(place: str | None = None) -> None:
    """Remove the scratch folders of this user that no process holds."""
    for folder in Path(place or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return False
        lock = os.open(folder / MARK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
