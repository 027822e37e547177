"""Positions of a thread in an instruction's fragment, as IR and numbers.

    row_in(fragment, lane=…, warp=…)    of value 0, as IR: warp * 16 + lane / 4
    column_in(fragment, lane=…)         of value 0, as IR: lane % 4 * 2
    matrix_row(origins, number)         of an 8x8 matrix of ldmatrix or stmatrix

The layouts are those of `dialects/fragments.py`, which hold the ISA's tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, reduce
from typing import Any, NamedTuple

from ..dialects.fragments import Fragment, wgmma
from ..dialects.integers import constant
from ..dialects.mlir import ir
from ..dialects.target import WARP_THREADS, WARPGROUP_THREADS

COLUMNS = wgmma(8, 16, "d", 32)
"""What a thread has of 8 columns of an MMA's sums in registers; every 8 columns repeat it."""
PAIR, PAIR_EVERY = COLUMNS.values // 2, COLUMNS.shape[1]
"""Neighbouring columns that a thread has of a row, and how many further the next ones are."""
ROW_DISTANCE = COLUMNS.element(0, PAIR)[0]
"""Rows between a thread's two."""
ATOM_M = COLUMNS.shape[0]
Place = tuple[int, int]


@cache
def behind(value: int) -> Place:
    """(rows, columns) of a thread's value after its first one, in fragments side by side."""
    eight, number = divmod(value, COLUMNS.values)
    row, column = COLUMNS.element(0, number)
    return row, COLUMNS.shape[1] * eight + column


def held_row(thread: ir.Value, m: int, rows: int, by_lanes: bool = False) -> ir.Value:
    """The first row of a tile of `m` that a warp has, where a warpgroup has `rows` of them.

    Of products that come from tensor memory (`by_lanes`), a warp has rows of its quarter of lanes,
    which two warpgroups share.
    """
    warp, whole = thread // WARP_THREADS % 4, rows == m
    if by_lanes and not whole:
        return warp * (m // 4) + thread // WARPGROUP_THREADS * (m // 8)
    row = row_in(COLUMNS, warp=warp)
    return row if whole else row + thread // WARPGROUP_THREADS * rows


class Part(NamedTuple):
    """A mode of a fragment's threads: number / before % extent, times stride in its tile."""

    of_warp: bool
    before: int
    extent: int
    is_last: bool
    stride: int

    def of(self, number: ir.Value) -> ir.Value:
        """The part's coordinate; the last one of a number needs no remainder."""
        part = number // self.before
        return part if self.is_last else part % self.extent


def row_in(
    fragment: Fragment, lane: ir.Value | None = None, warp: ir.Value | None = None
) -> ir.Value:
    """The rows that lane, warp or both add to that of a thread's value 0."""
    rows = fragment.shape[0]
    own = [part for part in _parts(fragment) if part.stride < rows]
    return _sum(own, 1, {False: lane, True: warp})


def column_in(
    fragment: Fragment, lane: ir.Value | None = None, warp: ir.Value | None = None
) -> ir.Value:
    """The columns that lane, warp or both add to that of a thread's value 0."""
    rows = fragment.shape[0]
    own = [part for part in _parts(fragment) if part.stride >= rows]
    return _sum(own, rows, {False: lane, True: warp})


def _parts(fragment: Fragment) -> Iterator[Part]:
    done, of_warp = 1, False
    for extent, stride in fragment.layout.modes[0].leaves():
        if done == WARP_THREADS and not of_warp:
            done, of_warp = 1, True
        whole = fragment.threads // WARP_THREADS if of_warp else WARP_THREADS
        yield Part(of_warp, done, extent, done * extent == whole, stride)
        done *= extent


def _sum(parts: list[Part], unit: int, numbers: dict[bool, ir.Value | None]) -> ir.Value:
    """The sum of the parts whose index exists, the largest first."""
    terms = []
    for part in sorted(parts, key=lambda part: -part.stride):
        number = numbers[part.of_warp]
        if number is not None:
            terms.append(part.of(number) * (part.stride // unit))
    return reduce(lambda left, right: left + right, terms) if terms else constant(0)


def matrix_row(origins: tuple[Place, ...], number: Any) -> Any:
    """The row at which the 8x8 matrix of that number begins: IR, or an integer as the number.

    Lane t of ldmatrix or stmatrix names row t % 8 of matrix t / 8 (PTX ISA). Origins are sums of
    the second and the third.
    """
    return _along(_steps(origins, 0), number)


def matrix_column(origins: tuple[Place, ...], number: Any) -> Any:
    """The column at which it begins."""
    return _along(_steps(origins, 1), number)


@cache
def _steps(origins: tuple[Place, ...], axis: int) -> tuple[Place, ...]:
    """(bit, step): what the bits of a matrix's number add along an axis."""
    steps = tuple((1 << bit, at[axis]) for bit, at in enumerate(origins[1:3]) if at[axis])
    assert all(_along(steps, number) == at[axis] for number, at in enumerate(origins))
    return steps


def _along(steps: tuple[Place, ...], number: Any) -> Any:
    terms = [(number // bit if bit == 2 else number // bit % 2) * step for bit, step in steps]
    return reduce(lambda left, right: left + right, terms) if terms else 0
