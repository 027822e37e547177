"""Launches that a program asks for, on the emulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...dialects.errors import OptionError
from ...runtime import run_launch_file
from .launch_files import Asked, LaunchFile, launch_file
from .memory import TensorMemory
from .saved import save

TARGET = re.compile(r"sm_(\d+)(\d)[af]?$")
OLDEST = (8, 0)
"""Neither Triton nor the CuTe DSL makes kernels of older chips."""


@dataclass(frozen=True)
class Options:
    """How launches run. seeds: each launch runs with each, from the same memory; save: a folder for
    the launches as `tilewright emulate` takes them."""

    target: str = "sm_100a"
    seeds: Sequence[int] = (0,)
    check: str = "full"
    multiprocessors: int = 4
    save: Path | None = None

    def capability(self) -> tuple[int, int]:
        """The compute capability of the target; OptionError if it is none."""
        match = TARGET.match(self.target)
        if match is None:
            raise OptionError(f"--target must be as sm_100a or sm_90a, got {self.target}")
        found = int(match[1]), int(match[2])
        if found < OLDEST:
            raise OptionError(f"--target must be sm_80 or newer, got {self.target}")
        return found


class Launches:
    """Runs launches as a program asks for them. failure: what has stopped one; folder: for files
    that are needed meanwhile."""

    def __init__(self, options: Options, folder: Path, tell: Callable[[str], None]):
        self.options, self.folder, self._tell = options, folder, tell
        self.memory = TensorMemory()
        self.failure: Exception | None = None
        self.count = 0

    def run(self, asked: Asked) -> None:
        """Run a launch with each seed; what the last one wrote stays in memory. What stops one is
        the failure, whatever the program makes of it."""
        try:
            self._run(asked)
        except Exception as error:
            self.failure = self.failure or error
            raise

    def _run(self, asked: Asked) -> None:
        file = launch_file(asked, self.memory)
        fields = file.fields()
        path = self.folder / f"{self.count:03}.ptx"
        path.write_text(asked.text)
        if self.options.save is not None:
            save(self.options.save, self.count, asked.text, fields)
        self.count += 1
        for seed in self.options.seeds:
            result = run_launch_file(path, fields, seed, check=self.options.check)
            self._tell(_line(asked, seed, result.report))
        _put_back(file, result.outputs)

    def end(self, status: int) -> int:
        """The exit status of the program; raises what has stopped a launch."""
        if self.failure is not None:
            raise self.failure
        self._tell(f"{self.count} {'launch' if self.count == 1 else 'launches'}")
        return status


def _put_back(file: LaunchFile, outputs: dict[str, np.ndarray]) -> None:
    for name, block in file.blocks.items():
        block.bytes()[:] = outputs[name]


def _line(asked: Asked, seed: int, report: Any) -> str:
    warnings = sorted({warning.category for warning in report.warnings})
    suffix = f"; warnings: {', '.join(warnings)}" if warnings else ""
    where = f"grid {asked.grid}, block {asked.block}, cluster {asked.cluster}"
    return f"{asked.kernel}: {where}: seed {seed}: {report.steps} warp instructions{suffix}"
