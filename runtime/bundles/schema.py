"""A small language for the shape of JSON values, so that a manifest's schema reads as data.

Every rule has `check(value, where)`, which returns None when the value is good and otherwise one
sentence "where: must …, got …".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from ..strict_json import is_finite

SHOWN_CHARACTERS = 60
MOST_IN_A_NAME = 1024
NO_FIELDS: Mapping[str, Any] = MappingProxyType({})
IDENTIFIER = re.compile(r"[a-zA-Z][a-zA-Z0-9_$]*|[_$%][a-zA-Z0-9_$]+")


class Rule(Protocol):
    """Anything that can judge a value."""

    def check(self, value: Any, where: str) -> str | None: ...


class Text(NamedTuple):
    """A string that is not empty, of at most `most` characters."""

    most: int = 2**16

    def check(self, value: Any, where: str) -> str | None:
        if isinstance(value, str) and len(value) > self.most:
            return f"{where}: must have at most {self.most} characters, got {len(value)}"
        return None if isinstance(value, str) and value else _broken(where, "a text", value)


class Name:
    """An identifier of PTX (PTX ISA, section "Identifiers")."""

    def check(self, value: Any, where: str) -> str | None:
        if isinstance(value, str) and len(value) <= MOST_IN_A_NAME and IDENTIFIER.fullmatch(value):
            return None
        return _broken(where, f"an identifier of at most {MOST_IN_A_NAME} characters", value)


class Integer(NamedTuple):
    """An integer of at least `least` and at most `most`."""

    least: int = 0
    most: int = 2**63 - 1

    def check(self, value: Any, where: str) -> str | None:
        if isinstance(value, int) and not isinstance(value, bool):
            if self.least <= value <= self.most:
                return None
        return _broken(where, f"an integer from {self.least} to {self.most}", value)


class Positive:
    """A number above 0, whole or not, that is no infinity."""

    def check(self, value: Any, where: str) -> str | None:
        if type(value) in (int, float) and is_finite(value) and value > 0:
            return None
        return _broken(where, "a number above 0", value)


class OneOf(NamedTuple):
    """One of a few values."""

    values: tuple[Any, ...]

    def check(self, value: Any, where: str) -> str | None:
        if any(type(value) is type(known) and value == known for known in self.values):
            return None
        return _broken(where, " or ".join(repr(known) for known in self.values), value)


class Anything(NamedTuple):
    """Any object, as an open record; its numbers are finite, unless `finite` is False."""

    finite: bool = True

    def check(self, value: Any, where: str) -> str | None:
        if not isinstance(value, dict):
            return _broken(where, "an object", value)
        if self.finite and not is_finite(value):
            return _broken(where, "an object of finite numbers", value)
        return None


class Nullable(NamedTuple):
    """null, or what `rule` takes."""

    rule: Rule

    def check(self, value: Any, where: str) -> str | None:
        return None if value is None else self.rule.check(value, where)


class Either(NamedTuple):
    """What one of two rules takes; the second one says what is wrong."""

    first: Rule
    second: Rule

    def check(self, value: Any, where: str) -> str | None:
        return self.first.check(value, where) and self.second.check(value, where)


class ListOf(NamedTuple):
    """A list whose items obey `rule`, of at least `least` and at most `most` items."""

    rule: Rule
    least: int = 0
    most: int = 10_000

    def check(self, value: Any, where: str) -> str | None:
        if not isinstance(value, list):
            return _broken(where, "a list", value)
        if not self.least <= len(value) <= self.most:
            return f"{where}: must have {self._extent()} items, got {len(value)}"
        found = (self.rule.check(item, f"{where}[{i}]") for i, item in enumerate(value))
        return next((broken for broken in found if broken), None)

    def _extent(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return f"{self.least} to {self.most}"


class Record(NamedTuple):
    """An object with these fields; `optional` ones may be missing. Unknown ones are left alone, or
    refused where it is `closed`."""

    fields: Mapping[str, Rule] = NO_FIELDS
    optional: Mapping[str, Rule] = NO_FIELDS
    closed: bool = False

    def check(self, value: Any, where: str) -> str | None:
        if not isinstance(value, dict):
            return _broken(where, "an object", value)
        unknown = value.keys() - self.fields.keys() - self.optional.keys()
        if self.closed and unknown:
            return f"{where}: must have no other fields than it has, got '{min(unknown)}'"
        missing = next((name for name in self.fields if name not in value), None)
        if missing is not None:
            return f"{where}: must have the field '{missing}', got none"
        known = {**self.fields, **self.optional}
        found = (
            rule.check(value[name], f"{where}.{name}")
            for name, rule in known.items()
            if name in value
        )
        return next((broken for broken in found if broken), None)


class Tagged(NamedTuple):
    """An object whose field `tag` says which record it is."""

    tag: str
    records: Mapping[str, Record]

    def check(self, value: Any, where: str) -> str | None:
        known = OneOf(tuple(self.records))
        broken = Record({self.tag: known}).check(value, where)
        return broken or self.records[value[self.tag]].check(value, where)


def _broken(where: str, rule: str, value: Any) -> str:
    shown = repr(value)
    if len(shown) > SHOWN_CHARACTERS:
        shown = shown[:SHOWN_CHARACTERS] + "…"
    return f"{where}: must be {rule}, got {shown}"
