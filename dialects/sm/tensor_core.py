"""The tensor core in `sm`: descriptors, MMAs, tensor memory."""

from typing import Any

from ..dtypes import DTYPES, TENSOR_DTYPES
from ..integer_types import I1, I16, I32
from ..layout import MAJORS
from ..mlir import ext, ir
from ..pipe import SlotType
from ..tile_types import SmemType
from ..verify import refuse
from .barriers import NAMED_BARRIERS
from .memory import TensorMemoryType
from .threads import WARPS_MAX
from .types import (
    CTA_GROUPS,
    SHARED,
    DescriptorType,
    Instruction,
    matrix_fields,
    verify_choice,
    verify_descriptor,
    verify_half_operands,
    verify_matrix_offset,
    verify_pointer,
    verify_range,
)

SHAPES = ("32x32b", "16x32bx2", "16x256b")
COLUMNS = (32, 64, 128, 256, 512)
SHIFT_MAX, SCALING_KINDS = 15, ("f16", "tf32")  # PTX ISA, tcgen05.mma, scale-input-d
THREAD_REGISTERS = 256  # no thread has more (CUDA programming guide, compute capabilities)
PENDING_MAX = 7  # groups that wgmma.wait_group may leave (PTX ISA)


class SmemDescriptorOp(Instruction, name="smem_descriptor"):
    """`descriptor`: the matrix at a shared-memory address, laid out as its type says."""

    address: ext.Operand[Any]
    descriptor: ext.Result[DescriptorType]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "address", SHARED) and verify_descriptor(
            self, self.descriptor.type
        )


class BaseDescriptorOp(Instruction, name="base_descriptor"):
    """`descriptor`: payload tile `tile` of the first slot of a ring, as an MMA is told of it."""

    memory: ext.Operand[Any]
    tile: ir.IntegerAttr
    descriptor: ext.Result[DescriptorType]

    def verify_invariants(self) -> bool:
        tile, type_ = tile_of(self.memory.type, self.tile.value), self.descriptor.type
        if tile is None:
            got = f"{self.tile.value} of {self.memory.type}"
            return refuse(self, f"tile must be one of shared memory in the slots, got {got}")
        if not verify_descriptor(self, type_):
            return False
        wanted = matrix_fields(tile.layout)
        got = (type_.number("lbo"), type_.number("sbo"), type_.swizzle)
        return got == wanted or refuse(
            self, f"lbo, sbo and swizzle must be {wanted} as the tile lies, got {got}"
        )


class OperandOp(Instruction, name="operand"):
    """`tile`: that of `base` in another slot, as an MMA reads it: `base` moved by whole slots."""

    slot: ext.Operand[Any]
    base: ext.Operand[DescriptorType]
    tile: ext.Result[Any]

    def verify_invariants(self) -> bool:
        owner = self.base.owner
        base = None if isinstance(owner, ir.Block) else owner.opview
        if not isinstance(base, BaseDescriptorOp):
            return refuse(self, "base must come from sm.base_descriptor, got another value")
        memory, slot = base.memory.type, self.slot.type
        if memory != slot:
            return refuse(self, f"slot must be a {memory} as the base's, got a {slot}")
        wanted = tile_of(slot, base.tile.value)
        same = self.tile.type == wanted
        return same or refuse(self, f"must give {wanted}, got {self.tile.type}")


def tile_of(slot: ir.Type, number: int) -> SmemType | None:
    """A slot's payload tile of that number, where it is one of shared memory."""
    tiles = slot.tiles if isinstance(slot, SlotType) else []
    tile = tiles[number] if 0 <= number < len(tiles) else None
    return tile if isinstance(tile, SmemType) else None


class AdvanceOp(Instruction, name="advance"):
    """`moved`: the same descriptor, `units` times 16 bytes further."""

    descriptor: ext.Operand[DescriptorType]
    units: ext.Operand[I32]
    moved: ext.Result[DescriptorType]

    def verify_invariants(self) -> bool:
        same = self.descriptor.type == self.moved.type
        return same or refuse(self, f"must give a {self.descriptor.type}, got a {self.moved.type}")


class MmaOp(Instruction, name="mma"):
    """`d[m,n] = (accumulate ? d : 0) + a[m,k] * b[n,k]^T`, started by one thread (tcgen05.mma).

    `d` is an address in tensor memory. The operands start `a_offset` and `b_offset` bytes after
    their descriptors. The other fields are the instruction descriptor: M and N (of a pair's both
    CTAs with `cta_group` 2), K, types and majors of A and B, type of D.
    """

    d: ext.Operand[I32]
    a: ext.Operand[DescriptorType]
    b: ext.Operand[DescriptorType]
    accumulate: ext.Operand[I1]
    kind: ir.StringAttr
    cta_group: ir.IntegerAttr
    m: ir.IntegerAttr
    n: ir.IntegerAttr
    k: ir.IntegerAttr
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    d_type: ir.StringAttr
    a_major: ir.StringAttr
    b_major: ir.StringAttr
    a_offset: ir.IntegerAttr
    b_offset: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if not verify_choice(self, "cta_group", CTA_GROUPS):
            return False
        m, group = self.m.value, self.cta_group.value
        if m not in (64 * group, 128 * group):
            rows = f"{64 * group} or {128 * group}"
            return refuse(self, f"m must be {rows} with cta_group {group}, got {m}")
        if not verify_operands(self):
            return False
        dtype = DTYPES[self.a_type.value]
        wanted = f"{dtype.operand_kind} and k {dtype.k_per_mma}"
        got = f"{self.kind.value} and {self.k.value}"
        return got == wanted.replace("k ", "") or refuse(
            self, f"{dtype.name} is multiplied with kind {wanted}, got {got}"
        )


class ScalingMmaOp(MmaOp, name="scaling_mma"):
    """`d[m,n] = (accumulate ? d : 0) / 2^shift + a[m,k] * b[n,k]^T`, as `sm.mma`.

    PTX ISA, tcgen05.mma, scale-input-d.
    """

    shift: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if not MmaOp.verify_invariants(self) or not verify_range(self, "shift", 1, SHIFT_MAX):
            return False
        kind = self.kind.value
        rule = f"kind must be one of {SCALING_KINDS}, which scale d, got {kind!r}"
        return kind in SCALING_KINDS or refuse(self, rule)


class WgmmaOp(Instruction, name="wgmma"):
    """`sum[m,n] = (accumulate ? d : 0) + a[m,k] * b[n,k]^T`, started by a warpgroup (wgmma).

    Of the matrix a thread has `n/2` of the registers `d`, from the `first` one on; `sum` has the
    others as they are. The operands start `a_offset` and `b_offset` bytes after their descriptors.
    """

    d: ext.Operand[Any]
    a: ext.Operand[DescriptorType]
    b: ext.Operand[DescriptorType]
    accumulate: ext.Operand[I1]
    m: ir.IntegerAttr
    n: ir.IntegerAttr
    k: ir.IntegerAttr
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    d_type: ir.StringAttr
    a_major: ir.StringAttr
    b_major: ir.StringAttr
    a_offset: ir.IntegerAttr
    b_offset: ir.IntegerAttr
    first: ir.IntegerAttr
    sum: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if self.m.value != 64:
            return refuse(self, f"m must be 64, got {self.m.value}")
        first, most = self.first.value, THREAD_REGISTERS - self.n.value // 2
        if first % 4 or not 0 <= first <= most:
            return refuse(self, f"first must be a multiple of 4 up to {most}, got {first}")
        if self.sum.type != self.d.type:
            return refuse(self, f"must give a {self.d.type}, got a {self.sum.type}")
        if not verify_operands(self):
            return False
        k, dtype = self.k.value, DTYPES[self.a_type.value]
        if k != dtype.k_per_mma:
            return refuse(self, f"k must be {dtype.k_per_mma} for {dtype.name}, got {k}")
        return True


class WgmmaOfRegistersOp(Instruction, name="wgmma_of_registers"):
    """`sum[m,n] = (accumulate ? d : 0) + a[m,k] * b[n,k]^T`, with `a` in registers (wgmma).

    As `sm.wgmma`, but for `a`: the four words that a thread has of it, each of two neighbours along
    K. The MMA reads them until it is done: nobody writes them before.
    """

    d: ext.Operand[Any]
    a: ext.Operand[ir.VectorType]
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
    sum: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if (self.m.value, self.k.value) != (64, 16):
            return refuse(self, f"m and k must be 64 and 16, got {self.m.value} and {self.k.value}")
        if self.sum.type != self.d.type:
            return refuse(self, f"must give a {self.d.type}, got a {self.sum.type}")
        if list(self.a.type.shape) != [4] or str(self.a.type.element_type) != "i32":
            return refuse(self, f"a must be four words, got {self.a.type}")
        return verify_half_operands(self, 8)


class WgmmaFenceOp(Instruction, name="wgmma_fence"):
    """Comes before a group's first `sm.wgmma`: the registers that it names may have changed."""


class WgmmaCommitOp(Instruction, name="wgmma_commit"):
    """Closes this warp's group of `sm.wgmma`."""


class WgmmaWaitOp(Instruction, name="wgmma_wait"):
    """Waits until all but the `pending` newest groups of this warp's `sm.wgmma` are done."""

    pending: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_range(self, "pending", 0, PENDING_MAX)


class CommitOp(Instruction, name="commit"):
    """One arrival at the mbarrier when the MMAs that this thread has started are done.

    With a `mask` of ranks, at the barrier at the same place in each such CTA.
    """

    barrier: ext.Operand[Any]
    cta_group: ir.IntegerAttr
    mask: ext.Operand[I16] | None = None

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_choice(
            self, "cta_group", CTA_GROUPS
        )


class TmemAllocOp(Instruction, name="tmem_alloc"):
    """A warp takes `columns` of tensor memory; the address goes to shared memory."""

    to: ext.Operand[Any]
    columns: ir.IntegerAttr
    cta_group: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return (
            verify_pointer(self, "to", SHARED)
            and verify_choice(self, "columns", COLUMNS)
            and verify_choice(self, "cta_group", CTA_GROUPS)
        )


class TmemRelinquishOp(Instruction, name="tmem_relinquish"):
    """This CTA takes no more tensor memory."""

    cta_group: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_choice(self, "cta_group", CTA_GROUPS)


class TmemBaseOp(Instruction, name="tmem_base"):
    """`address` of the first column of an allocation, which `sm.tmem_alloc` has written.

    With a `barrier` above 0 the `threads` threads that use tensor memory first meet there. The
    warps whose bits are set in `apart` are not among them: they go on at once, and get 0.
    """

    memory: ext.Operand[TensorMemoryType]
    barrier: ir.IntegerAttr
    threads: ir.IntegerAttr
    apart: ir.IntegerAttr
    address: ext.Result[I32] = ext.infer_result()

    def verify_invariants(self) -> bool:
        barrier, threads, apart = self.barrier.value, self.threads.value, self.apart.value
        if not verify_range(self, "barrier", 0, NAMED_BARRIERS - 1):
            return False
        if threads % 32 or not 0 <= threads <= 1024 or bool(threads) != bool(barrier):
            return refuse(
                self,
                "threads must be whole warps, 32 to 1024, 0 where none meet, got "
                f"{threads} at barrier {barrier}",
            )
        if not 0 <= apart < 1 << WARPS_MAX or apart & 1 or (apart and not barrier):
            return refuse(
                self,
                f"apart must have bits of warps 1 to {WARPS_MAX - 1}, 0 where none meet, got "
                f"{apart} at barrier {barrier}",
            )
        return True


class TmemDeallocOp(Instruction, name="tmem_dealloc"):
    """A warp gives `columns` of tensor memory back."""

    address: ext.Operand[I32]
    columns: ir.IntegerAttr
    cta_group: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_choice(self, "columns", COLUMNS) and verify_choice(
            self, "cta_group", CTA_GROUPS
        )


class TmemLoadOp(Instruction, name="tmem_load"):
    """Starts a warp's load from tensor memory; a thread gets `registers` words.

    `shape` is that of tcgen05.ld. "16x32bx2" loads from two places, `offset` columns apart. The
    words are there after `sm.tmem_wait`.
    """

    address: ext.Operand[I32]
    shape: ir.StringAttr
    offset: ir.IntegerAttr
    words: ext.Result[ir.VectorType]

    def verify_invariants(self) -> bool:
        if self.offset.value and self.shape.value != "16x32bx2":
            return refuse(self, f"only shape 16x32bx2 has an offset, got {self.shape.value}")
        return verify_choice(self, "shape", SHAPES)


class TmemWaitOp(Instruction, name="tmem_wait"):
    """`values`: the words that this thread has asked tensor memory for, once they are there."""

    words: ext.Operand[ir.VectorType]
    values: ext.Result[ir.VectorType]

    def verify_invariants(self) -> bool:
        got, given = self.values.type.shape, self.words.type.shape
        return got == given or refuse(self, f"must give {given} values, got {got}")


def verify_operands(op: MmaOp | WgmmaOp) -> bool:
    """Whether N, types and majors exist and offsets are ones that descriptors can hold."""
    n = op.n.value
    if n % 8 or not 0 < n <= 256:
        return refuse(op, f"n must be a multiple of 8 up to 256, got {n}")
    return verify_choice(op, "d_type", ("f32", "s32")) and all(
        verify_choice(op, f"{operand}_type", TENSOR_DTYPES)
        and verify_choice(op, f"{operand}_major", MAJORS)
        and verify_matrix_offset(op, f"{operand}_offset", getattr(op, f"{operand}_offset").value)
        for operand in "ab"
    )
