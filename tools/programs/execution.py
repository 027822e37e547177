"""A program, executed as Python would."""

from __future__ import annotations

import atexit
import gc
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path


def execute(program: Path, arguments: Sequence[str]) -> int:
    """The exit status that Python would have; the traceback is on stderr.

    At the end of the process what the program leaves in circles is collected, as Python would:
    libraries by nanobind, as Triton, print what is not.
    """
    atexit.register(gc.unfreeze)
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(program), *arguments]
    sys.path.insert(0, str(program.resolve().parent))
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0
