"""Fragments of operand tiles, from any of the eight layouts of shared memory.

K-major    16 bytes of K of 8 rows are a matrix of ldmatrix, whatever the type: a register of an
           operand of mma.sync holds neighbours along K
MN-major   of 16 bits: 8 neighbours of M or N at 8 places of K, by ldmatrix.trans
           of others: each element by a load of its own

All addresses of a warp differ from those of its first MMA by the same bytes, which are an immediate
of the address, and by bits that a swizzle permutes, which are one exclusive or for several loads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.fragments import REGISTER_BITS, ROWS, Fragment, find_fragment
from ....dialects.layout import UNIT_BYTES, TileLayout
from ....dialects.mlir import arith, ir, vector
from ....dialects.target import WARP_THREADS
from ... import build
from ...places import Place, matrix_column, matrix_row
from .units import unit_offset

MATRICES_MAX = 4
FRAGMENT_BITS = 8 * 32  # along K, of an operand of an MMA
CENTRED_BITS, CENTRED_AT = 4, 2
UNIT_BITS = 0x70  # of an address: those that a swizzle changes
Pattern = Callable[[Any], tuple[Any, Any]]


class Operand(NamedTuple):
    """An operand tile of a warp: its layout, and the rows that a warp has from `first` on.

    `start` is the tile's byte in shared memory; `firsts` are the first rows of all warps. Elements
    of `padded_bits` lie 16 to 16 bytes, with a gap, and become bytes.
    """

    layout: TileLayout
    start: ir.Value
    first: ir.Value
    firsts: tuple[int, ...]
    fragments: int
    name: str
    padded_bits: int = 0

    def words(self, k: int, k_atom: int) -> list[ir.Value]:
        """For each MMA along the warp's rows its operand from `k` on: a vector of registers."""
        found: list[list[ir.Value]] = []
        for depth in fragments_along(k_atom, 8 * self.layout.element_bytes):
            found.append(self._fragments(k, depth))
            k += depth
        return [_in_one(list(several)) for several in zip(*found, strict=True)]

    def _fragments(self, k: int, depth: int) -> list[ir.Value]:
        fragment = find_fragment(f"m16n8k{depth}", self.name, 8 * self.layout.element_bytes)
        if self.layout.major == "k" or self.layout.element_bytes == 2:
            return self._by_matrices(fragment, k)
        return [self._by_elements(fragment, atom, k) for atom in range(self.fragments)]

    def _by_matrices(self, fragment: Fragment, k: int) -> list[ir.Value]:
        """Load by ldmatrix, up to four matrices at once."""
        found: list[ir.Value] = []
        while len(found) < self.fragments:
            left = self.fragments - len(found)
            atoms = MATRICES_MAX // fragment.registers
            while atoms > left:
                atoms //= 2
            words = self._load_matrices(fragment, len(found), atoms, k)
            found += _split(words, fragment.registers)
        return found

    def _load_matrices(self, fragment: Fragment, atom: int, atoms: int, k: int) -> ir.Value:
        origins = tuple(
            (place[0] + fragment.shape[0] * number, place[1])
            for number in range(atoms)
            for place in origins_of(fragment)
        )
        transposed = self.layout.major == "mn"
        pattern = matrix_rows(origins, transposed)
        pointer, offset = self.address(pattern, (fragment.shape[0] * atom, k))
        words = ir.VectorType.get([len(origins)], build.i32())
        if self.padded_bits:
            return _in_containers(pointer, offset, self.padded_bits, words)
        return sm.LdmatrixOp.of(
            pointer, offset=offset, transposed=int(transposed), words=words
        ).words

    def _by_elements(self, fragment: Fragment, atom: int, k: int) -> ir.Value:
        """Each register from as many loads as it has elements."""
        item = self.layout.element_bytes
        packed = REGISTER_BITS // (8 * item)
        words = []
        for register in range(fragment.registers):
            word = None
            for index in range(packed):
                pattern = element_places(fragment, packed * register + index)
                pointer, offset = self.address(pattern, (fragment.shape[0] * atom, k))
                at = build.offset_pointer(pointer, offset)
                part = llvm.load(ir.IntegerType.get_signless(8 * item), at, alignment=item)
                word = _joined(word, part, 8 * item * index)
            words.append(word)
        return vector.FromElementsOp(ir.VectorType.get([len(words)], build.i32()), words).result

    def address(self, pattern: Pattern, by: Place) -> tuple[ir.Value, int]:
        """(pointer, offset): where each lane's place lies, moved by rows and K."""
        move = move_of(self.layout, pattern, self.firsts, by)
        lane = build.special("tid.x") % WARP_THREADS
        row, k = pattern(lane)
        bits, offset = (0, 0) if move is None else move
        if move is None:
            row, k = row + by[0], k + by[1]
        place = self.start + element_offset(self.layout, row + self.first, k)
        return build.shared_at(place ^ bits if bits else place), offset


def fragments_along(k: int, bits: int) -> list[int]:
    """K of the fragments that hold `k` elements of so many bits: each has up to 32 bytes."""
    most = min(k, FRAGMENT_BITS // bits)
    return [most] * (k // most)


def _in_one(several: list[ir.Value]) -> ir.Value:
    """Vectors of registers as one."""
    if len(several) == 1:
        return several[0]
    first, second = several
    count = 2 * ir.VectorType(first.type).shape[0]
    type_ = ir.VectorType.get([count], build.i32())
    return llvm.shufflevector(type_, first, second, list(range(count)))


def _in_containers(pointer: ir.Value, offset: int, bits: int, words: ir.VectorType) -> ir.Value:
    """Elements in bytes as mma.sync takes them: of four bits in bits 5 to 2 (PTX ISA, mma.sync with
    .kind::mxf8f6f4), where ldmatrix leaves them in the lowest."""
    made = sm.LdmatrixPaddedOp.of(pointer, offset=offset, bits=bits, words=words).words
    if bits != CENTRED_BITS:
        return made
    two = ir.DenseElementsAttr.get_splat(words, ir.IntegerAttr.get(build.i32(), CENTRED_AT))
    return arith.shli(made, arith.ConstantOp(words, two).result)


def origins_of(fragment: Fragment) -> list[Place]:
    """The element with which the 8x8 matrix of each register begins: thread 0's first."""
    packed = fragment.values // fragment.registers
    return [fragment.element(0, packed * register) for register in range(fragment.registers)]


@functools.cache
def matrix_rows(origins: tuple[Place, ...], transposed: bool) -> Pattern:
    """The (row, k) at which the row of a matrix begins whose address the lane supplies."""

    def place(lane: Any) -> tuple[Any, Any]:
        row, k = matrix_row(origins, lane // ROWS), matrix_column(origins, lane // ROWS)
        return (row, k + lane % ROWS) if transposed else (row + lane % ROWS, k)

    return place


@functools.cache
def element_places(fragment: Fragment, value: int) -> Pattern:
    """The (row, k) of one of a lane's values."""
    row, k = fragment.element(0, value)
    along = [fragment.element(thread, value) for thread in (1, 4)]

    def place(lane: Any) -> tuple[Any, Any]:
        in_quad, quad = lane % 4, lane // 4
        return quad * (along[1][0] - row) + row, in_quad * (along[0][1] - k) + k

    assert all(place(lane) == fragment.element(lane, value) for lane in range(WARP_THREADS))
    return place


@functools.cache
def move_of(
    layout: TileLayout, pattern: Pattern, firsts: tuple[int, ...], by: Place
) -> tuple[int, int] | None:
    """(bits, bytes) by which every lane's address differs when its place is moved, if one does."""
    places = [pattern(lane) for lane in range(WARP_THREADS)]
    pairs = {
        (layout.byte_address(first + row, k), layout.byte_address(first + row + by[0], k + by[1]))
        for first in firsts
        for row, k in places
    }
    bits = {(before ^ after) & UNIT_BITS for before, after in pairs}
    for changed in sorted(bits):
        offsets = {after - (before ^ changed) for before, after in pairs}
        if len(offsets) == 1 and min(offsets) >= 0:
            return changed, offsets.pop()
    return None


def element_offset(layout: TileLayout, row: ir.Value, k: ir.Value) -> ir.Value:
    """Byte of an element in the tile, swizzled."""
    line, along = (row, k) if layout.major == "k" else (k, row)
    width = UNIT_BYTES // layout.element_bytes
    within = along % width * layout.element_bytes
    return unit_offset(layout, line, along // width) + within


def _split(words: ir.Value, count: int) -> list[ir.Value]:
    """A vector in vectors of `count`."""
    (total,) = ir.VectorType(words.type).shape
    if total == count:
        return [words]
    type_ = ir.VectorType.get([count], build.i32())
    return [
        llvm.shufflevector(type_, words, words, list(range(start, start + count)))
        for start in range(0, total, count)
    ]


def _joined(word: ir.Value | None, part: ir.Value, shift: int) -> ir.Value:
    """A register with one more element."""
    wide = part if part.type == build.i32() else arith.extui(build.i32(), part)
    if word is None:
        return wide
    return arith.ori(word, arith.shli(wide, build.constant(shift)))
