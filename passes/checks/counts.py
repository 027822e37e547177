"""Checks of the number of values of each field of an op (`operandSegmentSizes`).

MLIR holds an op with several fields of any number to its counts. With one such field it counts for
itself and ignores what the op says, while accessors of Python believe the op.
"""

from __future__ import annotations

import functools
from typing import Any

from ...dialects.mlir import ext, ir
from ..base import operations, refused

KINDS = {"operandSegmentSizes": ext.OperandDef, "resultSegmentSizes": ext.ResultDef}
LIMITS = {"single": (1, 1), "optional": (0, 1)}
"""By the name of its `Variadicity`; else any number."""


def check_counts(module: ir.Module) -> None:
    """Refuse counts that are not those of an op's values, and those that are missing or unread."""
    for op in operations(module.operation):
        if hasattr(type(op), "_fields"):
            for name in KINDS:
                _check(op, name)


def _check(op: Any, name: str) -> None:
    limits = _limits(type(op), name)
    said = op.operation.attributes[name] if name in op.operation.attributes else None
    if all(low == high for low, high in limits):
        if said is not None:
            raise refused(op, f"attributes: nothing reads {name!r}; take it off the op")
        return
    values = len(op.operation.operands if name == "operandSegmentSizes" else op.operation.results)
    counts = [*said] if isinstance(said, ir.DenseI32ArrayAttr) else []
    fit = [low <= count <= high for count, (low, high) in zip(counts, limits, strict=False)]
    if len(counts) != len(limits) or sum(counts) != values or not all(fit):
        rule = f"must say how many of the {values} values each of {len(limits)} fields has"
        raise refused(op, f"attributes: {name} {rule}, got {said}; count them anew")


@functools.cache
def _limits(op_class: Any, name: str) -> list[tuple[int, float]]:
    """The fewest and the most values of each field."""
    fields = [field for field in op_class._fields if isinstance(field, KINDS[name])]
    return [LIMITS.get(field.variadicity.name, (0, float("inf"))) for field in fields]
