"""A torch module as linalg on tensors, its parameters and buffers as arguments.

    module, example inputs → torch.export → torch_mlir's FX importer → linalg on tensors → normalize

Imports torch, and torch_mlir's importer, when it is first used.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...dialects.context import one_thread_at_a_time
from ...dialects.errors import CompileError
from ...dialects.record import record
from .compared_sizes import without_comparisons
from .exported_file import is_trusted, safe_archive
from .linalg_text import LinalgText
from .quiet import quiet
from .torch_effects import Effects
from .torch_rows import Sizes, check_rows, check_stacks, names_of, rows_of_program

if TYPE_CHECKING:
    import torch


CUT = "tensor.extract_slice"
LOST = re.compile(r"failed to legalize operation[^\n]*?torch\.(aten\.\w+)")
OWN_DIALECT = re.compile(r"\btm_tensor\.\w+")


@one_thread_at_a_time
def import_module(
    module: torch.nn.Module,
    *inputs: torch.Tensor,
    cuts: bool = False,
    masks: bool = False,
    dynamic: Any = None,
    result_as_it_is: bool = True,
) -> LinalgText:
    """The module's forward on inputs like these: arguments are the inputs, then its state.

    cuts: where the module cuts a linear's output into parts, those of the weight are arguments.
    masks: arguments of truth values are converted to numbers of `STAND_IN`, true where they are
        not 0; else they are refused where an epilogue reads them.
    dynamic: sizes that only a call says, as torch.export takes them for each input; rows, the
        matrices of stacks, or both.
    result_as_it_is: whether a caller expects what the module returns, and not only its tensors.
    """
    from .torch_scaled import OF_BLOCKS

    effects = Effects(module)
    taken, forward = _without_state(module, inputs, effects, masks)
    asked: set[str] = set()
    with _said_of(module):
        sizes = None if dynamic is None else check_rows(inputs, dynamic)
        text = _linalg(forward, taken.values, asked, sizes)
        effects.check(result_as_it_is)
        if sizes is not None:
            check_stacks(inputs, sizes, text)
        elif cuts and CUT in text and OF_BLOCKS not in asked:
            if cut := _cut(forward, taken.values):
                taken = taken.cut_into(cut.arguments)
                text = _linalg(cut.module, taken.values, asked)
    return _source(text, module, taken, asked)


@one_thread_at_a_time
def import_without_views(module: torch.nn.Module, *inputs: torch.Tensor) -> LinalgText | None:
    """The same of a module with views around its product: those of its inputs are arguments, and
    those of its results are told. None where there are none.

    None also where torch cannot export it, as the plain import has said then, or said better.
    Raises CompileError where there are others.
    """
    from .torch_views import without_views

    effects = Effects(module)
    taken, forward = _without_state(module, inputs, effects, masks=True)
    asked: set[str] = set()
    with _said_of(module):
        program = _exported(forward, taken.values)
        if program is None:
            return None
        effects.check(True)
        _check_operators(program)
        viewed = without_views(program, taken.values)
        if viewed is None:
            return None
        taken = taken.cut_into(viewed.arguments)
        text = _linalg(viewed.module, taken.values, asked)
    return replace(_source(text, module, taken, asked), results=tuple(viewed.results))


def _source(text: str, module: torch.nn.Module, taken: _Taken, asked: set[str]) -> LinalgText:
    """The text with what its arguments are, and how exact its sums must be."""
    from .torch_scaled import EXACT_SUMS

    return LinalgText(
        text,
        type_name(module),
        taken.names,
        column_major=taken.column_major,
        exact_sums=EXACT_SUMS in asked,
        parts=taken.parts,
    )


def _exported(
    forward: torch.nn.Module, values: Sequence[Any]
) -> torch.export.ExportedProgram | None:
    """What torch exports, None where it cannot."""
    import torch

    try:
        return torch.export.export(forward, tuple(values), strict=False)
    except Exception:  # any kind
        return None


def _without_state(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], effects: Effects, masks: bool
) -> tuple[_Taken, torch.nn.Module]:
    """What a module takes and keeps, and a module that takes all of that."""
    from .element_names import STAND_IN

    state = named_state(module)
    _check_not_lazy(module, state)
    names = (*named_inputs(module, inputs), *state)
    values = (*inputs, *(value.detach() for value in state.values()))
    truths = frozenset(n for n, each in enumerate(values) if masks and is_mask(each))
    taken = _Taken(
        names,
        tuple(each.to(STAND_IN) if n in truths else each for n, each in enumerate(values)),
    )
    return taken, _functional(module, names, len(inputs), effects, truths)


@record
class _Taken:
    """What a program takes: tensors and their names, inputs first and then the state.

    `parts` says of each which argument it is of, and which part of that; empty where all are whole.
    """

    names: tuple[str, ...]
    values: tuple[torch.Tensor, ...]
    parts: tuple[tuple[str, Any], ...] = ()

    def cut_into(self, arguments: Iterable[tuple[int, Any]]) -> _Taken:
        """The same of a program that takes parts of some: for each the number and the part."""
        parts = tuple((self.names[number], part) for number, part in arguments)
        given = dict(zip(self.names, self.values, strict=True))
        return _Taken(
            tuple(part.named(name) if part else name for name, part in parts),
            tuple(part.of(given[name]) if part else given[name] for name, part in parts),
            parts,
        )

    @property
    def column_major(self) -> frozenset[int]:
        """The numbers of those whose first axis of a matrix is the contiguous one."""
        return frozenset(n for n, value in enumerate(self.values) if _is_column_major(value))


@contextmanager
def _said_of(module: torch.nn.Module) -> Iterator[None]:
    """Context manager: what fails inside is a CompileError that names the module."""
    heard: list[str] = []
    try:
        with quiet(), _hearing(heard):
            yield
    except CompileError as error:
        raise CompileError(f"{type_name(module)}: {error.message}", error.location) from error
    except Exception as error:  # torch and torch_mlir raise any kind
        raise CompileError(f"{type_name(module)}: {_why(error, heard)}") from error


def _linalg(
    module: torch.nn.Module,
    values: Sequence[torch.Tensor],
    asked: set[str],
    sizes: Sizes | None = None,
) -> str:
    import torch

    from ...dialects.mlir import linalg_of_torch
    from .torch_blocks import SCALED_MM, STAND_INS, BlocksBeforeExport, by_elements
    from .torch_operators import decompositions
    from .torch_products import of_modules
    from .torch_scaled import scaled_operators

    table = decompositions() | of_modules() | scaled_operators(asked)
    elements = by_elements(values)
    with BlocksBeforeExport(table.get(SCALED_MM)):
        given = {} if sizes is None else {"dynamic_shapes": _of_values(sizes, len(values))}
        program = torch.export.export(module, elements, strict=False, **given)
        _check_operators(program)
        _check_extents(program)
        text = linalg_of_torch(program, decompositions=table)
    _check_dialects(text)
    text = text if sizes is None else without_comparisons(text, names_of(sizes))
    packed = any(each is not value for each, value in zip(values, elements, strict=True))
    return text.replace(*STAND_INS) if packed else text


def _check_operators(program: torch.export.ExportedProgram) -> None:
    """Refuse operators of ours, each of which is a kernel already."""
    from .torch_view_ops import refusal

    for node in program.graph.nodes:
        if getattr(node.target, "namespace", "") == "tilewright":
            rule = "must be an operator of torch, got one that is a kernel of its own"
            raise refusal(node, rule, "write the product with torch's, or call ours outside")


def _check_extents(program: torch.export.ExportedProgram) -> None:
    """Refuse tensors without elements, of which torch_mlir ends the process."""
    for node in program.graph.nodes:
        shape = getattr(node.meta.get("val"), "shape", ())
        if any(type(extent) is int and extent == 0 for extent in shape):
            rule = "tensors must have elements"
            raise CompileError(
                f"{rule}, got {list(shape)} of {node.name}; call matmul, which takes sizes of 0"
            )


def _check_dialects(text: str) -> None:
    """Refuse what torch_mlir writes in a dialect of its own: sorts, scans, scatters."""
    if found := OWN_DIALECT.search(text):
        rule = "must be of operators that linalg has, got one that torch_mlir calls"
        raise CompileError(f"{rule} {found[0]}; compute it outside")


def _of_values(sizes: Sizes, count: int) -> tuple[Any, ...]:
    """Those of a function that takes a tuple of values, of which the last ones are the state."""
    return ((*sizes, *(None for _ in range(count - len(sizes)))),)


def _cut(module: torch.nn.Module, values: Sequence[torch.Tensor]) -> Any:
    from .torch_parts import cut_weights

    return cut_weights(module, values)


def read_exported(path: Path, trust: bool = False) -> LinalgText:
    """The program in a file of torch.export.save, on the example inputs it was exported with."""
    program = loaded_program(path, trust)
    module, inputs = _module_of(program, path)
    rows = rows_of_program(program)
    return import_module(module, *inputs, dynamic=rows, result_as_it_is=False)


def exported_program(
    path: Path, trust: bool = False
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module in a file of torch.export.save, and its example inputs, as `loaded_program`."""
    return _module_of(loaded_program(path, trust), path)


def _module_of(
    program: torch.export.ExportedProgram, path: Path
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    if program.example_inputs is None:
        raise CompileError(f"{path}: must hold its example inputs, got none; export it again")
    inputs, keywords = program.example_inputs
    if keywords:
        raise CompileError(f"{path}: inputs must be positional, got {', '.join(keywords)}")
    return program.module(), inputs


def loaded_program(path: Path, trust: bool = False) -> torch.export.ExportedProgram:
    """The program in a file of torch.export.save.

    Loading runs no code of the file's: what could is refused with CompileError, unless `trust`.
    """
    import torch

    if not path.is_file():
        raise CompileError(f"{path}: must be a file of torch.export.save, got none")
    source = path if trust or is_trusted(path) else safe_archive(path)
    try:
        with quiet():
            return torch.export.load(source)
    except Exception as error:  # torch raises any kind
        rule = f"{path}: must be a file of torch.export.save, got: {_first_line(error)}"
        raise CompileError(rule) from error


def named_inputs(module: torch.nn.Module, inputs: Sequence[Any]) -> dict[str, torch.Tensor]:
    """The inputs by what errors and `ModuleKernel.tensors` call them."""
    import torch

    named = {f"input {index}": value for index, value in enumerate(inputs)}
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            got = type(value).__name__
            cure = (
                "; pass its tensors as arguments of their own" if got in ("tuple", "list") else ""
            )
            rule = f"{type_name(module)}: {name} must be a torch.Tensor"
            raise CompileError(f"{rule}, got {got}{cure}")
    return named


def named_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by their dotted names."""
    return dict(module.named_parameters()) | dict(module.named_buffers())


def _check_not_lazy(module: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    from torch.nn.parameter import is_lazy

    for name, value in state.items():
        if is_lazy(value):
            rule = f"{type_name(module)}: {name} must have its values, got none yet"
            raise CompileError(f"{rule}; call the module once before")


def _is_column_major(value: torch.Tensor) -> bool:
    """Whether the first axis of a matrix, or of those of a stack, is the contiguous one."""
    return value.dim() in (2, 3) and 0 < value.stride(-2) < value.stride(-1)


def is_mask(value: torch.Tensor) -> bool:
    """Whether a tensor has truth values, which no kernel reads as they are."""
    return str(value.dtype) == "torch.bool"


def _functional(
    module: torch.nn.Module,
    names: tuple[str, ...],
    inputs: int,
    effects: Effects,
    truths: frozenset[int],
) -> torch.nn.Module:
    """A module without state, whose forward takes the other's state after its inputs, and numbers
    for the `truths` among them."""
    import torch

    from .torch_operators import BeforeExport

    class Functional(torch.nn.Module):
        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            values = tuple(each != 0 if n in truths else each for n, each in enumerate(given))
            named = dict(zip(names, values, strict=True))
            state = {name: named[name] for name in names[inputs:]}
            with BeforeExport(), effects.watching(named, state):
                result = torch.func.functional_call(module, state, values[:inputs])
            return effects.returned(result)

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
    said = re.search(r"error: ([^\n]+)", "".join(heard))
    got = said[1] if said else _first_line(error)
    return f"torch must be able to export it, got: {got}; compute that outside"


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line), type(error).__name__)


def type_name(module: torch.nn.Module) -> str:
    return type(module).__name__
