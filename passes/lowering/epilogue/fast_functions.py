"""Functions of an epilogue by the hardware's approximations and short fits: `math=fast`.

    1 + erf(u)        |2·[u > 0] - 2·Φ(-|v|)|,  v = √2·u,  Φ(-|v|) = ex2(-P(|v|)), with one ex2,
                      or with one rcp, too, and fewer FMA (`normal_tails.py`)
    1 + tanh(u)       2·S(2u)
    1 - tanh(u)²      by the same ex2 and rcp as 1 + tanh(u) beside it (`slopes.py`)
    Φ(v) + v·φ(v)     that of GELU's gradient (`slopes.py`)
    n / (1 + exp(w))  n·S(-w)           S(z) = 1 / (1 + ex2(-z·log₂e)), with one ex2 and one rcp,
                      or Q(E)·(z < 0 ? E : 1), E = ex2(-|z|·log₂e), with one ex2 and more FMA
    tanh(u)           tanh.approx, within 2⁻¹¹ of the value
    log(u)            near 1 by a polynomial of four terms, else by lg2.approx

Φ is the normal distribution, and P was fitted to -log₂ Φ(-v) by least absolute error, so that the
relative error of Φ is bounded. Q was fitted to 1 / (1 + E) by least relative error, and is 1 at 0.
The sums on the left cancel where u is negative; the right sides don't. That is why they stand for
the whole sum: the relative error of what comes out stays small for every u. It reaches an output as
it is through products, quotients and the like alone, and elsewhere the exact functions are kept.
1 + tanh(u), 1 - tanh(u)² and S need no such care if they have a reciprocal: they are off by 2⁻²¹ at
most, as sums of an exact tanh are. With Q they do, and have the reciprocal elsewhere.

Errors of the instructions: PTX ISA, ex2.approx.ftz.f32 (2 units in the last place), rcp.approx.ftz
(1), tanh.approx.f32 (2⁻¹¹). A power of two keeps what ex2 and rcp give above 2⁻¹²⁶, below which
they flush to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ....dialects.epilogue import KEEPING, LOGARITHMS
from ....dialects.mlir import arith, ir
from ....dialects.mlir import math as functions
from ....dialects.tile import YieldOp
from .normal_tails import NORMAL, density_of, share_of
from .slopes import slope_of_gelu, with_its_slope
from .special_functions import FAST_LOG_OVER_F, logarithm
from .values import (
    ABSORBED,
    LOG2_E,
    approximate,
    by_its_base,
    constant_of,
    factor_behind,
    literal,
    name_of,
    op_of,
    polynomial,
    put,
    scaled,
    smaller,
)

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
LOGISTIC = {
    "bf16": (1.0, -0.988803057389889, 0.8800152917803723, -0.5514733608771858, 0.16043846001574377),
    "f16": (
        1.0, -0.9973081770485288, 0.959154694569917, -0.7835401323181469, 0.43077651043696086,
        -0.10911242604278396,
    ),
}  # fmt: skip
"""Q for E in [0, 1], lowest power first: within 2⁻¹¹·⁴ and 2⁻¹⁴·⁰ of 1 / (1 + E)."""
TAIL_ENDS = 13.8  # where e·2¹² is flushed to 0, four times as large too, and Φ(-v) tells nothing
TAIL_SCALE, LOGISTIC_SCALE = 12, 16
"""Powers of two: what flushes to 0 times 14, and 100, is below half the least bf16."""
COARSE = {"bf16": "bf16", "f8E4M3FN": "bf16", "f8E5M2": "bf16", "f16": "f16"}
"""Of each type of an output, the errors that its results may have."""
TANH_TYPES = ("bf16", "f8E4M3FN", "f8E5M2")  # half a unit of f16 is 2⁻¹² of some numbers
MOST_ERRORS = 2
"""Approximations whose errors add up in one output: 2 · 2⁻¹⁰·⁶ is below half a unit of bf16."""
Tail = tuple[Callable[[float], ir.Value], ir.Value]


@dataclass
class FastFunctions:
    """Rewrites one region; `errors` counts those that reach its output.

    by_rcp: whether a reciprocal takes less time than the FMA that it saves.
    by_powers: whether FMA take less time than the reciprocal of 1 + ex2(u).
    """

    block: ir.Block
    by_rcp: bool
    by_powers: bool = False
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

    def total(self, op: Any) -> None:
        """1 + erf(u), 1 + tanh(u), or the gradient of GELU."""
        slope = slope_of_gelu(op) if str(op.result.type) == "f32" else None
        if slope is not None and self._may_err(op.result, MOST_ERRORS):
            op.result.replace_all_uses_with(slope.made(COARSE[self._output], self.by_rcp))
        else:
            self.sum_with_one(op)

    def sum_with_one(self, op: Any) -> None:
        """1 + erf(u), 1 + tanh(u)."""
        functions_ = {"math.erf": self._normal, "math.tanh": self._logistic_sum}
        for one, other in (op.operands, reversed(list(op.operands))):
            name = name_of(other)
            if constant_of(one) == 1 and name in functions_:
                if str(op.result.type) == "f32" and (
                    name == "math.tanh" or self._may_err(op.result, 1)
                ):
                    made, factor = functions_[name], factor_behind(op.result)
                    argument = op_of(other).operands[0]
                    put(op.result, made(op, argument, factor[0]), factor[1])
                return

    def quotient(self, op: Any) -> None:
        """n / (1 + exp(w))."""
        over, under = op.operands
        w = _exponent_of(under)
        if w is None or str(op.result.type) != "f32":
            return
        base, scale = scaled(w)
        number = constant_of(over)
        if number is not None and ABSORBED[0] <= abs(number) <= ABSORBED[1]:
            made = self._logistic(op, base, -scale, number)
        else:
            made = arith.mulf(over, self._logistic(op, base, -scale, 1.0))
        op.result.replace_all_uses_with(made)

    def tanh(self, op: Any) -> None:
        """tanh(u): with its square if 1 - tanh(u)² is wanted, alone if nothing is added to 1."""
        if str(op.result.type) == "f32" and with_its_slope(op):
            return
        if self._output in TANH_TYPES and self._may_err(op.result, 1):
            op.result.replace_all_uses_with(approximate("tanh", op.operands[0]))

    def logarithm(self, op: Any) -> None:
        """log(u) and its like."""
        if self._may_err(op.result, 1):
            lg2 = partial(approximate, "lg2")
            name, value = op.operation.name, op.operands[0]
            op.result.replace_all_uses_with(logarithm(name, value, lg2, FAST_LOG_OVER_F))

    def _normal(self, _: Any, u: ir.Value, factor: float) -> ir.Value:
        """factor · (1 + erf(u))."""
        base, scale = scaled(u)
        if scale < 0:
            base, scale = u, 1.0
        scale *= math.sqrt(2)
        share, tail = self._tail_by_rcp(base, scale) if self.by_rcp else self._tail(base, scale)
        above = arith.cmpf(arith.CmpFPredicate.OGT, base, literal(0.0))
        whole = arith.select(above, literal(2 * factor), literal(0.0))
        return functions.absf(functions.fma(tail, share(-2 * factor), whole))

    def _tail(self, base: ir.Value, scale: float) -> Tail:
        """Φ(-|scale·base|) as a product; what a factor makes of one of the two."""
        size = smaller(functions.absf(base), literal(TAIL_ENDS / scale))
        first, *others = NORMAL_TAIL[COARSE[self._output]]
        powers = [TAIL_SCALE - first]
        powers += [-each * scale**power for power, each in enumerate(others, 1)]
        falling = approximate("ex2.ftz", polynomial(size, powers))
        return lambda factor: literal(factor * 2.0**-TAIL_SCALE), falling

    def _tail_by_rcp(self, base: ir.Value, scale: float) -> Tail:
        """The same by the density."""
        fit, size = NORMAL[COARSE[self._output]], functions.absf(base)
        falling = density_of(base, scale, TAIL_SCALE)
        return lambda factor: share_of(fit, size, scale, factor * 2.0**-TAIL_SCALE), falling

    def _logistic_sum(self, op: Any, u: ir.Value, factor: float) -> ir.Value:
        """factor · (1 + tanh(u)), which is the op's result but for the factor."""
        base, scale = scaled(u)
        return self._logistic(op, base, 2 * scale, 2 * factor)

    def _logistic(self, op: Any, base: ir.Value, scale: float, factor: float) -> ir.Value:
        """factor · S(scale · base), a factor of the op's result."""
        if self.by_powers and self._may_err(op.result, 1):
            return _by_powers(LOGISTIC[COARSE[self._output]], base, scale, factor)
        return _logistic(base, scale, factor)

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
                if name_of(product) == "arith.mulf" and len(list(product.uses)) == 1:
                    with ir.InsertionPoint(op), op.location:
                        made = functions.fma(*list(op_of(product).operands), other)  # pyright: ignore
                    op.result.replace_all_uses_with(made)
                    op.operation.erase()
                    op_of(product).erase()
                    break


REWRITES = {
    "arith.addf": FastFunctions.total,
    "arith.divf": FastFunctions.quotient,
    "math.tanh": FastFunctions.tanh,
    **dict.fromkeys(LOGARITHMS, FastFunctions.logarithm),
}


def _logistic(base: ir.Value, scale: float, factor: float) -> ir.Value:
    """factor · S(scale · base)."""
    own, share = by_its_base(base, -scale * LOG2_E)
    exponent = functions.fma(own, share, literal(-LOGISTIC_SCALE))
    under = arith.addf(approximate("ex2.ftz", exponent), literal(2.0**-LOGISTIC_SCALE))
    return arith.mulf(approximate("rcp.ftz", under), literal(factor * 2.0**-LOGISTIC_SCALE))


def _by_powers(powers: tuple[float, ...], base: ir.Value, scale: float, factor: float) -> ir.Value:
    """factor · S(scale · base), without a reciprocal."""
    own, share = by_its_base(base, -abs(scale) * LOG2_E)
    exponent = functions.fma(functions.absf(own), share, literal(LOGISTIC_SCALE))
    falling = approximate("ex2.ftz", exponent)
    shifts = (2.0 ** (-LOGISTIC_SCALE * power) for power in range(1, len(powers) + 1))
    shares = [factor * each * shift for each, shift in zip(powers, shifts, strict=True)]
    below = arith.CmpFPredicate.OLT if scale > 0 else arith.CmpFPredicate.OGT
    side = arith.cmpf(below, own, literal(0.0))
    one = literal(2.0**LOGISTIC_SCALE)
    return arith.mulf(polynomial(falling, shares), arith.select(side, falling, one))


def _exponent_of(value: ir.Value) -> ir.Value | None:
    """w of 1 + exp(w)."""
    if name_of(value) != "arith.addf":
        return None
    for one, other in (op_of(value).operands, reversed(list(op_of(value).operands))):
        if constant_of(one) == 1 and name_of(other) == "math.exp":
            return op_of(other).operands[0]
    return None


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
