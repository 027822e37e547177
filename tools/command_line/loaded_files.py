"""`--load FILE.py`: Python files that enter passes or chips of the user's own into our tables.

They run in the process that compiles, before anything looks into these tables.
"""

from __future__ import annotations

import sys
import traceback
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any


def add_load(group: Any) -> None:
    """The flag, which may be given several times; `group` is a parser or a group of one."""
    group.add_argument(
        "--load",
        action="append",
        type=Path,
        metavar="FILE.py",
        help="run a Python file first that enters passes into PASSES (docs/own-pass.md)",
    )


def load_files(files: list[Path] | None) -> None:
    """Run each file; CompileError names the line at which one fails."""
    from ...dialects.errors import OptionError
    from ...dialects.tables import changes

    for number, file in enumerate(files or ()):
        before = changes()
        _run(file, f"tilewright_loaded_{number}_{file.stem}")
        if changes() == before:
            rule = "must enter a pass into tilewright.passes.PASSES, got none"
            cure = "end it with PASSES[MyPass.name] = MyPass"
            raise OptionError(f"--load {file}: {rule}; {cure}")


def _run(file: Path, name: str) -> None:
    from ...dialects.errors import CompileError

    loader = SourceFileLoader(name, str(file))
    spec = spec_from_loader(name, loader)
    assert spec is not None  # a loader was given
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for the names of their types
    try:
        loader.exec_module(module)
    except (OSError, CompileError):
        raise  # they say themselves what is wrong
    except Exception as error:
        line = _line_in(file, error)
        got = f"{type(error).__name__}: {error}"
        raise CompileError(f"--load: must run to its end, got {got}", f"{file}:{line}") from error


def _line_in(file: Path, error: Exception) -> int | None:
    """The innermost line of the file that an error came through, also by its syntax."""
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((each.lineno for each in reversed(frames) if each.filename == str(file)), None)
