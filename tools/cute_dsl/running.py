"""A program of the CuTe DSL, whose launches the emulator runs."""

from __future__ import annotations

import re
import runpy
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...dialects.errors import OptionError
from ...runtime import run_launch_file
from ...runtime.emulator.host.programs import load_program
from ...runtime.errors import LaunchError
from . import dsl, library
from .launch_files import LaunchFile, launch_file
from .memory import TensorMemory
from .saved import save

TARGET = re.compile(r"sm_(\d+)\d[af]?$")


@dataclass(frozen=True)
class Options:
    """How launches run. seeds: each launch runs with each, from the same memory; save: a folder for
    the launches as `tilewright emulate` takes them."""

    target: str = "sm_100a"
    seeds: Sequence[int] = (0,)
    check: str = "full"
    multiprocessors: int = 4
    save: Path | None = None


class Launches:
    """Runs launches as host programs ask for them. failure: what has stopped one."""

    def __init__(self, options: Options, folder: Path, tell: Callable[[str], None]):
        self.options, self.folder, self._tell = options, folder, tell
        self.memory = TensorMemory()
        self.compiled = dsl.Compiled()
        self.failure: Exception | None = None
        self.count = 0

    def run(self, asked: library.Asked) -> bool:
        """Whether a launch went well."""
        try:
            self._run(asked)
        except Exception as error:  # a callback of C cannot raise
            self.failure = self.failure or error
            return False
        return True

    def _run(self, asked: library.Asked) -> None:
        text = self.compiled.ptx(asked.kernel, asked.image)
        if text is None:
            rule = "must have been compiled in this process, to have PTX"
            raise LaunchError(f"{asked.kernel}: {rule}; turn caches off")
        sizes = [size for _, _, size in load_program(text, asked.kernel).parameter_sizes()]
        file = launch_file(asked, sizes, self.memory)
        fields = file.fields()
        path = self.folder / f"{self.count:03}.ptx"
        path.write_text(text)
        if self.options.save is not None:
            save(self.options.save, self.count, text, fields)
        self.count += 1
        for seed in self.options.seeds:
            result = run_launch_file(path, fields, seed, check=self.options.check)
            self._tell(_line(asked, seed, result.report))
        _put_back(file, result.outputs)


def _put_back(file: LaunchFile, outputs: dict[str, np.ndarray]) -> None:
    for name, block in file.blocks.items():
        block.bytes()[:] = outputs[name]


def _line(asked: library.Asked, seed: int, report: Any) -> str:
    warnings = sorted({warning.category for warning in report.warnings})
    told = f"; warnings: {', '.join(warnings)}" if warnings else ""
    where = f"grid {asked.grid}, block {asked.block}, cluster {asked.cluster}"
    return f"{asked.kernel}: {where}: seed {seed}: {report.steps} warp instructions{told}"


def run_program(
    program: Path, arguments: Sequence[str], options: Options, tell: Callable[[str], None]
) -> int:
    """Run a program with its arguments; its exit status. Raises what has stopped a launch."""
    match = TARGET.match(options.target)
    if match is None:
        raise OptionError(f"--target must be as sm_100a or sm_90a, got {options.target}")
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        launches = Launches(options, Path(name), tell)
        status = _run_with_stand_in(program, arguments, launches, int(match[1]))
        tell(f"{launches.count} launches")
        return status


def _run_with_stand_in(
    program: Path, arguments: Sequence[str], launches: Launches, major: int
) -> int:
    from .torch_tensors import cuda_on_host

    options, folder = launches.options, launches.folder
    built, sms = library.build(folder), options.multiprocessors
    kept = library.serve(library.load(built), launches.run, sms, major)
    with cuda_on_host(launches.memory, sms, major):
        launches.compiled = dsl.prepare(options.target, built, folder, launches.memory, sms)
        status = _status_of(program, arguments)
    del kept
    if launches.failure is not None:
        raise launches.failure
    return status


def _status_of(program: Path, arguments: Sequence[str]) -> int:
    """The exit status that Python would have."""
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
