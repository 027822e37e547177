"""MMAs with operands in registers: ldmatrix and mma.sync."""

from typing import Any

from ..dtypes import ACCUMULATOR_DTYPES, DTYPES, NARROW_DTYPES, PADDED_TYPES
from ..fragments import MATRICES, mma_sync
from ..integer_types import I16, I32
from ..mlir import ext, ir
from ..verify import refuse
from .types import SHARED, Instruction, verify_choice, verify_pointer, verify_range

OFFSET_MAX = 2**31 - 1  # of an address: register + immediate (PTX ISA, addresses as operands)
F32 = ir.F32Type
SUMS = 4  # of a thread, of one m16n8


class LdmatrixOp(Instruction, name="ldmatrix"):
    """`words`: 8x8 matrices of 16 bits from shared memory, a register of each in every thread.

    Lane 8i + r gives the address of row r of matrix i, 16 bytes; all are `offset` bytes further.
    Thread t gets the t % 4-th word of row t / 4. `transposed` matrices are as if their columns were
    rows (.trans).
    """

    address: ext.Operand[Any]
    offset: ir.IntegerAttr
    transposed: ir.IntegerAttr
    words: ext.Result[ir.VectorType]

    def verify_invariants(self) -> bool:
        count = self.words.type.shape
        if list(count) not in [[number] for number in MATRICES]:
            return refuse(self, f"must give one of {MATRICES} words, got {self.words.type}")
        return (
            verify_pointer(self, "address", SHARED)
            and verify_range(self, "offset", 0, OFFSET_MAX)
            and verify_range(self, "transposed", 0, 1)
        )


class RoundTf32Op(Instruction, name="round_tf32"):
    """`bits`: an f32 rounded to tf32, ties away from zero, whose low 13 bits are zero (PTX ISA,
    cvt.rna.tf32.f32)."""

    value: ext.Operand[F32]
    bits: ext.Result[I32] = ext.infer_result()


class CutBf16Op(Instruction, name="cut_bf16"):
    """`bits`: two f32 as bf16, the first in the low half, cut off towards zero (PTX ISA,
    cvt.rz.bf16x2.f32)."""

    low: ext.Operand[F32]
    high: ext.Operand[F32]
    bits: ext.Result[I32] = ext.infer_result()


class LdmatrixPaddedOp(Instruction, name="ldmatrix_padded"):
    """`words`: 8x16 matrices of elements of `bits` from shared memory, a register of each in every
    thread.

    Lane 8i + r gives the address of row r of matrix i: 16 bytes, of which the first 2 * `bits` are
    the row, packed. Thread t gets elements 4 * (t % 4) to 4 * (t % 4) + 3 of row t / 4, each in the
    low bits of a byte (PTX ISA, ldmatrix with .b8x16).
    """

    address: ext.Operand[Any]
    offset: ir.IntegerAttr
    bits: ir.IntegerAttr
    words: ext.Result[ir.VectorType]

    def verify_invariants(self) -> bool:
        count = self.words.type.shape
        if list(count) not in [[number] for number in MATRICES]:
            return refuse(self, f"must give one of {MATRICES} words, got {self.words.type}")
        if self.bits.value not in PADDED_TYPES.values():
            known = list(PADDED_TYPES.values())
            return refuse(self, f"bits must be one of {known}, got {self.bits.value}")
        return verify_pointer(self, "address", SHARED) and verify_range(
            self, "offset", 0, OFFSET_MAX
        )


class WidenOp(Instruction, name="widen"):
    """`values`: two floats of 8 bits as f16, which holds them all, the lower byte first.

    PTX ISA, cvt.rn.f16x2 from .e4m3x2 and .e5m2x2.
    """

    codes: ext.Operand[I16]
    dtype: ir.StringAttr
    values: ext.Result[ir.VectorType]

    def verify_invariants(self) -> bool:
        got, wanted = str(self.values.type), "vector<2xf16>"
        if got != wanted:
            return refuse(self, f"must give {wanted}, got {got}")
        return verify_choice(self, "dtype", NARROW_DTYPES)


class MmaSyncOp(Instruction, name="mma_sync"):
    """`sum[16,8] = d + a[16,k] * b[8,k]^T` by a warp (mma.sync), complete when it is issued.

    `d` and `sum` are the four registers that a thread has of the matrix, `a` and `b` the words of
    its operands (PTX ISA, matrix fragments for mma; `dialects.fragments.mma_sync`).
    """

    d: ext.Operand[Any]
    a: ext.Operand[ir.VectorType]
    b: ext.Operand[ir.VectorType]
    k: ir.IntegerAttr
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    d_type: ir.StringAttr
    sum: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if self.sum.type != self.d.type:
            return refuse(self, f"must give a {self.d.type}, got a {self.sum.type}")
        known = tuple(name for name, dtype in DTYPES.items() if dtype.k_per_mma)
        if not all(verify_choice(self, f"{each}_type", known) for each in "ab"):
            return False
        whole = DTYPES[self.a_type.value].k_per_mma
        as_long = tuple(name for name in known if DTYPES[name].k_per_mma == whole)
        return (
            verify_choice(self, "b_type", as_long)
            and verify_choice(self, "d_type", ACCUMULATOR_DTYPES)
            and verify_choice(self, "k", (whole // 2, whole))
            and all(self._has_words(operand) for operand in "ab")
        )

    def _has_words(self, operand: str) -> bool:
        bits = 8 * DTYPES[getattr(self, f"{operand}_type").value].bytes
        registers = mma_sync(self.k.value, operand, bits).registers
        got = list(getattr(self, operand).type.shape)
        return got == [registers] or refuse(
            self, f"{operand} must have {registers} words with k {self.k.value}, got {got}"
        )
