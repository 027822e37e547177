"""Views around a module's kernel: arguments that are views of its inputs and state, results that
are views of its outputs, and how such arguments are read in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....runtime.operands.copies import warn_of_copy
from ...importers.linalg_text import LinalgText
from ..operands.placement import ALIGNMENT_BYTES, why_copied

if TYPE_CHECKING:
    import torch


def arguments_of(
    parts: Sequence[tuple[str, Any]], values: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The values of a kernel's arguments, which are these parts of a module's, by their names."""
    return {
        part.named(name) if part else name: _part_of(values[name], name, part)
        for name, part in parts
        if name in values
    }


def _part_of(value: torch.Tensor, name: str, part: Any) -> torch.Tensor:
    """A part or a view of a tensor; a copy where no strides are that view's."""
    if not part:
        return value
    found = part.of(value)
    if not _share_memory(found, value):
        warn_of_copy(part.named(name), found, "no strides of the tensor are those of this view")
    return found


def _share_memory(view: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a view of a tensor is none that had to be copied; True where torch only traces."""
    import torch

    if torch.compiler.is_compiling():
        return True
    return view.untyped_storage()._cdata == value.untyped_storage()._cdata


def results_of(made: Any, results: Sequence[Any]) -> Any:
    """What a module returns of the outputs of its kernel."""
    outputs = made if isinstance(made, tuple) else (made,)
    found = []
    for number, (output, chain, copied) in enumerate(results):
        value = chain.of(outputs[output])
        if copied or not _share_memory(value, outputs[output]):
            warn_of_copy(f"result {number}", value, "its order is not that of rows and columns")
        found.append(value.contiguous() if copied else value)
    return found[0] if len(found) == 1 else tuple(found)


def with_strides(source: LinalgText, values: Mapping[str, torch.Tensor], target: str) -> LinalgText:
    """The source that says of its arguments with gaps how they lie, where the target reads them so.

    values: those of its arguments' examples, by their names.
    """
    if not source.parts:
        return source
    strides = tuple(
        _gaps_of(values[name], target) if part else ()
        for name, (_, part) in zip(source.arguments, source.parts, strict=True)
    )
    return replace(source, strides=strides)


def _gaps_of(value: torch.Tensor, target: str) -> tuple[int, ...]:
    """The strides of a view that is read in place with its gaps; none of others."""
    start = value.storage_offset() * value.itemsize
    if value.dim() not in (2, 3) or value.is_contiguous() or value.stride(-1) != 1:
        return ()
    if start % ALIGNMENT_BYTES or why_copied(value, target):
        return ()
    return tuple(value.stride())
