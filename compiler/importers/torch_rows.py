"""Dynamic sizes of a torch module's inputs: rows, batch size, or both.

    dynamic_shapes = ({0: Dim("m")}, None)               →   tensor<?x72xbf16>, tensor<40xbf16>
                     {0: Dim("b")} of 3 dims             →   tensor<?x40x72xbf16>
                     {0: Dim("b"), 1: Dim("m")} of them  →   tensor<?x?x72xbf16>

They are given as torch.export takes them. The importer compares sizes that must be the same, and
stops where they are not; comparisons of one Dim with itself are dropped (compared_sizes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dialects.errors import CompileError

if TYPE_CHECKING:
    import torch

Sizes = tuple[dict[int, Any] | None, ...]
ROWS = "rows"
PRODUCT_OF_STACKS = "linalg.batch_matmul"
RULE = "dynamic shapes must be a tuple with {0: Dim} or None for each input"
CURE = "export it with one Dim, for rows or matrices, or with {0: Dim, 1: Dim} for stacks of any"


def check_rows(inputs: Sequence[torch.Tensor], dynamic: Any) -> Sizes:
    """The sizes that a call says, if they are rows of matrices, how many matrices stacks have, or
    both, a number each; else CompileError."""
    if not isinstance(dynamic, tuple | list) or len(dynamic) != len(inputs):
        raise CompileError(f"{RULE}, got {dynamic!r:.80} for {len(inputs)} inputs; {CURE}")
    found = [_opened(number, sizes) for number, sizes in enumerate(dynamic)]
    stacks = next((each for each in found if len(each) == 2), {})
    names = {_name(size) for each in found for size in each.values()}
    if len(names) > max(1, len(stacks)) or (stacks and len(names) < 2):
        got = ", ".join(sorted(names))
        rule = "one number, or how many matrices stacks have and their rows, by two Dims"
        raise CompileError(f"dynamic shapes must be {rule}, got {got}; {CURE}")
    for number, (sizes, value) in enumerate(zip(found, inputs, strict=True)):
        _check_dims(number, sizes, value, stacks)
    return tuple(dict(sorted(each.items())) or None for each in found)


def _opened(number: int, sizes: Any) -> dict[int, Any]:
    """The dims of an input that only a call says, by their Dims."""
    from torch.export import Dim

    if sizes is not None and not isinstance(sizes, dict):
        raise CompileError(f"{RULE}, got {sizes!r:.80}; {CURE}")
    found = {dim: size for dim, size in (sizes or {}).items() if size is not None}
    for size in found.values():
        if type(size) is not Dim:
            rule = f"input {number}: a dynamic size must be a Dim of its own name"
            raise CompileError(f"{rule}, got {size!r:.80}; {CURE}")
    return found


def _check_dims(number: int, sizes: dict[int, Any], value: torch.Tensor, stacks: Any) -> None:
    """Each Dim must stand where kernels count: matrices first, and rows before the last dim."""
    rank = value.dim()
    if not stacks:
        rule, holds = "the first of two or three dims alone may be dynamic", [*sizes] in ([], [0])
    else:
        rule = "matrices must be the first of three dims, and rows the one before the last"
        places = {_name(stacks[0]): (3, 0), _name(stacks[1]): (rank, rank - 2)}
        holds = all(places[_name(size)] == (rank, dim) for dim, size in sizes.items())
    if sizes and (not holds or rank not in (2, 3)):
        got = f"dims {sorted(sizes)} of {list(value.shape)}"
        raise CompileError(f"input {number}: {rule}, got {got}; {CURE}")


def rows_of_program(program: torch.export.ExportedProgram) -> Sizes | None:
    """The sizes that a call of an exported program says; None where all are known."""
    from torch import export

    names = program.graph_signature.user_inputs
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    shapes = [getattr(nodes[name].meta["val"], "shape", ()) for name in names if name in nodes]
    symbols = [
        {dim: size for dim, size in enumerate(shape) if type(size) is not int} for shape in shapes
    ]
    if not any(symbols):
        return None
    found = {str(size) for sizes in symbols for size in sizes.values()}
    made = sorted(each for each in found if not each.isidentifier())
    if made:
        rule = "sizes that only a call says must be symbols of torch.export"
        raise CompileError(f"{rule}, got {', '.join(made)}; {CURE}")
    dims = {name: export.Dim(ROWS + str(number)) for number, name in enumerate(sorted(found))}
    return tuple({dim: dims[str(size)] for dim, size in sizes.items()} or None for sizes in symbols)


def names_of(sizes: Sizes) -> dict[tuple[int, int], str]:
    """The name of each size that a call says, by its input and dim."""
    return {
        (number, dim): _name(size)
        for number, each in enumerate(sizes)
        for dim, size in (each or {}).items()
    }


def check_stacks(inputs: Sequence[torch.Tensor], sizes: Sizes, text: str) -> None:
    """Refuse stacks of any length in a module whose linalg multiplies no stack by a stack."""
    for number, (value, own) in enumerate(zip(inputs, sizes, strict=True)):
        if own and value.dim() == 3 and PRODUCT_OF_STACKS not in text:
            rule = f"input {number}: matrices of a stack may be dynamic in a product of two stacks"
            cure = "pass all rows as one matrix, of which those may be dynamic"
            raise CompileError(f"{rule}, got another of {list(value.shape)}; {cure}")


def _name(size: Any) -> str:
    return str(getattr(size, "__name__", size))
