"""wmma.load, wmma.mma and wmma.store (PTX ISA §9.7.14.4).

The ISA leaves open which lane holds which element of a fragment; it only fixes the registers.
Here element i of lane t is unit (32·i + t) modulo the units of the matrix, counted along `inner`
first: A is [m, k], B is [n, k] and C is [m, n]. A unit is an element, below 8 bits the elements
of a word. Sums are formed as for mma.sync.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import Trap
from ...interface import Warp
from ...machine.memory import UINT
from ...machine.shared_access import count_event
from ...ptx.accesses import READ, WRITE, MemoryAccess
from ...ptx.decode import Decoded
from ...ptx.lanes import LANE_IDS, TOGETHER, WARP_SIZE
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.element_formats import BITS, INTEGERS, decode
from ..memory.memory import space_of
from ..threads.convergence import take_aligned
from .dense import binary_product, saturated

_BYTE_SHAPES = ("m16n16k16", "m8n32k16", "m32n8k16")
_FORMS = (
    (("f16",), _BYTE_SHAPES, ("f16", "f32")),
    (("bf16",), _BYTE_SHAPES, ("f32",)),
    (("tf32",), ("m16n16k8",), ("f32",)),
    (("s8", "u8"), _BYTE_SHAPES, ("s32",)),
    (("s4", "u4"), ("m8n8k32",), ("s32",)),
    (("b1",), ("m8n8k128",), ("s32",)),
    (("f64",), ("m8n8k4",), ("f64",)),
)
"""Multiplicand types, shapes and accumulator types that go together."""
_SHAPES = tuple(dict.fromkeys(shape for _, shapes, _ in _FORMS for shape in shapes))
_BITS = BITS | {"f32": 32, "s32": 32}
_MULTIPLICANDS = tuple(name for names, _, _ in _FORMS for name in names)
_F16_REGISTERS = 8
"""An f16 multiplicand takes eight registers in every shape: lanes hold copies."""
_WORD_BITS = 32
_STRIDE_ALIGNMENT = 16


@dataclass(frozen=True)
class Fragment:
    """One operand: matrix extents in elements, element type, units and registers of a lane."""

    outer: int
    inner: int
    type: str
    contiguous: bool

    @property
    def bits(self) -> int:
        return _BITS[self.type]

    @property
    def unit(self) -> int:
        """Elements that are moved together."""
        return 1 if self.bits >= 8 else _WORD_BITS // self.bits

    @property
    def unit_bytes(self) -> int:
        return self.unit * self.bits // 8

    @property
    def units(self) -> int:
        """Units of the whole matrix."""
        return self.outer * self.inner // self.unit

    @property
    def register_bits(self) -> int:
        return 64 if self.type == "f64" else _WORD_BITS

    @property
    def per_register(self) -> int:
        """Units in one register."""
        return self.register_bits // (8 * self.unit_bytes)

    def registers(self, multiplicand: bool) -> int:
        """Registers of a lane."""
        if multiplicand and self.type == "f16":
            return _F16_REGISTERS
        return self.units // WARP_SIZE // self.per_register

    def offsets(self, registers: int, stride: int) -> np.ndarray:
        """Byte offsets uint64[units of a lane, 32] of what lanes hold; `stride` in bytes."""
        number = np.arange(registers * self.per_register)[:, None] * WARP_SIZE + LANE_IDS
        row, column = np.divmod(number % self.units, self.inner // self.unit)
        steps = (stride, self.unit_bytes) if self.contiguous else (self.unit_bytes, stride)
        return (row * steps[0] + column * steps[1]).astype(np.uint64)

    def matrix(self, registers: list[np.ndarray]) -> np.ndarray:
        """Numbers [outer, inner] of a fragment's registers."""
        words = np.stack(registers)
        units = words.view(UINT[self.unit_bytes]).reshape(len(words), WARP_SIZE, -1)
        ordered = np.ascontiguousarray(units.transpose(0, 2, 1)).reshape(-1)[: self.units]
        return _numbers(ordered, self.type).reshape(self.outer, self.inner)


def _numbers(raw: np.ndarray, name: str) -> np.ndarray:
    if name == "s32":
        return raw.view(np.int32).astype(np.float64)
    return raw.view(np.float32) if name == "f32" else decode(raw, name)


def _extents(shape: str) -> tuple[int, int, int]:
    """m, n and k of a shape's name."""
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _fragment(ins: Decoded, operand: str, shape: str, type_: str, layout: str) -> Fragment:
    kind = 2 if operand in ("c", "d") else 0
    if not any(shape in form[1] and type_ in form[kind] for form in _FORMS):
        ins.unmodelled(f"a fragment {operand} of shape .{shape} and type .{type_}")
    m, n, k = _extents(shape)
    outer, inner = {"a": (m, k), "b": (n, k)}.get(operand, (m, n))
    return Fragment(outer, inner, type_, layout == ("col" if operand == "b" else "row"))


# -- loads and stores ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """What a load and a store share: closures of address and stride, fragment, space."""

    fragment: Fragment
    registers: int
    converged: Callable
    space: tuple[str, Callable]
    address: Callable
    stride: Callable | None
    name: str

    def addresses(self, warp: Warp) -> np.ndarray:
        """uint64[units of a lane, 32]."""
        base, fragment = self.address(warp), self.fragment
        length = fragment.inner if fragment.contiguous else fragment.outer
        strides = self.stride(warp) if self.stride else np.full(WARP_SIZE, length, np.uint32)
        if (base != base[0]).any() or (strides != strides[0]).any():
            raise Trap("convergence", f"address and stride of {self.name} differ between lanes")
        self._check(int(base[0]), int(strides[0]), length)
        step = int(strides[0]) * fragment.bits // 8
        return base[0] + fragment.offsets(self.registers, step)

    def _check(self, base: int, stride: int, length: int) -> None:
        """Matrix storage, §9.7.14.4.2; as in CUDA, rows need be aligned to 16 bytes only."""
        size = self.registers * self.fragment.register_bits // 8
        row, step = min(size, _STRIDE_ALIGNMENT), stride * self.fragment.bits // 8
        if base % size:
            raise Trap("misaligned", f"the address of {self.name} must be a multiple of the"
                                     f" fragment's {size} bytes, got 0x{base:x}")  # fmt: skip
        if step % row or stride < length:
            raise Trap("operand", f"the stride of {self.name} must be at least {length} elements"
                                  f" and a multiple of {row} bytes, got {stride}")  # fmt: skip


def _take_move(ins: Decoded, at: int) -> Move:
    operand = ins.mnemonic.rpartition(".")[2]
    type_ = ins.required((*_MULTIPLICANDS, "f32", "s32"))
    shape, layout = ins.required(_SHAPES), ins.required(("row", "col"))
    converged = take_aligned(ins)
    space = ins.choice(("global", "shared", "shared::cta"))
    ins.finish_modifiers()
    ins.expect_operands(2, 3)
    fragment = _fragment(ins, operand, shape, type_, layout)
    if fragment.unit > 1 and not fragment.contiguous:
        ins.unmodelled(f"layout .{layout} of .{type_}")
    return Move(
        fragment=fragment,
        registers=fragment.registers(operand in ("a", "b")),
        converged=converged,
        space=space_of(ins, space, ins.operand(at)),
        address=ins.address(at),
        stride=ins.read(2, np.uint32) if len(ins.operands) == 3 else None,
        name=ins.mnemonic,
    )


@instruction("wmma.load.a", "wmma.load.b", "wmma.load.c", section="9.7.14.4.3")
def build_load(ins: Decoded) -> Step:
    """wmma.load.{a,b,c}.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}."""
    move = _take_move(ins, 1)
    fragment, (name, of) = move.fragment, move.space
    ins.note_access(MemoryAccess(name, READ, fragment.units * fragment.unit_bytes))
    write = ins.write_vector(0, move.registers, UINT[fragment.register_bits // 8])

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := move.converged(warp, mask):
            return blocked
        warp.launch.mask = TOGETHER
        rows = [of(warp).load(at, fragment.unit_bytes) for at in move.addresses(warp)]
        warp.launch.mask = None
        warp.launch.report.memory_bytes[name, "read"] += fragment.units * fragment.unit_bytes
        units = np.stack(rows).reshape(move.registers, -1, WARP_SIZE).transpose(0, 2, 1)
        words = np.ascontiguousarray(units).view(UINT[fragment.register_bits // 8])
        write(warp, mask, words.reshape(move.registers, WARP_SIZE))
        return None

    return step


@instruction("wmma.store.d", section="9.7.14.4.4")
def build_store(ins: Decoded) -> Step:
    """wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}."""
    move = _take_move(ins, 0)
    fragment, (name, of) = move.fragment, move.space
    ins.note_access(MemoryAccess(name, WRITE, fragment.units * fragment.unit_bytes))
    read = ins.read_vector(1, move.registers, UINT[fragment.register_bits // 8])
    dtype = UINT[fragment.unit_bytes]

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := move.converged(warp, mask):
            return blocked
        units = np.stack(read(warp)).view(dtype).reshape(move.registers, WARP_SIZE, -1)
        rows = np.ascontiguousarray(units.transpose(0, 2, 1)).reshape(-1, WARP_SIZE)
        warp.launch.report.memory_bytes[name, "write"] += fragment.units * fragment.unit_bytes
        for at, row in zip(move.addresses(warp), rows, strict=True):
            of(warp).store(at, row, fragment.unit_bytes, 1, (warp, mask))
        return None

    return step


# -- the product ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class WmmaForm:
    """Fragments of one wmma.mma; `combine`: `xor` or `and` of single bits."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    saturates: bool
    combine: str | None

    def multiply(self, a: list, b: list, c: list) -> list[np.ndarray]:
        """Registers of D from those of A, B and C."""
        left, right = self.a.matrix(a), self.b.matrix(b)
        with np.errstate(all="ignore"):
            if self.combine:
                product = binary_product(left, right, self.combine)
            else:
                product = left @ right.T
            return self._registers(product + self.c.matrix(c))

    def _registers(self, values: np.ndarray) -> list[np.ndarray]:
        d = self.d
        if self.a.type in (*INTEGERS, "b1"):
            raw = saturated(values, self.saturates)
        else:
            raw = values.astype(f"f{d.bits // 8}")
        units = raw.reshape(-1, d.per_register, WARP_SIZE).transpose(0, 2, 1)
        words = np.ascontiguousarray(units).view(UINT[d.register_bits // 8])
        return list(words.reshape(-1, WARP_SIZE))


def _take_types(ins: Decoded) -> tuple[str, str, str, str]:
    """Types of d, a, b, c: the last four modifiers, or the two of d and c for f16."""
    names = [name for name in ins.modifiers if name in _BITS]
    for name in names:
        ins.flag(name)
    if len(names) == 2:
        return names[0], "f16", "f16", names[1]
    if len(names) != 4:
        ins.unmodelled(f"{len(names)} types")
    return names[0], names[1], names[2], names[3]


def _take_form(ins: Decoded) -> WmmaForm:
    d, a, b, c = _take_types(ins)
    shape = ins.required(_SHAPES)
    legal = any(a in form[0] and b in form[0] and shape in form[1] for form in _FORMS)
    layouts = [name for name in ins.modifiers if name in ("row", "col")]
    for layout in layouts:
        ins.flag(layout)
    combine = ins.choice(("xor", "and"))
    saturates = ins.flag("satfinite")
    if combine:
        ins.required(("popc",))
    ins.choice(("rn",))
    ins.finish_modifiers()
    if len(layouts) != 2 or not legal or (saturates and d != "s32") or (a == "b1") != bool(combine):
        ins.unmodelled(f"shape .{shape} with types .{d}.{a}.{b}.{c}")
    return WmmaForm(
        _fragment(ins, "a", shape, a, layouts[0]),
        _fragment(ins, "b", shape, b, layouts[1]),
        _fragment(ins, "c", shape, c, "row"),
        _fragment(ins, "d", shape, d, "row"),
        saturates,
        combine,
    )


@instruction("wmma.mma", section="9.7.14.4.5")
def build_mma(ins: Decoded) -> Step:
    """wmma.mma{.op.popc}.sync.aligned.alayout.blayout.shape.types{.satfinite} d, a, b, c."""
    converged = take_aligned(ins)
    form = _take_form(ins)
    ins.expect_operands(4)
    reads = [
        ins.read_vector(at, part.registers(at < 3), UINT[part.register_bits // 8])
        for at, part in ((1, form.a), (2, form.b), (3, form.c))
    ]
    write = ins.write_vector(0, form.d.registers(False), UINT[form.d.register_bits // 8])
    flops = 2 * form.a.outer * form.b.outer * form.a.inner

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        write(warp, mask, form.multiply(*(read(warp) for read in reads)))
        count_event(warp.cta, "mma.sync flops", flops)
        return None

    return step
