"""Vectorized estimates: those of one schedule for many problem sizes at once.

    Problem(m=128), Problem(m=136), …  →  Problem(m=Numbers(128, 136, …))  →  estimate

The functions of the estimate are those that take a single problem. An operation on `Numbers` is
done elementwise, in the same arithmetic as for one number, and so are `larger` and `smaller`. A
comparison has a single answer: that of most of the problems in the run. The run continues with
these, and the others get another run, so that each problem is estimated by the steps that it would
take alone. When only a few are left, they are estimated one by one.

Nothing here imports MLIR.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ....dialects.target import Target
from ..elementwise import Elementwise
from ..estimates.estimate import total_us
from ..problem import Problem, Schedule
from ..rules.rules import broken_rule

FIELDS = fields(Problem)
FEW = 8
"""A run takes as long as so many problems one after the other."""


class Run:
    """A run: the indices of the problems that it still covers, and of those that are left for
    others."""

    def __init__(self, count: int) -> None:
        self.places = np.arange(count)
        self.others: list[np.ndarray] = []

    def answer(self, holds: np.ndarray) -> bool:
        """Whether the condition holds for most; the run continues without the others."""
        here = holds[self.places]
        held = int(np.count_nonzero(here))
        if held in (0, len(here)):
            return held > 0
        answer = 2 * held >= len(here)
        self.others.append(self.places[here != answer])
        self.places = self.places[here == answer]
        return answer


class Numbers(Elementwise):
    """An int or a float for each problem."""

    __slots__ = ("run", "values")

    def __init__(self, values: np.ndarray, run: Run) -> None:
        self.values, self.run = values, run

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self.run.answer(self.values != 0)

    def __index__(self) -> int:
        return int(self._one())

    def __float__(self) -> float:
        return float(self._one())

    def __ceil__(self) -> Numbers:
        return Numbers(np.ceil(self.values).astype(np.int64), self.run)

    def __neg__(self) -> Numbers:
        return Numbers(-self.values, self.run)

    def __pow__(self, power: float) -> Numbers:  # numpy's rounds otherwise
        return Numbers(np.array([each**power for each in self.values.tolist()]), self.run)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return operator.floordiv(self, other), operator.mod(self, other)

    def larger(self, other: Any) -> Numbers:
        return Numbers(np.maximum(self.values, _values(other)), self.run)

    def smaller(self, other: Any) -> Numbers:
        return Numbers(np.minimum(self.values, _values(other)), self.run)

    def exceeds(self, other: Any) -> Numbers:
        return Numbers(self.values > _values(other), self.run)

    def _one(self) -> Any:
        """The number of the first problem, for a function that takes one: the run continues with
        those that have the same."""
        first = self.values[self.run.places[0]]
        while not self.run.answer(self.values == first):
            first = self.values[self.run.places[0]]
        return first


def _values(number: Any) -> Any:
    return number.values if isinstance(number, Numbers) else number


def _operation(of: Callable[[Any, Any], Any]) -> Callable[[Numbers, Any], Numbers]:
    return lambda self, other: Numbers(of(self.values, _values(other)), self.run)


def _reflected(of: Callable[[Any, Any], Any]) -> Callable[[Numbers, Any], Numbers]:
    return lambda self, other: Numbers(of(other, self.values), self.run)


def _comparison(of: Callable[[Any, Any], Any]) -> Callable[[Numbers, Any], bool]:
    return lambda self, other: self.run.answer(of(self.values, _values(other)))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor"):
    _of = getattr(operator, _name)
    setattr(Numbers, f"__{_name.rstrip('_')}__", _operation(_of))
    setattr(Numbers, f"__r{_name.rstrip('_')}__", _reflected(_of))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Numbers, f"__{_name}__", _comparison(getattr(operator, _name)))


class Problems:
    """Problems that differ only in numbers; what all have in common is found once for all
    schedules, with and without exchange of A and B."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = problems
        self._sides: dict[bool, tuple[list[Problem], dict[str, np.ndarray]]] = {}

    def __len__(self) -> int:
        return len(self._problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems)

    def seen_by(self, schedule: Schedule) -> tuple[list[Problem], dict[str, np.ndarray]]:
        """Each problem as a schedule sees it, and the fields in which they differ."""
        if schedule.swap not in self._sides:
            seen = [one.seen_by(schedule) for one in self._problems]
            columns = {each.name: [getattr(one, each.name) for one in seen] for each in FIELDS}
            varying = {name: np.array(each) for name, each in columns.items() if len(set(each)) > 1}
            self._sides[schedule.swap] = seen, varying
        return self._sides[schedule.swap]


def times_of(
    problems: Problems, schedule: Schedule, target: Target, asked: np.ndarray
) -> np.ndarray:
    """The estimated microseconds of the problems at these indices."""

    def time(problem: Problem) -> Any:
        return total_us(problem, schedule, target)

    return _found_of(problems, schedule, asked, time)


def kept_by(problems: Problems, schedule: Schedule, target: Target) -> list[bool]:
    """Whether the schedule keeps every rule, for each problem."""

    def keeps(problem: Problem) -> bool:
        if schedule.level:  # whose rules are of the problem before it is exchanged
            problem = problem.seen_by(schedule.of_whole_tiles)
        return broken_rule(problem, schedule, target) is None

    every = np.arange(len(problems))
    return [found > 0 for found in _found_of(problems, schedule, every, keeps).tolist()]


def _found_of(
    problems: Problems, schedule: Schedule, asked: np.ndarray, find: Callable[[Problem], Any]
) -> np.ndarray:
    """The result of `find` for each problem as the schedule sees it; 0 at other indices."""
    seen, varying = problems.seen_by(schedule)
    found, waiting = np.zeros(len(seen)), [asked]
    while waiting:
        asked = waiting.pop()
        if len(asked) < FEW:
            found[asked] = [find(seen[each]) for each in asked]
            continue
        run = Run(len(asked))
        numbers: dict[str, Any] = {
            name: Numbers(values[asked], run) for name, values in varying.items()
        }
        with np.errstate(all="ignore"):  # of those that the run is no longer about
            one = find(_with(seen[0], numbers))
        found[asked[run.places]] = one.values[run.places] if isinstance(one, Numbers) else one
        waiting += [asked[places] for places in run.others]
    return found


def _with(problem: Problem, numbers: dict[str, Any]) -> Problem:
    """The problem with arrays of numbers in some fields."""
    varying: dict[str, Any] = {each.name: getattr(problem, each.name) for each in FIELDS}
    return Problem(**varying | numbers)
