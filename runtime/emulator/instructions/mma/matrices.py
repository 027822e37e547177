"""ldmatrix, stmatrix and movmatrix (PTX ISA §9.7.14.5.15-17).

A matrix is eight (m16n16: sixteen) rows of 16 bytes in shared memory; lane 8j+i (16j+i) gives the
address of row i of matrix j. Below g = lane / 4 and q = lane % 4, the lane's place in a fragment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...interface import Warp
from ...ptx.accesses import READ, WRITE, MemoryAccess
from ...ptx.decode import Decoded
from ...ptx.lanes import FULL, LANE_IDS, TOGETHER, WARP_SIZE
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.element_formats import padded_codes
from ...truth import all_of
from ..memory.memory import space_of
from ..threads.convergence import take_aligned

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_ROW_WORDS = 4


@dataclass(frozen=True)
class MatrixForm:
    """rows, registers: of one matrix; to_rows: uint32[registers, 32] → uint32[rows, 4], and back
    to_registers."""

    rows: int
    registers: int
    to_rows: Callable | None
    to_registers: Callable | None


def _as_words(values: np.ndarray, rows: int) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint32).reshape(rows, -1)


def _plain_rows(registers: np.ndarray) -> np.ndarray:
    """Elements 2q and 2q+1 of row g."""
    return registers.reshape(8, _ROW_WORDS)


def _plain_registers(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(1, WARP_SIZE)


def _transposed_rows(registers: np.ndarray) -> np.ndarray:
    """Elements g of rows 2q and 2q+1."""
    halves = np.ascontiguousarray(registers).view(np.uint16).reshape(8, 8)
    return _as_words(halves.T, 8)


def _transposed_registers(rows: np.ndarray) -> np.ndarray:
    return _as_words(np.ascontiguousarray(rows).view(np.uint16).reshape(8, 8).T, 1)


def _byte_rows_16x8(registers: np.ndarray) -> np.ndarray:
    """Byte 2v+h of a lane is element g+8v of row 2q+h."""
    parts = np.ascontiguousarray(registers).view(np.uint8).reshape(8, 4, 2, 2)
    return _as_words(parts.transpose(1, 3, 2, 0), 8)


def _byte_registers_16x16(rows: np.ndarray) -> np.ndarray:
    """Byte b of a lane's register r is element g+8r of row 4q+b."""
    parts = np.ascontiguousarray(rows).view(np.uint8).reshape(4, 4, 2, 8)
    return _as_words(parts.transpose(2, 3, 0, 1), 2)


def _expanded(bits: int, arrange: Callable) -> Callable:
    """Rows of 16 padded elements become rows of 16 bytes, the elements in their low bits."""
    return lambda rows: arrange(
        padded_codes(np.ascontiguousarray(rows), bits).view(np.uint32).reshape(-1, _ROW_WORDS)
    )


_PADDED = {"b4x16_p64": 4, "b6x16_p32": 6}
_PLAIN = MatrixForm(8, 1, _plain_rows, _plain_registers)
_TRANSPOSED = MatrixForm(8, 1, _transposed_rows, _transposed_registers)
_STORES = {
    ("m8n8", "b16", False): _PLAIN,
    ("m8n8", "b16", True): _TRANSPOSED,
    ("m16n8", "b8", True): MatrixForm(8, 1, _byte_rows_16x8, None),
}
_LOADS = {
    ("m8n8", "b16", False): _PLAIN,
    ("m8n8", "b16", True): _TRANSPOSED,
    ("m16n16", "b8", True): MatrixForm(16, 2, None, _byte_registers_16x16),
    **{
        ("m8n16", f"b8x16.{name}", False): MatrixForm(8, 1, None, _expanded(bits, _plain_registers))
        for name, bits in _PADDED.items()
    },
    **{
        ("m16n16", f"b8x16.{name}", True): MatrixForm(
            16, 2, None, _expanded(bits, _byte_registers_16x16)
        )
        for name, bits in _PADDED.items()
    },
}


def _take_form(ins: Decoded, table: dict) -> tuple[MatrixForm, int]:
    shape = ins.required(("m8n8", "m16n8", "m16n16", "m8n16"))
    count = _COUNTS[ins.required(tuple(_COUNTS))]
    transposed = ins.flag("trans")
    type_ = ins.required(("b16", "b8", "b8x16"))
    if source := ins.choice(tuple(_PADDED)):
        type_ = f"{type_}.{source}"
    form = table.get((shape, type_, transposed))
    if form is None or form.rows * count > WARP_SIZE:
        suffix = ".trans" if transposed else ""
        ins.unmodelled(f"shape .{shape}.x{count}{suffix} of .{type_}")
    return form, count


def _space(ins: Decoded, at: int):
    space = ins.choice(("shared", "shared::cta"))
    ins.finish_modifiers()
    return space_of(ins, space, ins.operand(at))


@instruction("stmatrix", section="9.7.14.5.16")
def build_stmatrix(ins: Decoded) -> Step:
    """stmatrix.sync.aligned.shape.num{.trans}{.shared}.type [p], {r…}."""
    converged = take_aligned(ins)
    form, count = _take_form(ins, _STORES)
    name, of = _space(ins, 0)
    ins.expect_operands(2)
    address, read = ins.address(0), ins.read_vector(1, form.registers * count, np.uint32)
    lanes = LANE_IDS < form.rows * count
    who = FULL if all_of(lanes) else lanes
    key, size = (name, "write"), 16 * form.rows * count
    to_rows = form.to_rows
    assert to_rows is not None  # forms of stores have it
    ins.note_access(MemoryAccess(name, WRITE, 16, address, lanes, to_rows))

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        rows = np.concatenate([to_rows(register) for register in read(warp)])
        warp.launch.report.memory_bytes[key] += size
        of(warp).store(address(warp)[lanes], rows, 4, _ROW_WORDS, (warp, who))
        return None

    return step


@instruction("ldmatrix", section="9.7.14.5.15")
def build_ldmatrix(ins: Decoded) -> Step:
    """ldmatrix.sync.aligned.shape.num{.trans}{.shared}.type {r…}, [p]."""
    converged = take_aligned(ins)
    form, count = _take_form(ins, _LOADS)
    name, of = _space(ins, 1)
    ins.expect_operands(2)
    write = ins.write_vector(0, form.registers * count, np.uint32)
    address, lanes = ins.address(1), LANE_IDS < form.rows * count
    key, size = (name, "read"), 16 * form.rows * count
    to_registers = form.to_registers
    assert to_registers is not None  # forms of loads have it
    ins.note_access(MemoryAccess(name, READ, 16, address, lanes))

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        warp.launch.report.memory_bytes[key] += size
        warp.launch.mask = TOGETHER
        rows = of(warp).load(address(warp)[lanes], 4, _ROW_WORDS)
        warp.launch.mask = None
        matrices = rows.reshape(count, form.rows, _ROW_WORDS)
        write(warp, mask, np.concatenate([to_registers(matrix) for matrix in matrices]))
        return None

    return step


@instruction("movmatrix", section="9.7.14.5.17")
def build_movmatrix(ins: Decoded) -> Step:
    """movmatrix.sync.aligned.m8n8.trans.b16 d, a: transpose an 8x8 fragment in registers."""
    converged = take_aligned(ins)
    for part in ("m8n8", "trans", "b16"):
        ins.required((part,))
    ins.finish_modifiers()
    ins.expect_operands(2)
    read, write = ins.read(1, np.uint32), ins.write(0, np.uint32)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        write(warp, mask, _transposed_registers(_plain_rows(read(warp))).reshape(WARP_SIZE))
        return None

    return step
