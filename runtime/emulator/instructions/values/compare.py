"""setp and set (PTX ISA §9.7.6, §9.7.7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import Type
from . import floats
from .common import result

_ORDERED = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
_UNORDERED = {
    "equ": np.equal,
    "neu": np.not_equal,
    "ltu": np.less,
    "leu": np.less_equal,
    "gtu": np.greater,
    "geu": np.greater_equal,
}
_NAN_TESTS = ("num", "nan")
COMPARISONS = (*_ORDERED, *_UNSIGNED, *_UNORDERED, *_NAN_TESTS)
BOOLEAN = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(ins: Decoded, name: str, type_: Type) -> Callable:
    """A function of two viewed operands → bool, for a comparison on a type."""
    if type_.kind not in "fx":
        return _integer_comparison(ins, name, type_)
    if name in _UNSIGNED:
        ins.unmodelled(f"comparison .{name} on .{type_.name}")
    if name == "num":
        return lambda a, b: (a == a) & (b == b)
    if name == "nan":
        return lambda a, b: (a != a) | (b != b)
    if name in _UNORDERED:
        compare = _UNORDERED[name]
        return lambda a, b: compare(a, b) | (a != a) | (b != b)
    if name == "ne":
        return lambda a, b: (a < b) | (a > b)
    return _ORDERED[name]


def _integer_comparison(ins: Decoded, name: str, type_: Type) -> Callable:
    if name in _ORDERED and (type_.kind != "b" or name in ("eq", "ne")):
        return _ORDERED[name]
    if name in _UNSIGNED and type_.kind == "u":
        return _UNSIGNED[name]
    return ins.unmodelled(f"comparison .{name} on .{type_.name}")


_FLUSHED = ("f32", "f16", "f16x2")


def _compare(ins: Decoded, first: int) -> tuple[Callable, Type]:
    """(function regs → bool array of lanes or packed lanes, operand type)."""
    type_ = ins.take_type()
    floats.refuse_pairs(ins, type_)
    flush = ins.flag("ftz")
    if flush and type_.name not in _FLUSHED:
        raise ins.trap("operand", f"{ins.mnemonic}.ftz has no type .{type_.name}")
    name = ins.required(COMPARISONS)
    compare = comparison(ins, name, type_)
    if type_.kind in "fx":
        convert = floats.reader(ins, type_, flush)
    else:
        view = type_.dtype
        convert = lambda raw: raw.view(view)  # noqa: E731
    a, b = ins.slot(first, type_), ins.slot(first + 1, type_)
    return lambda regs: compare(convert(regs[a]), convert(regs[b])), type_


@instruction("setp", section="9.7.6.2")
def build_setp(ins: Decoded) -> Step:
    """setp.cmp{.boolop}{.ftz}.type p{|q}, a, b{, {!}c}."""
    combine = ins.choice(tuple(BOOLEAN))
    ins.expect_operands(4 if combine else 3)
    compare, type_ = _compare(ins, 1)
    ins.finish_modifiers()
    if type_.name in ("f16", "bf16") and isinstance(ins.operand(0), syntax.Pair):
        raise ins.trap("operand", f"setp of .{type_.name} has one result, got two")
    if type_.name in ("f16x2", "bf16x2"):
        return _packed_setp(ins, compare, combine)
    if combine is None and not isinstance(ins.operand(0), syntax.Pair):
        target = ins.target(0, 1)
        if target is not None:
            ins.note_computing((ins.slot(1, type_), ins.slot(2, type_)), (target,))
        return result(compare, target)
    return _general_setp(ins, compare, combine)


def _third(ins: Decoded, combine: str | None) -> Callable:
    """A function (warp, bool lanes) → the lanes combined with operand c."""
    if combine is None:
        return lambda warp, lanes: lanes
    read, function = ins.read_predicate(3), BOOLEAN[combine]
    return lambda warp, lanes: function(lanes, read(warp))


def _destinations(ins: Decoded) -> list[Callable]:
    operand = ins.operand(0)
    parts = [operand.first, operand.second] if isinstance(operand, syntax.Pair) else [operand]
    return [ins.write(part, np.bool_) for part in parts]


def _general_setp(ins: Decoded, compare: Callable, combine: str | None) -> Step:
    third, writes = _third(ins, combine), _destinations(ins)

    def step(warp, mask):
        lanes = compare(warp.regs)
        results = [third(warp, lanes), third(warp, ~lanes)]
        for write, value in zip(writes, results, strict=False):
            write(warp, mask, value)

    return step


def _packed_setp(ins: Decoded, compare: Callable, combine: str | None) -> Step:
    """p of the lower half, q of the upper. The ISA has both; ptxas takes p alone, too, as here."""
    third, writes = _third(ins, combine), _destinations(ins)

    def step(warp, mask):
        halves = compare(warp.regs).reshape(-1, 2)
        results = [third(warp, halves[:, 0].copy()), third(warp, halves[:, 1].copy())]
        for write, value in zip(writes, results, strict=False):
            write(warp, mask, value)

    return step


@instruction("set", section="9.7.6.1")
def build_set(ins: Decoded) -> Step:
    """set.cmp{.boolop}{.ftz}.dtype.stype d, a, b{, {!}c}: all ones or 1.0 if true, else 0."""
    combine = ins.choice(tuple(BOOLEAN))
    ins.expect_operands(4 if combine else 3)
    compare, source = _compare(ins, 1)
    type_ = ins.take_type()
    if type_.name == "bf16" and "ftz" in ins.modifiers:
        raise ins.trap("operand", "set.ftz has no result of type .bf16")
    ins.finish_modifiers()
    if source.name in _PACKED_TRUE:
        return _packed_set(ins, compare, combine, source, type_)
    if type_.name not in _set_results(source):
        raise ins.trap("type", f"set of .{source.name} has no result of type .{type_.name}")
    third, write, raw = _third(ins, combine), ins.write(0, type_.raw), type_.raw
    true = raw.type(_true_bits(type_))

    def step(warp, mask):
        lanes = third(warp, compare(warp.regs))
        write(warp, mask, np.where(lanes, true, raw.type(0)))

    return step


def _set_results(source: Type) -> tuple[str, ...]:
    """Types of results (§9.7.6.1, §9.7.7.1)."""
    halves = {"f16": ("f16", "bf16"), "bf16": ("bf16",)}.get(source.name)
    if halves is not None:
        return ("u32", "s32", "u16", "s16", *halves)
    return ("u32", "s32", "f32", "f16", "bf16")


_PACKED_TRUE = {"f16x2": 0x3C00, "bf16x2": 0x3F80}


def _packed_set(
    ins: Decoded, compare: Callable, combine: str | None, source: Type, type_: Type
) -> Step:
    """set.cmp.dtype.f16x2 and .bf16x2: each half by itself, c for both; true is 1.0, or all ones
    where the result is .u32 or .s32."""
    if type_.name not in (source.name, "u32", "s32"):
        ins.unmodelled(f"a result of type .{type_.name}")
    third, write = _third(ins, combine), ins.write(0, np.uint32)
    true = np.uint16(_PACKED_TRUE.get(type_.name, 0xFFFF))

    def step(warp, mask):
        halves = compare(warp.regs).reshape(-1, 2)
        answers = np.stack([third(warp, halves[:, part]) for part in (0, 1)], axis=1)
        write(warp, mask, np.where(answers, true, np.uint16(0)).view(np.uint32).reshape(-1))

    return step


def _true_bits(type_: Type) -> int:
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
    return ones.get(type_.name, (1 << type_.bits) - 1)
