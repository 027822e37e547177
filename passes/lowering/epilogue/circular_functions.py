"""sin and cos of any f32, with a relative error of 2^-21, without libdevice.

    |x| < 1    r = |x|, quadrant 0
    else       |x| * 2/pi = quadrant + fraction, r = fraction * pi/2 from -pi/4 to pi/4

    sin |x|    S(r), C(r), -S(r), -C(r) by quadrant       S, C: Taylor's series of sin r and cos r
    cos |x|    the same of the next quadrant

The quotient is made in integers, so that no digits cancel (Payne and Hanek, Radian Reduction for
Trigonometric Functions, SIGNUM Newsletter 18, 1983): 2/pi has 192 bits, by which the 24 bits of x
are multiplied; an exponent of x says which 64 bits of the product hold two of the quadrant and 62
of the fraction, since those before them are whole turns. No float of 24 bits is nearer to a
multiple of pi/2 than 2^-30 of itself, so that at least 30 bits of the fraction count. There is no
branch for each element, at the cost of some seventy instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, pi

from ....dialects.mlir import arith, ir, math
from ...build import signed
from .special_functions import number, polynomial

TWO_OVER_PI = (0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041)
"""The bits after the point, the highest word first."""
SINE_OVER_R = [(-1.0) ** n / factorial(2 * n + 1) for n in range(5)]
COSINE = [(-1.0) ** n / factorial(2 * n) for n in range(6)]
"""In r²: off by 2^-24 of the value at most where r is at most 1."""
SIGN = 1 << 31


def circular(name: str, value: ir.Value) -> ir.Value:
    """`math.sin` or `math.cos` of f32, of a vector or of one."""
    size, bits = math.absf(value), arith.bitcast(_integers(32, value), value)
    near = arith.cmpf(arith.CmpFPredicate.OLT, size, number(1, value))
    transposed, reduced = _reduced(bits, value)
    quadrant = arith.select(near, _word(0, bits), transposed)
    r = arith.select(near, size, reduced)
    square = arith.mulf(r, r)
    sine, cosine = arith.mulf(r, polynomial(square, SINE_OVER_R)), polynomial(square, COSINE)
    if name == "math.cos":
        quadrant, negative = arith.addi(quadrant, _word(1, bits)), _word(0, bits)
    else:
        negative = arith.andi(bits, _word(SIGN, bits))
    found = arith.select(_is_odd(quadrant), cosine, sine)
    upper = arith.shli(arith.andi(quadrant, _word(2, bits)), _word(30, bits))
    signs = arith.xori(upper, negative)
    found = arith.bitcast(value.type, arith.xori(arith.bitcast(bits.type, found), signs))
    finite = arith.cmpf(arith.CmpFPredicate.OLT, size, number(float("inf"), value))
    return arith.select(finite, found, arith.subf(value, value))


def _reduced(bits: ir.Value, like: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The quadrant of a number from 1 on, and the rest in radians; `bits` are those of f32.

    |x| is m * 2^(e - 30) with an m of 31 bits, so that |x| * 2/pi * 2^-(e + 2) is m * 2^-32 * 2/pi,
    whose bits from the e-th on are two of the quadrant and those of the fraction.
    """
    exponent = arith.andi(arith.shrui(bits, _word(23, bits)), _word(255, bits))
    e = arith.subi(exponent, _word(127, bits))
    m = arith.andi(arith.shli(bits, _word(7, bits)), _word((1 << 31) - 1, bits))
    words = _window(_product(arith.ori(m, _word(1 << 30, bits))), e)
    by = arith.extui(_integers(64, like), arith.andi(e, _word(31, bits)))
    high, middle, low = (arith.extui(by.type, each) for each in words)
    pair = arith.ori(arith.shli(high, _word(32, by)), middle)
    rest = arith.shrui(arith.shli(low, by), _word(32, by))
    turns = arith.ori(arith.shli(pair, by), rest)
    nearest = arith.addi(arith.shrui(turns, _word(61, by)), _word(1, by))
    quadrant = arith.trunci(bits.type, arith.shrui(nearest, _word(1, by)))
    fraction = arith.sitofp(like.type, arith.shli(turns, _word(2, by)))
    return quadrant, arith.mulf(fraction, number(pi / 2 * 2.0**-64, like))


def _product(m: ir.Value) -> list[ir.Value]:
    """The upper words of m * 2/pi, the highest first."""
    wide = arith.extui(_integers(64, m), m)
    words, carry = [], _word(0, wide)
    for each in reversed(TWO_OVER_PI):
        total = arith.addi(arith.muli(wide, _word(each, wide)), carry)
        words.append(arith.trunci(m.type, total))
        carry = arith.shrui(total, _word(32, wide))
    return [arith.trunci(m.type, carry), *reversed(words[1:])]


def _window(words: Sequence[ir.Value], e: ir.Value) -> Sequence[ir.Value]:
    """Three words from that on in which the e-th bit is, of an e below 128."""
    for count in (2, 1):  # words that are left out, where e has the bit of so many
        has = _is_odd(arith.shrui(e, _word(4 + count, e)))
        pairs = zip(words[count:], words, strict=False)
        words = [arith.select(has, later, sooner) for later, sooner in pairs]
    return words[:3]


def _is_odd(value: ir.Value) -> ir.Value:
    one = _word(1, value)
    return arith.cmpi(arith.CmpIPredicate.eq, arith.andi(value, one), one)


def _integers(bits: int, like: ir.Value) -> ir.Type:
    """Integers of so many bits, as many as another value has elements."""
    element = ir.IntegerType.get_signless(bits)
    if isinstance(like.type, ir.VectorType):
        return ir.VectorType.get(like.type.shape, element)
    return element


def _word(value: int, like: ir.Value) -> ir.Value:
    """A constant of the type of another value."""
    element = like.type.element_type if isinstance(like.type, ir.VectorType) else like.type
    bits = ir.IntegerType(element).width
    attribute = ir.IntegerAttr.get(element, signed(value) if bits == 32 else value)
    if isinstance(like.type, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(like.type, attribute)
    return arith.ConstantOp(like.type, attribute).result
