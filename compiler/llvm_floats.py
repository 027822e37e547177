"""Rewrites LLVM 24's (MLIR's) text of float constants for LLVM 22.

| LLVM 24                      | LLVM 22                                        |
|------------------------------|------------------------------------------------|
| float 1.000000e-01 (nearest) | float 0x3FB99999A0000000, the bits of a double |
| half f0x2E66                 | half 0xH2E66; bfloat 0xR…, the bits            |
| float +inf, -qnan            | as bits                                        |
| float +nan(0x5), -snan(0x1)  | as bits: a quiet NaN, or one that isn't, with  |
|                              | the rest of its fraction                       |
"""

from __future__ import annotations

import re
import struct

EXPONENT_AND_FRACTION_BITS = {
    "half": (5, 10),
    "bfloat": (8, 7),
    "float": (8, 23),
    "double": (11, 52),
}
_CONSTANT = r"f0x[0-9A-F]+|[+-](?:inf|qnan|s?nan\(0x[0-9a-fA-F]+\))|-?\d+\.\d+e[+-]\d+"
_WORDS = re.compile(rf"\b(half|bfloat|float|double)\b|(?<![\w.])({_CONSTANT})")
_SPECIAL = re.compile(r"([+-])(inf|qnan|s?nan)(?:\(0x([0-9a-fA-F]+)\))?")


def in_older_syntax(llvm_ir: str) -> str:
    """The text with every float constant as LLVM 22 takes it, of the same bits."""
    lines = llvm_ir.split("\n")
    return "\n".join([_line(line) if _may_have_one(line) else line for line in lines])


def _may_have_one(line: str) -> bool:
    """Every constant has one of these; to look for them is far faster than to match it."""
    return "e+" in line or "e-" in line or "f0x" in line or "inf" in line or "nan" in line


def _line(line: str) -> str:
    """A constant has the last type that its line names before it."""
    kind = ""

    def convert(match: re.Match[str]) -> str:
        nonlocal kind
        if match[1]:
            kind = match[1]
        return match[1] or (_constant(kind, match[2]) if kind else match[2])

    return _WORDS.sub(convert, line)


def _constant(kind: str, text: str) -> str:
    if text.startswith("f0x"):
        return _of_bits(kind, int(text[3:], 16))
    special = _SPECIAL.fullmatch(text)
    if special:
        return _of_bits(kind, _special_bits(kind, *special.groups()))
    return text if kind == "double" else _of_bits(kind, _nearest_bits(kind, float(text)))


def _special_bits(kind: str, sign: str, name: str, payload: str | None) -> int:
    """Infinity, or a NaN: the first bit of the fraction says that it is quiet."""
    exponent, fraction = EXPONENT_AND_FRACTION_BITS[kind]
    quiet = 1 << fraction - 1 if name in ("nan", "qnan") else 0
    infinity = (1 << exponent) - 1 << fraction
    negative = (sign == "-") << exponent + fraction
    return negative | infinity | quiet | int(payload or "0", 16)


def _nearest_bits(kind: str, value: float) -> int:
    """The bits of the nearest value of a type of 16 or 32 bits."""
    if kind == "half":
        return int.from_bytes(struct.pack(">e", value))
    bits = int.from_bytes(struct.pack(">f", value))
    return bits if kind == "float" else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _of_bits(kind: str, bits: int) -> str:
    if kind in ("half", "bfloat"):
        return f"0x{'H' if kind == 'half' else 'R'}{bits:04X}"
    return f"0x{_widened(bits) if kind == 'float' else bits:016X}"


def _widened(bits: int) -> int:
    """The bits of the double of a float's bits; a NaN keeps its fraction."""
    if bits & 0x7F800000 == 0x7F800000:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    (value,) = struct.unpack(">f", bits.to_bytes(4))
    return int.from_bytes(struct.pack(">d", value))
