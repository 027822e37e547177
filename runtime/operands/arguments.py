"""The arguments of a call, as those of the function that was compiled.

    arguments of the source  →  inputs of the kernel, each an argument or its transpose

A stack of matrices is transposed matrix by matrix.

One argument may be several inputs, and some may be none. A manifest that says nothing of arguments
has its own inputs as them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..bundles.sizes import tensor_for
from ..element_types import NUMPY_NAMES, TORCH_NAMES, is_torch
from ..errors import LaunchError
from .copies import warn_of_copy
from .results import check_type, new_output
from .tensors import check_dense, fits_strides, refuse_type, required_alignments


class Arguments:
    """The arguments of a manifest's source by `names`; `in_order` where they are the inputs."""

    def __init__(self, manifest: Mapping[str, Any]):
        self._declared = [each for each in manifest["tensors"] if each["role"] == "input"]
        self.names: list[str] = list(
            manifest.get("arguments") or (each["name"] for each in self._declared)
        )
        self.count = len(self.names)
        self._sources = [_source(each, index) for index, each in enumerate(self._declared)]
        self.in_order = self._sources == [(index, False) for index in range(self.count)]
        alignments = required_alignments(manifest)
        self._alignments = [alignments[each["name"]] for each in self._declared]

    def place_of(self, size: str) -> tuple[int, int, int]:
        """Which argument has the dynamic size of that name first, as which of its dims, and how
        many dims it has."""
        return self.places_of(size)[0]  # validated: a or b has it

    def places_of(self, size: str) -> list[tuple[int, int, int]]:
        """The same of all arguments that have it."""
        found = []
        for declared, (index, transposed) in zip(self._declared, self._sources, strict=True):
            if size in declared["shape"]:
                axis, rank = declared["shape"].index(size), len(declared["shape"])
                of_matrix = axis >= rank - 2  # a stack's own dim stays where it is
                found.append(
                    (index, 2 * rank - 3 - axis if transposed and of_matrix else axis, rank)
                )
        return found

    def inputs(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The kernel's inputs in the manifest's order, for one value an argument; no copies."""
        pairs = zip(self._declared, self._sources, strict=True)
        return tuple(
            self._transposed(declared, index, values[index]) if transposed else values[index]
            for declared, (index, transposed) in pairs
        )

    def _transposed(self, declared: Mapping[str, Any], index: int, value: Any) -> Any:
        *stack, rows, columns = declared["shape"]
        got, wanted = list(getattr(value, "shape", ())), [*stack, columns, rows]
        if got != wanted:
            what = f"argument '{self.names[index]}'"
            raise LaunchError(f"{what}: shape must be {wanted}, got {got}")
        return value.swapaxes(-1, -2) if stack else value.T

    def refuse_nested(self, values: Sequence[Any]) -> None:
        """Raise LaunchError for a nested tensor of torch, which has no sizes."""
        for name, value in zip(self.names, values, strict=True):
            if getattr(value, "is_nested", False):
                rule = f"argument '{name}': must be dense, got a nested tensor"
                raise LaunchError(f"{rule}; pass what to_padded_tensor() gives")

    def check_sized(self, values: Sequence[Any], sizes: Mapping[str, int]) -> None:
        """Refuse arguments of other shapes or types than a kernel for these sizes has; raises
        LaunchError. For calls that launch nothing, which nobody else looks at, and for graphs,
        where sizes may be symbols, which the launch compares."""
        for declared, (index, transposed) in zip(self._declared, self._sources, strict=True):
            value, wanted = values[index], tensor_for(declared, sizes)["shape"]
            wanted = [*wanted[:-2], *wanted[:-3:-1]] if transposed else wanted
            if not (hasattr(value, "shape") or hasattr(value, "__dlpack__")):
                refuse_type(declared, type(value).__name__)
            got = list(getattr(value, "shape", wanted))
            if not _may_be(got, wanted):
                rule = f"tensor '{declared['name']}': shape must be {wanted}, got {got}"
                raise self.explained(LaunchError(rule))
            if is_torch(value) or type(value).__module__ == "numpy":
                check_type(declared, value)

    def fitted(self, inputs: Sequence[Any], stream: int | None) -> tuple[Any, ...]:
        """The inputs, or copies of those that lie in memory as the kernel can't take them."""
        rows = zip(self._declared, inputs, self._alignments, strict=True)
        fitted = tuple(_fitted(*row) for row in rows)
        if stream is not None and any(a is not b for a, b in zip(inputs, fitted, strict=True)):
            raise LaunchError("stream: must be None where inputs are copied, got one")
        return fitted

    def explained(self, error: LaunchError) -> LaunchError:
        """The error, which also says which argument the tensor is that it names."""
        found = re.match(r"tensor '(\w+)':", str(error))
        for declared, (index, transposed) in zip(self._declared, self._sources, strict=True):
            if found and found[1] == declared["name"] != self.names[index]:
                how = " transposed" if transposed else ""
                return LaunchError(f"{error}; it is '{self.names[index]}'{how}")
        return error


def _source(declared: Mapping[str, Any], position: int) -> tuple[int, bool]:
    """Which argument an input is, and whether transposed."""
    argument = declared.get("argument", {"index": position, "transposed": False})
    return argument["index"], argument["transposed"]


def _fitted(declared: Mapping[str, Any], value: Any, alignment_bytes: int) -> Any:
    """The value; a copy where only strides or address don't fit, and its library is known."""
    if is_torch(value):
        check_dense(declared["name"], value)
        dtype, known = str(value.dtype), (TORCH_NAMES[declared["dtype"]],)
        strides, start = value.stride(), value.data_ptr() | _offset_bytes(value)
    elif type(value).__module__ == "numpy":
        dtype, known = value.dtype.name, NUMPY_NAMES[declared["dtype"]]
        strides = [stride // value.itemsize for stride in value.strides]
        start = value.__array_interface__["data"][0]
    else:
        return value
    if dtype not in known or list(value.shape) != declared["shape"]:
        return value  # refused when it is bound
    if fits_strides(declared, strides) and start % alignment_bytes == 0:
        return value
    reason = f"the kernel takes strides {declared['strides']}, {alignment_bytes}-byte aligned"
    warn_of_copy(f"tensor '{declared['name']}'", value, reason)
    copy = new_output(declared, value)
    copy[...] = value
    return copy


def _may_be(got: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether sizes are equal, as far as both are numbers."""
    pairs = zip(got, wanted, strict=False)
    known = [pair for pair in pairs if all(type(each) is int for each in pair)]
    return len(got) == len(wanted) and all(one == other for one, other in known)


def _offset_bytes(value: Any) -> int:
    """Where a tensor starts in its storage, which is what the emulator knows of its address."""
    return value.storage_offset() * value.element_size()
