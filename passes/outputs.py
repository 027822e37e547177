"""The outputs of a kernel: its last views, c, c1, c2, … in this order.

The scales of C, where it has some, come after them.
"""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.tile import KernelOp, StagedStoreOp
from ..dialects.tile.quantized import StoreQuantizedOp
from ..dialects.tile.staged_quantized import StagedQuantizedOp
from .batches import argument_of, map_definition

FIRST = "c"
QUANTIZED_STORES = (StoreQuantizedOp, StagedQuantizedOp)
SCALES = "c_scales"


def output_names(count: int, scaled: bool = False) -> list[str]:
    """The names of so many outputs, of which the last one may be scales."""
    numbered = [FIRST, *(f"{FIRST}{number}" for number in range(1, count - scaled))]
    return [*numbered, *([SCALES] if scaled else [])]


def count_outputs(names: list[str]) -> int:
    """How many of the last names are those of outputs; 0 where c is missing."""
    count = len(names) - names.index(FIRST) if FIRST in names else 0
    return count if names[len(names) - count :] == output_names(count, SCALES in names) else 0


def outputs_of(kernel: KernelOp) -> list[Any]:
    """The views that a kernel writes."""
    names = [ir.StringAttr(name).value for name in kernel.arg_names]
    return list(kernel.body.blocks[0].arguments)[len(names) - count_outputs(names) :]


def outputs_of_store(store: Any) -> list[ir.Value]:
    """All outputs that an op stores to: C, and its scales where it has some."""
    scales = [argument_of(store.scales)] if isinstance(store, QUANTIZED_STORES) else []
    return [output_of(store), *scales]


def output_of(store: Any) -> ir.Value:
    """The output that an op stores to, by its view or by a tensor map of it."""
    to = stored_to(store)
    if isinstance(to.type, ir.MemRefType):
        return argument_of(to)
    return map_definition(to).view


def stored_to(store: Any) -> ir.Value:
    """The view or the tensor map by which an op stores."""
    return store.to if hasattr(store, "to") else store.view


def stored_by_threads(store: StagedStoreOp) -> bool:
    """Whether threads store the pieces; else TMA does."""
    return isinstance(store.to.type, ir.MemRefType)


def stored_together(stores: list[StagedStoreOp]) -> list[list[StagedStoreOp]]:
    """Neighbours that store the same sums by TMA in pieces of the same columns, as the outputs of a
    product are; each other store by itself."""
    found: list[list[StagedStoreOp]] = []
    for store in stores:
        if found and _goes_with(store, found[-1][-1]):
            found[-1].append(store)
        else:
            found.append([store])
    return found


def _goes_with(store: StagedStoreOp, before: StagedStoreOp) -> bool:
    if store.operation.block != before.operation.block or _form_of(store) != _form_of(before):
        return False
    block = [op.operation for op in before.operation.block.operations]
    return block.index(store.operation) == block.index(before.operation) + 1


def _form_of(store: StagedStoreOp) -> tuple[Any, ...]:
    """What is equal for stores whose pieces go to memory together."""
    if stored_by_threads(store) or isinstance(store, StagedQuantizedOp):
        return (store.operation,)
    ring = store.staging.type
    return store.acc, store.i, store.j, ring.tiles[0].layout.k, ring.stages, store.parts
