"""The outputs of a kernel: its last views, c, c1, c2, … in this order."""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.tile import KernelOp
from .batches import argument_of, map_definition

FIRST = "c"


def output_names(count: int) -> list[str]:
    """The names of so many outputs."""
    return [FIRST, *(f"{FIRST}{number}" for number in range(1, count))]


def count_outputs(names: list[str]) -> int:
    """How many of the last names are those of outputs; 0 where c is missing."""
    count = len(names) - names.index(FIRST) if FIRST in names else 0
    return count if names[len(names) - count :] == output_names(count) else 0


def outputs_of(kernel: KernelOp) -> list[Any]:
    """The views that a kernel writes."""
    names = [ir.StringAttr(name).value for name in kernel.arg_names]
    return list(kernel.body.blocks[0].arguments)[len(names) - count_outputs(names) :]


def output_of(store: Any) -> ir.Value:
    """The output that an op stores to, by its view or by a tensor map of it."""
    to = store.to if hasattr(store, "to") else store.view
    if isinstance(to.type, ir.MemRefType):
        return argument_of(to)
    return map_definition(to).view
