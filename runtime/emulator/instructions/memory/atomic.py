"""atom and red (PTX ISA §9.7.13.5, §9.7.13.6).

Lanes that address the same place are performed one after the other in lane order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Trap
from ...machine.spaces import GenericSpace
from ...ptx.accesses import BOTH, MemoryAccess
from ...ptx.decode import Decoded
from ...ptx.lanes import FULL
from ...ptx.registry import Step, instruction
from ...ptx.values import TYPES, Type, bf16_to_f32
from ...truth import any_of
from ..values.common import bit_type
from ..values.floats import ELEMENT
from ..values.rounding import flush_f32, to_bf16, to_f16
from .memory import DEFAULT_SCOPE, MAX_VECTOR_BYTES, SCOPES, expand, ordered, space_of

OPERATIONS = ("and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max")
_BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_NUMERIC = {"add": np.add, "min": np.minimum, "max": np.maximum}
_VECTOR_TYPES = ("f32", "f16", "bf16", "f16x2", "bf16x2")
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_ORDERS = {1: ("relaxed", "acquire", "release", "acq_rel"), 0: ("relaxed", "release")}
"""Of atom, whose address is operand 1, and of red."""
_SPACES = ("global", "shared", "shared::cta", "shared::cluster")
_VECTORS = ("v2", "v4", "v8")
_WORD = 8
_LEGAL = {
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "cas": ("b16", "b32", "b64", "b128"),
    "exch": ("b32", "b64", "b128"),
    "inc": ("u32",),
    "dec": ("u32",),
    "add": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
    "max": ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2"),
}


def combination(ins: Decoded, operation: str, type_: Type) -> Callable:
    """A function (old, b, c) of raw arrays → new raw array."""
    if type_.name not in _LEGAL[operation]:
        ins.unmodelled(f".{operation} on .{type_.name}")
    if operation == "cas" and type_.bits == 128:
        return lambda old, b, c: np.where((old == b).all(axis=1, keepdims=True), c, old)
    if operation == "cas":
        return lambda old, b, c: np.where(old == b, c, old)
    if operation == "exch":
        return lambda old, b, c: b
    if operation == "inc":
        return lambda old, b, c: np.where(old >= b, np.uint32(0), old + np.uint32(1))
    if operation == "dec":
        return lambda old, b, c: np.where((old == 0) | (old > b), b, old - np.uint32(1))
    if operation in _BITWISE:
        return lambda old, b, c: _BITWISE[operation](old, b)
    return _numeric(operation, type_)


def _flushing(operation: str, type_: Type) -> Callable | None:
    """The same for what flushes subnormal operands and results in global memory: sums of f32
    (PTX ISA §9.7.13.5; in shared memory they don't)."""
    if (operation, type_.name) != ("add", "f32"):
        return None

    def combine(old: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        total = flush_f32(old.view(np.float32)) + flush_f32(b.view(np.float32))
        return flush_f32(total).view(type_.raw)

    return combine


def _lies_in_global_memory(space: Any, address: np.uint64) -> bool:
    """Whether an address of a space, which may be that of generic addresses, does."""
    if isinstance(space, GenericSpace):
        return space.resolve(int(address))[0] is space.global_
    return space.name == "global"


def _numeric(operation: str, type_: Type) -> Callable:
    function, view, raw = _NUMERIC[operation], type_.dtype, type_.raw
    form = ELEMENT.get(type_.name)
    if form in (None, "f32", "f64"):
        return lambda old, b, c: function(old.view(view), b.view(view)).view(raw)
    if operation != "add":
        function = {"min": np.fmin, "max": np.fmax}[operation]
    if form == "f16":
        return lambda old, b, c: to_f16(function(_f16(old), _f16(b))).view(raw)
    return lambda old, b, c: to_bf16(function(_bf16(old), _bf16(b))).view(raw)


def _f16(raw: np.ndarray) -> np.ndarray:
    return raw.view(np.float16).astype(np.float64)


def _bf16(raw: np.ndarray) -> np.ndarray:
    return bf16_to_f32(raw.view(np.uint16)).astype(np.float64)


def _perform(
    space, at: np.ndarray, combine: Callable, b: np.ndarray, c: np.ndarray, width: int, who: tuple
) -> np.ndarray:
    """Read, combine and write back; returns the old values. 16 bytes are rows of two words."""
    if len(set(at.tolist())) == len(at):
        old = _load(space, at, width)
        _store(space, at, combine(old, b, c), width, who)
        return old
    return _perform_in_order(space, at, combine, b, c, width, who)


def _load(space, at: np.ndarray, width: int) -> np.ndarray:
    return space.load(at, width) if width <= _WORD else space.load(at, _WORD, width // _WORD)


def _store(space, at: np.ndarray, values: np.ndarray, width: int, who: tuple) -> None:
    space.store(at, values, min(width, _WORD), max(1, width // _WORD), who)


def _perform_in_order(
    space, at: np.ndarray, combine: Callable, b: np.ndarray, c: np.ndarray, width: int, who: tuple
) -> np.ndarray:
    """The same where lanes share addresses: one lane after the other, one store an address."""
    places, first, place_of = np.unique(at, return_index=True, return_inverse=True)
    values = _load(space, places, width)
    old = np.empty(b.shape, b.dtype)
    for number, place in enumerate(place_of.tolist()):
        here, one = slice(place, place + 1), slice(number, number + 1)
        old[one] = values[here]
        values[here] = combine(old[one], b[one], c[one])
    stores = np.zeros(32, bool)
    stores[np.flatnonzero(who[1])[first]] = True
    order = np.argsort(first)
    _store(space, places[order], values[order], width, (who[0], stores))
    return old


def _build(ins: Decoded, first: int) -> Step:
    if vector := ins.choice(_VECTORS):
        return _build_vector(ins, first, int(vector[1]))
    type_ = ins.take_type()
    operation = ins.required(OPERATIONS)
    order = ins.choice(_ORDERS[first], "relaxed")
    scope = ins.choice(SCOPES, DEFAULT_SCOPE)
    space = ins.choice(_SPACES)
    if (operation, type_.name) == ("add", "s64") or (operation == "exch" and first == 0):
        raise ins.trap("operand", f"{ins.mnemonic} has no .{operation}.{type_.name}")
    if operation in ("min", "max") and type_.name in _HALVES:
        rule = f"{ins.mnemonic}.{operation} of .{type_.name} takes a vector (.v2, .v4 or .v8)"
        raise ins.trap("operand", rule)
    _check_denormals(ins, operation, type_)
    _expect(ins, first + 2 + (operation == "cas"))
    combine = combination(ins, operation, type_)
    name, of = space_of(ins, space, ins.operand(first))
    address = ins.address(first)
    ins.note_access(MemoryAccess(space or "generic", BOTH, type_.bytes, address))
    b = ins.read(first + 1, bit_type(type_.bits))
    c = ins.read(first + 2, bit_type(type_.bits)) if operation == "cas" else b
    target = None if first == 0 else ins.target(0, type_)
    functions = combine, _flushing(operation, type_)
    step = _step(of, name, address, functions, (b, c), type_.bytes, target)
    how = {"comparing": operation == "cas", "telling": target is not None}
    return ordered(step, order, scope, updating=True, **how)


def _expect(ins: Decoded, count: int) -> None:
    """Refuse other modifiers and numbers of operands; a cache policy stands behind the others."""
    hinted = ins.flag("L2::cache_hint")
    ins.finish_modifiers()
    ins.expect_operands(count + hinted)
    if hinted:
        ins.read(count, np.uint64)


def _check_denormals(ins: Decoded, operation: str, type_: Type) -> None:
    """Halves are never flushed, which `.noftz` must say (PTX ISA §9.7.13.5, §9.7.13.6)."""
    if ins.flag("noftz"):
        if type_.bytes == _WORD or ELEMENT.get(type_.name) is None:
            raise ins.trap("operand", f"{ins.mnemonic} has no .noftz of .{type_.name}")
    elif type_.name in _HALVES and operation in _NUMERIC:
        raise ins.trap("operand", f"{ins.mnemonic}.{operation} of .{type_.name} needs .noftz")


def _build_vector(ins: Decoded, first: int, count: int) -> Step:
    """Elements are combined one by one: a vector is not one atomic access."""
    type_ = TYPES[ins.required(_VECTOR_TYPES)]
    operation = ins.required(("add",) if type_.name == "f32" else ("add", "min", "max"))
    order = ins.choice(_ORDERS[first], "relaxed")
    scope = ins.choice(SCOPES, DEFAULT_SCOPE)
    space = ins.choice(("global",))
    _check_denormals(ins, operation, type_)
    _expect(ins, first + 2)
    if type_.bytes * count > MAX_VECTOR_BYTES:
        ins.unmodelled(f"a vector of {count} elements of .{type_.name}")
    combine = _flushing(operation, type_) or combination(ins, operation, type_)
    address = ins.address(first)
    bits = bit_type(type_.bits)
    read = ins.read_vector(first + 1, count, bits)
    write = ins.write_vector(0, count, bits) if first and not ins.is_sink(ins.operand(0)) else None
    width = type_.bytes
    ins.note_access(MemoryAccess(space or "generic", BOTH, width * count, address))

    def step(warp, mask):
        at, values = address(warp)[mask], read(warp)
        _check_vector(at, width * count)
        if space is None:
            _check_global(ins.mnemonic, warp.generic, at)
        for direction in ("read", "write"):
            warp.launch.report.memory_bytes["global", direction] += width * count * len(at)
        old = []
        for number, value in enumerate(values):
            b, places = value[mask], at + np.uint64(width * number)
            memory = warp.launch.global_memory
            found = _perform(memory, places, combine, b, b, width, (warp, mask))
            old.append(expand(found, mask, value))
        if write is not None:
            write(warp, mask, old)

    return ordered(step, order, scope, updating=True, telling=write is not None)


def _check_vector(addresses: np.ndarray, size: int) -> None:
    bad = addresses % np.uint64(size) != 0
    if any_of(bad):
        raise Trap("misaligned", f"a vector of {size} bytes must be aligned to its size, got "
                                 f"0x{int(addresses[bad][0]):x}")  # fmt: skip


def _check_global(name: str, space: GenericSpace, addresses: np.ndarray) -> None:
    """Vectors lie in global memory, also where the instruction names no state space."""
    for address in addresses:
        if not _lies_in_global_memory(space, address):
            raise Trap("address-space", f"a vector of {name} must lie in global memory, got the"
                                        f" generic address 0x{int(address):x} of another"
                                        " space")  # fmt: skip


def _step(
    of: Callable,
    name: str,
    address: Callable,
    functions: tuple[Callable, Callable | None],
    operands: tuple,
    width: int,
    target: int | None,
) -> Step:
    (read_b, read_c), (combine, flushing) = operands, functions

    def step(warp, mask):
        at, b, c = address(warp), read_b(warp), read_c(warp)
        if mask is not FULL:
            at, b, c = at[mask], b[mask], c[mask]
        for direction in ("read", "write"):
            warp.launch.report.memory_bytes[name, direction] += width * len(at)
        space, function = of(warp), combine
        if flushing and _lies_in_global_memory(space, at[0]):
            function = flushing
        old = _perform(space, at, function, b, c, width, (warp, mask))
        if target is not None:
            warp.regs[target] = old if mask is FULL else expand(old, mask, warp.regs[target])

    return step


@instruction("atom", section="9.7.13.5")
def build_atom(ins: Decoded) -> Step:
    """atom{.order}{.scope}{.space}.op{.vec}.type d, [a], b{, c}: d is the old value."""
    return _build(ins, 1)


@instruction("red", section="9.7.13.6")
def build_red(ins: Decoded) -> Step:
    """red{.order}{.scope}{.space}.op{.vec}.type [a], b."""
    return _build(ins, 0)
