"""Programs of torch.export with their kernels, loaded without the compiler.

FOLDER/program.pt2        a program that calls kernels by their keys
FOLDER/kernels/KEY.zip    a bundle for each key
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bundles.bundle import read_bundle
from ..errors import DeviceError
from .loading import open_kernel

if TYPE_CHECKING:
    import torch

PROGRAM, KERNELS = "program.pt2", "kernels"


def load_program(path: str | Path) -> torch.nn.Module:
    """The model in a folder that `tilewright.torch.export` wrote, to be called as it was.

    torch loads the program, which can run any code: of people whom you trust. No parameter requires
    gradients, since kernels have none. Raises DeviceError for a folder of another kind or a damaged
    program, and BundleError for a damaged kernel.
    """
    from . import torch_op  # has the operators that programs call, also where no kernel is loaded

    path = Path(path)
    if not (path / PROGRAM).is_file():
        rule = f"{path} must be a folder that tilewright.torch.export wrote"
        raise DeviceError(f"program: {rule}, got none with {PROGRAM}; export the model")
    kernels = [open_kernel(read_bundle(each), copies=True) for each in _bundles(path)]
    program = _read(path / PROGRAM)
    missing = _keys(program, torch_op) - {each.key for each in kernels}
    if missing:
        rule = f"{path / KERNELS} must hold every kernel of the program"
        raise DeviceError(f"program: {rule}, got none for {min(missing)}; export it again")
    module = program.module().requires_grad_(False)
    module.meta["kernels_of_tilewright"] = kernels  # held while it or a copy of it lives
    return module


def _bundles(path: Path) -> list[Path]:
    return sorted((path / KERNELS).glob("*.zip"))


def _read(path: Path) -> torch.export.ExportedProgram:
    import torch

    try:
        return torch.export.load(path)
    except Exception as error:  # torch raises any kind
        got = f"{type(error).__name__}: {error}".splitlines()[0]
        rule = f"{path} must be what torch.export.save of this torch wrote"
        raise DeviceError(f"program: {rule}, got {got}; export the model again") from error


def _keys(program: torch.export.ExportedProgram, operators: Any) -> set[str]:
    """The kernels that a program calls."""
    called = {each._opoverload for each in (operators.run_kernel, operators.run_kernel_of_several)}
    return {str(node.args[0]) for node in program.graph.nodes if node.target in called}
