"""Where the values that name a slot's barrier come from: index, parity, receiving CTAs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....dialects import sm
from ....dialects.mlir import ir
from ....dialects.sm.memory import ScaleColumnsOp
from ....dialects.tile.boxes import BoxRowsOp
from ...base import defining_op, refused
from ...clone import constant_of

EMPTY = 1  # operand of sm.ring and sm.turns


def source_of(op: Any, barrier: ir.Value) -> tuple[ir.Value, sm.ReadPositionOp]:
    """The barriers that a barrier is of, and the reading of a position that its index is from."""
    made = defining_op(barrier)
    read = defining_op(made.index) if isinstance(made, sm.BarrierOp) else None
    if not isinstance(made, sm.BarrierOp) or not isinstance(read, sm.ReadPositionOp):
        raise refused(
            op,
            "source: a barrier is named by sm.barrier, its index by sm.read_position, got others; "
            "use these",
        )
    stages, slots = defining_op(read.position).stages.value, made.barriers.type.slots
    if made.index != read.index or stages != slots:
        raise refused(
            op,
            f"source: the index must be that of a position in {slots} slots, got a parity or a "
            f"position in {stages}; read another position",
        )
    return made.barriers, read


def said_by(op: Any, mask: ir.Value) -> tuple[str, list[str]]:
    """Which CTA a mask starts from, and along which axes it reaches."""
    made = defining_op(mask)
    if not isinstance(made, sm.CtaMaskOp):
        raise refused(op, "source: a mask must be of sm.cta_mask, got another; name the CTAs")
    return made.whose.value, [ir.StringAttr(axis).value for axis in made.along]


def parity_of(parity: ir.Value) -> tuple[ir.Operation, bool] | None:
    """The reading that a parity is from, and whether it is that of the phase before."""
    op = defining_op(parity)
    if op.operation.name == "arith.xori" and constant_of(op.operation.operands[1]) == 1:
        found = parity_of(op.operation.operands[0])
        return None if found is None or found[1] else (found[0], True)
    if isinstance(op, sm.ReadPositionOp) and parity == op.parity:
        return op.operation, False
    return None


def is_empty(barriers: ir.Value) -> bool:
    """Whether they tell of the slots of a ring that they are empty."""
    return any(
        isinstance(use.owner.opview, ScaleColumnsOp)
        or (isinstance(use.owner.opview, sm.RingOp | sm.TurnsOp) and use.operand_number == EMPTY)
        for use in barriers.uses
    )


def label_of(barriers: ir.Value) -> str:
    return defining_op(barriers).label.value


def bytes_by_rows(op: sm.ExpectTxOp | sm.ArriveExpectTxOp) -> list[tuple[int, int]]:
    """(rows at most, bytes of each) that an op expects by boxes whose rows a launch says."""
    more = isinstance(op, sm.ExpectMoreOp | sm.ArriveExpectMoreOp)
    parts: list[Any] = [op.more] if more else []
    found = []
    while parts:
        name, operands = _computed(parts.pop())
        if name == "arith.addi":
            parts += operands[::-1]
            continue
        bytes_ = constant_of(operands[1]) if name == "arith.muli" else None
        rows = None if bytes_ is None else _box_rows(operands[0])
        if bytes_ is None or rows is None:
            raise refused(
                op,
                "bytes: what is expected more must be of tile.box_rows times a number, got "
                "another; multiply them",
            )
        found.append((rows.most.value, bytes_))
    return found


def _computed(value: Any) -> tuple[str, list[Any]]:
    """The name of the op that makes a value, "" where none does, and its operands."""
    made = value.owner
    return ("", []) if isinstance(made, ir.Block) else (made.name, list(made.operands))


def _box_rows(value: Any) -> BoxRowsOp | None:
    made = value.owner
    return (
        None
        if isinstance(made, ir.Block) or not isinstance(made.opview, BoxRowsOp)
        else made.opview
    )


def shown_bytes(signals: Mapping[Any, int]) -> str:
    """So many bytes, and so many of each row, as a CTA gets the most of them."""
    known = max((count for key, count in signals.items() if isinstance(key, int)), default=0)
    rows = {key[1]: count for key, count in signals.items() if not isinstance(key, int)}
    more = "".join(f" + {count} × rows (up to {most})" for most, count in rows.items())
    return f"{known}{more}"
