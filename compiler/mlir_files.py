"""Reading an .mlir file, which may be anything that somebody named on the command line."""

from __future__ import annotations

from pathlib import Path

from ..dialects.errors import CompileError
from ..runtime.regular_files import UnfitFile, read_regular

LIMIT_BYTES = 64 * 2**20


def read_mlir(path: Path) -> str:
    """The text of an .mlir file; CompileError for what is no ordinary file of UTF-8, or too long.

    A pipe or a device is refused unopened: reading it might never end.
    """
    try:
        return read_regular(path, LIMIT_BYTES).decode()
    except UnfitFile as error:
        got = error.got
    except UnicodeDecodeError:
        got = "bytes that are not UTF-8"
    rule = "must be a readable .mlir file"
    raise CompileError(f"{path}: {rule}, got {got}; check the path")
