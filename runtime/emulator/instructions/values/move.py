"""mov, selp, slct, cvta, isspacep, mapa, prmt (PTX ISA §9.7.9 data movement)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx import syntax
from ...ptx.addresses import CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from ...ptx.decode import Decoded
from ...ptx.lanes import FULL, WARP_SIZE
from ...ptx.operand_types import is_memory_type
from ...ptx.registry import Step, instruction
from ...ptx.specials import FIXED, MOVING
from ...ptx.values import RAW, TYPES, Type
from .common import lanewise, result
from .rounding import flush_f32

SELECTED = (
    *(f"{kind}{bits}" for kind in "bus" for bits in (16, 32, 64)),
    "f32",
    "f64",
)  # fmt: skip
"""Types of selp and slct (PTX ISA §9.7.6.3, §9.7.6.4)."""
GENERIC_SPACES = (
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "global",
    "const",
    "param",
    "param::entry",
)
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
KEPT_WINDOWS = {"const": CONST_WINDOW, "param": PARAM_WINDOW}
"""Of spaces whose own addresses may have the window's base too, see `WindowSpace`."""


@instruction("mov", section="9.7.9.3")
def build_mov(ins: Decoded) -> Step:
    """mov.type d, a; also packs and unpacks vectors and takes addresses of variables."""
    type_ = ins.take_type()
    ins.finish_modifiers()
    ins.expect_operands(2)
    if not is_memory_type(type_) and type_.kind != "p":
        raise ins.trap("type", f"mov has no type .{type_.name}")
    destination, source = ins.operands
    if isinstance(destination, syntax.Vector) or isinstance(source, syntax.Vector):
        return _moved_vector(ins, type_)
    if isinstance(source, syntax.Symbol) and source.name in (*MOVING, *FIXED) and type_.kind == "f":
        raise ins.trap("type", f"mov.{type_.name} does not read special registers")
    if isinstance(source, syntax.Symbol) and source.name in MOVING:
        return _read_moving(ins, source.name, type_.bits)
    target = ins.target(0, type_)
    if type_.bits == 16 and isinstance(source, syntax.Symbol) and source.name in FIXED:
        slot = ins.slot(1, TYPES["b32"])
        return result(lambda regs: regs[slot].astype(np.uint16), target)
    slot = ins.slot(1, type_)
    if target is not None and type_.bits <= 64:
        ins.note_lanewise(None, (slot,), (target,))
    return result(lambda regs: regs[slot], target)


def _moved_vector(ins: Decoded, type_: Type) -> Step:
    """Vectors are packed and unpacked as untyped bits (PTX ISA §9.7.9.4)."""
    if type_.kind != "b":
        raise ins.trap("type", f"mov of a vector has no type .{type_.name}")
    return (
        _unpack(ins, type_.bits)
        if isinstance(ins.operands[0], syntax.Vector)
        else _pack(ins, type_.bits)
    )


def _read_moving(ins: Decoded, name: str, bits: int) -> Step:
    own, value = MOVING[name]
    if own != bits:
        ins.unmodelled(f"reading {name} as {bits} bits")
    write = ins.write(0, RAW[bits])
    return lambda warp, mask: write(warp, mask, np.full(WARP_SIZE, value(warp), RAW[bits]))


def _element_width(ins: Decoded, elements: tuple, bits: int) -> int:
    if bits % len(elements) or bits // len(elements) not in RAW or len(elements) == 1:
        ins.unmodelled(f"a vector of {len(elements)} elements in {bits} bits")
    return bits // len(elements)


def _unpack(ins: Decoded, bits: int) -> Step:
    elements = ins.elements(0)
    dtype = RAW[_element_width(ins, elements, bits)]
    slot = ins.slot(1, TYPES[f"b{bits}"])
    writes = [ins.write(element, dtype) for element in elements]
    count = len(elements)

    def unpacked(wide: np.ndarray) -> list[np.ndarray]:
        parts = wide.reshape(-1).view(dtype)
        return [parts[number::count].copy() for number in range(count)]

    def step(warp, mask):
        for write, part in zip(writes, unpacked(warp.regs[slot]), strict=True):
            write(warp, mask, part)

    wanted = [ins.target(element, 8 * np.dtype(dtype).itemsize) for element in elements]
    targets = tuple(target for target in wanted if target is not None)
    if bits <= 64 and len(targets) == count:
        ins.note_lanewise(unpacked, (slot,), targets)
    return step


def _pack(ins: Decoded, bits: int) -> Step:
    elements = ins.elements(1)
    dtype = RAW[_element_width(ins, elements, bits)]
    slots = [ins.slot(element, dtype) for element in elements]
    raw, count = RAW[bits], len(slots)

    def packed(*elements: np.ndarray) -> np.ndarray:
        parts = np.empty(len(elements[0]) * count, dtype)
        for number, element in enumerate(elements):
            parts[number::count] = element
        wide = parts.view(raw)
        return wide.reshape(-1, 2) if bits == 128 else wide

    target = ins.target(0, bits)
    if target is not None and bits <= 64:
        ins.note_lanewise(packed, tuple(slots), (target,))
    return result_wide(lambda regs: packed(*[regs[slot] for slot in slots]), target)


def result_wide(function, slot: int | None) -> Step:
    """Like `result`, but also for 128-bit values."""
    if slot is None:
        return lambda warp, mask: None

    def step(warp, mask):
        value = function(warp.regs)
        if mask is not FULL:
            keep = mask if value.ndim == 1 else mask[:, None]
            value = np.where(keep, value, warp.regs[slot])
        warp.regs[slot] = value

    return step


@instruction("selp", section="9.7.6.3")
def build_selp(ins: Decoded) -> Step:
    """selp.type d, a, b, c: d = c ? a : b."""
    type_ = ins.take_type(*SELECTED)
    ins.finish_modifiers()
    ins.expect_operands(4)
    a, b = ins.slot(1, type_), ins.slot(2, type_)
    predicate, target = ins.slot(3, TYPES["pred"]), ins.target(0, type_)
    if target is not None:
        ins.note_computing((a, b, predicate), (target,))
    return result(lambda regs: np.where(regs[predicate], regs[a], regs[b]), target)


@instruction("slct", section="9.7.6.4")
def build_slct(ins: Decoded) -> Step:
    """slct{.ftz}.type.{s32,f32} d, a, b, c: d = c >= 0 ? a : b (a NaN selects b)."""
    selector = ins.take_type("s32", "f32")
    sign = flush_f32 if selector.name == "f32" and ins.flag("ftz") else np.asarray
    type_ = ins.take_type(*SELECTED)

    def select(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.where(sign(c) >= 0, a, b)

    return lanewise(ins, [type_, type_, selector], select, type_)


@instruction("cvta", section="9.7.9.20")
def build_cvta(ins: Decoded) -> Step:
    """cvta{.to}.space.u64 d, a: state space address to generic, or back."""
    back = ins.flag("to")
    space = ins.required(GENERIC_SPACES)
    type_ = ins.take_type("u32", "u64")
    ins.finish_modifiers()
    ins.expect_operands(2)
    if type_.bits != 64:
        ins.unmodelled("32-bit generic addresses")
    change = _change(space.partition("::")[0], back)
    slot, target = ins.slot(1, type_), ins.target(0, type_)
    if target is not None:
        ins.note_computing((slot,), (target,))
    return result(lambda regs: change(regs[slot]), target)


def _change(space: str, back: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Addresses of a space to generic ones, or back; those of .const are generic ones already."""
    if space in KEPT_WINDOWS and not back:
        window = np.uint64(KEPT_WINDOWS[space])
        return lambda address: address | window
    if space == "param":
        return lambda address: address & ~np.uint64(PARAM_WINDOW)
    if space in WINDOWS:
        sign, window = np.subtract if back else np.add, np.uint64(WINDOWS[space])
        return lambda address: sign(address, window)
    return lambda address: address


@instruction("isspacep", section="9.7.9.19")
def build_isspacep(ins: Decoded) -> Step:
    """isspacep.space p, a: does the generic address a lie in the space?"""
    space = ins.required(GENERIC_SPACES)
    ins.finish_modifiers()
    ins.expect_operands(2)
    read, write = ins.read(1, np.uint64), ins.write(0, np.bool_)

    def step(warp, mask):
        owner = _space_test(warp, space)
        write(warp, mask, np.array([owner(address) for address in read(warp).tolist()]))

    return step


def _space_test(warp, space: str):
    def name_of(address: int) -> str:
        return warp.generic.resolve(address)[0].name

    if space in ("shared", "shared::cta"):
        base = SHARED_WINDOW + warp.cta.shared_base
        return lambda address: base <= address < base + (1 << 24)
    if space == "shared::cluster":
        return lambda address: SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE
    return lambda address: name_of(address) == space.partition("::")[0]


@instruction("mapa", section="9.7.9.23")
def build_mapa(ins: Decoded) -> Step:
    """mapa{.shared::cluster}.type d, a, b: the same variable in the CTA of cluster rank b.

    Of a rank that does not exist an address that no access may use: CUTLASS lets every lane compute
    one and only some use theirs.
    """
    ins.flag("shared::cluster")
    type_ = ins.take_type("u32", "u64")
    ins.finish_modifiers()
    ins.expect_operands(3)
    a, b = ins.slot(1, type_), ins.slot(2, TYPES["u32"])
    raw, write = type_.raw, ins.write(0, type_.raw)
    rank_bits, shift = raw.type(0xFF << 24), raw.type(24)

    def step(warp, mask):
        ranks = np.minimum(warp.regs[b], 0xFF)
        write(warp, mask, warp.regs[a] & ~rank_bits | ranks.astype(raw) << shift)

    return step


@instruction("getctarank", section="9.7.9.24")
def build_getctarank(ins: Decoded) -> Step:
    """getctarank{.shared::cluster}.type d, a: the cluster rank of a shared address."""
    ins.flag("shared::cluster")
    type_ = ins.take_type("u32", "u64")
    ins.finish_modifiers()
    ins.expect_operands(2)
    slot = ins.slot(1, type_)
    return result(
        lambda regs: (regs[slot] >> type_.raw.type(24)).astype(np.uint32) & np.uint32(0xFF),
        ins.target(0, 32),
    )


_PRMT_MODES = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


def _prmt_selectors(mode: str) -> np.ndarray:
    """Byte numbers [4 control values, 4 result bytes] of a special prmt mode."""
    table = {
        "f4e": lambda c: [c, c + 1, c + 2, c + 3],
        "b4e": lambda c: [c, (c + 7) % 8, (c + 6) % 8, (c + 5) % 8],
        "rc8": lambda c: [c] * 4,
        "ecl": lambda c: [max(c, byte) for byte in range(4)],
        "ecr": lambda c: [min(c, byte) for byte in range(4)],
        "rc16": lambda c: [2 * (c & 1), 2 * (c & 1) + 1] * 2,
    }
    return np.array([table[mode](control) for control in range(4)])


@instruction("prmt", section="9.7.9.7")
def build_prmt(ins: Decoded) -> Step:
    """prmt.b32{.mode} d, a, b, c: pick four bytes of {b, a}."""
    mode = ins.choice(_PRMT_MODES)
    type_ = ins.take_type()
    if type_.name != "b32":
        ins.unmodelled(f"type .{type_.name}")
    function = _prmt_default if mode is None else _prmt_special(mode)
    return lanewise(ins, [type_] * 3, function, type_)


def _prmt_bytes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (
        (a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)).view(np.uint8).reshape(-1, 8)
    )


def _prmt_default(a: np.ndarray, b: np.ndarray, control: np.ndarray) -> np.ndarray:
    nibbles = control[:, None] >> np.arange(0, 16, 4, dtype=np.uint32) & np.uint32(15)
    picked = np.take_along_axis(_prmt_bytes(a, b), (nibbles & np.uint32(7)).astype(np.intp), 1)
    signs = (picked.view(np.int8) >> 7).view(np.uint8)
    return np.where(nibbles & np.uint32(8), signs, picked).view(np.uint32).reshape(-1)


def _prmt_special(mode: str):
    selectors = _prmt_selectors(mode)

    def function(a: np.ndarray, b: np.ndarray, control: np.ndarray) -> np.ndarray:
        index = selectors[(control & np.uint32(3)).astype(np.intp)]
        return np.take_along_axis(_prmt_bytes(a, b), index, 1).view(np.uint32).reshape(-1)

    return function
