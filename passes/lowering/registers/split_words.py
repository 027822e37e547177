"""f32 in the registers of fragments as the sum of narrower floats, whose products are MMAs.

    3xtf32   high = tf32(x)      low = tf32(x - high)
             sums += low_a * high_b + high_a * low_b + high_a * high_b

    bf16x9   high = cut(x)       middle = cut((x - high) * 2^8)     low = (that - middle) * 2^8
             sums += (((low_a * low_b) * 2^-8 + …) * 2^-8 + …) * 2^-8 + high_a * high_b

3xtf32: rounding to nearest leaves x - high exact in f32, at most 2^-11 of x, and low within 2^-11
of that. What is left out of a product, low_a * low_b and what either is rounded by, is less than
2^-20 of it. Of infinity, and of what tf32 rounds to it, NaN is left: an infinite operand makes NaN
of a sum.

bf16x9: cut to bf16 an x keeps 8 of its 24 bits, and so do what is left of it and what is left of
that: the three parts make up every finite x. Those that are left are multiplied by 2^8 each time,
so that bf16 holds them where x is small, too. Products of the same power are summed together, the
small ones first, and multiplied by 2^-8 before the larger ones are added. An operand that is no
number has its part in the last product alone, where the other one is cut, and 0 in the others: what
it makes of a sum is what it makes in f32.

Tensor cores cut off what they add, which over a long K is more than all of that. So the MMAs begin
at zero, and threads add what they give, rounding to nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.dtypes import SPLIT_MMAS
from ....dialects.mlir import arith, ir, vector
from ....dialects.terms import NINE_PRODUCTS, SHIFT, THREE_PRODUCTS
from ... import build
from .bf16_parts import bf16_parts
from .register_accumulator import joined_parts, parts

STEP = 2.0**-SHIFT
Mma = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
Parts = Sequence[ir.Value]


class Split(NamedTuple):
    """How f32 is split: the parts of the words of a fragment, and the products of A's and B's, by
    powers of `STEP`, the least first. Parts are of type `dtype`."""

    dtype: str
    parts_of: Callable[[ir.Value, int], Parts]
    products: tuple[tuple[tuple[int, int], ...], ...]


def split_of(mma: str) -> Split | None:
    """How the MMA of this name splits f32, or None if it does not."""
    return SPLITS.get(mma)


def multiply_split(
    split: Split, mma: Mma, sums: list[list[Any]], words: Sequence[list[Any]], k: int
) -> None:
    """Add the products of the fragments of A, by rows, and of B, by columns, to the sums.

    `words` are those of A and of B, of `k` elements along K.
    `mma` multiplies two fragments into sums. Neighbours in a row have MMAs under way together.
    """
    of_a, of_b = ([split.parts_of(each, k) for each in operand] for operand in words)
    for row, left in zip(sums, of_a, strict=True):
        made = [llvm.zero(each.type) for each in row]
        for number, power in enumerate(split.products):
            if number:
                made = [_smaller(each) for each in made]
            for first, second in power:
                made = [
                    mma(each, left[first], right[second])
                    for each, right in zip(made, of_b, strict=True)
                ]
        row[:] = [_added(each, more) for each, more in zip(row, made, strict=True)]


def _added(sums: ir.Value, more: ir.Value) -> ir.Value:
    pairs = zip(parts(sums), parts(more), strict=True)
    return joined_parts(sums.type, [arith.addf(one, other) for one, other in pairs])


def _smaller(sums: ir.Value) -> ir.Value:
    step = build.f32(STEP)
    return joined_parts(sums.type, [arith.mulf(each, step) for each in parts(sums)])


def _tf32_parts(words: ir.Value, _: int) -> Parts:
    """(high, low) of a vector of registers, each as such a vector."""
    type_ = ir.VectorType(words.type)
    pairs = [rounded_word(vector.ExtractOp(words, [], [at]).result) for at in range(type_.shape[0])]
    high, low = zip(*pairs, strict=True)
    return (
        vector.FromElementsOp(type_, list(high)).result,
        vector.FromElementsOp(type_, list(low)).result,
    )


def rounded_word(word: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(high, low) of an f32, as words that MMAs of tf32 take."""
    value = llvm.bitcast(ir.F32Type.get(), word)
    high = sm.RoundTf32Op.of(value).bits
    left = arith.subf(value, llvm.bitcast(value.type, high))
    return high, sm.RoundTf32Op.of(left).bits


SPLITS = {
    SPLIT_MMAS["3xtf32"]: Split("tf32", _tf32_parts, THREE_PRODUCTS),
    SPLIT_MMAS["bf16x9"]: Split("bf16", bf16_parts, NINE_PRODUCTS),
}
