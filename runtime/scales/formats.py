"""The block-scaled formats: elements of at most 8 bits that share a scale, a block at a time.

    name          element        scale    elements a scale (along K)
    mxfp8         e4m3, 8 bits   ue8m0    32
    mxfp8_e5m2    e5m2, 8 bits   ue8m0    32
    mxfp6         e2m3, 6 bits   ue8m0    32
    mxfp6_e3m2    e3m2, 6 bits   ue8m0    32
    mxfp4         e2m1, 4 bits   ue8m0    32
    nvfp4         e2m1, 4 bits   ue4m3    16, and one f32 for the whole tensor

    mxfp8_1x128   e4m3, 8 bits   ue8m0    128 of a row
    mxfp8_128x128 e4m3, 8 bits   ue8m0    128 of each of 128 rows
    mxfp4_1x16    e2m1, 4 bits   ue8m0    16

A number is element · scale, of nvfp4 element · scale · f32.
Source: OCP Microscaling Formats 1.0 §5.3 (elements), §5.4 (ue8m0); PTX ISA §5.2.3 (alternate
floating-point formats); nvfp4: cuBLAS, "1D Block Scaling for FP4 Data Types".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ..element_types import DTYPES, OPERAND_FORMATS, ScaledFormat
from ..errors import LaunchError


class ScaleError(LaunchError):
    """An array that is not what a block-scaled format needs, or an option that it does not have."""


@dataclass(frozen=True)
class Element:
    """What a small floating-point type can hold; `dtype` holds one code in a byte.

    `largest` is its largest finite number, `exponent` that number's exponent, `least` the exponent
    of its smallest normal number, `mantissa` its fraction bits. `nan` is the code that a NaN gets,
    None where the type has none.
    """

    name: str
    dtype: np.dtype
    largest: float
    exponent: int
    least: int
    mantissa: int
    nan: int | None

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return DTYPES[self.name].bits

    @property
    def torch(self) -> str:
        """What torch calls an array of it; uint8 where it knows none."""
        return DTYPES[self.name].torch


def _element(name: str, kind: type, nan: int | None = None) -> Element:
    info = ml_dtypes.finfo(kind)
    largest, smallest = float(info.max), float(info.smallest_normal)
    exponent, least = (math.frexp(value)[1] - 1 for value in (largest, smallest))
    return Element(name, np.dtype(kind), largest, exponent, least, int(info.nmant), nan)


ELEMENTS = {
    element.name: element
    for element in (
        _element("e4m3", ml_dtypes.float8_e4m3fn, 0x7F),
        _element("e5m2", ml_dtypes.float8_e5m2, 0x7F),
        _element("e2m3", ml_dtypes.float6_e2m3fn),
        _element("e3m2", ml_dtypes.float6_e3m2fn),
        _element("e2m1", ml_dtypes.float4_e2m1fn),
        _element("ue4m3", ml_dtypes.float8_e4m3fn, 0x7F),
        _element("ue8m0", ml_dtypes.float8_e8m0fnu, 0xFF),
    )
}


def find_format(name: str) -> ScaledFormat:
    """The format of a name; raises ScaleError with the names that there are."""
    if name not in OPERAND_FORMATS:
        raise ScaleError(f"scales: format must be {' or '.join(OPERAND_FORMATS)}, got {name!r}")
    return OPERAND_FORMATS[name]
