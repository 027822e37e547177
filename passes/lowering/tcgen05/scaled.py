"""`tile.scaled_mma` as tcgen05.cp and tcgen05.mma.block_scale: one thread starts all of a K step.

    sm.tmem_copy       every atom of scales to 4 columns, K outermost: of A's those of its rows, of
                       B's those that its columns lie in
    sm.scaled_mma      every atom of the tile, K outermost; a K slice names the word and the byte
                       of its scales

An MMA that is started after a copy finds what it copied (PTX ISA, pipelined tcgen05 instructions:
cp, then mma). The ISA lists no order for a copy after MMAs that read what it replaces, so where K
steps are under way together, `pipes-to-barriers` has waited for those MMAs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....dialects import sm
from ....dialects.dtypes import ScaledMma
from ....dialects.layout import (
    ATOM_BYTES,
    HALVED,
    HALVES,
    SCALE_ATOM_BLOCKS,
    SCALE_ATOM_ROWS,
    TileLayout,
)
from ....dialects.mlir import ir
from ....dialects.sm.memory import ScaleColumnsOp
from ....dialects.tile.scales import depth_of, mma_of
from ....dialects.tile_types import SmemType
from ... import build
from ...base import walk
from ..operands.mma_operands import operand_descriptor
from ..scope.scope import Scope, lowered, sums_at

ATOM_COLUMNS = 4


def lower_scaled_mma(scope: Scope, op: Any) -> None:
    """Copies of the step's scales, then its MMAs; slices past the end of K are left out."""
    places = _columns_of(scope, op)
    for tile, place in zip((op.a_scales, op.b_scales), places, strict=True):
        _copy_scales(scope, op, tile, place)
    places[1] = places[1] + _first_column(op)
    mma = mma_of(op)
    for k in range(0, depth_of(op), mma.k):
        with build.when(_is_inside(op, k, mma)):
            _slice(scope, op, k, places)


def _columns_of(scope: Scope, op: Any) -> list[ir.Value]:
    """Where the step's scales of A and of B go."""
    (columns,) = walk(scope.kernel, ScaleColumnsOp)
    first, second, end = columns.a_first.value, columns.b_first.value, columns.end.value
    base = lowered(columns.memory)
    if op.place is not None and columns.slots.value > 1:
        base = base + op.place * (end - first)
    return [base + first, base + second]


def _copy_scales(scope: Scope, op: Any, tile: ir.Value[SmemType], place: ir.Value) -> None:
    layout, descriptor = tile.type.layout, operand_descriptor(scope, op, tile)
    halves = layout.swizzle == HALVED
    rows, size = (64, HALVES * ATOM_BYTES) if halves else (32, ATOM_BYTES)
    for number, column in _copies(layout):
        fields = {"rows": rows, "offset": number * size, "cta_group": scope.cta_group}
        sm.TmemCopyOp.of(place + column, descriptor, **fields)


def _copies(layout: TileLayout) -> Iterator[tuple[int, int]]:
    """(number of an atom in shared memory, its first column): columns go along rows first.

    Of a halved tile one copy takes an atom of each half, and these lie in the order of columns.
    """
    along_mn, along_k = layout.atoms
    if layout.swizzle == HALVED:
        numbers = range(along_mn // HALVES * along_k)
        yield from ((number, number * ATOM_COLUMNS) for number in numbers)
        return
    for k in range(along_k):
        for row in range(along_mn):
            yield row * along_k + k, (k * along_mn + row) * ATOM_COLUMNS


def _first_column(op: Any) -> ir.Value | int:
    """How many columns of scales lie before the tile's own: it may begin within an atom."""
    n = op.acc.type.shape[1]
    if n % SCALE_ATOM_ROWS == 0 or op.b_scales.type.layout.swizzle == HALVED:
        return 0
    rows = SCALE_ATOM_ROWS // ATOM_COLUMNS
    return build.as_i32(op.j) * (n // rows) % ATOM_COLUMNS


def _is_inside(op: Any, k: int, mma: ScaledMma) -> ir.Value | None:
    """Whether K goes on at element `k` of the tile; None where it always does."""
    depth, extent = depth_of(op), op.extent.value
    if extent % depth == 0 or k + mma.k <= extent % depth:
        return None
    return build.less(build.as_i32(op.k) * depth + k, extent)


def _slice(scope: Scope, op: Any, k: int, scales: list[ir.Value]) -> None:
    """The MMAs of one K slice: the first of a tile honours `accumulate`."""
    mma, (_, n) = mma_of(op), op.acc.type.shape
    a, b = op.a.type.layout, op.b.type.layout
    atom_m = scope.mma_rows(a.mn)
    word, byte = divmod(k // mma.block, SCALE_ATOM_BLOCKS)
    a_word, b_word = (_column_of_word(each, word) for each in (op.a_scales, op.b_scales))
    at = mma.operand_bytes(k)
    base, column = sums_at(op.acc)
    operands = [operand_descriptor(scope, op, operand) for operand in (op.a, op.b)]
    accumulate = op.accumulate if k == 0 else build.true()
    said = {"kind": mma.kind, "block": mma.block, "scale": mma.scale}
    said |= {"cta_group": scope.cta_group, "m": scope.cta_group * atom_m, "n": n}
    said |= {"a_type": op.a_type, "b_type": op.b_type, "a_major": a.major, "b_major": b.major}
    for atom in range(a.mn // atom_m):
        sums = base + (column + atom * scope.atom_columns(atom_m, n))
        sm.ScaledMmaOp.of(
            sums,
            *operands,
            accumulate,
            scales[0] + (a_word + atom * ATOM_COLUMNS),
            scales[1] + b_word,
            a_offset=a.offset(atom * atom_m, at),
            b_offset=b.offset(0, at),
            a_id=byte,
            b_id=byte,
            **said,
        )


def _column_of_word(scales: Any, word: int) -> int:
    """The column of tensor memory, after the first, of a word of four blocks' scales."""
    layout = scales.type.layout
    return word * layout.scale_columns // layout.atoms[1]
