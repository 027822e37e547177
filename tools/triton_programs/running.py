"""A program of Triton, whose launches the emulator runs."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ..programs.execution import execute
from ..programs.launches import Launches, Options
from .driver import driver_of


def run_program(
    program: Path, arguments: Sequence[str], options: Options, tell: Callable[[str], None]
) -> int:
    """Run a program with its arguments; its exit status. Raises what has stopped a launch."""
    from ..programs.torch_tensors import cuda_on_host

    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        launches = Launches(options, Path(name), tell)
        with cuda_on_host(launches.memory, options.multiprocessors, options.capability()):
            driver = driver_of(launches)
            importlib.import_module("triton.runtime").driver.set_active(driver)
            return launches.end(execute(program, arguments, launches))
