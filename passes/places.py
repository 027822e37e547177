"""Where a thread stands in an instruction's fragment, as IR that its layout gives.

    row, column = place_in(fragment, lane, warp)     of value 0: lane % 4 * 2, warp * 16 + lane / 4

The layouts are those of `dialects/fragments.py`, which hold the ISA's tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from ..dialects.fragments import Fragment
from ..dialects.mlir import ir
from ..dialects.target import WARP_THREADS

Part = tuple[ir.Value, int, int]


def place_in(
    fragment: Fragment, lane: ir.Value, warp: ir.Value | None = None
) -> tuple[ir.Value | None, ir.Value | None]:
    """Row and column of a thread's first value, None for 0; warp: where several share one.

    The parts of the largest stride are added first.
    """
    rows, columns = [], []
    for part, extent_left, stride in _parts(fragment, lane, warp):
        value = part % extent_left if extent_left else part
        if stride < fragment.shape[0]:
            rows.append((stride, value))
        else:
            columns.append((stride // fragment.shape[0], value))
    return _sum(rows), _sum(columns)


def _parts(fragment: Fragment, lane: ir.Value, warp: ir.Value | None) -> Iterator[Part]:
    """(number, extent that it has to be cut to or 0, stride) of each mode of the threads."""
    numbers, extents = iter([lane, warp]), [WARP_THREADS, fragment.threads // WARP_THREADS]
    number, whole, done = next(numbers), extents.pop(0), 1
    for extent, stride in fragment.layout.modes[0].leaves():
        if done == whole:
            number, whole, done = next(numbers), extents.pop(0), 1
        assert number is not None, f"{fragment.name}: several warps share it"
        yield number // done, (extent if done * extent < whole else 0), stride
        done *= extent


def _sum(parts: list[tuple[int, ir.Value]]) -> ir.Value | None:
    terms = [value * stride for stride, value in sorted(parts, key=lambda part: -part[0])]
    return reduce(lambda left, right: left + right, terms) if terms else None
