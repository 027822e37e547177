"""Reads untrusted files: only regular ones, up to a size, without blocking.

A pipe, a device or a socket in a file's place could block the reader for ever or feed it without
end; a symbolic link inside a folder could lead anywhere.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class UnfitFile(Exception):
    """What was found instead of a file that can be read: `got` finishes the sentence "…, got"."""

    def __init__(self, got: str, missing: bool = False):
        super().__init__(got)
        self.got, self.missing = got, missing


def read_regular(path: str | Path, limit_bytes: int, inside: int | None = None) -> bytes:
    """The content of an ordinary file of at most `limit_bytes`; raises UnfitFile otherwise.

    `inside` is the descriptor of a folder in which `path` is a name; a symbolic link is refused
    there, and followed elsewhere.
    """
    with open_regular(path, limit_bytes, inside) as file:
        try:
            content = file.read(limit_bytes + 1)
        except OSError as error:
            raise UnfitFile(error.strerror or str(error)) from error
    if len(content) > limit_bytes:
        raise UnfitFile(_too_long(limit_bytes))
    return content


def open_regular(path: str | Path, limit_bytes: int, inside: int | None = None) -> IO[bytes]:
    """The file open for reading; as `read_regular`, with the size that its folder states."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        _refuse_unfit(os.stat(path, dir_fd=inside, follow_symlinks=inside is None), limit_bytes)
        descriptor = os.open(
            path, flags | (os.O_NOFOLLOW if inside is not None else 0), dir_fd=inside
        )
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        raise UnfitFile(error.strerror or str(error), missing) from error
    except ValueError as error:  # a NUL in the path
        raise UnfitFile(str(error), missing=True) from error
    try:
        _refuse_unfit(os.fstat(descriptor), limit_bytes)  # it may be another one by now
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def kind_of(mode: int) -> str:
    """What a file of this mode is, in words."""
    return next((name for is_kind, name in KINDS if is_kind(mode)), "a device")


def _refuse_unfit(found: os.stat_result, limit_bytes: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnfitFile(kind_of(found.st_mode))
    if found.st_size > limit_bytes:
        raise UnfitFile(_too_long(limit_bytes))


def _too_long(limit_bytes: int) -> str:
    return f"more than {limit_bytes} bytes"
