"""Programs of torch.export with their kernels, loaded without the compiler.

FOLDER/program.pt2        a program that calls kernels by their keys
FOLDER/kernels/KEY.zip    a bundle for each key
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..bundles.bundle import read_bundle
from ..errors import DeviceError
from .loading import open_kernel

if TYPE_CHECKING:
    import torch

PROGRAM, KERNELS = "program.pt2", "kernels"


def load_program(path: str | Path) -> torch.nn.Module:
    """The model in a folder that `tilewright.torch.export` wrote, to be called as it was.

    torch loads the program, which can run any code: of people whom you trust. Raises DeviceError
    for a folder of another kind, and BundleError for a damaged kernel.
    """
    import torch

    path = Path(path)
    if not (path / PROGRAM).is_file():
        rule = f"{path} must be a folder that tilewright.torch.export wrote"
        raise DeviceError(f"program: {rule}, got none with {PROGRAM}; export the model")
    kernels = [open_kernel(read_bundle(each), copies=True) for each in _bundles(path)]
    program = torch.export.load(path / PROGRAM)
    missing = _keys(program) - {each.key for each in kernels}
    if missing:
        rule = f"{path / KERNELS} must hold every kernel of the program"
        raise DeviceError(f"program: {rule}, got none for {min(missing)}; export it again")
    module = program.module()
    module.kernels_of_tilewright = kernels  # type: ignore[assignment]  # held while it lives
    return module


def _bundles(path: Path) -> list[Path]:
    return sorted((path / KERNELS).glob("*.zip"))


def _keys(program: torch.export.ExportedProgram) -> set[str]:
    """The kernels that a program calls."""
    nodes = program.graph.find_nodes(
        op="call_function", target=_operator("run_kernel_of_several")
    ) + program.graph.find_nodes(op="call_function", target=_operator("run_kernel"))
    return {str(node.args[0]) for node in nodes}


def _operator(name: str):
    import torch

    return getattr(torch.ops.tilewright, name).default
