"""The three bf16 that make up an f32, in the registers that MMAs of bf16 take.

A fragment of f32 has 8 elements along K: of a row thread t has those at t and t + 4. An MMA of bf16
takes pairs, whose places along K are any, as long as A's are B's. So the two elements of a thread
are a pair, and two fragments of f32 are one of bf16 with 16 along K.
"""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir, vector
from ....dialects.terms import SHIFT
from ... import build

CUT = 0xFFFF0000
LEFT = 2.0**SHIFT
MAGNITUDE, INFINITE = 0x7FFFFFFF, 0x7F800000
PIECES = 3
ALONG_K = 4  # elements of K of a register of f32


def bf16_parts(words: ir.Value, k: int) -> list[ir.Value]:
    """(top, first, second, third) of f32 in fragments: all that bf16 holds of the elements, and the
    parts of those that are numbers, each a vector of the registers of a fragment of bf16 of `k`
    elements along K."""
    (count,) = ir.VectorType(words.type).shape
    raw = [vector.ExtractOp(words, [], [at]).result for at in range(count)]
    values = [llvm.bitcast(ir.F32Type.get(), each) for each in raw]
    of_each = [values, *zip(*(pieces_of(each) for each in raw), strict=True)]
    pairs = _pairs(count, count * ALONG_K // k)
    type_ = ir.VectorType.get([count // 2], build.i32())
    return [
        vector.FromElementsOp(
            type_, [sm.CutBf16Op.of(each[low], each[high]).bits for low, high in pairs]
        ).result
        for each in of_each
    ]


def _pairs(count: int, rows: int) -> list[tuple[int, int]]:
    """Which registers of f32 are a pair along K, by the registers of bf16.

    A fragment of f32 has those of a thread's rows at t, two of A and one of B, then those at t + 4.
    """
    starts = range(0, count, 2 * rows)
    return [(start + row, start + rows + row) for start in starts for row in range(rows)]


def pieces_of(word: ir.Value) -> list[ir.Value]:
    """The parts of an element, 0 of what is no number; each is cut to bf16 when it is packed."""
    f32 = ir.F32Type.get()
    is_number = build.less(arith.andi(word, build.constant(MAGNITUDE)), INFINITE)
    value = arith.select(is_number, llvm.bitcast(f32, word), build.f32(0.0))
    pieces: list[ir.Value] = [value]
    for _ in range(PIECES - 1):
        bits = arith.andi(llvm.bitcast(build.i32(), value), build.constant(CUT))
        left = arith.subf(value, llvm.bitcast(f32, bits))
        value = arith.mulf(left, build.f32(LEFT))
        pieces.append(value)
    return pieces
