"""Chooses a schedule: a measured one, or the fastest candidate that breaks no rule.

    tuned_schedule(problem)  →  what was measured for it, if it was
    candidates(problem)  →  broken_rule?  →  estimate  →  the least microseconds, then the simplest

`explain_schedule` does just that. `choose_schedule` finds the same schedule without the list
(`search.py`).

Nothing here imports MLIR.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ....dialects.dtypes import SPLIT_MMAS
from ....dialects.errors import CompileError
from ....dialects.mma_units import MMA_SYNC
from ....dialects.target import Target, find_target, targets_with
from ...spec import MatmulSpec, element_of
from ..estimates.estimate import Estimate, estimate
from ..problem import Problem, Schedule
from ..rules.rules import RULES, broken_rule, broken_rules
from ..tuned_schedules import Tuned, tuned_schedule
from ..vectors import with_vectors
from .candidates import candidates, rank
from .search import Floors, by_rank, fastest


class Rejected(NamedTuple):
    """A candidate that was not chosen: the rule that it breaks, or "estimate"; `reason` has
    units."""

    schedule: Schedule
    rule: str
    reason: str
    estimate: Estimate | None = None


class Choice(NamedTuple):
    """The chosen schedule, its estimate, and every other candidate.

    `tuned` is the entry of the table of measured schedules that decided; None if the estimate did.
    """

    schedule: Schedule
    estimate: Estimate
    rejected: tuple[Rejected, ...]
    tuned: Tuned | None = None


def target_for(spec: MatmulSpec, chip: str) -> Target:
    """The chip as the kernel of a spec uses it."""
    target = find_target(chip)
    if spec.has_weights:
        return target.using(MMA_SYNC.name)
    if element_of(spec.a_dtype) in SPLIT_MMAS:
        return target.using(SPLIT_MMAS[element_of(spec.a_dtype)])
    if not spec.adds_products:
        return target
    if target.added_mma is None:
        what = "scales of 128 elements" if spec.is_blockwise else "two-level sums"
        chips = targets_with(lambda other: other.added_mma is not None)
        rule = f"schedule: {what} are for {chips}, whose threads add products"
        raise CompileError(f"{rule}, got {chip}; compile for one of them")
    return target.using(target.added_mma.name)


def choose_schedule(spec: MatmulSpec, target: Target) -> Schedule:
    """The schedule for a `MatmulSpec`; `CompileError` when no candidate keeps the rules."""
    return schedule_of(Problem.of(spec, target), target)


def schedule_of(problem: Problem, target: Target, floors: Floors | None = None) -> Schedule:
    """The schedule for a problem, with floors that are known already (`floors_of_rows`)."""
    tuned = measured_schedule(problem, target)
    if tuned is not None:
        return tuned.schedule
    found = fastest(problem, target, floors)
    if found is None:
        return explained(problem, target).schedule  # raises, and says why
    return found


def schedules_by_rank(spec: MatmulSpec, target: Target) -> Iterator[Schedule]:
    """The schedule that `choose_schedule` chooses, followed by those to take in its place."""
    yield choose_schedule(spec, target)
    yield from by_rank(Problem.of(spec, target), target)


def in_order(schedule: Schedule, target: Target) -> Schedule:
    """The schedule where groups of K are given an order: a CTA gets its next tile when another one
    ends, if the chip hands out tiles."""
    handed_out = schedule.scheduler == "static" and target.launch_control
    return replace(schedule, scheduler="clc") if handed_out else schedule


def measured_schedule(problem: Problem, target: Target) -> Tuned | None:
    """The table's entry for a problem, if its schedule keeps every rule, and if the problem's
    epilogue, where it is longer than the entry's, makes no other schedule faster."""
    tuned = tuned_schedule(problem, target)
    if tuned is None:
        return None
    if broken_rule(problem, tuned.schedule, target):
        _warn_of_broken(tuned, target)
        return None
    tuned = replace(tuned, schedule=with_vectors(problem, tuned.schedule, target))
    return None if _overtaken(problem, tuned, target) else tuned


def _warn_of_broken(tuned: Tuned, target: Target) -> None:
    """Warns of an entry that is never used because it breaks a rule for its own product."""
    if broken := broken_rule(tuned.problem, tuned.schedule, target):
        rule, reason = broken
        got = f"{tuned.schedule.label()} ({tuned.describe()}), which breaks {rule}: {reason}"
        message = f"a table's entry must keep every rule, got {got}; it is left out; tune again"
        warnings.warn(f"schedule: {message}", stacklevel=4)


def _overtaken(problem: Problem, tuned: Tuned, target: Target) -> bool:
    """Whether what the epilogue adds makes another schedule faster than a measured one, or a wide
    ping-pong tile exists that was no candidate when the entry was measured.

    With the entry's epilogue the measured schedule was the faster one, by what the estimate says or
    by more than nothing. So the longer epilogue must cost it more than that in comparison with the
    other.
    """
    without = replace(problem, epilogue_instructions=tuned.problem.epilogue_instructions)
    if problem.epilogue_instructions <= without.epilogue_instructions:
        return False
    found = fastest(problem, target)
    if found is None:
        return False
    if found.wide and not tuned.schedule.wide:
        return True
    with_it, bare = (
        [estimate(each, one, target).total_us for one in (tuned.schedule, found)]
        for each in (problem, without)
    )
    lead = max(0.0, bare[1] - bare[0])
    return (with_it[0] - bare[0]) - (with_it[1] - bare[1]) > lead


def explain_schedule(spec: MatmulSpec, target: Target) -> Choice:
    """The choice with every rejected candidate and why; `CompileError` when none is left."""
    return explained(Problem.of(spec, target), target)


def explained(problem: Problem, target: Target) -> Choice:
    """The same for a problem."""
    legal, broken = judged(problem, target)
    tuned = measured_schedule(problem, target)
    if tuned is not None:
        return _measured_choice(problem, target, tuned, legal, broken)
    if not legal:
        raise _none_left(problem, broken)
    taken, *others = legal
    slower = [_slower(taken, other) for other in others]
    return Choice(taken[1], taken[0], tuple(slower + broken))


def judged(
    problem: Problem, target: Target
) -> tuple[list[tuple[Estimate, Schedule]], list[Rejected]]:
    """The candidates that keep every rule, the fastest by estimate first, and the rejected ones."""
    broken, legal = [], []
    first_broken = broken_rules(problem, target)
    for candidate in candidates(problem, target):
        found = first_broken(candidate)
        if found:
            broken.append(Rejected(candidate, *found))
        else:
            legal.append((estimate(problem, candidate, target), candidate))
    legal.sort(key=lambda pair: rank(pair[0].total_us, pair[1]))
    return legal, broken


def _none_left(problem: Problem, broken: list[Rejected]) -> CompileError:
    example = max(broken, key=lambda rejected: list(RULES).index(rejected.rule))
    return CompileError(
        f"schedule: one of {len(broken)} candidates must keep every rule, got none for "
        f"{problem.m}x{problem.n}x{problem.k}; {example.rule}: {example.reason}"
    )


def _measured_choice(
    problem: Problem,
    target: Target,
    tuned: Tuned,
    legal: list[tuple[Estimate, Schedule]],
    broken: list[Rejected],
) -> Choice:
    reason = f"a table has a measured one: {tuned.describe()}"
    others = [
        Rejected(schedule, "measured", f"{found.total_us:.2f} us by estimate; {reason}", found)
        for found, schedule in legal
        if schedule != tuned.schedule
    ]
    found = estimate(problem, tuned.schedule, target)
    return Choice(tuned.schedule, found, tuple(others + broken), tuned)


def _slower(taken: tuple[Estimate, Schedule], other: tuple[Estimate, Schedule]) -> Rejected:
    found, schedule = other
    more = found.total_us - taken[0].total_us
    if more > 0:
        reason = f"{more:.2f} us more, bound by {found.bound}"
    elif more < 0:
        reason = f"{-more:.2f} us less, within the margin of such parts of K"
    else:
        reason = "no faster and less simple"
    return Rejected(schedule, "estimate", f"{found.total_us:.2f} us, {reason}", found)
