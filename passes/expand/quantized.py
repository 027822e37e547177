"""C with block scales: each thread's blocks, and the stores of elements and scales.

    tile.store_quantized %acc, %c, %scales    of what a thread reads of its row:
                                     %x = tile.apply_to_row %values      up to four neighbours
                                     %amax = largest magnitude of a block, over lanes, too
                                     %code, %number, %reciprocal = tile.block_scale %amax
                                     %codes = sm.narrow (%x times %reciprocal), two by two
                                     tile.write_codes %codes, %c, %row, %column
                                     tile.write_scales four %code, %scales, %row

    tile.staged_quantized                     the same, but
                                     tile.write_unit %codes, %buffer     16 bytes
                                     tile.tma_store %buffer

Of ue4m3 the reciprocal is rounded, and what the product leaves of the value corrects it: the
quotient is then rounded once (Markstein's theorem), so that a value halfway between two elements
stays there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from ...dialects import llvm, sm
from ...dialects.dtypes import SCALE_ATOM_BLOCKS, SCALE_ATOM_ROWS, stored_dtype
from ...dialects.mlir import arith, ir, vector
from ...dialects.record import record
from ...dialects.sm.types import attribute_of
from ...dialects.tile.quantized import BlockScaleOp, WriteCodesOp, WriteScalesOp
from ...dialects.tile_types import bits_of
from ...dialects.verify import products_of, tile_of_c
from ..batches import row_pitch, step_bytes
from ..build import both, constant, equal, i16, i32, less, when
from ..copy_width import UNIT_BYTES
from .rows import VECTOR_BYTES, runs
from .values import RowPart, magnitude

POWERS = "f8E8M0FNU"


@record
class Quantized:
    """What a thread made of its part of a row: elements in bytes, and codes of scales, i8.

    `codes` are those of each run of neighbours of a block, as a vector.
    """

    part: RowPart
    codes: list[ir.Value]
    scales: list[ir.Value]


def quantize(part: RowPart, element: ir.Type) -> Quantized:
    """In a thread from the first column to the last, and over the lanes that share a row."""
    store, blocks = part.store, dict[int, list[ir.Value]]()
    block = store.block.value
    for start, value in part.elements():
        blocks.setdefault(start // block, []).append(value)
    run, codes, scales = min(part.near, block), [], []
    for values in blocks.values():
        amax = part.over_lanes(reduce(arith.maximumf, map(magnitude, values)), arith.maximumf)
        scale = _scale(store, element, amax)
        scales.append(arith.trunci(_byte(), scale.code))
        made = [_quotient(scale, value) for value in values]
        codes += [_packed(element, list(each)) for each in _batched(made, run)]
    return Quantized(part, codes, scales)


def _scale(store: Any, element: ir.Type, amax: ir.Value) -> BlockScaleOp:
    how = {"block": store.block, "rounding": store.rounding}
    how |= {"scale": ir.TypeAttr.get(store.scales.type.element_type), "code": i32()}
    how |= dict.fromkeys(("number", "reciprocal"), ir.F32Type.get())
    return BlockScaleOp(amax=amax, element=ir.TypeAttr.get(element), **how)


def _quotient(scale: BlockScaleOp, value: ir.Value) -> ir.Value:
    """A value over a scale, rounded once; zero keeps its sign, since -0 is what is left of it."""
    near = arith.mulf(value, scale.reciprocal)
    if str(scale.scale.value) == POWERS:
        return near
    beyond = _fma(near, scale.number, arith.negf(value))
    return _fma(arith.negf(beyond), scale.reciprocal, near)


def _packed(element: ir.Type, values: list[ir.Value]) -> ir.Value:
    """Numbers as bytes of codes, low bits first: two by two, each pair by one cvt."""
    bits, name = bits_of(element), _name(element)
    pairs = [
        sm.NarrowOp.of(low=low, high=high, to=name, result=i16()).result
        for low, high in _batched(values, 2)
    ]
    bytes_ = ir.VectorType.get([len(values) * bits // 8], _byte())
    if bits == 8:
        return vector.bitcast(bytes_, _vector(pairs))
    if bits == 4:
        return _vector([arith.trunci(_byte(), pair) for pair in pairs])
    return vector.bitcast(bytes_, _vector(_words([_side_by_side(pair) for pair in pairs])))


def _side_by_side(pair: ir.Value) -> ir.Value:
    """Two codes of 6 bits, each in a byte of its own, as 12 bits."""
    wide = arith.extui(i32(), pair)
    high = arith.andi(arith.shrui(wide, constant(2)), constant(0xFC0))
    return arith.ori(arith.andi(wide, constant(0x3F)), high)


def _words(pairs: list[ir.Value]) -> list[ir.Value]:
    """Words of 32 bits from pairs of 12: eight pairs are three words."""
    words = []
    for first in range(0, 12 * len(pairs), 32):
        parts = []
        for number, pair in enumerate(pairs):
            at = 12 * number - first
            if -12 < at < 32:
                shift, by = (arith.shli, at) if at >= 0 else (arith.shrui, -at)
                parts.append(shift(pair, constant(by)) if by else pair)
        words.append(reduce(arith.ori, parts))
    return words


def write_codes(made: Quantized, view: ir.Value[ir.MemRefType]) -> None:
    """Each run of neighbours to global memory, vector by vector, where its block is inside of C."""
    part, bits = made.part, bits_of(view.type.element_type)
    size = _store_bytes(made, view)
    for (_, behind), codes in zip(_runs(made), made.codes, strict=True):
        start, (count,) = part.column + behind, ir.VectorType(codes.type).shape
        for first in range(0, count, size):
            there = less(start + first * 8 // bits, part.columns)
            with when(both(part.inside, there)):
                where = {"view": view, "row": part.row, "column": start}
                some = bytes_of(codes, first, size)
                WriteCodesOp(codes=some, behind=attribute_of(first), **where)


def _runs(made: Quantized) -> list[tuple[int, int]]:
    """(first value, columns after the thread's first) of each run of neighbours in a block."""
    run = min(made.part.near, made.part.store.block.value)
    count = ir.VectorType(made.part.values.type).shape[0] // products_of(made.part.store)
    return runs(count, made.part.near, made.part.every, run)


def _store_bytes(made: Quantized, view: ir.Value[ir.MemRefType]) -> int:
    """Bytes of one store: of which a run, a row and a matrix are whole numbers."""
    (run,), bits = ir.VectorType(made.codes[0].type).shape, bits_of(view.type.element_type)
    return math.gcd(VECTOR_BYTES, run, row_pitch(view) * bits // 8, step_bytes(view))


def units_of(made: Quantized) -> list[ir.Value]:
    """The codes of a thread that has neighbours, as 16 bytes each."""
    size = ir.VectorType(made.codes[0].type).shape[0]
    if size >= UNIT_BYTES:
        starts = range(0, size, UNIT_BYTES)
        return [bytes_of(codes, start, UNIT_BYTES) for codes in made.codes for start in starts]
    unit = ir.VectorType.get([UNIT_BYTES], _byte())  # of two blocks of 16 elements of 4 bits
    return [
        llvm.shufflevector(unit, low, high, list(range(UNIT_BYTES)))
        for low, high in _batched(made.codes, 2)
    ]


def bytes_of(codes: ir.Value, start: int, count: int) -> ir.Value:
    """Some of the bytes of a vector."""
    if ir.VectorType(codes.type).shape[0] == count:
        return codes
    type_ = ir.VectorType.get([count], _byte())
    return llvm.shufflevector(type_, codes, codes, list(range(start, start + count)))


@record
class Scales:
    """Where the scales of a tile's rows go, and what pads the atoms: zeros.

    Blocks past the last one are padded by who writes that, rows past the last tile by threads
    of that tile.
    """

    part: RowPart
    rows: int

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return tile_of_c(self.part.store)[0]

    @property
    def blocks(self) -> int:
        """The number of blocks in a row of C."""
        return self.part.columns // self.part.store.block.value

    @property
    def blocks_of_tile(self) -> int:
        return tile_of_c(self.part.store)[1] // self.part.store.block.value

    def write(self, codes: list[ir.Value]) -> None:
        """Write the scales of a row from the part's first column on, as many at once as fit."""
        covered = -(-self.rows // self.height) * self.height
        padded = -(-self.rows // SCALE_ATOM_ROWS) * SCALE_ATOM_ROWS
        if self.rows % self.height:
            of_c = less(self.part.row, self.rows)
            codes = [arith.select(of_c, code, constant(0, _byte())) for code in codes]
        self._write_row(codes, less(self.part.row, min(covered, padded)))
        zeros = [constant(0, _byte()) for _ in codes]
        for behind in range(self.height, padded - covered + self.height, self.height):
            row = self.part.row + behind
            in_last_tile = less(self.part.row - (covered - self.height), self.height)
            there = both(in_last_tile, less(row, padded))
            replace(self, part=replace(self.part, row=row))._write_row(zeros, there)

    def _write_row(self, codes: list[ir.Value], inside: ir.Value | None) -> None:
        width = math.gcd(SCALE_ATOM_BLOCKS, len(codes), self.blocks_of_tile)
        first = self.part.column // self.part.store.block.value
        inside = both(self.part.first_lane(), inside)
        for start in range(0, len(codes), width):
            number = first + start
            with when(both(inside, less(number, self.blocks))):
                own = self._inside_of_row(codes[start : start + width], number)
                self._store(_vector(own), number)
                self._pad(number, width)

    def _inside_of_row(self, codes: list[ir.Value], number: ir.Value) -> list[ir.Value]:
        """Zeros where a word begins in a row and ends after it."""
        if self.blocks % len(codes) == 0:
            return codes
        zero = constant(0, _byte())
        inside = [less(number + index, self.blocks) for index in range(len(codes))]
        return [arith.select(there, code, zero) for there, code in zip(inside, codes, strict=True)]

    def _pad(self, number: ir.Value, width: int) -> None:
        """Zeros past the last word of a row, up to the end of its atom."""
        end = -(-self.blocks // width) * width
        missing = range(end, -(-end // SCALE_ATOM_BLOCKS) * SCALE_ATOM_BLOCKS, width)
        if not missing:
            return
        with when(equal(number, end - width)):
            for at in missing:
                self._store(_vector([constant(0, _byte())] * width), constant(at))

    def _store(self, codes: ir.Value, number: ir.Value) -> None:
        scales = self.part.store.scales
        WriteScalesOp(codes=codes, scales=scales, row=self.part.row, number=number)


def _vector(values: Sequence[ir.Value]) -> ir.Value:
    return vector.FromElementsOp(ir.VectorType.get([len(values)], values[0].type), [*values]).result


def _batched(values: Sequence[Any], count: int) -> Iterator[Sequence[Any]]:
    return (values[first : first + count] for first in range(0, len(values), count))


def _name(element: ir.Type) -> str:
    dtype = stored_dtype(str(element))
    assert dtype is not None  # the op's verifier has asked
    return dtype.name


def _fma(left: ir.Value, right: ir.Value, addend: ir.Value) -> ir.Value:
    operands = [left, right, addend]
    return ir.Operation.create("math.fma", results=[left.type], operands=operands).result


def _byte() -> ir.Type:
    return ir.IntegerType.get_signless(8)
