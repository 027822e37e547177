"""Numbers as MLIR writes them."""

from __future__ import annotations

import math
import struct

FLOAT_TYPES = ("f32", "bf16", "f16", "f64")
EXACT_BITS = 50  # of integers that f64 holds, with more to spare than f32 needs


def bits_of(type_: str) -> int:
    return int(type_.lstrip("bfi"))


def literal(number: float, type_: str) -> str:
    """A number as MLIR writes it: by decimals that read back as the same, or by its bits.

    Raises OverflowError for what is no number of the type.
    """
    if type_ == "i1":
        return "true" if number else "false"
    if type_ not in FLOAT_TYPES:
        most = 1 << bits_of(type_)
        whole = math.isfinite(number) and number == int(number)
        if not whole or not -most / 2 <= number < most:  # as without a sign, and then as its bits
            raise OverflowError(f"an integer of {bits_of(type_)} bits, got {number}")
        return str(int(number))
    number = float(number) if type_ == "f64" else rounded(number)
    if not math.isfinite(number):
        bits = {"f32": 0x7F800000, "bf16": 0x7F80, "f16": 0x7C00, "f64": 0x7FF0 << 48}[type_]
        quiet = {"f32": 0x400000, "bf16": 0x40, "f16": 0x200, "f64": 1 << 51}[type_]
        sign = 1 << (bits_of(type_) - 1) if number < 0 else 0
        return hex(bits | (quiet if math.isnan(number) else sign))
    return f"{number:.17e}"


def rounded(number: float) -> float:
    """The nearest number of f32, by way of which torch also makes those of bf16 and f16."""
    if isinstance(number, int) and (more := number.bit_length() - EXACT_BITS) > 0:
        lost = number & ((1 << more) - 1)
        number = (number >> more | bool(lost)) << more  # which f64 holds, and f32 rounds alike
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
