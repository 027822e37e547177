"""Checks of the launch and of the number of threads of a kernel.

source      `tile.source` says for each input which argument of the source's function it is
registers   what agents ask for fits into what the launch gives all threads; each asks once
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.pipe import SetRegistersOp
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ...base import ARGUMENTS_MAX, SOURCE_ATTRIBUTE, attributes_of, refused, walk
from ...outputs import outputs_of

FIELDS = ("arguments", "inputs", "transposed")


def check_source(kernel: KernelOp) -> None:
    """Refuse a `tile.source` that says anything else."""
    attributes = attributes_of(kernel)
    if SOURCE_ATTRIBUTE not in attributes:
        return
    source = attributes[SOURCE_ATTRIBUTE]
    fields = {each.name: each.attr for each in source} if isinstance(source, ir.DictAttr) else {}
    if sorted(fields) != sorted(FIELDS):
        raise _source(kernel, f"must have the fields {', '.join(FIELDS)}, got {source}")
    count = fields["arguments"]
    if not isinstance(count, ir.IntegerAttr) or not 1 <= count.value <= ARGUMENTS_MAX:
        raise _source(kernel, f"arguments must be a number from 1 to {ARGUMENTS_MAX}, got {count}")
    views = list(kernel.body.blocks[0].arguments)[: -len(outputs_of(kernel))]
    inputs = len(views)
    numbers = _items(fields["inputs"], ir.IntegerAttr)
    if len(numbers) != inputs:
        raise _source(kernel, f"inputs must be {inputs} numbers, got {fields['inputs']}")
    if not all(0 <= each.value < count.value for each in numbers):
        rule = f"inputs must be numbers of the {count.value} arguments"
        raise _source(kernel, f"{rule}, got {fields['inputs']}")
    transposed = _items(fields["transposed"], ir.BoolAttr)
    if len(transposed) != inputs:
        raise _source(kernel, f"transposed must be {inputs} flags, got {fields['transposed']}")
    for number, (flag, view) in enumerate(zip(transposed, views, strict=True)):
        if flag.value and ir.MemRefType(view.type).rank < 2:
            rule = f"transposed must be false for input {number}, which is no matrix"
            raise _source(kernel, f"{rule}, got {fields['transposed']}")


def _items(given: ir.Attribute, kind: type) -> list[Any]:
    """The items of an array, or none if any is of another kind."""
    items = list(given) if isinstance(given, ir.ArrayAttr) else []
    return items if all(isinstance(item, kind) for item in items) else []


def _source(kernel: KernelOp, broken: str) -> Exception:
    return refused(kernel, f"source: {SOURCE_ATTRIBUTE}: {broken}; leave it as tiling wrote it")


def check_registers(kernel: KernelOp, roles: list[Any], target: Target) -> None:
    """Refuse agents that would wait for registers for ever: what the launch gives all threads is
    the pool from which setmaxnreg takes (PTX ISA §9.7.19.5)."""
    if not walk(kernel, SetRegistersOp):
        return
    given = target.launch_registers(kernel.threads.value)
    asked = 0
    for role in roles:
        ops = walk(role, SetRegistersOp)
        if len(ops) > 1:
            raise refused(
                ops[1],
                f"registers: an agent asks for registers once, got {len(ops)} times; keep the "
                "first",
            )
        asked += role.warps.value * (ops[0].count.value if ops else given)
    warps = sum(role.warps.value for role in roles)
    if asked > warps * given:
        most = max(walk(kernel, SetRegistersOp), key=lambda op: op.count.value)
        raise refused(
            most,
            f"registers: the counts of {warps} warps must sum to at most {warps * given}, as the "
            f"launch gives {given} to each, got {asked}; ask for fewer, or give up more",
        )
