"""Functions of an epilogue by the hardware's approximations and short fits: `math=fast`.

    1 + erf(u)        |2·[u > 0] - e|,  e = 2·Φ(-|v|) = ex2(1 - P(|v|)),  v = √2·u, with one ex2
    1 + tanh(u)       2·S(2u)
    n / (1 + exp(w))  n·S(-w)           S(z) = 1 / (1 + ex2(-z·log₂e)), with one ex2 and one rcp
    tanh(u)           tanh.approx, within 2⁻¹¹ of the value

Φ is the normal distribution, and P was fitted to -log₂ Φ(-v) by least absolute error, so that the
relative error of e is bounded. The sums on the left cancel where u is negative; the right sides
don't. That is why they stand for the whole sum: the relative error of what comes out stays small
for every u. It reaches an output as it is through products, quotients and the like alone, and
elsewhere the exact functions are kept.

Errors of the instructions: PTX ISA, ex2.approx.ftz.f32 (2 units in the last place), rcp.approx.ftz
(1), tanh.approx.f32 (2⁻¹¹). A power of two keeps what ex2 and rcp give above 2⁻¹²⁶, below which
they flush to 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ....dialects import sm
from ....dialects.epilogue import KEEPING
from ....dialects.mlir import arith, ir
from ....dialects.mlir import math as functions
from ....dialects.tile import YieldOp

LOG2_E = math.log2(math.e)
NORMAL_TAIL = {
    "bf16": (
        1.000900387763977, 1.141878604888916, 0.4744395613670349, 0.04363086074590683,
        -0.005267374217510223, 0.0003952926490455866, -1.6421725376858376e-05,
        2.8678672947535233e-07,
    ),
    "f16": (
        1.000221610069275, 1.1486209630966187, 0.4635317623615265, 0.05029544606804848,
        -0.007252904120832682, 0.0007147443247959018, -4.4772175897378474e-05,
        1.5924911167530809e-06, -2.436441270958767e-08,
    ),
}  # fmt: skip
"""P for v in [0, 13.62], lowest power first: e errs by 2⁻¹⁰·⁶ and 2⁻¹²·⁶ of itself."""
TAIL_ENDS = 13.8  # where e·2¹² is flushed to 0, four times as large too, and Φ(-v) tells nothing
TAIL_SCALE, LOGISTIC_SCALE = 12, 16
"""Powers of two: what flushes to 0 times 14, and 100, is below half the least bf16."""
COARSE = {"bf16": "bf16", "f8E4M3FN": "bf16", "f8E5M2": "bf16", "f16": "f16"}
"""Of each type of an output, the errors that its results may have."""
TANH_TYPES = ("bf16", "f8E4M3FN", "f8E5M2")  # half a unit of f16 is 2⁻¹² of some numbers
MOST_ERRORS = 2
"""Approximations whose errors add up in one output: 2 · 2⁻¹⁰·⁶ is below half a unit of bf16."""
ABSORBED = (0.25, 4.0)
"""Constant factors that a function takes along."""


@dataclass
class FastFunctions:
    """Rewrites one region; `errors` counts those that reach its output."""

    block: ir.Block
    errors: int = 0

    def rewrite(self) -> None:
        """Put fast forms in the place of functions, then drop what nothing reads any more."""
        if self._output not in COARSE:
            return
        before = len(list(self.block.operations))
        for op in list(self.block.operations):
            rewrite = REWRITES.get(op.operation.name)
            if rewrite is not None:
                with ir.InsertionPoint(op), op.location:
                    rewrite(self, op)
        if len(list(self.block.operations)) != before:
            self._erase_dead()
            self._contract()

    @property
    def _output(self) -> str:
        """The type of the output's elements."""
        return str(list(self.block.operations)[-1].operands[0].type)

    def sum_with_one(self, op: Any) -> None:
        """1 + erf(u), 1 + tanh(u)."""
        functions_ = {"math.erf": self._normal, "math.tanh": self._logistic_sum}
        for one, other in (op.operands, reversed(list(op.operands))):
            name = _name(other)
            if _constant(one) == 1 and name in functions_:
                coarse = name == "math.erf"
                if self._may_err(op.result, 1 if coarse else 0):
                    made, factor = functions_[name], _factor_behind(op.result)
                    argument = _op(other).operands[0]
                    _replace(op.result, made(argument, factor[0]), factor[1])
                return

    def quotient(self, op: Any) -> None:
        """n / (1 + exp(w))."""
        over, under = op.operands
        w = _exponent_of(under)
        if w is None or str(op.result.type) != "f32":
            return
        base, scale = _scaled(w)
        number = _constant(over)
        if number is not None:
            op.result.replace_all_uses_with(_logistic(base, -scale, number))
        else:
            op.result.replace_all_uses_with(arith.mulf(over, _logistic(base, -scale, 1.0)))

    def tanh(self, op: Any) -> None:
        """tanh(u) that is not a part of a sum with 1."""
        if self._output in TANH_TYPES and self._may_err(op.result, 1):
            op.result.replace_all_uses_with(_approximate("tanh", op.operands[0]))

    def _normal(self, u: ir.Value, factor: float) -> ir.Value:
        """factor · (1 + erf(u))."""
        base, scale = _scaled(u)
        if scale < 0:
            base, scale = u, 1.0
        scale *= math.sqrt(2)
        size = _smaller(functions.absf(base), _number(TAIL_ENDS / scale))
        first, *others = NORMAL_TAIL[COARSE[self._output]]
        powers = [TAIL_SCALE + 1 + math.log2(factor) - first]
        powers += [-each * scale**power for power, each in enumerate(others, 1)]
        tail = _approximate("ex2.ftz", _polynomial(size, powers))
        above = arith.cmpf(arith.CmpFPredicate.OGT, base, _number(0.0))
        whole = arith.select(above, _number(2 * factor), _number(0.0))
        return functions.absf(functions.fma(tail, _number(-(2.0**-TAIL_SCALE)), whole))

    def _logistic_sum(self, u: ir.Value, factor: float) -> ir.Value:
        """factor · (1 + tanh(u))."""
        base, scale = _scaled(u)
        return _logistic(base, 2 * scale, 2 * factor)

    def _may_err(self, value: ir.Value, errors: int) -> bool:
        """Whether a value's relative error stays as it is up to the output; then it is counted."""
        if str(value.type) != "f32":
            return False
        ways = _ways(value)
        if ways is None or self.errors + ways * errors > MOST_ERRORS:
            return False
        self.errors += ways * errors
        return True

    def _erase_dead(self) -> None:
        for op in reversed(list(self.block.operations)):
            if not isinstance(op, YieldOp) and not list(op.operation.results[0].uses):
                op.operation.erase()

    def _contract(self) -> None:
        """a·b + c with one rounding, where the product is only for the sum."""
        for op in list(self.block.operations):
            if op.operation.name != "arith.addf" or str(op.result.type) != "f32":
                continue
            for product, other in (op.operands, reversed(list(op.operands))):
                if _name(product) == "arith.mulf" and len(list(product.uses)) == 1:
                    with ir.InsertionPoint(op), op.location:
                        made = functions.fma(*list(_op(product).operands), other)  # pyright: ignore
                    op.result.replace_all_uses_with(made)
                    op.operation.erase()
                    _op(product).erase()
                    break


REWRITES = {
    "arith.addf": FastFunctions.sum_with_one,
    "arith.divf": FastFunctions.quotient,
    "math.tanh": FastFunctions.tanh,
}


def _logistic(base: ir.Value, scale: float, factor: float) -> ir.Value:
    """factor · S(scale · base)."""
    exponent = functions.fma(base, _number(-scale * LOG2_E), _number(-LOGISTIC_SCALE))
    under = arith.addf(_approximate("ex2.ftz", exponent), _number(2.0**-LOGISTIC_SCALE))
    return arith.mulf(_approximate("rcp.ftz", under), _number(factor * 2.0**-LOGISTIC_SCALE))


def _exponent_of(value: ir.Value) -> ir.Value | None:
    """w of 1 + exp(w)."""
    if _name(value) != "arith.addf":
        return None
    for one, other in (_op(value).operands, reversed(list(_op(value).operands))):
        if _constant(one) == 1 and _name(other) == "math.exp":
            return _op(other).operands[0]
    return None


def _scaled(value: ir.Value) -> tuple[ir.Value, float]:
    """(v, c) where the value is c · v."""
    scale = 1.0
    while True:
        name = _name(value)
        if name == "arith.negf":
            value, scale = _op(value).operands[0], -scale
            continue
        factor = _constant_factor(value)
        if factor is None:
            return value, scale
        value, scale = factor[0], scale * factor[1]


def _constant_factor(value: ir.Value) -> tuple[ir.Value, float] | None:
    """(v, c) where the value is the product of v and a number c other than 0."""
    if _name(value) != "arith.mulf":
        return None
    for number, other in (_op(value).operands, reversed(list(_op(value).operands))):
        constant = _constant(number)
        if constant and math.isfinite(constant):
            return other, constant
    return None


def _factor_behind(value: ir.Value) -> tuple[float, Any]:
    """(c, the product) where the value is multiplied by c · v alone, else (1, None)."""
    uses = list(value.uses)
    if len(uses) != 1 or uses[0].owner.name != "arith.mulf":
        return 1.0, None
    product = uses[0].owner
    other = product.operands[1 - uses[0].operand_number]
    factor = _constant_factor(other)
    if factor is None or not ABSORBED[0] <= factor[1] <= ABSORBED[1]:
        return 1.0, None
    return factor[1], product


def _replace(value: ir.Value, made: ir.Value, product: Any) -> None:
    """Put what was made in the value's place; in a product it has the other's constant factor."""
    if product is not None:
        for number, operand in enumerate(list(product.operands)):
            factor = _constant_factor(operand)
            if operand != value and factor is not None:
                product.operands[number] = factor[0]
    value.replace_all_uses_with(made)


def _ways(value: ir.Value) -> int | None:
    """On how many ways a value reaches the output, its error as it is; None if it may grow."""
    total = 0
    for use in value.uses:
        op = use.owner
        if op.name == "tile.yield":
            total += 1
            continue
        if op.name == "arith.truncf":
            readers = [each.owner.name for each in op.results[0].uses]
            further = 1 if set(readers) == {"tile.yield"} else None
        else:
            further = _ways(op.results[0]) if op.name in KEEPING else None
        if further is None:
            return None
        total += further
    return total


def _op(value: ir.Value) -> Any:
    """The op that gives a value."""
    return value.owner


def _name(value: ir.Value) -> str:
    """The name of the op that gives a value, "" of an argument."""
    return "" if isinstance(value.owner, ir.Block) else _op(value).name


def _constant(value: ir.Value) -> float | None:
    """The number that a value is, None where it is computed."""
    if _name(value) != "arith.constant":
        return None
    attribute = _op(value).attributes["value"]
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


def _polynomial(value: ir.Value, coefficients: list[float]) -> ir.Value:
    """Horner's rule; the coefficient of the lowest power is the first."""
    *others, total = (_number(each) for each in coefficients)
    for each in reversed(others):
        total = functions.fma(total, value, each)
    return total


def _smaller(a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller one, NaN of a NaN; the bindings' types do not know the op."""
    return ir.Operation.create("arith.minimumf", results=[a.type], operands=[a, b]).results[0]


def _approximate(function: str, value: ir.Value) -> ir.Value:
    return sm.ApproximateOp.of(value=value, function=function, result=value.type).result


def _number(value: float) -> ir.Value:
    type_ = ir.F32Type.get()
    return arith.ConstantOp(type_, ir.FloatAttr.get(type_, value)).result
