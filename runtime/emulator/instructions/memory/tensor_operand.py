"""What tensor copies have in common: dimension, mode, `[map, {coordinates}]` and cache policy.

Source: PTX ISA, "Data Movement and Conversion Instructions: Tensor copy".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...copies.box_copy import BoundMap, bound_map
from ...copies.im2col import MIN_RANK
from ...copies.tensor_map import TiledMap
from ...errors import Trap
from ...interface import Warp
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lane_forms import LaneValue, address_of, value_of

_RANKS = ("1d", "2d", "3d", "4d", "5d")
_UNMODELLED_MODES = ("im2col::w", "im2col::w::128")
COLUMNS = "im2col"
COLUMNS_STORED = "im2col_no_offs"
START_UNIT = 16
"""Bytes. Measured on an H200 (docs/hopper.md, "Checked"); PTX ISA section 5.5 has no such rule."""
_ROWS = 4
"""Rows of a gather4 or scatter4: coordinates behind the one of dimension 0."""

Boxes = tuple[BoundMap, tuple[tuple[int, ...], ...]]
"""A tensor map and the coordinates of the boxes that an instruction copies."""


@dataclass(frozen=True)
class Mode:
    """Dimensions of the map, and how the instruction names its boxes: a gather4 or scatter4 by
    their rows (by_row), im2col by a column of pixels (by_pixel), with offsets in loads."""

    rank: int
    by_row: bool = False
    by_pixel: bool = False
    offsets: int = 0

    @property
    def coordinates(self) -> int:
        """Coordinates of the instruction."""
        return 1 + _ROWS if self.by_row else self.rank

    def starts(self, tiled: TiledMap, numbers: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Coordinates of the boxes that the copy is made of, by its coordinates and offsets."""
        if self.by_pixel:
            coordinates, offsets = numbers[: self.rank], numbers[self.rank :]
            none = (0,) * (self.rank - 2)
            return tiled.im2col.pixels_from(tiled, coordinates, offsets or none)
        if not self.by_row:
            return (numbers,)
        return tuple((numbers[0], row) for row in numbers[1:])

    def check(self, bound: BoundMap) -> None:
        """Trap unless the map fits the mode."""
        if bound.map.rank != self.rank:
            raise Trap("tma", f"the tensor map has rank {bound.map.rank}, the instruction"
                              f" .{self.rank}d")  # fmt: skip
        if self.by_pixel != (bound.map.im2col is not None):
            kinds = ("tiled", "im2col")
            raise Trap("tma", f"the tensor map is {kinds[not self.by_pixel]}, the instruction"
                              f" {kinds[self.by_pixel]}")  # fmt: skip
        if self.by_row and bound.map.rows != 1:
            raise Trap("tma", f"a gather or scatter of rows needs a box of one row, got"
                              f" {bound.map.rows}")  # fmt: skip


def take_mode(ins: Decoded, by_row: str | None, by_pixel: str) -> Mode:
    """Consume the dimension and the mode, which may be `by_row` (tile::gather4 or scatter4) or
    `by_pixel` (`COLUMNS` or `COLUMNS_STORED`)."""
    rank = int(ins.required(_RANKS)[0])
    modes = "tile", "tile::gather4", "tile::scatter4", COLUMNS, COLUMNS_STORED, *_UNMODELLED_MODES
    mode = ins.choice(modes, "tile")
    if mode == "tile":
        return Mode(rank)
    if mode == by_row and rank == 2:
        return Mode(rank, by_row=True)
    if mode != by_pixel or rank < MIN_RANK:
        ins.unmodelled(f"mode .{mode} of {rank} dimensions")
    return Mode(rank, by_pixel=True, offsets=rank - 2 if mode == COLUMNS else 0)


def take_policy(ins: Decoded, operands: int) -> None:
    """Consume the cache hint and check its policy operand behind ``operands`` others."""
    hinted = ins.flag("L2::cache_hint")
    ins.expect_operands(operands + hinted)
    if hinted:
        ins.read(operands, np.uint64)


@dataclass(frozen=True)
class TensorOperand:
    """Closures of a ``[map, {coordinates}]`` operand, and of the offsets of im2col loads. values:
    the same for `lane_forms`."""

    address: Callable[[Warp, int], int]
    coordinates: tuple[Callable[[Warp, int], int], ...]
    mode: Mode
    values: tuple[LaneValue | None, ...]

    def read(self, warp: Warp, lane: int) -> tuple[int, ...]:
        """The address, the coordinates and the offsets in one lane."""
        return self.address(warp, lane), *[axis(warp, lane) for axis in self.coordinates]

    def bound(self, warp: Warp, lane: int) -> Boxes:
        """The map and the coordinates of the boxes that one lane copies."""
        return self.bound_at(warp, *self.read(warp, lane))

    def bound_at(self, warp: Warp, address: int, *coordinates: int) -> Boxes:
        """The same for an address, coordinates and offsets."""
        bound = bound_map(warp.cta, address)
        self.mode.check(bound)
        _check_start(bound, coordinates[0])
        return bound, self.mode.starts(bound.map, coordinates)


def _check_start(bound: BoundMap, coordinate: int) -> None:
    """Trap where a box would start inside 16 bytes of a row; packed types have a rule of theirs."""
    kind = bound.map.dtype
    if kind.unit == 1 and coordinate * kind.bytes % START_UNIT:
        raise Trap(
            "tma",
            f"coordinate 0 must be a multiple of {START_UNIT} bytes, got {coordinate} elements of"
            f" {kind.bytes}: an H200 stops there as at an illegal instruction; start at the"
            " multiple before",
        )


def tensor_operand(
    ins: Decoded, at: int, mode: Mode, offsets_at: int | None = None
) -> TensorOperand:
    """Decode operand ``at`` as a tensor map address with the coordinates of a mode, and another one
    as its offsets."""
    operand = ins.operand(at)
    if not isinstance(operand, syntax.Address) or operand.coordinates is None:
        ins.unmodelled("a tensor operand without coordinates")
    axes = ins.elements(operand.coordinates, mode.coordinates)
    reads = tuple(ins.read_lane(axis, np.int32) for axis in axes)
    values = address_of(ins, at), *[value_of(ins, axis, np.int32) for axis in axes]
    if mode.offsets and offsets_at is not None:
        more = ins.elements(ins.operand(offsets_at), mode.offsets)
        reads += tuple(ins.read_lane(offset, np.uint16) for offset in more)
        values += tuple(value_of(ins, offset, np.uint16) for offset in more)
    return TensorOperand(ins.lane_address(at), reads, mode, values)
