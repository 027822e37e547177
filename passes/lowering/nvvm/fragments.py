"""Fragments and mma.sync, from `sm` to nvvm and llvm: one pattern per op."""

from __future__ import annotations

from typing import Any

from ....dialects import llvm, nvvm, sm
from ....dialects.dtypes import PADDED_TYPES
from ....dialects.mlir import ir, vector
from ....dialects.sm.scales import mma_of_kind
from ... import build
from ..registers.register_accumulator import parts

PADDED_ELEMENTS = {bits: f"b8x16.{name}" for name, bits in PADDED_TYPES.items()}


def ldmatrix(op: sm.LdmatrixOp) -> ir.Value:
    """The words as a vector; the offset is an immediate of the address."""
    return _ldmatrix(op, "col" if op.transposed.value else "row", 8, "b16")


def ldmatrix_padded(op: sm.LdmatrixPaddedOp) -> ir.Value:
    """The same of packed elements, which become bytes."""
    return _ldmatrix(op, "row", 16, PADDED_ELEMENTS[op.bits.value])


def _ldmatrix(op: Any, layout: str, columns: int, element: str) -> ir.Value:
    (count,) = op.words.type.shape
    address = build.offset_pointer(op.address, op.offset.value) if op.offset.value else op.address
    words = ", ".join(["i32"] * count)
    type_ = build.i32() if count == 1 else ir.Type.parse(f"!llvm.struct<({words})>")
    loaded = nvvm.ldmatrix(type_, address, count, layout, columns, element)
    each = [loaded] if count == 1 else _members(loaded, count)
    return vector.FromElementsOp(op.words.type, each).result


def _members(struct: ir.Value, count: int) -> list[ir.Value]:
    return [llvm.extractvalue(build.i32(), struct, index) for index in range(count)]


def widen(op: sm.WidenOp) -> ir.Value:
    """Widen two bytes; the lower one becomes the lower half."""
    name = f"llvm.nvvm.{op.dtype.value}x2.to.f16x2.rn"
    return llvm.call_intrinsic(op.values.type, name, [op.codes])


def round_tf32(op: sm.RoundTf32Op) -> ir.Value:
    return llvm.call_intrinsic(build.i32(), "llvm.nvvm.f2tf32.rna", [op.value])


def cut_bf16(op: sm.CutBf16Op) -> ir.Value:
    """The first operand of the instruction is the high half."""
    pair = ir.VectorType.get([2], ir.BF16Type.get())
    name = "llvm.nvvm.ff2bf16x2.rz"
    made = llvm.call_intrinsic(pair, name, [op.high, op.low])
    return llvm.bitcast(build.i32(), made)


def mma_sync(op: sm.MmaSyncOp) -> ir.Value:
    """The new sums. The asm has side effects for LLVM, so that no branch takes it in."""
    d, types = op.d_type.value, f"{op.a_type.value}.{op.b_type.value}"
    return _warp_mma(op, f"m16n8k{op.k.value}.row.col.{d}.{types}.{d}")


def scaled_mma_sync(op: sm.ScaledMmaSyncOp) -> ir.Value:
    """The same, with scales after the sums, each with its first byte and the lanes that count."""
    mma, types = mma_of_kind(op), f"{op.a_type.value}.{op.b_type.value}"
    scaling = f"kind::{mma.kind}.block_scale.scale_vec::{mma.blocks}X"
    form = f"m16n8k{mma.k}.row.col.{scaling}.f32.{types}.f32.{mma.scale}"
    return _warp_mma(op, form, (op.a_scales, op.b_scales), f"{{{op.id.value}, 0}}")


def _warp_mma(
    op: Any, form: str, scales: tuple[ir.Value, ...] = (), selector: str = ""
) -> ir.Value:
    sums, a, b = parts(op.d), _words(op.a), _words(op.b)
    letter = "r" if isinstance(sums[0].type, ir.IntegerType) else "f"
    outputs = [f"={letter}"] * len(sums)
    inputs = ["r"] * (len(a) + len(b)) + [str(index) for index in range(len(sums))]
    inputs += ["r"] * len(scales)
    constraints = ",".join([*outputs, *inputs])
    registers = _registers(len(sums), len(a), len(b))
    first = 2 * len(sums) + len(a) + len(b)
    behind = [f", ${first + number}, {selector}" for number in range(len(scales))]
    text = f"mma.sync.aligned.{form} {', '.join(registers)}{''.join(behind)};"
    operands = [*a, *b, *sums, *scales]
    return llvm.inline_asm(op.sum.type, operands, text, constraints, has_side_effects=True)


def _words(value: ir.Value) -> list[ir.Value]:
    (count,) = ir.VectorType(value.type).shape
    return [vector.ExtractOp(value, [], [index]).result for index in range(count)]


def _registers(sums: int, a: int, b: int) -> list[str]:
    starts = (0, sums, sums + a, sums + a + b)
    groups = zip(starts, (sums, a, b, sums), strict=True)
    return [
        "{" + ", ".join(f"${start + index}" for index in range(count)) + "}"
        for start, count in groups
    ]


PATTERNS = {
    sm.LdmatrixOp: ldmatrix,
    sm.RoundTf32Op: round_tf32,
    sm.CutBf16Op: cut_bf16,
    sm.LdmatrixPaddedOp: ldmatrix_padded,
    sm.WidenOp: widen,
    sm.MmaSyncOp: mma_sync,
    sm.ScaledMmaSyncOp: scaled_mma_sync,
}
