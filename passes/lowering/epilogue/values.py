"""f32 values in the region of an epilogue: matching and building them."""

from __future__ import annotations

import math
from typing import Any

from ....dialects import sm
from ....dialects.mlir import arith, ir
from ....dialects.mlir import math as functions

LOG2_E = math.log2(math.e)
ABSORBED = (0.25, 4.0)
"""Constant factors that a function takes along."""
SCALES = (2.0**-10, 2.0**10)
"""Those of its argument: their ninth power times the least coefficient of a fit is a normal f32."""


def op_of(value: ir.Value) -> Any:
    """The op that gives a value."""
    return value.owner


def name_of(value: ir.Value) -> str:
    """The name of the op that gives a value, "" of an argument."""
    return "" if isinstance(value.owner, ir.Block) else op_of(value).name


def constant_of(value: ir.Value) -> float | None:
    """The number that a value is, None where it is computed."""
    if name_of(value) != "arith.constant":
        return None
    attribute = op_of(value).attributes["value"]
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


def scaled(value: ir.Value) -> tuple[ir.Value, float]:
    """(v, c) where the value is c · v, c within `SCALES`."""
    least, most = SCALES
    scale = 1.0
    while True:
        name = name_of(value)
        if name == "arith.negf":
            value, scale = op_of(value).operands[0], -scale
            continue
        factor = constant_factor(value)
        if factor is None or not least <= abs(scale * factor[1]) <= most:
            return value, scale
        value, scale = factor[0], scale * factor[1]


def constant_factor(value: ir.Value) -> tuple[ir.Value, float] | None:
    """(v, c) where the value is the product of v and a number c other than 0."""
    if name_of(value) != "arith.mulf":
        return None
    for number, other in (op_of(value).operands, reversed(list(op_of(value).operands))):
        constant = constant_of(number)
        if constant and math.isfinite(constant):
            return other, constant
    return None


def factor_behind(value: ir.Value) -> tuple[float, Any]:
    """(c, the product) where the value is multiplied by c · v alone, else (1, None)."""
    uses = list(value.uses)
    if len(uses) != 1 or uses[0].owner.name != "arith.mulf":
        return 1.0, None
    product = uses[0].owner
    other = product.operands[1 - uses[0].operand_number]
    factor = constant_factor(other)
    if factor is None or not ABSORBED[0] <= factor[1] <= ABSORBED[1]:
        return 1.0, None
    return factor[1], product


def put(value: ir.Value, made: ir.Value, product: Any) -> None:
    """Put what was made in the value's place; in a product it has the other's constant factor."""
    if product is not None:
        for number, operand in enumerate(list(product.operands)):
            factor = constant_factor(operand)
            if operand != value and factor is not None:
                product.operands[number] = factor[0]
    value.replace_all_uses_with(made)


def factors(value: ir.Value) -> tuple[float, list[ir.Value]]:
    """(c, others) where the value is c times the product of the others."""
    constant = constant_of(value)
    if constant is not None:
        return constant, []
    if name_of(value) == "arith.negf":
        factor, others = factors(op_of(value).operands[0])
        return -factor, others
    if name_of(value) != "arith.mulf":
        return 1.0, [value]
    (one, left), (other, right) = map(factors, op_of(value).operands)
    return one * other, left + right


def by_its_base(value: ir.Value, factor: float) -> tuple[ir.Value, ir.Value]:
    """(v, w) with v·w = factor·value, w of the sign of the factor. Of v + c·v³ with c > 0 it is
    factor·(1 + c·v²), which takes one op less."""
    if name_of(value) == "arith.addf":
        for base, cube in (op_of(value).operands, reversed(list(op_of(value).operands))):
            share, others = factors(cube)
            if share > 0 and others == [base] * 3:
                return base, square_and(base, factor * share, factor)
    return value, literal(factor)


def square_and(value: ir.Value, factor: float, number: float) -> ir.Value:
    """factor·v² + number. The factor comes first, so that what is made of v can wait for it."""
    return functions.fma(arith.mulf(value, literal(factor)), value, literal(number))


def polynomial(value: ir.Value, coefficients: list[float]) -> ir.Value:
    """Horner's rule; the coefficient of the lowest power is the first."""
    *others, total = (literal(each) for each in coefficients)
    for each in reversed(others):
        total = functions.fma(total, value, each)
    return total


def smaller(a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller one, NaN of a NaN; the bindings' types do not know the op."""
    return ir.Operation.create("arith.minimumf", results=[a.type], operands=[a, b]).results[0]


def approximate(function: str, value: ir.Value) -> ir.Value:
    return sm.ApproximateOp.of(value=value, function=function, result=value.type).result


def literal(value: float) -> ir.Value:
    type_ = ir.F32Type.get()
    return arith.ConstantOp(type_, ir.FloatAttr.get(type_, value)).result
