"""A torch module as linalg on tensors, its parameters and buffers as arguments, and as a kernel.

    module, example inputs → torch.export → torch_mlir's FX importer → linalg on tensors → normalize

Imports torch, and torch_mlir's importer, when it is first used.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dialects.context import one_thread_at_a_time
from ..dialects.errors import CompileError
from .exported_file import is_trusted, safe_archive
from .linalg_text import LinalgText

if TYPE_CHECKING:
    import torch

    from .driver import Compiled

EXPORTED = ".pt2"
LOST = re.compile(r"failed to legalize operation[^\n]*?torch\.(aten\.\w+)")


class ModuleKernel:
    """A torch module's forward as one kernel; call it as the module, with inputs of those shapes.

    compiled: PTX, manifest and IR (`as_bundle` keeps it). tensors: for each input of the kernel in
    its order, by the manifest's name, the module's input ("input 0") or parameter ("fc.weight").
    """

    def __init__(self, module: torch.nn.Module, compiled: Compiled, inputs: int):
        from ..runtime.launch.kernel import Kernel
        from .bundle_writer import as_bundle

        self.module, self.compiled = module, compiled
        self._names = compiled.manifest["arguments"]
        used = [each for each in compiled.manifest["tensors"] if each["role"] == "input"]
        numbers = [each["argument"]["index"] for each in used]
        self.tensors = {
            each["name"]: self._names[number] for each, number in zip(used, numbers, strict=True)
        }
        self._used = sorted(set(numbers))
        self._kernel = Kernel(as_bundle(compiled), copies=True)
        self._inputs = inputs

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """The module's output for these inputs, with its parameters as they are now.

        They may lie in memory as they like: what the kernel doesn't take so is copied first. Where
        the inputs lie: on their GPU, on torch's current stream, or on the emulator. Raises
        CompileError where torch would record a gradient, which a kernel has none of, and
        DeviceError for tensors of other shapes, types or places.
        """
        return self._kernel(*(value.detach() for value in self._taken(inputs)), out=out)

    def _taken(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The function's arguments: the inputs, then the module's state."""
        import torch

        where = _name(self.module)
        if len(inputs) > self._inputs:
            rule = f"must be called with {self._inputs} inputs, got {len(inputs)}"
            raise CompileError(f"{where}: {rule}")
        values = _named(self.module, inputs) | _state(self.module)
        missing = [name for name in self._names if name not in values]
        if missing:
            raise CompileError(f"{where}: {missing[0]} must be given, got none")
        taken = [values[name] for name in self._names]
        if torch.is_grad_enabled() and any(taken[number].requires_grad for number in self._used):
            raise CompileError(
                f"{where}: a kernel has no gradient, got tensors that require one;"
                " call it under torch.no_grad()"
            )
        return taken


def compile_module(
    module: torch.nn.Module,
    *inputs: torch.Tensor,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
) -> ModuleKernel:
    """One kernel for a module that multiplies two matrices: nn.Linear, an activation, a residual.

    `inputs` are examples: their shapes and types are the kernel's, their values don't matter, and
    how they lie is how the kernel reads operands without a copy, where its MMA can.
    Parameters and buffers are the kernel's inputs as well, not constants. `target` is the chip, by
    default the GPU's own that the inputs lie on, else sm_100a, for the emulator; `pipeline` or
    `preset` as for `matmul`. Raises CompileError for what torch can't export, or the compiler
    can't take: more than one product, ops that aren't elementwise, inputs that aren't matrices.
    """
    import torch

    from ..runtime.operands.dlpack import gpu_of
    from .driver import compile_matmul
    from .first_use import default_target

    if not isinstance(module, torch.nn.Module):
        kind = type(module).__name__
        raise CompileError(f"compile_module: module must be a torch.nn.Module, got {kind}")
    source = import_module(module, *inputs)
    where = gpu_of(inputs[0]) if inputs else None
    chip = target or default_target(where)
    compiled = compile_matmul(source, target=chip, pipeline=pipeline, preset=preset)
    return ModuleKernel(module, compiled, len(inputs))


@one_thread_at_a_time
def import_module(module: torch.nn.Module, *inputs: torch.Tensor) -> LinalgText:
    """The module's forward on inputs like these: arguments are the inputs, then its state."""
    from ..dialects.mlir import linalg_of_torch
    from .torch_operators import decompositions

    state = _state(module)
    arguments = (*_named(module, inputs), *state)
    forward = _functional(module, tuple(state))
    values = (*inputs, *(value.detach() for value in state.values()))
    heard: list[str] = []
    try:
        with _silence(), _hearing(heard):
            text = linalg_of_torch(forward, *values, decompositions=decompositions())
    except Exception as error:  # torch and torch_mlir raise any kind
        raise CompileError(f"{_name(module)}: {_why(error, heard)}") from error
    column_major = {number for number, value in enumerate(values) if _is_column_major(value)}
    return LinalgText(text, _name(module), arguments, column_major=frozenset(column_major))


def read_exported(path: Path, trust: bool = False) -> LinalgText:
    """The program in a file of torch.export.save, on the example inputs it was exported with."""
    module, inputs = exported_program(path, trust)
    return import_module(module, *inputs)


def exported_program(
    path: Path, trust: bool = False
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module in a file of torch.export.save, and its example inputs.

    Loading runs no code of the file's: what could is refused with CompileError, unless `trust`.
    """
    import torch

    if not path.is_file():
        raise CompileError(f"{path}: must be a file of torch.export.save, got none")
    source = path if trust or is_trusted(path) else safe_archive(path)
    try:
        with _silence():
            program = torch.export.load(source)
    except Exception as error:  # torch raises any kind
        rule = f"{path}: must be a file of torch.export.save, got: {_first_line(error)}"
        raise CompileError(rule) from error
    if program.example_inputs is None:
        raise CompileError(f"{path}: must hold its example inputs, got none; export it again")
    inputs, keywords = program.example_inputs
    if keywords:
        raise CompileError(f"{path}: inputs must be positional, got {', '.join(keywords)}")
    return program.module(), inputs


def _named(module: torch.nn.Module, inputs: Sequence[Any]) -> dict[str, torch.Tensor]:
    """The inputs by what errors and `ModuleKernel.tensors` call them."""
    import torch

    named = {f"input {index}": value for index, value in enumerate(inputs)}
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            got = type(value).__name__
            raise CompileError(f"{_name(module)}: {name} must be a torch.Tensor, got {got}")
    return named


@contextmanager
def _silence() -> Iterator[None]:
    """Without torch's warnings about its own calls, and its traceback of what is raised anyway."""
    logger = logging.getLogger("torch.export")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by their dotted names."""
    return dict(module.named_parameters()) | dict(module.named_buffers())


def _is_column_major(value: torch.Tensor) -> bool:
    """Whether the first of two axes is the contiguous one."""
    return value.dim() == 2 and 0 < value.stride(0) < value.stride(1)


def _functional(module: torch.nn.Module, names: tuple[str, ...]) -> torch.nn.Module:
    """A module without state, whose forward takes the other's state after its inputs."""
    import torch

    from .torch_operators import BeforeExport

    class Functional(torch.nn.Module):
        def forward(self, *values: torch.Tensor) -> torch.Tensor:
            inputs = values[: len(values) - len(names)]
            state = dict(zip(names, values[len(inputs) :], strict=True))
            with BeforeExport():
                return torch.func.functional_call(module, state, inputs)

    return Functional()


@contextmanager
def _hearing(heard: list[str]) -> Iterator[None]:
    """Keeps what is written to standard error: MLIR says there which operator it doesn't take."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            heard.append(file.read().decode(errors="replace"))


def _why(error: Exception, heard: Sequence[str]) -> str:
    """The operator that torch_mlir doesn't take, or what torch says."""
    found = LOST.search("".join(heard))
    if found:
        return f"{found[1]} must be an operator that linalg has, got none; compute it outside"
    return f"torch must be able to export it, got: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line), type(error).__name__)


def _name(module: torch.nn.Module) -> str:
    return type(module).__name__
