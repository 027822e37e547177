"""mma.sync of small elements: kind::f8f6f4, and with block scales mxf8f6f4, mxf4 and mxf4nvf4.

D = (A · scale_A)(B · scale_B) + C. The fragments are those of other types: with m16n8k32 an element
takes a byte, of 4 bits its bits 5 to 2, of 6 bits its bits 5 to 0; with m16n8k64 it takes 4 bits.
Scales lie in one register of each lane, of which {byte-id, thread-id} name some: the scale of row m
of A and block b along K in lane 4·(m % 8) + 2·thread-id-a + m / 8, that of column n of B in lane
4·n + thread-id-b, both in byte `byte-id + b`. The other lanes' registers are not read.
Source: PTX ISA §9.7.14.3 (block scaling for mma.sync), §9.7.14.5.14. Probes of sm_120 GPUs that
others have published found the same lanes, and the same bits of a byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import Trap
from ...interface import Warp
from ...machine.shared_access import count_event
from ...ptx.decode import Decoded
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.element_formats import decode, decode_contained, is_small
from ..threads.convergence import all_threads
from .dense import MmaForm, accumulator_numbers, result_registers, warp_rows

_SECTION = "9.7.14.3"
_BYTES = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
_ROWS, _COLUMNS = 16, 8


@dataclass(frozen=True)
class _Kind:
    """Shape, element types, and by scale vector the types of scales; a default vector or none."""

    shape: str
    elements: tuple[str, ...]
    scales: dict[str, tuple[str, ...]]
    default: str = ""


_KINDS = {
    "f8f6f4": _Kind("m16n8k32", _BYTES, {}),
    "mxf8f6f4": _Kind("m16n8k32", _BYTES, {"1X": ("ue8m0",)}, "1X"),
    "mxf4": _Kind("m16n8k64", ("e2m1",), {"2X": ("ue8m0",)}, "2X"),
    "mxf4nvf4": _Kind("m16n8k64", ("e2m1",), {"2X": ("ue8m0",), "4X": ("ue4m3", "ue8m0")}),
}
_BYTE_IDS = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}
_LANES_OF_A = 4 * (np.arange(_ROWS) % 8) + np.arange(_ROWS) // 8
_LANES_OF_B = 4 * np.arange(_COLUMNS)
"""Lanes of the scales of each row and column, of thread-id 0."""
_PREFIXES = [f"mma.sync.aligned.kind::{kind}" for kind in _KINDS]
_PREFIXES += [f"mma.sync.aligned.{kind.shape}.row.col.kind::{name}"
              for name, kind in _KINDS.items()]  # fmt: skip


@dataclass(frozen=True)
class _Form:
    """Types of one operation, and the form that its registers have; blocks of scales along K."""

    a: str
    b: str
    registers: MmaForm
    blocks: int = 0
    scale: str = ""


@instruction(*_PREFIXES, section=_SECTION)
def build_small_mma(ins: Decoded) -> Step:
    """mma.sync….kind{.block_scale{.scale_vec::NX}}.f32.a.b.f32{.s} d, a, b, c{, sa, {i, t}, …}."""
    form = _take_form(ins)
    registers = form.registers
    converged = all_threads(ins)
    ins.expect_operands(8 if form.blocks else 4)
    read_a = ins.read_vector(1, registers.a_registers, np.uint32)
    read_b = ins.read_vector(2, registers.b_registers, np.uint32)
    read_c = ins.read_vector(3, registers.d_registers, np.uint32)
    write = ins.write_vector(0, registers.d_registers, np.uint32)
    scales_of_a = _scale_reader(ins, 4, form, "A") if form.blocks else None
    scales_of_b = _scale_reader(ins, 6, form, "B") if form.blocks else None
    flops = 2 * _ROWS * _COLUMNS * registers.k

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        left, right = _numbers(read_a(warp), form, form.a), _numbers(read_b(warp), form, form.b)
        with np.errstate(all="ignore"):
            if scales_of_a and scales_of_b:
                left, right = _scaled(left, scales_of_a(warp)), _scaled(right, scales_of_b(warp))
            sums = left @ right.T + accumulator_numbers(read_c(warp), registers)
            d = result_registers(sums, registers)
        write(warp, mask, d)
        count_event(warp.cta, "mma.sync flops", flops)
        return None

    return step


def _take_form(ins: Decoded) -> _Form:
    name = ins.mnemonic.rpartition("kind::")[2]
    kind = _KINDS[name]
    if kind.scales:
        ins.required(("block_scale",))
    vector = _take_vector(ins, kind)
    if ins.mnemonic.startswith("mma.sync.aligned.kind"):
        for piece in (kind.shape, "row", "col"):
            ins.required((piece,))
    types = ins.modifiers[-5 if kind.scales else -4 :]
    for each in types:
        ins.flag(each)
    ins.finish_modifiers()
    legal_d = ("f32",) if kind.scales else ("f16", "f32")
    d, a, b, c, *scale = types
    if not (d == c and d in legal_d and {a, b} <= set(kind.elements)):
        ins.unmodelled(f"types .{'.'.join(types)} of kind::{name}")
    if kind.scales and scale[0] not in kind.scales[vector]:
        ins.unmodelled(f"scales of .{scale[0]} with .scale_vec::{vector}")
    k = int(kind.shape.rpartition("k")[2])
    stored = "e2m1x2" if k == 64 else "e4m3"
    registers = MmaForm(_ROWS, k, stored, stored, d, False)
    return _Form(a, b, registers, int(vector[:1] or 0), "".join(scale))


def _take_vector(ins: Decoded, kind: _Kind) -> str:
    names = {f"scale_vec::{vector}": vector for vector in kind.scales}
    if kind.default or not kind.scales:
        return names.get(ins.choice(tuple(names)) or "", kind.default)
    return names[ins.required(tuple(names))]


def _numbers(registers: list[np.ndarray], form: _Form, name: str) -> np.ndarray:
    """float64 numbers [rows, k] of an operand from its registers."""
    halves = len(registers) // form.registers.b_registers
    if form.registers.k == 64:
        return warp_rows(registers, "e2m1x2", halves).astype(np.float64)
    if not is_small(name):
        return warp_rows(registers, name, halves).astype(np.float64)
    containers = warp_rows(registers, "u8", halves).astype(np.uint8)
    return decode_contained(np.ascontiguousarray(containers), name).astype(np.float64)


def _scaled(values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Numbers [rows, k] times their scales [rows, blocks]."""
    return values * np.repeat(scales, values.shape[1] // scales.shape[1], axis=1)


def _scale_reader(ins: Decoded, at: int, form: _Form, name: str) -> Callable:
    """A function warp → float64 scales [rows of A or columns of B, blocks]."""
    read = ins.read_vector(at, 1, np.uint32)
    selectors = [ins.read(each, np.uint16) for each in ins.elements(at + 1, 2)]
    threads = (0, 1) if name == "A" else (0, 1, 2, 3)
    legal = {"byte-id": _BYTE_IDS[form.blocks], "thread-id": threads}

    def scales(warp: Warp) -> np.ndarray:
        byte, thread = (
            _selector(reads(warp), each, name, legal[each])
            for reads, each in zip(selectors, legal, strict=True)
        )
        lanes = _LANES_OF_A + 2 * thread if name == "A" else _LANES_OF_B + thread
        words = np.ascontiguousarray(read(warp)[0][lanes]).view(np.uint8).reshape(-1, 4)
        used = np.ascontiguousarray(words[:, byte : byte + form.blocks])
        return decode(used, form.scale).astype(np.float64)

    return scales


def _selector(values: np.ndarray, what: str, name: str, legal: tuple[int, ...]) -> int:
    """A selector, which all lanes agree on."""
    if (values != values[0]).any():
        raise Trap("convergence", f"{what} of {name} must be the same in all lanes")
    if int(values[0]) not in legal:
        raise Trap("operand", f"{what} of {name} must be one of {legal}, got {values[0]}")
    return int(values[0])
