"""What an integer instruction computes in one lane, as a Python expression over its raw bits.

A second statement of what the builders of these instructions say with numpy, for lanes that run
alone; a test holds the two equal. Source: PTX ISA §9.7.1 (arithmetic), §9.7.6 (comparison and
selection), §9.7.8 (logic and shifts), §9.7.9 (mov, cvta, cvt).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from .addresses import LOCAL_WINDOW, SHARED_WINDOW

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}


def _ones(bits: int) -> str:
    return hex((1 << bits) - 1)


def _signed(value: str, bits: int) -> str:
    """The number that bits mean in two's complement."""
    top = hex(1 << bits - 1)
    return f"(({value} ^ {top}) - {top})"


def _sum(sign: str, bits: int) -> str:
    return f"{{0}} {sign} {{1}} & {_ones(bits)}"


def _wide(kind: str, bits: int) -> str:
    if kind == "u":
        return "{0} * {1}"
    return f"{_signed('{0}', bits)} * {_signed('{1}', bits)} & {_ones(2 * bits)}"


def _shift_left(bits: int) -> str:
    return f"({{0}} << {{1}} & {_ones(bits)} if {{1}} < {bits} else 0)"


def _shift_right(kind: str, bits: int) -> str:
    if kind != "s":
        return f"({{0}} >> {{1}} if {{1}} < {bits} else 0)"
    return f"{_signed('{0}', bits)} >> min({{1}}, {bits - 1}) & {_ones(bits)}"


def _compared(name: str, kind: str, bits: int) -> str | None:
    if kind == "u" and name in _UNSIGNED:
        return f"{{0}} {_UNSIGNED[name]} {{1}}"
    if name not in _SIGNS or (kind == "b" and name not in ("eq", "ne")):
        return None
    if kind != "s":
        return f"{{0}} {_SIGNS[name]} {{1}}"
    top = hex(1 << bits - 1)
    return f"({{0}} ^ {top}) {_SIGNS[name]} ({{1}} ^ {top})"


def _converted(to: str, bits: int, source: str, source_bits: int, width: int) -> str:
    """width: bits of the register that takes the result, extended as its type says."""
    value = f"({{0}} & {_ones(source_bits)})"
    if source == "s":
        value = f"({_signed(value, source_bits)} & {_ones(bits)})"
    value = f"({value} & {_ones(bits)})"
    return f"{_signed(value, bits)} & {_ones(width)}" if to == "s" else value


def _to_generic(back: bool, space: str) -> str | None:
    if space not in _WINDOWS:
        return "{0}" if back or space == "global" else None
    return f"{{0}} {'-' if back else '+'} {_WINDOWS[space]} & {_ones(64)}"


def _packed(bits: int, elements: int) -> str:
    """The elements of a vector, the first one lowest."""
    places = (number * bits // elements for number in range(elements))
    return " | ".join(f"{{{number}}} << {place}" for number, place in enumerate(places))


_VECTOR = re.compile(r"mov\.b(32|64)")
_TYPE = r"([bus])(16|32|64)"
_FORMS: list[tuple[str, Callable[..., str | None]]] = [
    (r"mov\.(?:pred|[busf](?:16|32|64))", lambda width: "{0}"),
    (r"(add|sub)\.[us](16|32|64)", lambda width, op, n: _sum("+-"[op == "sub"], int(n))),
    (r"mul\.lo\.[us](16|32|64)", lambda width, n: _sum("*", int(n))),
    (r"mad\.lo\.[us](16|32|64)", lambda width, n: f"{{0}} * {{1}} + {{2}} & {_ones(int(n))}"),
    (r"mul\.wide\.([us])(16|32)", lambda width, kind, n: _wide(kind, int(n))),
    (r"(and|or|xor)\.(?:pred|b16|b32|b64)", lambda width, op: f"{{0}} {_LOGIC[op]} {{1}}"),
    (r"not\.pred", lambda width: "not {0}"),
    (r"not\.b(16|32|64)", lambda width, n: f"{{0}} ^ {_ones(int(n))}"),
    (r"shl\.b(16|32|64)", lambda width, n: _shift_left(int(n))),
    (rf"shr\.{_TYPE}", lambda width, kind, n: _shift_right(kind, int(n))),
    (r"selp\.[busf](?:16|32|64)", lambda width: "({0} if {2} else {1})"),
    (rf"setp\.([a-z]+)\.{_TYPE}", lambda width, name, kind, n: _compared(name, kind, int(n))),
    (
        r"cvt\.([us])(8|16|32|64)\.([us])(8|16|32|64)",
        lambda width, to, n, of, m: _converted(to, int(n), of, int(m), width),
    ),
    (
        r"cvta\.(to\.)?(\w+)(?:::\w+)?\.u64",
        lambda width, back, space: _to_generic(bool(back), space),
    ),
]


@lru_cache(maxsize=1024)
def expression(opcode: str, reads: int, writes: int, width: int) -> str | None:
    """The raw bits of the result, the operands being ``{0}``, ``{1}``, …; None if it is not known.

    reads, writes: how many registers and constants it takes and gives; width: bits of the register
    that takes the result.
    """
    if reads > 1 and (moved := _VECTOR.fullmatch(opcode)):
        return _packed(int(moved[1]), reads) if writes == 1 else None
    for form, make in _FORMS:
        found = re.fullmatch(form, opcode)
        text = make(width, *found.groups()) if found else None
        if text is not None:
            wanted = max(int(each) for each in re.findall(r"\{(\d)\}", text)) + 1
            return text if (reads, writes) == (wanted, 1) else None
    return None
