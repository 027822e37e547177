"""The form of attributes, at every level of the IR.

integers     in attributes that our ops declare, integers are i64, and i1 of the few that are
             truths; MLIR takes any width, and `true` would be read as -1, 200 of i8 as -56.
             Kernels count in 32 bits, by which a larger number would be cut
terminators  scf.yield and func.return have no attribute, and nothing would read one
"""

from __future__ import annotations

import functools
from typing import Any

from ...dialects import sm
from ...dialects.fallback import FALLBACK, FALLBACK_ARRIVALS
from ...dialects.mlir import ext, ir
from ...dialects.pipe import CreateOp
from ...dialects.shared_columns import SHARED
from ...dialects.sm.memory import BarriersOp, ColumnsOp
from ...dialects.tile import KernelOp
from ...dialects.verify import NUMBER_MAX
from ..base import operations, refuse_unread, refused

TRUTHS = frozenset({"releases", "multicast"})
BESIDE_DECLARED: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((KernelOp, sm.KernelOp), (FALLBACK,)),
    **dict.fromkeys((BarriersOp, sm.BarrierInitOp), (FALLBACK_ARRIVALS,)),
    **dict.fromkeys((CreateOp, ColumnsOp), (SHARED,)),
}
TEXTS = frozenset({"along", "arg_names"})
NUMBER = "write a number without a type"
BARE = frozenset({"scf.yield", "func.return"})


def check_attribute_forms(module: ir.Module) -> None:
    """Refuse, at the op, what breaks a rule."""
    for op in operations(module.operation):
        if op.operation.name in BARE:
            refuse_unread(op, ())
        for name in _integers(type(op)):
            if name in op.operation.attributes:
                _check(op, name, op.operation.attributes[name])
        for name in BESIDE_DECLARED.get(type(op), ()):
            if name in op.operation.attributes:
                _check(op, name, op.operation.attributes[name])


@functools.cache
def _integers(op_class: Any) -> tuple[str, ...]:
    """The attributes that an op of ours declares as an integer, or as a list of some."""
    fields = getattr(op_class, "_fields", ())
    declared = [each for each in fields if isinstance(each, ext.AttributeDef)]
    kinds = (ir.IntegerAttr, ir.ArrayAttr)
    names = (each.name for each in declared if each.constraint in kinds)
    return tuple(name for name in names if name not in TEXTS)


def _check(op: Any, name: str, said: Any) -> None:
    wanted, cure = ("i1", "write true or false") if name in TRUTHS else ("i64", NUMBER)
    for each in said if isinstance(said, ir.ArrayAttr) else [said]:
        is_integer = isinstance(each, ir.IntegerAttr | ir.BoolAttr)
        if not is_integer or str(each.type) != wanted:
            raise refused(op, f"attributes: {name} must be of {wanted}, got {each}; {cure}")
        if abs(int(each.value)) > NUMBER_MAX:
            rule = f"attributes: {name} must be at most {NUMBER_MAX}, as kernels count in 32 bits"
            raise refused(op, f"{rule}, got {each.value}; write a smaller one")
