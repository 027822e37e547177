"""Which tests of a large family run by default: markers `sweep` and `pairwise`; `--all` runs all.

`sweep` of a test goes before `pairwise` of its file.

Both choose by the tests' names alone, so every process and every machine chooses the same.
"""

from __future__ import annotations

import itertools
import zlib
from collections import defaultdict

SHARE = 8


def choose(items: list) -> list:
    """The items that run: all unmarked ones, and of each marked function a sample."""
    swept = [item for item in items if item.get_closest_marker("sweep")]
    paired = [item for item in items if not item.get_closest_marker("sweep")]
    dropped: set[int] = set()
    for found, sample in (
        (families(swept, "sweep"), every_eighth),
        (families(paired, "pairwise"), pairwise_cover),
    ):
        for family in found:
            dropped |= {id(item) for item in family} - {id(item) for item in sample(family)}
    return [item for item in items if id(item) not in dropped]


def families(items: list, marker: str) -> list[list]:
    """The items with that marker, those of one function together, in an order without meaning."""
    found = defaultdict(list)
    for item in items:
        if item.get_closest_marker(marker) and hasattr(item, "callspec"):
            found[item.path, item.originalname].append(item)
    return [sorted(family, key=_shuffled) for family in found.values()]


def _shuffled(item) -> tuple[int, str]:
    return zlib.crc32(item.name.encode()), item.name


def every_eighth(family: list) -> list:
    """An eighth of the family, one at least."""
    return family[: -(-len(family) // SHARE)]


def pairwise_cover(family: list) -> list:
    """Items in which every two values of two parameters that meet in the family meet (greedily).

    That is an array of strength two: it finds a fault that one or two parameters bring about.
    """
    left = {id(item): pairs(item.callspec.params) for item in family}
    missing, kept = set().union(*left.values()), []
    while missing:
        best = max(family, key=lambda item: len(left[id(item)] & missing))
        missing -= left[id(best)]
        kept.append(best)
    return kept


def pairs(params: dict[str, object]) -> set[tuple]:
    """The two-parameter settings of an item; of one with a single parameter, that parameter's."""
    settings = [(name, _identity(value)) for name, value in sorted(params.items())]
    return set(itertools.combinations(settings, min(2, len(settings))))


def _identity(value: object) -> object:
    """Equal for equal parameters; those without a hash are the same where they are one object."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value
