"""Files and folders that appear whole or not at all, whatever happens while they are written.

They grow in a folder beside their place, which a process that is killed leaves behind: the next one
that writes there removes it once it is an hour old.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PREFIX = ".tilewright-"
LEFT_BEHIND = re.compile(re.escape(PREFIX) + r"\w{8}")
STALE_SECONDS = 3600


def write_file(path: Path, content: bytes, mode: int | None = None, synced: bool = True) -> None:
    """Write `content` to `path`; on failure (OSError) what was there before stays.

    `mode` is the file's, whatever the umask; None leaves it to the umask. Where it is not `synced`,
    which takes a disk milliseconds, the file may be torn if the machine ends before it is on disk.
    """
    with _neighbour(path) as folder:
        fresh = folder / path.name
        _write(fresh, content, mode, synced)
        os.replace(fresh, path)
    if synced:
        _sync_folder(path.parent)


def write_folder(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder of files at `path`; an existing folder is replaced by the complete new one."""
    with _neighbour(path) as folder:
        fresh = folder / "new"
        fresh.mkdir()
        for name, content in contents.items():
            _write(fresh / name, content)
        _sync_folder(fresh)
        _swap_in(fresh, path, folder / "old")
    _sync_folder(path.parent)


@contextlib.contextmanager
def _neighbour(path: Path) -> Iterator[Path]:
    folder = None
    _remove_left_behind(path.parent)
    try:
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=path.parent)
        yield Path(folder)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not the temporary name
        raise
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left_behind(folder: Path) -> None:
    """Remove what processes that were killed an hour ago or more left in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if LEFT_BEHIND.fullmatch(entry.name) and _is_left_behind(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_left_behind(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder of ours that is old, and holds no folder that was being replaced."""
    found = entry.stat(follow_symlinks=False)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and time.time() - found.st_mtime > STALE_SECONDS
        and not os.path.lexists(os.path.join(entry.path, "old"))
    )


def _write(path: Path, content: bytes, mode: int | None = None, synced: bool = True) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if mode else 0o666)
    with os.fdopen(descriptor, "wb") as file:
        if mode is not None:
            os.fchmod(descriptor, mode)
        file.write(content)
        if synced:
            file.flush()
            os.fsync(file.fileno())


def _swap_in(fresh: Path, path: Path, old: Path) -> None:
    replaced = path.is_dir()
    if replaced:
        os.rename(path, old)
    try:
        os.rename(fresh, path)
    except OSError:
        if replaced:
            os.rename(old, path)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
