"""The text of a file that somebody wrote, or of stdin."""

from __future__ import annotations

import sys
from pathlib import Path

from ..dialects.errors import CompileError

MAX_SOURCE_BYTES = 64 * 2**20
STDIN = "-"


def read_source(name: str | Path) -> str:
    """The UTF-8 text of an .mlir file, `-` for stdin; CompileError when it is none."""
    where = "stdin" if str(name) == STDIN else name
    rule = f"{where}: must be a readable .mlir file"
    try:
        content = _read(name)
    except OSError as error:
        raise CompileError(f"{rule}, got {error.strerror or error}; check the path") from error
    if len(content) > MAX_SOURCE_BYTES:
        raise CompileError(f"{rule} of at most {MAX_SOURCE_BYTES} bytes, got more; shorten it")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CompileError(f"{rule}, got bytes that are not UTF-8; check the path") from error


def _read(name: str | Path) -> bytes:
    if str(name) == STDIN:
        return sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
    with Path(name).open("rb") as file:
        return file.read(MAX_SOURCE_BYTES + 1)
