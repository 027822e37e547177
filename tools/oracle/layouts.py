"""Whether a kernel keeps the memory layouts that its source states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...dialects.errors import CompileError

if TYPE_CHECKING:
    from .interpreter import Source


def check_layouts(manifest: Mapping[str, Any], source: Source) -> None:
    """Raise CompileError where a tensor of the manifest has other strides than the source's.

    Only tensors count of which the source says how they lie (bufferization.buffer_layout); those of
    a torch module lie as the kernel likes them.
    """
    results = iter(source.result_strides)
    for tensor in manifest["tensors"]:
        if tensor["role"] == "output":
            stated, transposed = next(results), False
        else:
            place = tensor["argument"]
            stated, transposed = source.argument_strides[place["index"]], place["transposed"]
        if stated is not None:
            _check(tensor, [*stated[:-2], *stated[:-3:-1]] if transposed else stated)


def _check(tensor: Mapping[str, Any], wanted: Sequence[int]) -> None:
    steps = zip(tensor["shape"], tensor["strides"], wanted, strict=True)
    if any(extent > 1 and got != step for extent, got, step in steps):
        rule = f"strides must be {list(wanted)}, as its source says"
        raise CompileError(f"tensor '{tensor['name']}': {rule}, got {tensor['strides']}")
