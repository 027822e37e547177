"""Files and folders that are written atomically.

They grow in a folder beside their place, which a process that is killed leaves behind: the next one
that writes there removes it once it is an hour old. Behind a link what it names is replaced, and
the link stays. Devices, pipes and open files of a process, as /dev/null and /dev/stdout, are
written to and never replaced.
"""

from __future__ import annotations

import contextlib
import errno
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
LINKS_MAX = 40


def write_file(path: Path, content: bytes, mode: int | None = None, synced: bool = True) -> None:
    """Write `content` to `path`; on failure (OSError) what was there before stays.

    `mode` is the file's, whatever the umask; None leaves it to the umask. Where it is not `synced`,
    which takes a disk milliseconds, the file may be torn if the machine ends before it is on disk.
    """
    if mode is None:
        path = behind_links(path)
        if is_stream(path):
            _write_to_stream(path, content)
            return
    with _neighbour(path) as folder:
        fresh = folder / path.name
        _write(fresh, content, mode, synced)
        os.replace(fresh, path)
    if synced:
        _sync_folder(path.parent)


def write_folder(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder of files at `path`; an existing folder is replaced by the complete new one."""
    path = behind_links(path)
    with _neighbour(path) as folder:
        fresh = folder / "new"
        fresh.mkdir()
        for name, content in contents.items():
            _write(fresh / name, content)
        _sync_folder(fresh)
        _swap_in(fresh, path, folder / "old")
    _sync_folder(path.parent)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which appears at `path` when the block ends without an error."""
    with _neighbour(path) as folder:
        fresh = folder / "new"
        fresh.mkdir()
        yield fresh
        os.rename(fresh, path)
    _sync_folder(path.parent)


def _write_to_stream(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        error.filename = str(path)
        raise


def is_stream(path: Path) -> bool:
    """Whether a path names what is written to and not replaced: no file, or one that is open."""
    if path.is_symlink() and _is_of_process(path):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(errno.EPERM, "only a file can be replaced", str(path))
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def behind_links(path: Path) -> Path:
    """What links name, but not those of open files, which need not be anywhere. OSError for links
    that lead to each other."""
    for _ in range(LINKS_MAX):
        if not path.is_symlink() or _is_of_process(path):
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _is_of_process(path: Path) -> bool:
    return os.path.realpath(path.parent).startswith("/proc/")


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
