"""An MMA whose A is written to tensor memory by threads."""

from ..integer_types import I1, I32
from ..mlir import ext, ir
from ..verify import refuse
from .types import DescriptorType, Instruction, verify_choice, verify_half_operands

STORE_SHAPES = ("32x32b", "16x32bx2")
STORE_WORDS = tuple(2**power for power in range(1, 8))  # PTX ISA, tcgen05.st: .num


class TmemStoreOp(Instruction, name="tmem_store"):
    """Starts a warp's store of the words of its threads to tensor memory (tcgen05.st).

    A thread's words go to neighbouring columns of its lane. With `shape` "16x32bx2" threads 16 to
    31 have the lanes of threads 0 to 15, `offset` columns further. `sm.tmem_store_wait` waits for
    it.
    """

    address: ext.Operand[I32]
    words: ext.Operand[ir.VectorType]
    shape: ir.StringAttr
    offset: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if not verify_choice(self, "shape", STORE_SHAPES):
            return False
        halves = self.shape.value == "16x32bx2"
        if halves != (self.offset.value > 0):
            got = f"{self.offset.value} with {self.shape.value}"
            return refuse(self, f"offset must be columns of 16x32bx2, else 0, got {got}")
        type_ = self.words.type
        known = str(type_.element_type) == "i32" and list(type_.shape) in [[n] for n in STORE_WORDS]
        return known or refuse(self, f"words must be 2 to 128, a power of 2, got {type_}")


class TmemStoreWaitOp(Instruction, name="tmem_store_wait"):
    """Waits until what this thread has stored to tensor memory is there (tcgen05.wait::st)."""


class MmaOfTensorMemoryOp(Instruction, name="mma_of_tensor_memory"):
    """`d[m,n] = (accumulate ? d : 0) + a[m,k] * b[n,k]^T`, with `a` in tensor memory (tcgen05.mma).

    As `sm.mma` of one CTA, but for `a`: the address of its first column. Row r is in the lane of
    row r of `d`, and each of the k / 2 columns holds two neighbours along K, the first in the low
    bits. Nobody writes them before the MMA is done.
    """

    d: ext.Operand[I32]
    a: ext.Operand[I32]
    b: ext.Operand[DescriptorType]
    accumulate: ext.Operand[I1]
    m: ir.IntegerAttr
    n: ir.IntegerAttr
    k: ir.IntegerAttr
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    d_type: ir.StringAttr
    b_major: ir.StringAttr
    b_offset: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        m, k = self.m.value, self.k.value
        if m not in (64, 128) or k != 16:
            return refuse(self, f"m must be 64 or 128, and k 16, got {m} and {k}")
        return verify_half_operands(self, 8 if m == 64 else 16)
