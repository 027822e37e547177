"""Constant expressions (PTX ISA §4.5.4): operators, their precedence, 64-bit arithmetic."""

from __future__ import annotations

from collections.abc import Callable

_ROWS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="),
         ("<<", ">>"), ("+", "-"), ("*", "/", "%"))  # fmt: skip
PRECEDENCE = {operator: level for level, row in enumerate(_ROWS) for operator in row}
"""Of the binary operators; a higher one binds more tightly."""
MULTIPLICATIVE = PRECEDENCE["*"]
_BITS = 64


def wrapped(value: int) -> int:
    """A value as a signed 64-bit integer."""
    low = value & (1 << _BITS) - 1
    return low - (1 << _BITS) if low >> _BITS - 1 else low


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: bool(a or b),
    "&&": lambda a, b: bool(a and b),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a << (b & _BITS - 1),
    ">>": lambda a, b: a >> (b & _BITS - 1),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
}


def fold(operator: str, a: int, b: int) -> int:
    """The value of a binary operation; ZeroDivisionError for a division by zero."""
    return wrapped(int(_FUNCTIONS[operator](a, b)))
