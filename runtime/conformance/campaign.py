"""Runs families of cases on a subject, sorts the outcomes, and reduces failures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from ..element_types import ITEM_BYTES
from ..errors import DeviceError
from .calls import run_case
from .cases import Case, Family
from .subjects import OutOfDomain, Subject
from .verdicts import Outcome, Verdict, first_line

SHRINKING_RUNS = 60
FAULTS_OF_CUDA = ("CUDA error", "illegal memory access", "misaligned address", "unspecified launch")


@dataclass
class FamilyResult:
    """What became of a family: cases by verdict, the smallest failing case, what was refused.

    skipped: why no case of it ran, "" if some did. unfinished: cases for which no time was left.
    """

    family: Family
    counts: Counter[Verdict] = field(default_factory=Counter)
    failing: Case | None = None
    failure: str = ""
    refused: Case | None = None
    refusal: str = ""
    skipped: str = ""
    notes: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0

    @property
    def failed(self) -> bool:
        return any(verdict.failed for verdict in self.counts)

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count a case; of failures and refusals the first is kept."""
        self.counts[outcome.verdict] += 1
        if outcome.verdict.failed and self.failing is None:
            self.failing, self.failure = case, outcome.detail
        if outcome.verdict is Verdict.REFUSED and self.refused is None:
            self.refused, self.refusal = case, outcome.detail
        if outcome.verdict in (Verdict.RIGHT, Verdict.SKIPPED) and outcome.detail:
            self.notes[outcome.detail] += 1


def run_family(
    subject: Subject,
    family: Family,
    *,
    large: bool = False,
    deadline: float | None = None,
    on_case: Callable[[Case], None] | None = None,
) -> FamilyResult:
    """Run the cases of a family until `deadline` (time.monotonic), and shrink the first failure.

    `large`: also the families that need gigabytes.
    """
    result = FamilyResult(family, skipped=_why_not(subject, family, large))
    if result.skipped:
        return result
    for case in cases_of(subject, family):
        if deadline is not None and time.monotonic() > deadline:
            result.unfinished += 1
            continue
        if on_case:
            on_case(case)
        result.add(case, try_case(subject, case))
    if result.failing is not None and subject.any_size and not family.large:
        result.failing, result.failure = shrink(subject, result.failing, result.failure, deadline)
    return result


def _why_not(subject: Subject, family: Family, large: bool) -> str:
    """Why a family is not for this subject, or ""."""
    if family.sizes_vary and not (subject.any_size or subject.any_rows):
        return "it takes one size"
    if family.needs_all_sizes and not subject.any_size:
        return "it takes one N and one K"
    if family.layouts and not subject.layouts:
        return "it takes one layout"
    if family.calls and not subject.calls:
        return "it is no function"
    if family.place == "cuda" and not subject.memory.startswith("cuda"):
        return "needs a GPU"
    if family.place == "emulator" and subject.device != "emulator":
        return "needs the emulator"
    return "" if large or not family.large else "needs --large"


def cases_of(subject: Subject, family: Family) -> Iterator[Case]:
    """The family's cases for the sizes and types of a subject.

    Of one that takes any number of rows they have its own N and K, each case once.
    """
    found: Iterable[Case] = family.make(subject.size, ITEM_BYTES[subject.dtypes[0]])
    if subject.any_rows:
        _, n, k = subject.size
        found = dict.fromkeys(replace(case, n=n, k=k) for case in found)
    yield from found


def try_case(subject: Subject, case: Case) -> Outcome:
    """The verdict on a case, whatever the subject raises."""
    try:
        return run_case(subject, case)
    except OutOfDomain as error:
        return Outcome(Verdict.SKIPPED, str(error))
    except MemoryError as error:
        return Outcome(Verdict.SKIPPED, first_line(error))
    except (Exception, SystemExit) as error:  # a subject may raise anything
        return Outcome(_verdict_of(error), first_line(error))


def _verdict_of(error: BaseException) -> Verdict:
    """FAULT for what the emulator's judge or the GPU stopped, else REFUSED."""
    is_trap = isinstance(error, DeviceError) and hasattr(error, "category")
    if is_trap and getattr(error, "category", "") != "unmodelled":
        return Verdict.FAULT
    faulty = any(words in str(error) for words in FAULTS_OF_CUDA)
    return Verdict.FAULT if faulty else Verdict.REFUSED


def shrink(
    subject: Subject, case: Case, failure: str, deadline: float | None = None
) -> tuple[Case, str]:
    """A case no larger that still fails, and how: extents become 1, a half, or one less."""
    runs, again = 0, True
    while again and runs < SHRINKING_RUNS:
        again = False
        for smaller in _smaller(case):
            runs += 1
            if runs > SHRINKING_RUNS or (deadline is not None and time.monotonic() > deadline):
                return case, failure
            outcome = try_case(subject, smaller)
            if outcome.verdict.failed:
                case, failure, again = smaller, outcome.detail, True
                break
    return case, failure


def _smaller(case: Case) -> Iterator[Case]:
    """Smaller cases: less of one axis, or of all that are equal."""
    if case.aliased:
        return
    for axes in ("m", "n", "k", "mn", "mk", "nk", "mnk"):
        extents = {getattr(case, axis) for axis in axes}
        extent = extents.pop()
        for less in sorted({1, extent // 2, extent - 1}):
            if 0 < less < extent and not extents:
                yield replace(case, **dict.fromkeys(axes, less))
