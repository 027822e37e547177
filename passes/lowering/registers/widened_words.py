"""8-bit and 4-bit weights converted exactly to pairs of 16-bit floats, in registers.

A pair of neighbours along K is loaded as it lies: two bytes, or one of two halves. Floats of 8 bits
become f16 by an instruction, and bf16 by way of f32. Integers are put into the fraction of a float
whose last place is 1, from which that float is subtracted:

    bf16, 4 bits    128 + u                - (128 + z)       f16   1024 + u - (1024 + z)
    bf16, 8 bits    128 + low 7 bits       - (128 or 256)          1024 + u - 1152

u is the integer without a sign, that of s4 and s8 with its sign bit inverted, which adds 8 and 128.
bf16 has 7 bits of fraction: of 8 bits the sign goes into what is subtracted, whose 128 it doubles.
"""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.dtypes import DTYPES
from ....dialects.mlir import arith, ir
from ... import build

MAGIC = {"bf16": 0x4300, "f16": 0x6400}
"""128 and 1024: the floats whose fraction counts ones."""
NIBBLES, BYTES = 0x000F, 0x00FF
SIGN = {4: 0x8, 8: 0x80}
WORD_BITS = 32


def pair_bytes(dtype: str) -> int:
    """Bytes of two weights that are neighbours along K."""
    return 2 * DTYPES[dtype].bits // 8


def widened_pair(raw: ir.Value, dtype: str, wide: str, zeros: ir.Value | None) -> ir.Value:
    """A word of two floats of type `wide`, from the bytes of a pair (i8 or i16).

    `zeros` is the word of `zero_words` that is subtracted from u4, None for 0.
    """
    if not DTYPES[dtype].is_integer:
        return _floats(raw, dtype, wide)
    if DTYPES[dtype].bits == 8 and wide == "bf16":
        return _signed_bytes(_spread(raw, 8))
    bits = DTYPES[dtype].bits
    spread = arith.andi(_spread(raw, bits), _twice(NIBBLES if bits == 4 else BYTES))
    offset = MAGIC[wide] | (SIGN[bits] if dtype[0] == "s" else 0)
    return _difference(arith.xori(spread, _twice(offset)), zeros or _twice(offset), wide)


def widened_word(word: ir.Value, dtype: str, wide: str, zeros: ir.Value | None) -> list[ir.Value]:
    """The words of all pairs of a word of weights (i32), the lowest first.

    Bytes of s8 come into their halves by one permutation, where a pair by itself takes two steps.
    """
    bits = 8 * pair_bytes(dtype)
    places = range(0, WORD_BITS, bits)
    if dtype == "s8":
        return [_of_bytes(_spread_bytes(word, at // 8), wide) for at in places]
    type_ = ir.IntegerType.get_signless(bits)
    shifted = [arith.shrui(word, build.constant(at)) if at else word for at in places]
    return [widened_pair(arith.trunci(type_, each), dtype, wide, zeros) for each in shifted]


def _of_bytes(spread: ir.Value, wide: str) -> ir.Value:
    """Two s8 in the low bits of halves whose others are 0."""
    if wide == "bf16":
        return _signed_bytes(spread)
    offset = _twice(MAGIC[wide] | SIGN[8])
    return _difference(arith.xori(spread, offset), offset, wide)


def _spread_bytes(word: ir.Value, first: int) -> ir.Value:
    """Two neighbouring bytes of a word in the low ones of two halves, above which is 0."""
    four = ir.VectorType.get([WORD_BITS // 8], ir.IntegerType.get_signless(8))
    held, zero = llvm.bitcast(four, word), llvm.zero(four)
    places = [first, WORD_BITS // 8, first + 1, WORD_BITS // 8]
    return llvm.bitcast(build.i32(), llvm.shufflevector(four, held, zero, places))


def zero_words(zero: ir.Value, wide: str) -> ir.Value:
    """What is subtracted from u4: a zero point (i8) after the leading one, twice."""
    word = arith.extui(build.i32(), zero)
    return arith.ori(word * 0x10001, _twice(MAGIC[wide]))


def _spread(raw: ir.Value, bits: int) -> ir.Value:
    """A pair's elements in the low bits of two halves, with others above them."""
    word = arith.extui(build.i32(), raw)
    return arith.ori(word, arith.shli(word, build.constant(16 - bits)))


def _signed_bytes(spread: ir.Value) -> ir.Value:
    """s8 as bf16: its low 7 bits after 128, less 128, or less 256 where it has a sign."""
    low, sign = (arith.andi(spread, _twice(mask)) for mask in (0x7F, 0x80))
    magic = _twice(MAGIC["bf16"])
    return _difference(arith.ori(low, magic), arith.ori(sign, magic), "bf16")


def _difference(left: ir.Value, right: ir.Value, wide: str) -> ir.Value:
    """The word of two differences of floats, which are exact."""
    pair = ir.VectorType.get([2], ir.Type.parse(DTYPES[wide].mlir))
    values = [llvm.bitcast(pair, each) for each in (left, right)]
    return llvm.bitcast(build.i32(), arith.subf(*values))


def _floats(raw: ir.Value, dtype: str, wide: str) -> ir.Value:
    """Floats of 8 bits: f16 holds them all, and bf16 has their exponents and digits, too."""
    halves = ir.VectorType.get([2], ir.F16Type.get())
    values = sm.WidenOp.of(raw, dtype=dtype, values=halves).values
    if wide == "bf16":
        singles = arith.extf(ir.VectorType.get([2], ir.F32Type.get()), values)
        values = arith.truncf(ir.VectorType.get([2], ir.BF16Type.get()), singles)
    return llvm.bitcast(build.i32(), values)


def _twice(half: int) -> ir.Value:
    """A word of two equal halves."""
    return build.constant(build.signed(half << 16 | half))
