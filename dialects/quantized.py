"""Block-scaled formats, as stores of quantized results need them; no MLIR and no numpy.

A scale follows from the largest magnitude of its block, `amax`, in one of `SCALE_ROUNDINGS`. Of
ue8m0 it is a power of two whose exponent the bits of amax say: some bits are added, which carry
into the exponent where the way rounds up, and the exponent of the element's largest number is
taken off.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import NamedTuple

from .dtypes import (
    DTYPES,
    SCALE_ROUNDINGS,
    SCALED_FORMATS,
    ScaledFormat,
    blocked_scale_shape,
)

FRACTION_BITS = 23  # of f32


class Quantized(NamedTuple):
    """The element of a format: its largest number, and its fraction bits (OCP Microscaling Formats
    1.0, §5.3)."""

    largest: float
    fraction: int

    @property
    def exponent(self) -> int:
        """The exponent of the largest number."""
        return frexp(self.largest)[1] - 1

    def carry(self, rounding: str) -> int:
        """What is added to the bits of an amax, so that its exponent is that of the scale times
        the largest number's: up to the next power of two where the rounding goes up."""
        ones = (1 << FRACTION_BITS) - 1
        beyond = int(ldexp(self.largest / 2.0**self.exponent - 1, FRACTION_BITS))
        return {
            "floor": 0,
            "ceil": ones,
            "even": 1 << (FRACTION_BITS - 1 - self.fraction),
            "rceil": ones - beyond,
        }[rounding]


QUANTIZED = {
    "e4m3": Quantized(448.0, 3),
    "e5m2": Quantized(57344.0, 2),
    "e2m3": Quantized(7.5, 3),
    "e3m2": Quantized(28.0, 2),
    "e2m1": Quantized(6.0, 1),
}


def format_of(element: str, scale: str, block: int) -> ScaledFormat | None:
    """The format whose elements and scales have these MLIR types; None where there is none."""
    found = (
        each
        for each in SCALED_FORMATS.values()
        if (DTYPES[each.element].mlir, DTYPES[each.scale].mlir, each.block)
        == (element, scale, block)
    )
    return next(found, None)


def rounding_refusal(form: ScaledFormat, rounding: str) -> str | None:
    """Why scales of a format are not rounded so."""
    ways = SCALE_ROUNDINGS[form.scale]
    if rounding in ways:
        return None
    return f"rounding of {form.name} must be {' or '.join(ways)}, got {rounding!r}"


def columns_refusal(form: ScaledFormat, columns: int) -> str | None:
    """Why rows of so many columns are not quantised: a row is whole blocks."""
    if columns % form.block == 0:
        return None
    rule = f"N must be a multiple of the {form.block} elements that share a scale in {form.name}"
    return f"{rule}, got {columns}; pad N"


def scales_shape(shape: list[int], block: int) -> list[int]:
    """The blocked scales of C, a matrix or a stack of them."""
    *stack, rows, columns = shape
    return [*stack, *blocked_scale_shape(rows, columns // block)]
