"""Derivatives of functions in an epilogue, for gradients: `math=fast`.

    1 - tanh(u)²      4·E·R², and beside it 1 + tanh(u) is 2·R where u is positive, else 2·E·R:
                      E = ex2(-2·|u|·log₂e), R = 1 / (1 + E), with one ex2 and one rcp
    Φ(v) + v·φ(v)     S(-|v|) = (v₀ - |v|)·D(|v|) where v is negative, else 1 - S(-|v|)

The second is the slope of GELU: Φ is the normal distribution, φ its density, and -v₀ where the
slope is 0. D is ex2(-Q(|v|)), or with one rcp and fewer FMA what `normal_tails.py` has: Q was
fitted to -log₂ D by least absolute error. So the relative error of S is bounded, also about v₀,
which is taken as the sum of two numbers of f32. The sum that stands in the source would cancel
there, and for negative v.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ....dialects.mlir import arith, ir
from ....dialects.mlir import math as functions
from .normal_tails import SLOPE, density_of, share_of
from .values import (
    ABSORBED,
    LOG2_E,
    approximate,
    constant_of,
    factor_behind,
    factors,
    literal,
    name_of,
    op_of,
    polynomial,
    put,
    scaled,
    smaller,
)

ROOT = (0.7517915368080139, -1.211444945855772e-08)
"""v₀, of two numbers of f32."""
SLOPE_TAIL = {
    "bf16": (
        0.5896924734115601, 0.3675379455089569, 0.5923172235488892, 0.029442472383379936,
        -0.004142885096371174, 0.0003425113973207772, -1.5165843251452316e-05,
        2.7659498869070376e-07,
    ),
    "f16": (
        0.588589608669281, 0.38002267479896545, 0.569607138633728, 0.045110415667295456,
        -0.00950552336871624, 0.0013665399746969342, -0.00012941907334607095,
        7.6711521614925e-06, -2.568990282725281e-07, 3.7007479303241553e-09,
    ),
}  # fmt: skip
"""Q for v in [0, 13.75], lowest power first: S errs by 2⁻¹⁰·¹ and 2⁻¹²·⁴ of itself."""
TAIL_ENDS = 14.0  # where S·2¹² is flushed to 0
TAIL_SCALE = 12
ALIKE = 1e-5
"""Of a factor: how far it may be off, as a rounded one is."""


def with_its_slope(op: Any) -> bool:
    """1 - tanh(u)², and 1 + tanh(u) with it, if the former is wanted; `op` is tanh(u), in f32."""
    squares = _lacks_of_one(op.result)
    if not squares:
        return False
    base, scale = scaled(op.operands[0])
    exponent = arith.mulf(functions.absf(base), literal(-2 * abs(scale) * LOG2_E))
    falling = approximate("ex2.ftz", exponent)
    above = approximate("rcp.ftz", arith.addf(falling, literal(1.0)))
    below = arith.mulf(falling, above)
    for square in squares:
        factor, product = factor_behind(square.result)
        made = arith.mulf(arith.mulf(below, above), literal(4 * factor))
        put(square.result, made, product)
    order = arith.CmpFPredicate.OGT if scale > 0 else arith.CmpFPredicate.OLT
    share = arith.select(arith.cmpf(order, base, literal(0.0)), above, below)
    for total in _sums_with_one(op.result):
        _put_twice(total.result, share)
    return True


def _put_twice(value: ir.Value, share: ir.Value) -> None:
    """Put 2 · share in the place of a value; where half of it is wanted, the share itself."""
    for use in list(value.uses):
        product = use.owner
        if product.name != "arith.mulf":
            continue
        other = constant_of(product.operands[1 - use.operand_number])
        if other == 0.5:
            product.results[0].replace_all_uses_with(share)
    if any(use.owner.results and list(use.owner.results[0].uses) for use in value.uses):
        value.replace_all_uses_with(arith.mulf(share, literal(2.0)))


def _sums_with_one(value: ir.Value) -> list[Any]:
    """The ops that add a value to 1."""
    users = [use.owner for use in value.uses if use.owner.name == "arith.addf"]
    return [op for op in users if any(constant_of(each) == 1 for each in op.operands)]


def _lacks_of_one(value: ir.Value) -> list[Any]:
    """The ops that take the square of a value from 1."""
    squares = [
        use.owner.results[0]
        for use in value.uses
        if use.owner.name == "arith.mulf"
        and use.operand_number == 0
        and use.owner.operands[1] == value
    ]
    users = [use.owner for square in squares for use in square.uses]
    return [op for op in users if op.name == "arith.subf" and constant_of(op.operands[0]) == 1]


class Slope(NamedTuple):
    """whole · (Φ(scale · base) + scale · base · φ(scale · base))."""

    base: ir.Value
    scale: float
    whole: float

    def made(self, coarse: str, by_rcp: bool) -> ir.Value:
        """The same with the errors that results of a type may have."""
        scale, (high, low) = abs(self.scale), ROOT
        size, falling = self._by_rcp(coarse, scale) if by_rcp else self._falling(coarse, scale)
        distance = arith.addf(functions.fma(size, literal(-scale), literal(high)), literal(low))
        below = arith.mulf(falling, distance)
        above = arith.subf(literal(self.whole), below)
        order = arith.CmpFPredicate.OGT if self.scale > 0 else arith.CmpFPredicate.OLT
        return arith.select(arith.cmpf(order, self.base, literal(0.0)), above, below)

    def _falling(self, coarse: str, scale: float) -> tuple[ir.Value, ir.Value]:
        """|base|, held where S is flushed to 0, and whole · D(scale · |base|)."""
        size = smaller(functions.absf(self.base), literal(TAIL_ENDS / scale))
        first, *others = SLOPE_TAIL[coarse]
        powers = [TAIL_SCALE - first]
        powers += [-each * scale**power for power, each in enumerate(others, 1)]
        falling = approximate("ex2.ftz", polynomial(size, powers))
        return size, arith.mulf(falling, literal(self.whole * 2.0**-TAIL_SCALE))

    def _by_rcp(self, coarse: str, scale: float) -> tuple[ir.Value, ir.Value]:
        """The same by the density, which needs no end."""
        size, factor = functions.absf(self.base), self.whole * 2.0**-TAIL_SCALE
        share = share_of(SLOPE[coarse], size, scale, factor)
        return size, arith.mulf(share, density_of(self.base, scale, TAIL_SCALE))


def slope_of_gelu(op: Any) -> Slope | None:
    """What a sum is if it is c · (1 + erf(s·v / √2)) + 2·c·s·v · φ(s·v), else None."""
    for one, other in (op.operands, reversed(list(op.operands))):
        found = _share_of_normal(one)
        if found is not None and _is_density(other, found):
            return found
    return None


def _share_of_normal(value: ir.Value) -> Slope | None:
    """The slope of c · (1 + erf(u))."""
    sums, half = scaled(value)
    if name_of(sums) != "arith.addf" or not ABSORBED[0] <= abs(half) <= ABSORBED[1]:
        return None
    for one, other in (op_of(sums).operands, reversed(list(op_of(sums).operands))):
        if constant_of(one) == 1 and name_of(other) == "math.erf":
            base, scale = scaled(op_of(other).operands[0])
            scale *= math.sqrt(2)
            near = math.isclose(abs(scale), 1, rel_tol=ALIKE)
            return Slope(base, math.copysign(1, scale) if near else scale, 2 * half)
    return None


def _is_density(value: ir.Value, slope: Slope) -> bool:
    """Whether a value is whole · scale · base · φ(scale · base)."""
    factor, others = factors(value)
    if len(others) != 2 or slope.base not in others:
        return False
    others.remove(slope.base)
    if name_of(others[0]) != "math.exp":
        return False
    power, squared = factors(op_of(others[0]).operands[0])
    density = slope.whole * slope.scale / math.sqrt(2 * math.pi)
    return (
        squared == [slope.base, slope.base]
        and math.isclose(power, -(slope.scale**2) / 2, rel_tol=ALIKE)
        and math.isclose(factor, density, rel_tol=ALIKE)
    )
