"""Sizes of a torch module's inputs that only a call says: rows, or the matrices of stacks, one
number for all.

    dynamic_shapes = ({0: Dim("m")}, None)   →   tensor<?x72xbf16>, tensor<40xbf16>
                     {0: Dim("b")} of 3 dims →   tensor<?x40x72xbf16>

They are given as torch.export takes them. The importer compares sizes that must be the same, and
stops where they are not; as there is one size alone, they are, and the comparison is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dialects.errors import CompileError

if TYPE_CHECKING:
    import torch

Sizes = tuple[dict[int, Any] | None, ...]
ROWS = "rows"
PRODUCT_OF_STACKS = "linalg.batch_matmul"
CURE = "export it with one Dim, for rows or for matrices alone"
_ASSERT = re.compile(r'^ *cf\.assert %(\w+), "[^"\n]*".*\n', re.MULTILINE)
_CASTS = re.compile(r"^ *%(\w+) = arith\.index_cast %dim\w* : index to i64", re.MULTILINE)
_SIZE = re.compile(r"^ *%(dim\w*) = tensor\.dim ", re.MULTILINE)
_COMPARES = r"^ *%{} = arith\.cmpi eq, %(\w+), %(\w+) : (?:index|i64).*\n"
_CAST = r"^ *%{} = arith\.index_cast %dim\w* : index to i64.*\n"


def check_rows(inputs: Sequence[torch.Tensor], dynamic: Any) -> Sizes:
    """The sizes that a call says, if they are one number, the rows of matrices or how many matrices
    stacks have; else CompileError."""
    rule = "dynamic shapes must be a tuple with {0: Dim} or None for each input"
    if not isinstance(dynamic, tuple | list) or len(dynamic) != len(inputs):
        raise CompileError(f"{rule}, got {dynamic!r:.80} for {len(inputs)} inputs; {CURE}")
    names = set()
    for number, (sizes, value) in enumerate(zip(dynamic, inputs, strict=True)):
        if sizes is not None and not isinstance(sizes, dict):
            raise CompileError(f"{rule}, got {sizes!r:.80}; {CURE}")
        dims = [dim for dim, size in (sizes or {}).items() if size is not None]
        if dims and (dims != [0] or value.dim() not in (2, 3)):
            got = f"dims {dims} of {list(value.shape)}"
            rule = "the first of two or three dims alone may be dynamic"
            raise CompileError(f"input {number}: {rule}, got {got}; {CURE}")
        names |= {_name(sizes[dim]) for dim in dims} if sizes else set()
    if len(names) > 1:
        found = ", ".join(sorted(names))
        raise CompileError(f"dynamic shapes must be one number, got {found}; {CURE}")
    return tuple({0: sizes[0]} if sizes and sizes.get(0) is not None else None for sizes in dynamic)


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
    dims = {name: export.Dim(ROWS + str(number)) for number, name in enumerate(sorted(found))}
    return tuple({dim: dims[str(size)] for dim, size in sizes.items()} or None for sizes in symbols)


def check_stacks(inputs: Sequence[torch.Tensor], sizes: Sizes, text: str) -> None:
    """Refuse stacks of any length in a module whose linalg multiplies no stack by a stack."""
    for number, (value, own) in enumerate(zip(inputs, sizes, strict=True)):
        if own and value.dim() == 3 and PRODUCT_OF_STACKS not in text:
            rule = f"input {number}: matrices of a stack may be dynamic in a product of two stacks"
            cure = "pass all rows as one matrix, of which those may be dynamic"
            raise CompileError(f"{rule}, got another of {list(value.shape)}; {cure}")


def without_comparisons(text: str) -> str:
    """The text of linalg without the comparisons of sizes that are the same."""
    for condition in _ASSERT.findall(text):
        compares = re.compile(_COMPARES.format(condition), re.MULTILINE)
        found = compares.search(text)
        if not found or not all(_is_size(each, text) for each in found.groups()):
            continue
        asserts = re.compile(rf'^ *cf\.assert %{condition}, "[^"\n]*".*\n', re.MULTILINE)
        text = compares.sub("", asserts.sub("", text))
    for name in _CASTS.findall(text):
        if len(re.findall(rf"%{name}\b", text)) == 1:  # nothing else reads it
            text = re.sub(_CAST.format(name), "", text, flags=re.MULTILINE)
    for name in _SIZE.findall(text):
        if len(re.findall(rf"%{name}\b", text)) == 1:  # nothing else reads it
            text = re.sub(rf"^ *%{name} = tensor\.dim .*\n", "", text, flags=re.MULTILINE)
    return text


def _is_size(name: str, text: str) -> bool:
    """Whether a value is a size of a tensor, or one as an i64."""
    cast = re.compile(_CAST.format(name), re.MULTILINE)
    return name.startswith("dim") or cast.search(text) is not None


def _name(size: Any) -> str:
    return str(getattr(size, "__name__", size))
