"""Arithmetic on integers of the IR: `thread // 32 * 16 + lane` emits the ops that compute it.

Every value of an integer type that the bindings hand out is an `Integer` once this is imported.
Numbers become constants of the value's type, at the current insertion point. All of it is unsigned.
"""

from __future__ import annotations

from .mlir import ir


def constant(value: int, type_: ir.Type | None = None) -> ir.Value:
    """An integer constant, i32 unless told.

    There are so many that `arith.ConstantOp`, which takes twice as long, shows. So it is with the
    arithmetic below, where `arith.addi` takes thrice as long.
    """
    type_ = type_ or ir.IntegerType.get_signless(32)
    attributes = {"value": ir.IntegerAttr.get(type_, value)}
    return ir.Operation.create("arith.constant", results=[type_], attributes=attributes).result


def like(value: ir.Value, other: ir.Value | int) -> ir.Value:
    """`other`, as a constant of the value's type where it is a number."""
    return constant(other, value.type) if isinstance(other, int) else other


def _made(name: str, value: ir.Value, other: ir.Value | int) -> ir.Value:
    """An op on two integers of a type that gives a third."""
    type_ = value.type
    second = constant(other, type_) if isinstance(other, int) else other
    return ir.Operation.create(name, results=[type_], operands=[value, second]).result


@ir.register_value_caster(ir.IntegerType.static_typeid)
class Integer(ir.Value):
    """A value of an integer type; `+ - * // % ^` with a number or another value emit an op.

    What changes nothing emits nothing: + 0, - 0, * 1 and // 1.
    """

    def __init__(self, value: ir.Value):
        super().__init__(value)

    def __add__(self, other: ir.Value | int) -> ir.Value:
        return self if _is(other, 0) else _made("arith.addi", self, other)

    def __sub__(self, other: ir.Value | int) -> ir.Value:
        return self if _is(other, 0) else _made("arith.subi", self, other)

    def __mul__(self, other: ir.Value | int) -> ir.Value:
        return self if _is(other, 1) else _made("arith.muli", self, other)

    def __floordiv__(self, other: int) -> ir.Value:
        return self if other == 1 else _made("arith.divui", self, other)

    def __mod__(self, other: int) -> ir.Value:
        return _made("arith.remui", self, other)

    def __xor__(self, other: ir.Value | int) -> ir.Value:
        return _made("arith.xori", self, other)

    def __radd__(self, other: int) -> ir.Value:
        return self + other

    def __rmul__(self, other: int) -> ir.Value:
        return self * other


def _is(value: ir.Value | int, number: int) -> bool:
    return isinstance(value, int) and value == number
