"""The rows of a graph's report as the graph itself holds them, for processes that get it from
torch's cache and look at none of its products.

rows   ↔   JSON, in the recipe of the first kernel that the graph calls (`recipe.py`)
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from ...dialects.errors import CompileError
from ...dialects.target import find_target
from ..spec import MatmulSpec
from .describe import Estimate
from .report import REPORT, Row

BYTES_MAX = 2**24
LEFT_OUT = ("estimate", "cached")


def _is_text(value: Any) -> bool:
    return type(value) is str and value.isprintable()


def _is_time(value: Any) -> bool:
    return value is None or type(value) in (int, float)


def _is_size(value: Any) -> bool:
    return type(value) is int or _is_text(value)


def _all(is_one: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(is_one, value))


CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "bool": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int,
    "float | None": _is_time,
    "list[str]": _all(_is_text),
    "tuple[int | str, ...]": _all(_is_size),
}
FIELDS = {each.name: CHECKS[str(each.type)] for each in fields(Row) if each.name not in LEFT_OUT}
"""What each field of a row that comes with a graph must be."""


class KeptRows(NamedTuple):
    """The rows of one graph; `mark` tells it from others, so that nobody enters it twice."""

    mark: str
    rows: list[Row]

    def as_json(self) -> Any:
        return [self.mark, [_written(each) for each in self.rows]]


def kept(graph: str, rows: Sequence[Row]) -> KeptRows:
    """The rows that this process has just entered of a graph, equal ones as one.

    The mark follows from the graph and its rows, so that a model compiled again has the same text.
    """
    found: dict[str, Row] = {}
    for row in rows:
        text = row.text()
        count = row.count + (found[text].count if text in found else 0)
        found[text] = Row(**{**vars(row), "count": count})
    encoded = json.dumps([_written(each) for each in found.values()])
    mark = hashlib.sha256(f"{graph}\n{encoded}".encode()).hexdigest()[:32]
    REPORT.graphs.add(mark)
    return KeptRows(mark, list(found.values()))


def enter_kept(recipe: str) -> None:
    """Enter the rows that a recipe holds of a graph of torch's cache; those of graphs that this
    process looked at, it has.

    Raises CompileError for what is no recipe.
    """
    found = unpacked(recipe).get("rows")
    if found is None:
        return
    try:
        mark, written = found
        rows = [_row(each) for each in written] if mark not in REPORT.graphs else []
    except (ValueError, KeyError, TypeError, CompileError) as error:
        raise malformed(error) from error
    REPORT.graphs.add(mark)
    for row in rows:
        REPORT.add(row)


def packed(value: Any) -> str:
    """JSON as a graph holds it: deflated, in base64."""
    return base64.b64encode(zlib.compress(json.dumps(value).encode(), 9)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """What `packed` was given; CompileError for anything else."""
    try:
        inflated = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), BYTES_MAX)
        found = json.loads(inflated)
    except (ValueError, zlib.error) as error:
        raise malformed(error) from error
    if not isinstance(found, dict):
        raise malformed(TypeError(f"{type(found).__name__} and no dict"))
    return found


def malformed(error: Exception) -> CompileError:
    got = type(error).__name__
    return CompileError(f"its recipe must be as graphs hold it, got {got}: {error}")


def _written(row: Row) -> dict[str, Any]:
    estimate = row.estimate
    known = {name: _printable(getattr(row, name)) for name in FIELDS}
    if isinstance(estimate, Estimate):
        known["estimate"] = [estimate.spec.as_dict(), estimate.chip]
    return known


def _printable(value: Any) -> Any:
    """Errors that are reasons may have lines."""
    if not isinstance(value, str):
        return value
    return "".join(each if each.isprintable() else " " for each in value)


def _row(written: dict[str, Any]) -> Row:
    given = dict(written)
    spec, chip = given.pop("estimate", (None, ""))
    wrong = [name for name, value in given.items() if not FIELDS[name](value)]
    if wrong:
        raise TypeError(f"{wrong[0]} of {given[wrong[0]]!r}")
    given["sizes"] = tuple(given["sizes"])
    if spec is not None:
        find_target(chip)  # or it is refused
        given["estimate"] = Estimate(_spec(spec), chip)
    return Row(**given, cached=True)


def _spec(written: dict[str, Any]) -> MatmulSpec:
    return MatmulSpec(**{name: tuples(value) for name, value in dict(written).items()})


def tuples(value: Any) -> Any:
    """Lists of JSON as the tuples that they were."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value
