"""f32 in the registers of fragments as the sum of two tf32, whose products are three MMAs.

    high = tf32(x)      low = tf32(x - high)
    sums += low_a * high_b + high_a * low_b + high_a * high_b

Rounding to nearest leaves x - high exact in f32, at most 2^-11 of x, and low within 2^-11 of that.
What is left out of a product, low_a * low_b and what either is rounded by, is less than 2^-20 of
it. Of infinity, and of what tf32 rounds to it, NaN is left: an infinite operand makes NaN of a sum.

Tensor cores cut off what they add, which over a long K is more than all of that. So the three
MMAs begin at zero, the small ones first, and threads add what they give, rounding to nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm, vector
from .register_accumulator import joined_parts, parts

HIGH, LOW = 0, 1
PRODUCTS = ((LOW, HIGH), (HIGH, LOW), (HIGH, HIGH))
Mma = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
Halves = tuple[ir.Value, ir.Value]


def multiply_split(mma: Mma, sums: list[list[Any]], a: list[Any], b: list[Any]) -> None:
    """Add the products of the fragments of A, by rows, and of B, by columns, to the sums.

    `mma` multiplies two fragments into sums. Neighbours in a row have MMAs under way together.
    """
    of_a, of_b = ([_split_words(each) for each in operand] for operand in (a, b))
    for row, left in zip(sums, of_a, strict=True):
        made = [llvm.ZeroOp(each.type).result for each in row]
        for first, second in PRODUCTS:
            made = [
                mma(each, left[first], right[second])
                for each, right in zip(made, of_b, strict=True)
            ]
        row[:] = [_added(each, more) for each, more in zip(row, made, strict=True)]


def _added(sums: ir.Value, more: ir.Value) -> ir.Value:
    pairs = zip(parts(sums), parts(more), strict=True)
    return joined_parts(sums.type, [arith.addf(one, other) for one, other in pairs])


def _split_words(words: ir.Value) -> Halves:
    """(high, low) of a vector of registers, each as such a vector."""
    type_ = ir.VectorType(words.type)
    pairs = [_split(vector.ExtractOp(words, [], [at]).result) for at in range(type_.shape[0])]
    high, low = zip(*pairs, strict=True)
    return (
        vector.FromElementsOp(type_, list(high)).result,
        vector.FromElementsOp(type_, list(low)).result,
    )


def _split(word: ir.Value) -> Halves:
    value = llvm.bitcast(ir.F32Type.get(), word)
    high = sm.RoundTf32Op.of(value).bits
    left = arith.subf(value, llvm.bitcast(value.type, high))
    return high, sm.RoundTf32Op.of(left).bits
