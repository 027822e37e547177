"""What a planted fault is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """What is wrong, in words; the text that is replaced, and by what; where it should show."""

    what: str
    old: str
    new: str
    tests: tuple[str, ...]
