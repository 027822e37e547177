"""The files of `tilewright tune`, read back: candidates that were compiled, times of a GPU."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.bundles.schema import ListOf, Positive, Record, Text
from ...runtime.errors import DeviceError
from ...runtime.regular_files import UnfitFile, read_regular
from ...runtime.strict_json import parse_json

if TYPE_CHECKING:
    from ...compiler.schedule.problem import Problem, Schedule

COMPILE, MEASURE = "tilewright tune compile", "tilewright tune measure"
LIMIT_BYTES = 256 * 2**20
ENTRY = Record(
    {"target": Text(), "spec": Record(), "pipeline": Text(4096)},
    optional={"problem": Record(), "schedule": Record()},
)
"""What is known of a bundle without the compiler, which is not there where bundles are measured."""
MEASUREMENT = Record({"gpu": Text(), "date": Text(), "rows": ListOf(Record(), most=10**6)})


@dataclass(frozen=True)
class Measured:
    """A candidate for one product on a chip, and its time in microseconds.

    `schedule` is that of tiles of a tensor core for `problem`, None of another kind. `product` and
    `pipeline` tell the product and its passes; both are empty in a file that knew tiles alone.
    """

    chip: str
    us: float
    problem: Problem | None = None
    schedule: Schedule | None = None
    product: str = ""
    pipeline: str = ""


@dataclass(frozen=True)
class Results:
    """One measurement: which GPU, when, and every candidate."""

    gpu: str
    date: str
    rows: tuple[Measured, ...]


def _read_json(path: Path, writer: str) -> Any:
    """A file that the command `writer` has written; DeviceError where it can't be read."""
    try:
        return parse_json(read_regular(path, LIMIT_BYTES))
    except (UnfitFile, ValueError) as error:
        raise _refused(path, writer, str(error)) from None


def read_index(path: Path) -> dict[str, dict[str, Any]]:
    """What `tilewright tune compile` has written: an entry for every bundle's name."""
    found = _read_json(path, COMPILE)
    if not isinstance(found, dict):
        raise _refused(path, COMPILE, "no entries by name")
    for name, entry in found.items():
        if broken := ENTRY.check(entry, name):
            raise _refused(path, COMPILE, broken)
    return found


def by_shape(index: Iterable[str]) -> dict[str, list[str]]:
    """The names of bundles by their shape, MxNxK.NUMBER.zip."""
    groups: dict[str, list[str]] = {}
    for name in index:
        groups.setdefault(name.partition(".")[0], []).append(name)
    return groups


def read_results(path: Path) -> Results:
    """What `tilewright tune measure` has written; DeviceError where it is something else."""
    found = _read_json(path, MEASURE)
    try:
        results = results_of(found)
    except ValueError as error:
        raise _refused(path, MEASURE, str(error)) from None
    if not results.rows:
        raise _refused(path, MEASURE, "no row")
    return results


def results_of(found: Mapping[str, Any]) -> Results:
    """The JSON of a measurement as values; ValueError where it is none."""
    if broken := MEASUREMENT.check(found, "results"):
        raise ValueError(broken)
    rows = tuple(_measured(row) for row in found["rows"])
    return Results(str(found["gpu"]), str(found["date"]), rows)


def _measured(row: Mapping[str, Any]) -> Measured:
    from ...compiler.schedule.tuned_pipelines import product_of
    from ...compiler.schedule.tuned_schedules import PROBLEM, SCHEDULE, problem_of, schedule_of

    passes = {"spec": Record(), "pipeline": Text(4096)}
    tiles = {"problem": PROBLEM, "schedule": SCHEDULE}
    row = json.loads(json.dumps(row))  # tuples as lists
    kinds = [kind for kind in (passes, tiles) if any(name in row for name in kind)] or [tiles]
    needed = {"us": Positive(), "target": Text()} | {
        n: each for k in kinds for n, each in k.items()
    }
    if broken := Record(needed).check(row, "row"):
        raise ValueError(broken)
    found = Measured(row["target"], float(row["us"]))
    if tiles in kinds:
        problem, schedule = problem_of(row["problem"]), schedule_of(row["schedule"])
        found = replace(found, problem=problem, schedule=schedule)
    if passes in kinds:
        found = replace(found, product=product_of(row["spec"]), pipeline=row["pipeline"])
    return found


def _refused(path: Path, writer: str, got: str) -> DeviceError:
    return DeviceError(f"{path}: must be what {writer} has written, got {got}")
