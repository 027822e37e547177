"""Measured schedules: a table for each chip, which overrides the estimate.

`tilewright tune` writes the tables. Those in `compiler/schedule/tuned/` ship with the package, and
`TILEWRIGHT_TUNED` names a folder with further ones, which take precedence. An entry serves its own
problem and similar ones: the same types, majors and tensors that TMA can address, operands whose
rows start alike in lines of L2, as many tiles along M and N with the entry's schedule, and a K
within a quarter of the entry's. A similar problem therefore has the same waves of tiles, main loops
of about the same length, and as many requests to L2 per row.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

from ...dialects.errors import CompileError
from ...dialects.record import record
from ...dialects.target import GPUS, Target
from ...runtime.atomic import write_file
from ...runtime.bundles.schema import Integer, ListOf, Nullable, OneOf, Positive, Record, Text
from ...runtime.regular_files import UnfitFile, read_regular
from ...runtime.strict_json import parse_json
from .chips.chip_figures import figures
from .problem import Problem, Schedule
from .schedule import AHEAD, HELD, THREADS

SCHEMA = 1
VARIABLE = "TILEWRIGHT_TUNED"
K_CHANGE = 0.25
OUTSIDE_CHANGE = 1 / 32
"""By how much the share of tiles outside C, along M or N, may exceed that of the entry."""
SHIPPED = Path(__file__).parent / "tuned"
LIMIT_BYTES = 16 * 2**20
_TENSORS = ("a", "b", "c")

_SIZE, _FLAG, _PAIR = Integer(1, 2**40), OneOf((False, True)), ListOf(Integer(1, 1024), 2, 2)
_SIZES = ("m", "n", "k", "element_bytes", "k_per_mma", "c_bytes", "tma_alignment_bytes")
_FLAGS = ("dynamic_m", "dynamic_batch", "dynamic_k", "swapped", "gathered", "integers")
_SCALES = ("adds_products", "column_scales", "row_scales")
_COUNTS = ("neighbours", "epilogue_instructions", "most_m", "pitch_unit")
_BESIDE = ("further_bytes", "beside", "beside_columns", "beside_rows")
PROBLEM = Record(
    {**dict.fromkeys(_SIZES, _SIZE), **dict.fromkeys(("a_major", "b_major"), OneOf(("k", "mn")))},
    optional={
        "batch": _SIZE,
        "products": Integer(1, 2),
        "grouped": OneOf(("", "m", "k")),
        "quantized": OneOf((None,)),
        **dict.fromkeys((*_FLAGS, *_SCALES), _FLAG),
        **dict.fromkeys(_COUNTS, Integer(0, 2**40)),
        **dict.fromkeys(("leading", "steps"), ListOf(Integer(0, 2**40), 3, 3)),
        **dict.fromkeys(_BESIDE, ListOf(Integer(0, 1024), 0, 1024)),
    },
    closed=True,
)
SCHEDULE = Record(
    {"tile": ListOf(Integer(1, 1024), 3, 3)},
    optional={
        **dict.fromkeys(("stages", "group", "split_k", "split_grid"), Integer(1, 1024)),
        **dict.fromkeys(("pair", "ping_pong", "swap", "level"), _FLAG),
        "ahead": Integer(0, 1024),
        "order": OneOf(("m", "n", "grouped", "hilbert")),
        "box": OneOf(("2d", "3d")),
        "scheduler": OneOf(("none", "static", "clc")),
        "vectors": OneOf((THREADS, AHEAD, HELD)),
        "cluster": _PAIR,
        "staging": Nullable(_PAIR),
    },
    closed=True,
)
_MEASURED = {"us": Positive(), "gpu": Text(), "date": Text()}
_ENTRY = Record({"problem": PROBLEM, "schedule": SCHEDULE, **_MEASURED}, closed=True)
PIPELINES = "pipelines"
PASSES_MAX = 4096
_PIPELINE = Record({"spec": Record(), "pipeline": Text(PASSES_MAX), **_MEASURED}, closed=True)
TABLE = Record(
    {"schema": OneOf((SCHEMA,)), "entries": ListOf(_ENTRY, 0, 100_000)},
    optional={PIPELINES: ListOf(_PIPELINE, 0, 100_000)},
    closed=True,
)


@record
class Tuned:
    """One entry: the fastest schedule, its time in microseconds, on which GPU and when it was
    measured."""

    problem: Problem
    schedule: Schedule
    us: float
    gpu: str
    date: str

    def serves_sizes(self, problem: Problem) -> bool:
        """Whether the entry serves a problem that differs from its own only in the sizes, and has
        nearly the same K."""
        mine = self.problem
        return (
            (problem.knows_grid(self.schedule) or self.schedule.order != "hilbert")
            and _tiles(problem, self.schedule) == _tiles(mine, self.schedule)
            and _fills_tiles(problem, mine, self.schedule)
        )

    def describe(self) -> str:
        """What was measured, in words."""
        mine = self.problem
        return f"{self.us:.2f} us for {mine.m}x{mine.n}x{mine.k} on an {self.gpu}, {self.date}"


def _tiles(problem: Problem, schedule: Schedule) -> tuple[int, int]:
    return problem.seen_by(schedule).tiles(schedule)


def _fills_tiles(problem: Problem, mine: Problem, schedule: Schedule) -> bool:
    """Whether hardly more of the tiles is outside C than with the entry; the boxes of a single tile
    end with the rows."""
    pairs = zip(_outside(problem, schedule), _outside(mine, schedule), strict=True)
    return all(share <= measured + OUTSIDE_CHANGE for share, measured in pairs)


def _outside(problem: Problem, schedule: Schedule) -> list[float]:
    """The share of the tiles that is outside C along M and N; 0 along M where M is not known
    yet."""
    seen = problem.seen_by(schedule)
    known = [seen.m, seen.n]
    if problem.dynamic_m and problem.m != problem.most_m:
        known[1 if seen.swapped else 0] = 0
    sizes = zip(known, seen.tiles(schedule), schedule.tile, strict=False)
    return [
        1 - extent / (count * tile) if extent and count > 1 else 0.0
        for extent, count, tile in sizes
    ]


@functools.lru_cache(4096)
def _kind(problem: Problem) -> tuple:
    hints = {"epilogue_instructions", "beside_columns", "beside_rows"}
    sizes = {"m", "n", "k", "dynamic_m", "dynamic_batch", "dynamic_k", "most_m", "integers", *hints}
    types = tuple(
        getattr(problem, field.name) for field in fields(problem) if field.name not in sizes
    )
    addressed = (problem.by_tma(tensor) for tensor in _TENSORS)
    return *types, *addressed, *(problem.row_start(operand) for operand in "ab")


def tuned_schedule(problem: Problem, target: Target) -> Tuned | None:
    """The entry of a chip's table that serves a problem best: the nearest in M, N and K, and among
    entries of the same sizes the one whose epilogue is most similar.

    Entries that were measured on the target's own GPU take precedence. If there are none and the L2
    of that GPU holds A and B, an entry of another GPU serves: the GPUs differ only behind L2.
    """
    alike = _entries(target.chip, _kind(problem))
    near = [e for e in alike if abs(problem.k - e.problem.k) <= K_CHANGE * e.problem.k]
    serving = [entry for entry in near if entry.serves_sizes(problem)]
    own = [entry for entry in serving if is_of_gpu(entry.gpu, target)]
    cached = _operand_bytes(problem) <= figures(target).l2_size
    taken = own or (serving if cached else [])
    return min(taken, key=lambda entry: _distance(entry.problem, problem), default=None)


def is_of_gpu(gpu: str, target: Target) -> bool:
    """Whether a GPU of this name is the target's. A chip's usual target has all GPUs but those that
    are targets of their own."""
    others = {each.gpu for each in GPUS.values() if each.gpu and each.gpu in gpu.lower()}
    return target.gpu in others if target.gpu else not others


def _operand_bytes(problem: Problem) -> int:
    return problem.batch * (problem.m + problem.n) * problem.k * problem.element_bytes


def _distance(one: Problem, other: Problem) -> tuple[float, int]:
    pairs = ((one.m, other.m), (one.n, other.n), (one.k, other.k))
    sizes = sum(abs(mine - theirs) / mine for mine, theirs in pairs)
    return sizes, abs(one.epilogue_instructions - other.epilogue_instructions)


def tables_of(chip: str) -> list[Path]:
    """The existing table files of a chip: the user's own first, then the one that is shipped.

    Raises CompileError if the variable does not name a folder.
    """
    own = os.environ.get(VARIABLE)
    if own and not Path(own).is_dir():
        raise CompileError(f"{VARIABLE}: must name a folder, got '{own}'; make it, or unset it")
    folders = ([Path(own)] if own else []) + [SHIPPED]
    return [path for folder in folders if (path := folder / f"{chip}.json").is_file()]


def _entries(chip: str, kind: tuple) -> tuple[Tuned, ...]:
    """The entries for a kind of problem, in the order of the tables."""
    return tuple(
        entry
        for path in tables_of(chip)
        for entry in _by_kind(path, path.stat().st_mtime_ns).get(kind, ())
    )


@functools.cache
def _by_kind(path: Path, changed: int) -> dict[tuple, list[Tuned]]:
    found: dict[tuple, list[Tuned]] = {}
    for entry in kept_table(path, changed).entries:
        found.setdefault(_kind(entry.problem), []).append(entry)
    return found


class Kept(NamedTuple):
    """What a table holds: its entries, and the JSON of its pipelines."""

    entries: tuple[Tuned, ...]
    pipelines: tuple[Mapping[str, Any], ...]


@functools.cache
def kept_table(path: Path, changed: int) -> Kept:
    """What a table holds, which is read once for both kinds of entries."""
    del changed  # so that a table that was written again is read again
    table = parsed_table(path)
    return Kept(tuple(map(_entry, table["entries"])), tuple(table.get(PIPELINES, ())))


def read_table(path: Path) -> tuple[Tuned, ...]:
    """The entries of a table; `CompileError` says what is wrong with the file."""
    return tuple(_entry(each) for each in parsed_table(path)["entries"])


def parsed_table(path: Path) -> dict[str, Any]:
    """The JSON of a table; `CompileError` says what is wrong with the file."""
    try:
        table = parse_json(read_regular(path, LIMIT_BYTES))
        if table["schema"] != SCHEMA:
            raise CompileError(
                f"{path}: schema must be {SCHEMA}, got {table['schema']!r}; tune again"
            )
        if broken := TABLE.check(table, "table"):
            raise ValueError(broken)
        return table
    except (UnfitFile, ValueError, KeyError, TypeError) as error:
        raise CompileError(
            f"{path}: must be a table that tilewright tune has written, got"
            f" {type(error).__name__}: {error}; tune again"
        ) from None


def _entry(each: Mapping[str, Any]) -> Tuned:
    return Tuned(
        problem_of(each["problem"]),
        schedule_of(each["schedule"]),
        float(each["us"]),
        str(each["gpu"]),
        str(each["date"]),
    )


def problem_of(values: Mapping[str, Any]) -> Problem:
    """A problem from the JSON of its fields; missing fields have their defaults."""
    return Problem(**_of_json(values))


def schedule_of(values: Mapping[str, Any]) -> Schedule:
    """A schedule from the JSON of its fields; missing fields have their defaults."""
    return Schedule(**_of_json(values))


def _of_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, with lists as tuples."""
    return {n: tuple(each) if isinstance(each, list) else each for n, each in values.items()}


def write_table(
    path: Path, entries: Iterable[Tuned], pipelines: Iterable[Mapping[str, Any]] = ()
) -> None:
    """Write a table, sorted by size, with one entry per problem and GPU, of which the last one
    counts."""
    unique = {(entry.problem, entry.gpu): entry for entry in entries}
    ordered = sorted(
        unique.values(), key=lambda entry: (*asdict(entry.problem).values(), entry.gpu)
    )
    text = f'{{"schema": {SCHEMA}, "entries": [\n{_lines(map(_plain, ordered))}\n]'
    if passes := _lines(pipelines):
        text += f', "{PIPELINES}": [\n{passes}\n]'
    text += "}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode())


def _lines(values: Iterable[Mapping[str, Any]]) -> str:
    return ",\n".join(map(json.dumps, values))


def _plain(entry: Tuned) -> dict[str, Any]:
    """The entry as it is written to a table, without the batch if that is one."""
    values = asdict(entry)
    if entry.problem.batch == 1:
        del values["problem"]["batch"]
    for name in ("dynamic_m", "dynamic_batch", "dynamic_k", "most_m", "integers"):
        if not values["problem"][name]:
            del values["problem"][name]
    return values
