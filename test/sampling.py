"""Which tests of a large family run by default: `sweep`, `pairwise`, `covers` and `array`.

`sweep` is a sixteenth of a family, `sweep(32)` a 32nd. `sweep` of a test goes before `pairwise` of
its file; `--all` runs all that these two mark. A test with `array` has no full product to choose
from: its axes stand in the marker, and its rows are made so that every two values of different axes
meet, of `array(1)` that every value occurs, with `--all` that every three meet. `covers(count,
of=…)` is for cases that are drawn: as many of them, those that have the most pairs of properties.

All of them choose by names and axes alone, so every process and every machine chooses the same.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

SHARE = 16


def in_share(request, what: str, one_in: int) -> bool:
    """Whether a test is among those of which one in so many does more, by its name alone."""
    number = zlib.crc32(f"{what} {request.node.name}".encode())
    return request.config.getoption("--all") or number % one_in == 0


def choose(items: list) -> list:
    """The items that run: all unmarked ones, and of each marked function a sample."""
    swept = [item for item in items if item.get_closest_marker("sweep")]
    others = [item for item in items if not item.get_closest_marker("sweep")]
    paired = [item for item in others if not item.get_closest_marker("array")]
    dropped: set[int] = set()
    for found, sample in (
        (families(swept, "sweep"), every_nth),
        (families(paired, "pairwise"), pairwise_cover),
        (families(others, "covers"), covering),
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


def every_nth(family: list) -> list:
    """A sixteenth of the family, or the part that the marker names (`sweep(32)`), one at least."""
    (share,) = family[0].get_closest_marker("sweep").args or (SHARE,)
    return family[: -(-len(family) // share)]


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


def covering(family: list) -> list:
    """Of drawn cases so many as the marker says, each with the most pairs of properties that those
    before do not have; the marker's `of` gives the properties of a case by its parameters."""
    marker = family[0].get_closest_marker("covers")
    (count,), of = marker.args, marker.kwargs["of"]
    left = {id(item): pairs(of(**item.callspec.params)) for item in family}
    missing, kept = set().union(*left.values()), []
    for _ in range(min(count, len(family))):
        best = max(
            (item for item in family if item not in kept),
            key=lambda item: len(left[id(item)] & missing),
        )
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


def covering_array(axes: Mapping[str, Iterable], strength: int) -> list[tuple]:
    """Rows, a value of each axis in each, in which every `strength` values of different axes meet.

    Greedy and one row at a time (AETG): a row starts with a setting that is still missing, and each
    further axis takes the value that brings most of the missing ones, of several the rarest.
    """
    listed = [list(values) for values in axes.values()]
    sizes = [len(values) for values in listed]
    widest_first = sorted(range(len(sizes)), key=lambda axis: -sizes[axis])
    strength = min(strength, len(sizes))
    missing = dict.fromkeys(_settings(widest_first, sizes, strength))
    used: Counter[tuple[int, int]] = Counter()
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for axis in widest_first:
            if axis not in row:
                row[axis] = _best_value(row, axis, sizes[axis], missing, used, strength)
        for setting in itertools.combinations(sorted(row.items()), strength):
            missing.pop(setting, None)
        used.update(row.items())
        rows.append(tuple(values[row[axis]] for axis, values in enumerate(listed)))
    return rows


def name_of(value: object) -> str | None:
    """What stands for a value in the name of a test: 1x2 for (1, 2), the end of a path."""
    if isinstance(value, Path):
        return f"{value.parent.name}/{value.stem}"
    if isinstance(value, tuple) and all(isinstance(each, str | int) for each in value):
        return "x".join(map(str, value))
    return None


def _settings(axes: list[int], sizes: list[int], strength: int):
    """Every choice of `strength` axes with a value's number for each."""
    for chosen in itertools.combinations(axes, strength):
        for values in itertools.product(*(range(sizes[axis]) for axis in chosen)):
            yield tuple(sorted(zip(chosen, values, strict=True)))


def _best_value(row, axis, size, missing, used, strength) -> int:
    def worth(value: int) -> tuple[int, int]:
        others = itertools.combinations(row.items(), strength - 1)
        brought = (tuple(sorted((*other, (axis, value)))) in missing for other in others)
        return sum(brought), -used[axis, value]

    return max(range(size), key=worth)
