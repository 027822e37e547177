"""Sizes of linalg's tensors that only a call says, and the comparisons of them that torch_mlir
writes: those that hold for every call are dropped.

    %dim   = tensor.dim %arg0, %c0                   the first size of %arg0
    %0     = tensor.empty(%dim) : tensor<?x72xf32>   whose first size is that one
    %1     = linalg.fill … outs(%0 : …)              and that of the result, too
    %dim_0 = tensor.dim %1, %c0
    %2     = arith.cmpi eq, %dim, %dim_0 : index     dropped, with its cf.assert

Where a call says one number, all sizes that it says are the same. Where it says rows and matrices,
both sides must follow from arguments of one Dim; a comparison of others is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...dialects.errors import CompileError

Dims = Mapping[tuple[int, int], str]
"""The names of sizes that only a call says, by the numbers of the argument and of its dim."""
_ASSERT = re.compile(r'^ *cf\.assert %(\w+), "[^"\n]*".*\n', re.MULTILINE)
_CASTS = re.compile(r"^ *%(\w+) = arith\.index_cast %dim\w* : index to i64", re.MULTILINE)
_SIZE = re.compile(r"^ *%(dim\w*) = tensor\.dim ", re.MULTILINE)
_COMPARES = r"^ *%{} = arith\.cmpi eq, %(\w+), %(\w+) : (?:index|i64).*\n"
_CAST = r"^ *%{} = arith\.index_cast %dim\w* : index to i64.*\n"
_DIM = re.compile(r"tensor\.dim %(\w+), %c(\d+)\b")
_SAME = re.compile(r"arith\.index_cast %(\w+) ")
_EMPTY = re.compile(r"tensor\.empty\(([^)]*)\) : tensor<([^>]*)>")
_TRANSPOSED = re.compile(r"linalg\.transpose ins\(%(\w+) .* permutation = \[([^\]]*)\]")
_WRITTEN = re.compile(r"linalg\.\w+ .*\bouts\(%(\w+) : [^,)]*\)")


def without_comparisons(text: str, dims: Dims) -> str:
    """The text of linalg without the comparisons of sizes that are the same."""
    for condition in _ASSERT.findall(text):
        compares = re.compile(_COMPARES.format(condition), re.MULTILINE)
        found = compares.search(text)
        if not found or not _are_same(found[1], found[2], text, dims):
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


def _are_same(left: str, right: str, text: str, dims: Dims) -> bool:
    """Whether two values are one size in every call. Raises CompileError where a call says several
    sizes and they are not known to be."""
    if len(set(dims.values())) < 2:
        return _is_size(left, text) and _is_size(right, text)
    named = [_size(each, text, dims) for each in (left, right)]
    if None in named or named[0] != named[1]:
        got = " and ".join(name or "one of no Dim" for name in named)
        rule = "sizes that are compared must be of one Dim"
        raise CompileError(f"{rule}, got {got}; export it with one Dim, or with bmm of stacks")
    return True


def _is_size(name: str, text: str) -> bool:
    """Whether a value is a size of a tensor, or one as an i64."""
    cast = re.compile(_CAST.format(name), re.MULTILINE)
    return name.startswith("dim") or cast.search(text) is not None


def _size(name: str, text: str, dims: Dims) -> str | None:
    """The Dim that a value is, None where that does not follow from what makes it."""
    made = _maker(name, text)
    if dim := _DIM.match(made):
        return _size_of(dim[1], int(dim[2]), text, dims)
    same = _SAME.match(made)
    return _size(same[1], text, dims) if same else None


def _size_of(tensor: str, dim: int, text: str, dims: Dims) -> str | None:
    """The Dim that a tensor has as a size of its own."""
    if argument := re.fullmatch(r"arg(\d+)", tensor):
        return dims.get((int(argument[1]), dim))
    made = _maker(tensor, text)
    if transposed := _TRANSPOSED.match(made):
        return _size_of(transposed[1], int(transposed[2].split(",")[dim]), text, dims)
    if written := _WRITTEN.match(made):
        return _size_of(written[1], dim, text, dims)
    empty = _EMPTY.match(made)
    sizes = empty[2].split("x") if empty else []
    if empty is None or sizes[dim] != "?":
        return None
    return _size(empty[1].split(", ")[sizes[:dim].count("?")].lstrip("%"), text, dims)


def _maker(name: str, text: str) -> str:
    """What a value is made by: the line after its name."""
    found = re.search(rf"^ *%{name} = (.*)$", text, re.MULTILINE)
    return found[1] if found else ""
