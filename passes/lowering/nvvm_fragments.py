"""Fragments and mma.sync, from `sm` to nvvm and llvm: an op, a pattern."""

from __future__ import annotations

from ...dialects import sm
from ...dialects.mlir import ir, llvm, nvvm, vector
from .. import build
from .register_accumulator import parts

ROW, COLUMN = "#nvvm.mma_layout<row>", "#nvvm.mma_layout<col>"
SHAPE = "#nvvm.ld_st_matrix_shape<m = 8, n = 8>"
ELEMENT = "#nvvm.ld_st_matrix_elt_type<b16>"


def ldmatrix(op: sm.LdmatrixOp) -> ir.Value:
    """The words as a vector; the offset is an immediate of the address."""
    (count,) = op.words.type.shape
    layout = ir.Attribute.parse(COLUMN if op.transposed.value else ROW)
    shape, element = (ir.Attribute.parse(text) for text in (SHAPE, ELEMENT))
    address = build.offset_pointer(op.address, op.offset.value) if op.offset.value else op.address
    words = ", ".join(["i32"] * count)
    type_ = build.i32() if count == 1 else ir.Type.parse(f"!llvm.struct<({words})>")
    loaded = nvvm.ldmatrix(address, count, layout, shape, element, results=[type_])
    each = [loaded] if count == 1 else _members(loaded, count)
    return vector.FromElementsOp(op.words.type, each).result


def _members(struct: ir.Value, count: int) -> list[ir.Value]:
    return [llvm.extractvalue(build.i32(), struct, [index]) for index in range(count)]


def mma_sync(op: sm.MmaSyncOp) -> ir.Value:
    """The new sums. The asm has side effects for LLVM, so that no branch takes it in."""
    sums, a, b = parts(op.d), _words(op.a), _words(op.b)
    letter = "r" if isinstance(sums[0].type, ir.IntegerType) else "f"
    outputs = [f"={letter}"] * len(sums)
    inputs = ["r"] * (len(a) + len(b)) + [str(index) for index in range(len(sums))]
    constraints = ",".join([*outputs, *inputs])
    text = _text(op, len(sums), len(a), len(b))
    return llvm.inline_asm(op.sum.type, [*a, *b, *sums], text, constraints, has_side_effects=True)


def _words(value: ir.Value) -> list[ir.Value]:
    (count,) = ir.VectorType(value.type).shape
    return [vector.ExtractOp(value, [], [index]).result for index in range(count)]


def _text(op: sm.MmaSyncOp, sums: int, a: int, b: int) -> str:
    starts = (0, sums, sums + a, sums + a + b)
    groups = zip(starts, (sums, a, b, sums), strict=True)
    registers = [
        "{" + ", ".join(f"${start + index}" for index in range(count)) + "}"
        for start, count in groups
    ]
    d, types = op.d_type.value, f"{op.a_type.value}.{op.b_type.value}"
    return f"mma.sync.aligned.m16n8k{op.k.value}.row.col.{d}.{types}.{d} {', '.join(registers)};"


PATTERNS = {sm.LdmatrixOp: ldmatrix, sm.MmaSyncOp: mma_sync}
