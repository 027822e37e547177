"""The stores of a tile: one per output, with its part of the epilogue."""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.tile import MatmulOp, StoreOp
from ...dialects.tile.outputs import KeepGroupsOp, KeepOp, StoreGroupsOp, kept_by
from ...dialects.tile.quantized import QuantizeOp, StoreQuantizedOp, quantize_of
from ...dialects.tile_types import integer
from ..clone import copy_region, erase_dead


def store_outputs(matmul: MatmulOp, outputs: list[Any], where: dict[str, Any]) -> None:
    """A store of each output, which computes what the epilogue does for it."""
    block = matmul.epilogue.blocks[0]
    quantize, keeps = quantize_of(block), kept_by(block)
    if quantize is None:
        store = StoreOp(view=outputs[0], **where)
    else:  # its scales are the last output
        store = _quantized(quantize, {"view": outputs[0], "scales": outputs.pop(), **where})
        keeps.remove(quantize)
    for number, (keep, view) in enumerate(zip(keeps, outputs[1:], strict=True)):
        further = _store_of(keep, matmul, {"view": view, **where})
        copy_region(matmul.epilogue, further.epilogue)
        _yield_kept(further.epilogue.blocks[0], number)
    if quantize is not None:
        list(block.operations)[-1].operation.operands[0] = quantize.value
        keeps.append(quantize)
    for keep in keeps:
        keep.operation.erase()
    if keeps:
        erase_dead(block)
    block.append_to(store.epilogue)


def _quantized(quantize: QuantizeOp, where: dict[str, Any]) -> StoreQuantizedOp:
    """The store of C and of its scales."""
    return StoreQuantizedOp(block=quantize.block, rounding=quantize.rounding, **where)


def _store_of(keep: KeepOp, matmul: MatmulOp, where: dict[str, Any]) -> Any:
    if not isinstance(keep, KeepGroupsOp):
        return StoreOp(**where)
    columns = integer(matmul.c.type.shape[-1])
    return StoreGroupsOp(group=keep.group, reduce=keep.reduce, columns=columns, **where)


def _yield_kept(epilogue: ir.Block, number: int) -> None:
    """Let an epilogue give what it keeps under that number, and compute nothing else."""
    keeps = kept_by(epilogue)
    last = list(epilogue.operations)[-1].operation
    last.operands[0] = keeps[number].value
    for keep in keeps:
        keep.operation.erase()
    erase_dead(epilogue)
