"""Where results go: stdout, or a file that is written atomically; checked in advance."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any, cast

SUFFIXES = {
    ".mlir": "mlir",
    ".ll": "llvm",
    ".ptx": "ptx",
    ".sass": "sass",
    ".cubin": "cubin",
    ".zip": "bundle",
}
"""What `tilewright compile` writes into a file, by its name."""


def deadlock_of(error: Exception) -> dict[str, Any]:
    """`deadlock`: who waits for what and for whom, if that is what the error is.

    Where nothing has imported the emulator the error is another; to import it may be what fails.
    """
    emulator = sys.modules.get(f"{__name__.partition('.')[0]}.runtime.emulator")
    deadlock = getattr(emulator, "Deadlock", ())
    return {"deadlock": cast(Any, error).as_dict()} if isinstance(error, deadlock) else {}


def check_place(path: Path | None, *, bundle: bool = False) -> None:
    """Refuse with CompileError a path that can't be written, before time is spent on its content.

    A bundle may replace a folder of its own kind, as the one who writes it knows, everything else
    only a file.
    """
    if path is None:
        return
    from ...dialects.errors import CompileError

    if str(path) == "-":
        rule = "must be a path, got what stands for stdout; leave it out"
        raise CompileError(f"{path}: {rule}")
    from ...runtime.atomic import behind_links, is_stream

    path = behind_links(path)
    if not bundle and is_stream(path):
        if not os.access(path, os.W_OK):
            _refuse(path, "must be writable, got what is not")
        return
    folder = path.parent
    if bundle:
        folder = next((parent for parent in path.parents if parent.exists()), folder)
    if not folder.is_dir():
        got = "a file" if folder.exists() else "none"
        _refuse(path, f"the folder '{folder}' must exist, got {got}")
    if not os.access(folder, os.W_OK):
        _refuse(path, f"the folder '{folder}' must be writable, got one that is not")
    if path.is_dir() and not bundle:
        _refuse(path, "must be a file, got a folder")


def write_text(text: str, path: Path | None) -> None:
    """Write to `path` atomically, or to stdout when it is None."""
    if path is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    write_bytes(text.encode(), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Write to `path` atomically."""
    from ...runtime.atomic import write_file

    write_file(path, content)


def print_json(value: Any) -> None:
    """Print one object on stdout; numbers that JSON lacks become the texts nan, inf, -inf."""
    print(json.dumps(_finite(value), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _refuse(path: Path, rule: str) -> None:
    from ...dialects.errors import CompileError

    raise CompileError(f"{path}: {rule}; choose another path")
