"""A program, executed as Python would."""

from __future__ import annotations

import atexit
import gc
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from ... import runtime
from .launches import Launches

_INSIDE = (str(Path(__file__).parents[1]), str(Path(runtime.__file__).parent), "<frozen runpy>")


def execute(program: Path, arguments: Sequence[str], launches: Launches) -> int:
    """The exit status that Python would have; the traceback is on stderr, without our own calls,
    and without the failure of a launch, which is told at the end.

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
    except Exception as error:
        _tell(error, error is launches.failure)
        return 1
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0


def _tell(error: BaseException, failure: bool) -> None:
    report = traceback.TracebackException.from_exception(error)
    _leave_out_inside(report)
    head = "Traceback (most recent call last):\n"
    lines = [head, *report.stack.format()] if failure else report.format()
    print("".join(lines), end="", file=sys.stderr)


def _leave_out_inside(report: traceback.TracebackException | None) -> None:
    if report is not None:
        report.stack[:] = [each for each in report.stack if not each.filename.startswith(_INSIDE)]
        _leave_out_inside(report.__cause__)
        _leave_out_inside(report.__context__)
