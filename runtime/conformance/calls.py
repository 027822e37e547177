"""How a case is called, and what is checked afterwards.

Before every call the memory of an earlier poisoned array of C's size is given back, so that an
allocator hands it out again; after it, no bit in or around the operands may have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .cases import Case, Layout
from .operands import Placed, empty_output, place, poison_memory
from .subjects import Product, Subject
from .values import make_values
from .verdicts import RIGHT, Outcome, Verdict, judge, sums

THREADS, CALLS_A_THREAD = 4, 3
LATE_CYCLES = 40_000_000


@dataclass
class Operands:
    """A and B of a case where the subject takes them; b_shape as the subject's."""

    a: Placed
    b: Placed
    b_shape: str

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """A [m, k] and B [n, k] in float64."""
        b = self.b.values()
        return self.a.values(), b.T if self.b_shape == "kn" else b

    def become(self, other: Operands) -> None:
        """Hold the values of others that lie alike."""
        self.a.view.copy_(other.a.view)
        self.b.view.copy_(other.b.view)


def run_case(subject: Subject, case: Case) -> Outcome:
    """One case, to its verdict; exceptions of the subject are its caller's to sort."""
    return CALLS[case.call](subject, case)


def make_operands(subject: Subject, case: Case) -> Operands | None:
    """The operands of a case, or None where their types have no such values."""
    made = make_values(case.values, case.size, subject.dtypes[0], case.seed)
    if made is None:
        return None
    own = made[1].T if subject.b_shape == "kn" else made[1]
    a = place(made[0], subject.dtypes[0], _own(case.a, subject.a_layout), subject.memory)
    if case.aliased:
        return Operands(a, a, subject.b_shape)
    b = place(own, subject.dtypes[1], _own(case.b, subject.b_layout), subject.memory)
    return Operands(a, b, subject.b_shape)


def _own(asked: Layout, usual: Layout) -> Layout:
    return replace(asked, order=usual.order) if asked.order == "row" else asked


def check(subject: Subject, operands: Operands, made: Product) -> Outcome:
    """The verdict on a result, and on what became of the operands."""
    on_gpu = subject.memory.startswith("cuda")
    found = sums(*operands.values(), subject.dtypes, on_gpu)
    outcome = judge(subject.expected(found, made.dtype), made.values(), made.dtype)
    if outcome.verdict is not Verdict.RIGHT:
        return outcome
    for name, placed in (("A", operands.a), ("B", operands.b)):
        if not placed.is_untouched():
            return Outcome(Verdict.WRONG, f"wrote to the memory of {name}, which is an input")
    return Outcome(Verdict.RIGHT, ", ".join(f"warning {each}" for each in made.warnings))


def _call(subject: Subject, operands: Operands, case: Case, out: Placed | None = None) -> Product:
    poison_memory((case.m, case.n), subject.memory)
    return subject.product(operands.a, operands.b, out, case.seed)


def _plain(subject: Subject, case: Case) -> Outcome:
    operands = make_operands(subject, case)
    if operands is None:
        return _no_values(subject, case)
    return check(subject, operands, _call(subject, operands, case))


def _no_values(subject: Subject, case: Case) -> Outcome:
    return Outcome(Verdict.SKIPPED, f"{subject.dtypes[0]} has no values called {case.values}")


def _out(subject: Subject, case: Case) -> Outcome:
    """Into a given output: of rows that touch, and of rows with gaps."""
    if not subject.takes_out:
        return Outcome(Verdict.SKIPPED, "takes no out=")
    operands = make_operands(subject, case)
    if operands is None:
        return _no_values(subject, case)
    dtype = _call(subject, operands, case).dtype
    out = empty_output((case.m, case.n), dtype, 5 * (case.seed % 2), subject.memory)
    _call(subject, operands, case, out)
    if not out.is_untouched_around():
        return Outcome(Verdict.WRONG, "wrote beside the output")
    return check(subject, operands, Product(out.view, dtype))


def _again(subject: Subject, case: Case) -> Outcome:
    """New values in the same arrays, then the first ones; the first result must stay as it is."""
    first, other = (make_operands(subject, replace(case, seed=seed)) for seed in (case.seed, 77))
    operands = make_operands(subject, case)
    if first is None or other is None or operands is None:
        return _no_values(subject, case)
    kept = []
    for given in (first, other, first):
        operands.become(given)
        kept.append((given, _call(subject, operands, case)))
    return _first_failure([check(subject, given, made) for given, made in kept])


def _threads(subject: Subject, case: Case) -> Outcome:
    """Several threads that call with arrays of their own, of several sizes if there are."""
    cases = [_of_thread(subject, case, number) for number in range(THREADS)]
    outcomes: list[Any] = []

    def work(mine: Case) -> None:
        for turn in range(CALLS_A_THREAD):
            try:
                outcomes.append(_plain(subject, replace(mine, seed=mine.seed + turn)))
            except (Exception, SystemExit) as error:  # raised again below, in the thread that asked
                outcomes.append(error)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in outcomes:
        if isinstance(each, BaseException):
            raise each
    return _first_failure(outcomes)


def _of_thread(subject: Subject, case: Case, number: int) -> Case:
    grows = subject.any_size or subject.any_rows
    grown = case.m + 8 * number if grows else case.m
    return replace(case, m=grown, call="plain", seed=100 * case.seed + 10 * number)


def _first_failure(outcomes: list[Outcome]) -> Outcome:
    return next((each for each in outcomes if each.verdict is not Verdict.RIGHT), RIGHT)


def _stream(subject: Subject, case: Case) -> Outcome:
    """Two streams whose operands arrive late; a call on a third would see NaN."""
    import torch

    pairs, results = [], []
    for number in range(2):
        real, late = (make_operands(subject, replace(case, seed=case.seed + number)) for _ in "ab")
        assert real is not None and late is not None
        late.a.view.fill_(float("nan") if late.a.view.is_floating_point() else 1)
        pairs.append((torch.cuda.Stream(), real, late))
    subject.product(pairs[0][1].a, pairs[0][1].b)  # what is compiled or loaded first is no stream's
    torch.cuda.synchronize()
    for stream, real, late in pairs:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(LATE_CYCLES)
            late.become(real)
            results.append((real, subject.product(late.a, late.b)))
    torch.cuda.synchronize()
    return _first_failure([check(subject, given, made) for given, made in results])


def _graph(subject: Subject, case: Case) -> Outcome:
    """Captured once, replayed on other values in the same arrays."""
    import torch

    operands, other = (make_operands(subject, replace(case, seed=s)) for s in (case.seed, 55))
    assert operands is not None and other is not None
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        subject.product(operands.a, operands.b)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = subject.product(operands.a, operands.b)
    operands.become(other)
    graph.replay()
    torch.cuda.synchronize()
    return check(subject, other, made)


def _sampled(subject: Subject, case: Case) -> Outcome:
    from .large import run_large

    return run_large(subject, case)


CALLS: Mapping[str, Callable[[Subject, Case], Outcome]] = {
    "plain": _plain,
    "out": _out,
    "again": _again,
    "threads": _threads,
    "stream": _stream,
    "graph": _graph,
    "sampled": _sampled,
}
