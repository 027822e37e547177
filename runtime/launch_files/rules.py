"""Rules of the schema language that only launch files need; see ..schema for the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..bundles.schema import Rule

SHOWN_CHARACTERS = 60
SPECIAL_NUMBERS = ("nan", "inf", "-inf")


def shown(value: Any) -> str:
    """A value as messages show it, cut to one line."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def join(where: str, name: str) -> str:
    """The JSON path of a field; the top level has no name."""
    return f"{where}.{name}" if where else name


def quoted(names: Any) -> str:
    """Names in a message: `'a', 'b'`, or none."""
    return ", ".join(f"'{name}'" for name in names) or "none"


@dataclass(frozen=True)
class Fields:
    """An object with these fields and no others."""

    required: Mapping[str, Rule]
    optional: Mapping[str, Rule] = field(default_factory=dict)

    def check(self, value: Any, where: str) -> str | None:
        """None, or the first broken rule."""
        if not isinstance(value, dict):
            return f"{where or 'the launch file'}: must be an object, got {shown(value)}"
        rules = {**self.required, **self.optional}
        for name in self.required:
            if name not in value:
                return f"{join(where, name)}: must be given, got none"
        for name in value:
            if name not in rules:
                return f"{join(where, name)}: must be one of the fields {quoted(rules)}, got it"
        found = (rules[name].check(item, join(where, name)) for name, item in value.items())
        return next((broken for broken in found if broken), None)


@dataclass(frozen=True)
class Keyed:
    """An object whose kind is told by the one of these fields that it has."""

    kinds: Mapping[str, Fields]

    def check(self, value: Any, where: str) -> str | None:
        """None, or the first broken rule."""
        if not isinstance(value, dict):
            return f"{where}: must be an object, got {shown(value)}"
        kinds = [name for name in self.kinds if name in value]
        if len(kinds) != 1:
            known, got = quoted(self.kinds), quoted(kinds)
            return f"{where}: must have exactly one of the fields {known}, got {got}"
        return self.kinds[kinds[0]].check(value, where)


@dataclass(frozen=True)
class Matching:
    """A text that a regular expression describes; `meaning` says it in words."""

    pattern: str
    meaning: str

    def check(self, value: Any, where: str) -> str | None:
        """None, or the broken rule."""
        if isinstance(value, str) and re.fullmatch(self.pattern, value):
            return None
        return f"{where}: must be {self.meaning}, got {shown(value)}"


@dataclass(frozen=True)
class Number:
    """A finite number of at most `most` in size."""

    most: float = 1e38

    def check(self, value: Any, where: str) -> str | None:
        """None, or the broken rule."""
        if is_number(value) and -self.most <= value <= self.most:
            return None
        return f"{where}: must be a number within ±{self.most:g}, got {shown(value)}"


@dataclass(frozen=True)
class AnyNumber:
    """A number that a float64 can hold; those that JSON lacks are the texts nan, inf, -inf."""

    def check(self, value: Any, where: str) -> str | None:
        """None, or the broken rule."""
        if is_number(value) and (value != value or -1e308 <= value <= 1e308):
            return None
        if value in SPECIAL_NUMBERS:
            return None
        return f"{where}: must be a number, 'nan', 'inf' or '-inf', got {shown(value)}"


@dataclass(frozen=True)
class PowerOfTwo:
    """A power of two of at most `most`."""

    most: int

    def check(self, value: Any, where: str) -> str | None:
        """None, or the broken rule."""
        if isinstance(value, int) and not isinstance(value, bool):
            if 1 <= value <= self.most and value & (value - 1) == 0:
                return None
        return f"{where}: must be a power of two up to {self.most}, got {shown(value)}"
