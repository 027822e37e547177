"""Tail integrals of the normal distribution: `math=fast`.

    Φ(-v)              r(t)·ex2(-½·v²·log₂e)             v ≥ 0, t = 1 / (v + q)
    Φ(-v) - v·φ(v)     (v₀ - v)·s(t)·ex2(-½·v²·log₂e)    the slope of GELU at -v, 0 at v₀

r and s are polynomials, by least relative error. What is left of Φ without its density is close to
1/v far out and has no pole, as a polynomial of 1/(v + q); so a few powers of that do what seven of
v do for log₂ Φ. It takes one rcp more, for which threads have time where the MMAs of another tile
hide what they do (`late.py`). Elsewhere, and where FMA of two elements are one instruction, powers
of v alone are the faster way (`fast_functions.py`, `slopes.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from ....dialects.mlir import arith, ir
from .values import LOG2_E, approximate, literal, polynomial, square_and


class Tail(NamedTuple):
    """q, and the coefficients of a polynomial of 1/(v + q), the lowest power first."""

    pole: float
    powers: tuple[float, ...]


NORMAL = {
    "bf16": Tail(
        2.8,
        (-0.0014835318026551194, 0.4529678714655606, 0.43318298766712937, 6.248886540384559),
    ),
    "f16": Tail(
        2.2,
        (
            -0.000899523648817333, 0.42739973202367276, 0.5371858553235177, 3.4335095978447434,
            -2.971330608057349,
        ),
    ),
}  # fmt: skip
"""r, within 2⁻¹⁰·⁸ of itself for v up to 13.7 (bf16), and 2⁻¹⁴·⁴ up to 6.2 (f16)."""
SLOPE = {
    "bf16": Tail(2.4, (0.4014362397200889, 0.24204511079997731, 0.9359439051835374)),
    "f16": Tail(
        3.0, (0.3988295394850553, 0.30989924872707364, 0.5355965230979592, 2.794497865132972)
    ),
}
"""s, within 2⁻¹⁰·⁹ and 2⁻¹³·⁴ of itself for v up to 13.8."""


def share_of(tail: Tail, size: ir.Value, scale: float, factor: float) -> ir.Value:
    """factor times the polynomial, for v = scale·size."""
    nearby = approximate("rcp.ftz", arith.addf(size, literal(tail.pole / scale)))
    powers = enumerate(tail.powers)
    return polynomial(nearby, [factor * each / scale**power for power, each in powers])


def density_of(base: ir.Value, scale: float, shift: int) -> ir.Value:
    """2ˢ·ex2(-½·v²·log₂e) with a shift s, for v = ±scale·base."""
    exponent = square_and(base, -0.5 * LOG2_E * scale**2, float(shift))
    return approximate("ex2.ftz", exponent)
