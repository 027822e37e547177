"""Trusted folders: only the user, or root, may have written there.

What lies in a cache is run as it is, so it is as good as the folder: as ssh does for keys, one that
others own or may write is refused. A folder above may be writable by all where only owners may
remove and rename (the sticky bit of /tmp).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MODE = 0o700


class UnsafePlace(Exception):
    """A folder or file that others may have written: "path: must …, got …; cure"."""


def make_private(folder: Path) -> None:
    """Make a folder, and those above that are missing, for the user alone, whatever the umask.

    Raises UnsafePlace as `check_private` does, OSError when it can't be made.
    """
    for missing in reversed([folder, *folder.parents]):
        if not os.path.lexists(missing):
            _make(missing)
    check_private(folder)


def check_private(folder: Path) -> None:
    """Raise UnsafePlace if others may have written into a folder that exists, OSError if none does.

    A symbolic link in its place is refused: name the folder itself.
    """
    found = os.lstat(folder)
    if stat.S_ISLNK(found.st_mode):
        raise UnsafePlace(f"{folder}: must be a folder, got a symbolic link; name where it leads")
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(20, os.strerror(20), str(folder))
    _check(folder, found)
    for above in folder.resolve().parents:
        place = os.stat(above)
        _check(above, place, shared=bool(place.st_mode & stat.S_ISVTX))


def check_private_file(path: Path) -> None:
    """Raise UnsafePlace if somebody else owns or may write a file, OSError if there is none."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise UnsafePlace(f"{path}: must be an ordinary file, got another kind; delete it")
    _check(path, found)


def _check(path: Path, found: os.stat_result, shared: bool = False) -> None:
    if found.st_uid not in (os.geteuid(), 0):
        rule = f"must belong to you (user {os.geteuid()}) or root"
        raise UnsafePlace(f"{path}: {rule}, got user {found.st_uid}; use a folder of your own")
    if found.st_mode & OTHERS_WRITE and not shared:
        mode = stat.S_IMODE(found.st_mode)
        rule = "must be writable by you alone"
        raise UnsafePlace(f"{path}: {rule}, got mode {mode:04o}; chmod go-w '{path}'")


def _make(folder: Path) -> None:
    try:
        os.mkdir(folder, MODE)
    except FileExistsError:  # another process was quicker
        return
    os.chmod(folder, MODE)  # the umask may have taken even the user's own bits
