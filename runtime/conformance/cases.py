"""The cases: sizes, layouts, values and ways to call that kernels often get wrong.

A family is a list of cases of one subject, the smallest first, so that the first one that fails is
close to the smallest.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

Size = tuple[int, int, int]
TAILS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 72, 96, 127, 128,
         129, 136, 191, 200, 255, 257, 320)  # fmt: skip
"""Extents on both sides of the sizes that tiles, MMAs, vectors and TMA boxes have."""
MANY = 2**31


@dataclass(frozen=True)
class Layout:
    """How a matrix of the subject's own shape lies in memory; gaps are filled with NaN.

    order: "row" or "column", the axis along which neighbours touch is the last or the first.
    padding: elements between one row (or column) and the next. offset: elements before the first,
    which starts at a multiple of 256 bytes without them. expanded: an axis whose stride is 0.
    """

    order: str = "row"
    padding: int = 0
    offset: int = 0
    expanded: int | None = None

    def __str__(self) -> str:
        parts = [self.order] if self.order != "row" else []
        parts += [f"padded by {self.padding}"] if self.padding else []
        parts += [f"{self.offset} elements in"] if self.offset else []
        parts += [f"axis {self.expanded} expanded"] if self.expanded is not None else []
        return ", ".join(parts) or "dense"


DENSE = Layout()


@dataclass(frozen=True)
class Case:
    """One product C[m,n] = A · B to try.

    values: a name of `values.VALUES`. call: a name of `calls.CALLS`. seed: fixes the values.
    aliased: B is the very array that A is.
    """

    m: int
    n: int
    k: int
    a: Layout = DENSE
    b: Layout = DENSE
    values: str = "normal"
    call: str = "plain"
    seed: int = 0
    aliased: bool = False

    def __str__(self) -> str:
        parts = [f"{self.m}×{self.n}×{self.k}"]
        parts += [f"a {self.a}"] if self.a != DENSE else []
        parts += [f"b {self.b}"] if self.b != DENSE else []
        parts += [self.values] if self.values != "normal" else []
        parts += ["b is a"] if self.aliased else []
        return ", ".join(parts)

    @property
    def size(self) -> Size:
        return self.m, self.n, self.k


@dataclass(frozen=True)
class Family:
    """Cases of one kind. sizes_vary: whether the cases need a subject of any size.

    make(size, a_bytes): the cases; `size` is one that the subject takes, `a_bytes` an element's.
    layouts: whether the cases need operands that lie otherwise. calls: whether they need a function
    to call. place: "cuda" or "emulator" for what only one has. large: run only when asked for.
    needs_all_sizes: whether they need any N and K, too.
    """

    name: str
    about: str
    make: Callable[[Size, int], Iterator[Case]] = field(repr=False)
    sizes_vary: bool = True
    layouts: bool = False
    calls: bool = False
    place: str | None = None
    large: bool = False
    needs_all_sizes: bool = False


def _some_are(extent: int) -> Callable[[Size, int], Iterator[Case]]:
    """One, two or all three of M, N and K have this extent."""

    def make(size: Size, _: int) -> Iterator[Case]:
        m, n, k = size
        for case in itertools.product((extent, m), (extent, n), (extent, k)):
            if extent in case:
                yield Case(*case)

    return make


def _tails(axis: str) -> Callable[[Size, int], Iterator[Case]]:
    def make(size: Size, _: int) -> Iterator[Case]:
        for extent in TAILS:
            yield replace(Case(*size), **{axis: extent})

    return make


def _drawn(_: Size, __: int) -> Iterator[Case]:
    draw = random.Random(20)
    for seed in range(16):
        m, n, k = (draw.randint(1, 300) for _ in range(3))
        yield Case(m, n, k, seed=seed)


def _padded(size: Size, _: int) -> Iterator[Case]:
    for padding in (1, 3, 8, 24):
        layout = Layout(padding=padding)
        for a, b in ((layout, DENSE), (DENSE, layout), (layout, layout)):
            yield Case(*size, a=a, b=b)


def _unaligned(size: Size, item_bytes: int) -> Iterator[Case]:
    for offset in sorted({1, 2, 3, 8 // item_bytes, 16 // item_bytes, 64}):
        layout = Layout(offset=offset)
        for a, b in ((layout, DENSE), (DENSE, layout), (layout, layout)):
            yield Case(*size, a=a, b=b)


def _majors(size: Size, item_bytes: int) -> Iterator[Case]:
    column = Layout("column")
    m, n, k = size
    for a, b in itertools.product((DENSE, column), repeat=2):
        yield Case(m, n, k, a=a, b=b)
        yield Case(m + 1, n + 3, k + 5, a=a, b=b)
        yield Case(m, n, k, a=replace(a, padding=8), b=replace(b, padding=5), seed=1)


def _expanded(size: Size, _: int) -> Iterator[Case]:
    for axis in (0, 1):
        layout = Layout(expanded=axis)
        for a, b in ((layout, DENSE), (DENSE, layout), (layout, layout)):
            yield Case(*size, a=a, b=b)


def _square(size: Size, _: int) -> Iterator[Case]:
    """Where what is turned around has the right shape all the same."""
    m, n, k = size
    yield from (Case(*each) for each in ((n, n, k), (m, n, n), (n, k, n), (k, k, k), (m, m, m)))


def _aliased(size: Size, _: int) -> Iterator[Case]:
    m, _n, k = size
    yield Case(k, k, k, aliased=True)
    yield Case(m, m, m, aliased=True, seed=1)


def _valued(*names: str) -> Callable[[Size, int], Iterator[Case]]:
    def make(size: Size, _: int) -> Iterator[Case]:
        for name in names:
            yield Case(*size, values=name)

    return make


def _called(call: str, count: int = 1) -> Callable[[Size, int], Iterator[Case]]:
    def make(size: Size, _: int) -> Iterator[Case]:
        yield from (Case(*size, call=call, seed=seed) for seed in range(count))

    return make


def _large(_: Size, __: int) -> Iterator[Case]:
    """More elements than 31 bits count: in A, in B, in C."""
    rows, side = MANY // 64 + 17, 46_349
    yield Case(rows, 8, 64, call="sampled")
    yield Case(8, rows, 64, call="sampled")
    yield Case(side, side, 16, call="sampled")


FAMILIES = (
    Family("ones", "M, N or K of 1", _some_are(1)),
    Family("zeros", "M, N or K of 0: an empty result, or zeros", _some_are(0)),
    Family("k-tails", "K on both sides of what tiles and vectors have", _tails("k")),
    Family("ragged-m", "M likewise", _tails("m")),
    Family("ragged-n", "N likewise", _tails("n")),
    Family("drawn", "sizes drawn at random", _drawn),
    Family("padded", "leading dimensions with gaps, which hold NaN", _padded, False, True),
    Family("unaligned", "operands that start anywhere", _unaligned, False, True),
    Family("majors", "row- and column-major operands", _majors, True, True),
    Family("expanded", "operands with a stride of 0", _expanded, False, True),
    Family("square", "M = N, N = K, or all equal", _square),
    Family("aliased", "one array as both operands", _aliased, True,
           needs_all_sizes=True),
    Family("values", "identity, small integers, cancellation, zeros of both signs",
           _valued("identity", "small-integers", "cancelling", "signed-zeros", "zeros"), False),
    Family("extremes", "the greatest, the smallest normal and denormal numbers",
           _valued("greatest", "smallest", "denormal", "overflowing"), False),
    Family("non-finite", "NaN and infinities, which go where they must and nowhere else",
           _valued("nan-in-a", "nan-in-b", "infinity", "opposite-infinities", "infinity-by-zero"),
           False),
    Family("out", "a given output: written whole, nothing beside it",
           _called("out", 2), False, calls=True),
    Family("again", "the same again: new values, then the first ones",
           _called("again", 2), False, calls=True),
    Family("threads", "calls of several threads at once",
           _called("threads", 2), False, calls=True),
    Family("streams", "two streams whose operands are late",
           _called("stream", 3), False, calls=True, place="cuda"),
    Family("graph", "captured in a CUDA graph, replayed on other values",
           _called("graph", 2), False, calls=True, place="cuda"),
    Family("orders", "other orders of events, each a legal one",
           _called("plain", 8), False, place="emulator"),
    Family("large", "more than 2^31 elements", _large, large=True, needs_all_sizes=True),
)  # fmt: skip
