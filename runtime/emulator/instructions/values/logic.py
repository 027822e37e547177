"""Logic, shifts and bit fields (PTX ISA §9.7.8 and the bit operations of §9.7.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import TYPES, Type
from .common import lanewise

_WORDS = ("u32", "u64", "s32", "s64")
_FIELD_MOST = 255
"""Positions and lengths of bit fields are in 0..255 (PTX ISA §9.7.1.19, §9.7.1.20)."""


def _bitwise_type(ins: Decoded, *names: str) -> Type:
    return ins.take_type(*(names or ("pred", "b16", "b32", "b64")))


@instruction("and", section="9.7.8.1")
def build_and(ins: Decoded) -> Step:
    """and.type d, a, b."""
    return lanewise(ins, [_bitwise_type(ins)] * 2, np.bitwise_and)


@instruction("or", section="9.7.8.2")
def build_or(ins: Decoded) -> Step:
    """or.type d, a, b."""
    return lanewise(ins, [_bitwise_type(ins)] * 2, np.bitwise_or)


@instruction("xor", section="9.7.8.3")
def build_xor(ins: Decoded) -> Step:
    """xor.type d, a, b."""
    return lanewise(ins, [_bitwise_type(ins)] * 2, np.bitwise_xor)


@instruction("not", section="9.7.8.4")
def build_not(ins: Decoded) -> Step:
    """not.type d, a."""
    return lanewise(ins, [_bitwise_type(ins)], np.invert)


@instruction("cnot", section="9.7.8.5")
def build_cnot(ins: Decoded) -> Step:
    """cnot.type d, a: 1 if a is 0, else 0."""
    type_ = _bitwise_type(ins, "b16", "b32", "b64")
    return lanewise(ins, [type_], lambda a: (a == 0).astype(type_.raw))


def _shift(ins: Decoded, type_: Type, function: Callable) -> Step:
    return lanewise(ins, [type_, TYPES["u32"]], function, type_)


@instruction("shl", section="9.7.8.8")
def build_shl(ins: Decoded) -> Step:
    """shl.type d, a, b: amounts of the width and above give 0."""
    type_ = _bitwise_type(ins, "b16", "b32", "b64")
    bits, raw = np.uint32(type_.bits), type_.raw

    def function(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
        shifted = a << (amount & (bits - np.uint32(1))).astype(raw)
        return np.where(amount < bits, shifted, raw.type(0))

    if ins.operand_is_immediate(2) and ins.immediate(2) in range(type_.bits):
        return _constant_shift(ins, type_, np.left_shift)
    return _shift(ins, type_, function)


def _constant_shift(ins: Decoded, type_: Type, function: np.ufunc) -> Step:
    """A shift by a constant below the width needs no clamping."""
    amount = type_.dtype.type(ins.immediate(2))
    return _shift(ins, type_, lambda a, unused: function(a, amount))


@instruction("shr", section="9.7.8.9")
def build_shr(ins: Decoded) -> Step:
    """shr.type d, a, b: amounts above the width are clamped; .s fills with the sign."""
    type_ = ins.take_type()
    if type_.bits not in (16, 32, 64) or type_.kind not in "bus":
        ins.unmodelled(f"type .{type_.name}")
    last, view = np.uint32(type_.bits - 1), type_.dtype
    if ins.operand_is_immediate(2) and ins.immediate(2) in range(type_.bits):
        return _constant_shift(ins, type_, np.right_shift)
    if type_.signed:
        return _shift(ins, type_, lambda a, n: a >> np.minimum(n, last).astype(view))
    return _shift(
        ins, type_, lambda a, n: np.where(n <= last, a >> (n & last).astype(view), view.type(0))
    )


@instruction("shf.l", "shf.r", section="9.7.8.7")
def build_shf(ins: Decoded) -> Step:
    """shf.{l,r}.{wrap,clamp}.b32 d, a, b, c: shift {b, a} by c, the high or low word."""
    wrap = ins.required(("wrap", "clamp")) == "wrap"
    type_ = ins.take_type("b32")
    left = ins.mnemonic == "shf.l"

    def function(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        amount = c & np.uint32(31) if wrap else np.minimum(c, np.uint32(32))
        both = b.astype(np.uint64) << np.uint64(32) | a
        if left:
            return (both << amount.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)
        return (both >> amount.astype(np.uint64)).astype(np.uint32)

    return lanewise(ins, [type_] * 3, function)


@instruction("lop3", section="9.7.8.6")
def build_lop3(ins: Decoded) -> Step:
    """lop3{.or,.and}.b32 d{|p}, a, b, c, lut{, q}: any function of three bits."""
    combine = ins.choice(("or", "and"))
    type_ = ins.take_type("b32")
    ins.finish_modifiers()
    lut = ins.immediate(4)
    slots = [ins.slot(number, type_) for number in (1, 2, 3)]
    if combine is None:
        ins.expect_operands(5)
        write = ins.write(0, type_)
        return lambda warp, mask: write(warp, mask, _lop3([warp.regs[slot] for slot in slots], lut))
    ins.expect_operands(6)
    pair = ins.operand(0)
    if not isinstance(pair, syntax.Pair):
        ins.unmodelled("a destination that is not d|p")
    write, flag = ins.write(pair.first, type_), ins.write(pair.second, np.bool_)
    read, function = ins.read_predicate(5), getattr(np, f"logical_{combine}")

    def step(warp, mask):
        value = _lop3([warp.regs[slot] for slot in slots], lut)
        predicate = function(value != 0, read(warp))
        write(warp, mask, value)
        flag(warp, mask, predicate)

    return step


def _lop3(operands: list[np.ndarray], lut: int) -> np.ndarray:
    """Bit i of `lut` is the result for a, b, c being the bits 4, 2, 1 of i."""
    a, b, c = operands
    total = np.zeros_like(a)
    for number in range(8):
        if lut >> number & 1:
            total |= (
                (a if number & 4 else ~a) & (b if number & 2 else ~b) & (c if number & 1 else ~c)
            )
    return total


@instruction("popc", section="9.7.1.14")
def build_popc(ins: Decoded) -> Step:
    """popc.type d, a: number of one bits, as u32."""
    type_ = ins.take_type("b32", "b64")
    return lanewise(ins, [type_], lambda a: np.bitwise_count(a).astype(np.uint32), TYPES["u32"])


def _leading_one(values: np.ndarray) -> np.ndarray:
    """Position of the highest one bit, -1 for zero (int64)."""
    smear = values.copy()
    shift = 1
    while shift < values.itemsize * 8:
        smear |= smear >> values.dtype.type(shift)
        shift *= 2
    return np.bitwise_count(smear).astype(np.int64) - 1


@instruction("clz", section="9.7.1.15")
def build_clz(ins: Decoded) -> Step:
    """clz.type d, a: number of leading zeros, as u32."""
    type_ = ins.take_type("b32", "b64")
    return lanewise(
        ins, [type_], lambda a: (type_.bits - 1 - _leading_one(a)).astype(np.uint32), TYPES["u32"]
    )


@instruction("bfind", section="9.7.1.16")
def build_bfind(ins: Decoded) -> Step:
    """bfind{.shiftamt}.type d, a: highest bit that is not the sign, 0xFFFFFFFF if none."""
    amount = ins.flag("shiftamt")
    type_ = ins.take_type(*_WORDS)

    def function(a: np.ndarray) -> np.ndarray:
        raw = np.where(a < 0, ~a, a).view(type_.raw)
        found = _leading_one(raw)
        position = np.where((found >= 0) & amount, type_.bits - 1 - found, found)
        return position.astype(np.int32).view(np.uint32)

    return lanewise(ins, [type_], function, TYPES["u32"])


@instruction("fns", section="9.7.1.17")
def build_fns(ins: Decoded) -> Step:
    """fns.b32 d, mask, base, offset: the offset-th set bit from base, 0xFFFFFFFF if none."""
    type_ = ins.take_type("b32")
    types = [type_, TYPES["u32"], TYPES["s32"]]
    return lanewise(
        ins,
        types,
        lambda *lanes: np.array(
            [_find_nth(*values) for values in zip(*(lane.tolist() for lane in lanes), strict=True)],
            np.uint32,
        ),
        TYPES["u32"],
    )


def _find_nth(mask: int, base: int, offset: int) -> int:
    step = -1 if offset < 0 else 1
    wanted, position = max(abs(offset), 1), base
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    while 0 <= position < 32:
        wanted -= mask >> position & 1
        if wanted == 0:
            return position
        position += step
    return 0xFFFFFFFF


@instruction("brev", section="9.7.1.18")
def build_brev(ins: Decoded) -> Step:
    """brev.type d, a: bits in reverse order."""
    type_ = ins.take_type("b32", "b64")

    def function(a: np.ndarray) -> np.ndarray:
        bits = np.unpackbits(a.view(np.uint8).reshape(len(a), -1), axis=1, bitorder="little")
        return np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(type_.raw).reshape(-1)

    return lanewise(ins, [type_], function)


@instruction("bfe", section="9.7.1.19")
def build_bfe(ins: Decoded) -> Step:
    """bfe.type d, a, b, c: c bits of a from position b (both mod 256), sign-extended by .s."""
    type_ = ins.take_type(*_WORDS)
    ins.bound_constant(2, 0, _FIELD_MOST)
    ins.bound_constant(3, 0, _FIELD_MOST)
    bits, signed, view = type_.bits, type_.signed, type_.dtype

    def lane(value: int, start: int, length: int) -> int:
        start, length = start & 0xFF, length & 0xFF
        if signed and length:
            sign = value >> min(start + length - 1, bits - 1) & 1
        else:
            sign = 0
        field = (value & (1 << bits) - 1) >> start & (1 << length) - 1
        kept = max(0, min(length, bits - start))
        return (field | -sign << kept) & (1 << bits) - 1

    def function(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        return np.array([lane(*row) for row in rows], type_.raw).view(view)

    return lanewise(ins, [type_, TYPES["u32"], TYPES["u32"]], function, type_)


@instruction("bfi", section="9.7.1.20")
def build_bfi(ins: Decoded) -> Step:
    """bfi.type f, a, b, c, d: d bits of a put into b at position c (both mod 256)."""
    type_ = ins.take_type("b32", "b64")
    ins.bound_constant(3, 0, _FIELD_MOST)
    ins.bound_constant(4, 0, _FIELD_MOST)
    full = (1 << type_.bits) - 1

    def lane(a: int, b: int, start: int, length: int) -> int:
        field = ((1 << (length & 0xFF)) - 1) << (start & 0xFF) & full
        return b & ~field | a << (start & 0xFF) & field

    def function(*operands: np.ndarray) -> np.ndarray:
        rows = zip(*(operand.tolist() for operand in operands), strict=True)
        return np.array([lane(*row) for row in rows], type_.raw)

    return lanewise(ins, [type_, type_, TYPES["u32"], TYPES["u32"]], function, type_)


@instruction("szext", section="9.7.1.21")
def build_szext(ins: Decoded) -> Step:
    """szext.mode.type d, a, b: sign- or zero-extend the low b bits of a."""
    wrap = ins.required(("wrap", "clamp")) == "wrap"
    type_ = ins.take_type("u32", "s32")

    def lane(value: int, count: int) -> int:
        count = count & 31 if wrap else min(count, 32)
        low = value & (1 << count) - 1
        negative = type_.signed and count and low >> count - 1 & 1
        return (low - (1 << count) if negative else low) & 0xFFFFFFFF

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rows = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([lane(*row) for row in rows], np.uint32)

    return lanewise(ins, [type_, TYPES["u32"]], function, type_)


@instruction("bmsk", section="9.7.1.22")
def build_bmsk(ins: Decoded) -> Step:
    """bmsk.mode.b32 d, a, b: b one bits from position a."""
    wrap = ins.required(("wrap", "clamp")) == "wrap"
    type_ = ins.take_type("b32")

    def lane(start: int, count: int) -> int:
        start, count = (start & 31, count & 31) if wrap else (min(start, 32), min(count, 32))
        return ((1 << count) - 1) << start & 0xFFFFFFFF

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rows = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([lane(*row) for row in rows], np.uint32)

    return lanewise(ins, [type_, TYPES["u32"]], function, type_)
