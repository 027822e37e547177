"""Reading an .mlir file, which may contain anything."""

from __future__ import annotations

import sys
from pathlib import Path

from ...dialects.errors import CompileError
from ...runtime.regular_files import UnfitFile, read_regular

LIMIT_BYTES = 64 * 2**20
RULE = "must be a readable .mlir file"
NO_TEXT = "bytes that are not UTF-8"
OTHERS = {
    ".ptx": "PTX; run it by `tilewright emulate` with a launch file",
    ".zip": "what may be a bundle, which is compiled already; `tilewright run` takes one",
    ".py": "Python; `tilewright model check` takes a model, `tilewright conform` a function",
}
"""What others name by mistake, by suffix, and which command takes it."""


def read_mlir(path: Path) -> str:
    """The text of an .mlir file; CompileError for what is no ordinary file of UTF-8, or too long.

    A pipe or a device is refused unopened: reading it might never end.
    """
    if path.suffix in OTHERS:
        raise CompileError(f"{path}: {RULE}, got {OTHERS[path.suffix]}")
    try:
        return read_regular(path, LIMIT_BYTES).decode()
    except UnfitFile as error:
        got = error.got
    except UnicodeDecodeError:
        got = NO_TEXT
    raise CompileError(f"{path}: {RULE}, got {got}; check the path")


def read_stdin() -> str:
    """The text on stdin, within the same limits."""
    try:
        content = sys.stdin.buffer.read(LIMIT_BYTES + 1)
        if len(content) <= LIMIT_BYTES:
            return content.decode()
        got = f"more than {LIMIT_BYTES} bytes"
    except OSError as error:
        got = error.strerror or str(error)
    except UnicodeDecodeError:
        got = NO_TEXT
    raise CompileError(f"stdin: {RULE}, got {got}; send it another")
