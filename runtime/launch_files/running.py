"""Runs a launch file once on the emulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..emulator import LaunchError, PtxSyntaxError, Report
from ..emulator.host.launch import DEFAULT_RESIDENT, Launch
from ..emulator.host.names import Names
from ..emulator.host.programs import load_program
from ..emulator.host.shape import Shape
from ..emulator.ptx.program import Program
from .binding import Binder
from .description import read_launch_file, read_limited, triple
from .fit import misfits
from .memory import TensorMemory, make_memories
from .options import RunOptions

MAX_PTX_BYTES = 64 * 2**20


@dataclass(frozen=True)
class LaunchResult:
    """What a launch did. outputs: the tensors of role output and inout by name, in the shape of
    the launch file (bf16, fp8 and e2m1 as ml_dtypes)."""

    seed: int
    report: Report
    outputs: dict[str, np.ndarray]


def run_once(
    ptx_path: str | PathLike[str],
    launch_path: str | PathLike[str],
    seed: int,
    options: RunOptions,
) -> LaunchResult:
    """Read both files, run the kernel with one seed; errors as in `run_launch_file`."""
    path = Path(launch_path)
    launch = read_launch_file(path)
    text = read_ptx(Path(ptx_path))
    with _named_files(ptx_path, path):
        program = _load(text, launch)
        tensors = make_memories(launch, path.parent)
        running = _bind(launch, program, tensors, seed, options)
    report = running.run(
        options.max_steps,
        launch.get("resident", DEFAULT_RESIDENT),
        trace=options.trace,
        profile=options.profile,
        workers=options.workers,
    )
    return LaunchResult(seed, report, _outputs(tensors))


@contextmanager
def _named_files(ptx_path: str | PathLike[str], launch_path: Path) -> Iterator[None]:
    """Errors name the file that is wrong."""
    try:
        yield
    except PtxSyntaxError as error:
        error.args = (str(error).replace("ptx:", f"{ptx_path}:", 1),)
        raise
    except LaunchError as error:
        raise LaunchError(f"{launch_path}: {error}") from error


def read_ptx(path: Path) -> str:
    """The text of a PTX file; LaunchError if it is none."""
    try:
        return read_limited(path, MAX_PTX_BYTES).decode()
    except UnicodeDecodeError as error:
        raise LaunchError(f"{path}: must be PTX text, got {error.reason}; check the path") from None


def _load(text: str, launch: Mapping[str, Any]) -> Program:
    try:
        program = load_program(text, launch["entry"])
    except LaunchError as error:
        raise LaunchError(f"entry: {error}; name a kernel that it has") from error
    broken = next(misfits(launch, program), None)
    if broken:
        raise LaunchError(f"{broken}; make the launch fit the kernel")
    return program


def _bind(
    launch: Mapping[str, Any],
    program: Program,
    tensors: dict[str, TensorMemory],
    seed: int,
    options: RunOptions,
) -> Launch:
    grid, block, cluster = (triple(launch.get(name, [1])) for name in ("grid", "block", "cluster"))
    shape = Shape(program, grid, block, cluster, launch.get("preferred_cluster"))
    running = Launch(
        program,
        shape,
        launch.get("shared_bytes", 0),
        seed,
        options.check,
        options.fp8_sums,
    )
    running.names = Names.of(launch.get("names"))
    running.arrays.awaited = [
        tensor.memory for tensor in tensors.values() if tensor.declared.get("awaited")
    ]
    _note_parts(running, tensors, options.whole)
    binder = Binder(running, launch, tensors)
    running.bind([binder.encode(parameter) for parameter in launch["parameters"]])
    return running


def _note_parts(running: Launch, tensors: dict[str, TensorMemory], whole: bool) -> None:
    """Say which elements the kernel should write and read, and where elements lie."""
    arrays = running.arrays
    views = {name: (tensor.declared, tensor.view()) for name, tensor in tensors.items()}
    asked = [(each["role"], view) for each, view in views.values()
             if each.get("whole", whole and each["role"] != "inout")]  # fmt: skip
    arrays.outputs = [view for role, view in asked if role != "input"]
    arrays.inputs = [view for role, view in asked if role == "input"]
    arrays.views = {f"tensor '{name}'": view for name, (_, view) in views.items()}


def _outputs(tensors: dict[str, TensorMemory]) -> dict[str, np.ndarray]:
    return {
        name: tensor.elements()
        for name, tensor in tensors.items()
        if tensor.declared["role"] != "input"
    }
