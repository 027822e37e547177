"""Descriptors, MMAs and tensor memory, from `sm` to nvvm and llvm: one pattern per op."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects import llvm, nvvm, sm
from ....dialects.dtypes import DTYPES
from ....dialects.mlir import arith, ir, vector
from ....dialects.sm.scales import mma_of_kind
from ... import build
from ...base import refused
from ..operands.descriptors import (
    encode_bytes,
    instruction_descriptor,
    scaled_instruction_descriptor,
    shared_descriptor,
)
from ..registers.register_accumulator import parts, struct_of

CAST = "builtin.unrealized_conversion_cast"
COPIES = {32: ("32x128b", "warpx4"), 64: ("64x128b", "warpx2_01_23")}


def smem_descriptor(op: sm.SmemDescriptorOp) -> ir.Value:
    """The low word (i32) as a descriptor: the high one does not depend on the address.

    Offsets added to the low word stay in its address field.
    """
    address = llvm.ptrtoint(build.i32(), op.address)
    units = arith.andi(address // 16, build.constant(encode_bytes(-1)))
    low = arith.ori(units, build.constant(build.signed(_word(op.descriptor.type) % 2**32)))
    return _as_descriptor(low, op.descriptor.type)


def _word(type_: sm.DescriptorType) -> int:
    """The descriptor of address 0."""
    return shared_descriptor(
        type_.number("lbo"),
        type_.number("sbo"),
        type_.swizzle,
        type_.number("version"),
        type_.number("base_offset"),
    )


def advance(op: sm.AdvanceOp) -> ir.Value:
    return _as_descriptor(_low_word(op, op.descriptor) + op.units, op.moved.type)


def _as_descriptor(low: ir.Value, type_: ir.Type) -> ir.Value:
    cast = ir.Operation.create(CAST, results=[type_], operands=[low])
    return cast.results[0]


def _low_word(op: ir.OpView, descriptor: ir.Value) -> ir.Value:
    """The low word from which `_as_descriptor` built a descriptor."""
    made = descriptor.owner
    if isinstance(made, ir.Block) or made.name != CAST:
        rule = "a descriptor must come from sm.smem_descriptor or sm.advance"
        raise refused(op, f"{rule}, got another value; make it by one of them")
    return made.operands[0]


def operand_descriptor(
    op: ir.OpView, descriptor: ir.Value[sm.DescriptorType], offset: ir.IntegerAttr
) -> ir.Value:
    """The whole descriptor (i64) of an operand, `offset` bytes further.

    Its words are put together as a vector: LLVM would fold a 64-bit addition into the operand of
    tcgen05.mma as register+immediate, which PTX only has for addresses.
    """
    moved = _low_word(op, descriptor) + encode_bytes(offset.value)
    high = _word(descriptor.type) >> 32
    pair = [moved, build.constant(build.signed(high))]
    words = vector.FromElementsOp(ir.VectorType.get([2], build.i32()), pair).result
    return llvm.bitcast(build.i64(), words)


def mma(op: sm.MmaOp) -> None:
    """Also lowers `sm.scaling_mma`."""
    shift = build.constant(op.shift.value, build.i64()) if isinstance(op, sm.ScalingMmaOp) else None
    nvvm.tcgen05_mma(
        op.kind.value,
        op.cta_group.value,
        _tensor_pointer(op.d),
        operand_descriptor(op, op.a, op.a_offset),
        operand_descriptor(op, op.b, op.b_offset),
        build.constant(_instruction_descriptor(op)),
        op.accumulate,
        shift,
    )


def mma_of_tensor_memory(op: sm.MmaOfTensorMemoryOp) -> None:
    nvvm.tcgen05_mma(
        "f16",
        1,
        _tensor_pointer(op.d),
        _tensor_pointer(op.a),
        operand_descriptor(op, op.b, op.b_offset),
        build.constant(_instruction_descriptor(op)),
        op.accumulate,
    )


def _instruction_descriptor(op: sm.MmaOp | sm.MmaOfTensorMemoryOp) -> int:
    dtypes = DTYPES[op.a_type.value], DTYPES[op.b_type.value]
    a_major = op.a_major.value if isinstance(op, sm.MmaOp) else "k"
    return instruction_descriptor(op.m.value, op.n.value, dtypes, (a_major, op.b_major.value))


def scaled_mma(op: sm.ScaledMmaOp) -> None:
    mma = mma_of_kind(op)
    dtypes = DTYPES[op.a_type.value], DTYPES[op.b_type.value]
    majors, ids = (op.a_major.value, op.b_major.value), (op.a_id.value, op.b_id.value)
    shape = op.m.value, op.n.value
    word = scaled_instruction_descriptor(*shape, mma, dtypes, majors, ids)
    nvvm.tcgen05_mma_block_scale(
        mma.kind,
        mma.block,
        op.cta_group.value,
        (
            _tensor_pointer(op.d),
            operand_descriptor(op, op.a, op.a_offset),
            operand_descriptor(op, op.b, op.b_offset),
            build.constant(build.signed(word)),
            op.accumulate,
        ),
        (_tensor_pointer(op.a_scales), _tensor_pointer(op.b_scales)),
    )


def tmem_copy(op: sm.TmemCopyOp) -> None:
    shape, multicast = COPIES[op.rows.value]
    nvvm.tcgen05_cp(
        shape,
        _tensor_pointer(op.to),
        operand_descriptor(op, op.source, op.offset),
        op.cta_group.value,
        multicast,
    )


def _tensor_pointer(address: ir.Value) -> ir.Value:
    return llvm.inttoptr(build.pointer(build.TENSOR), address)


def commit(op: sm.CommitOp) -> None:
    nvvm.tcgen05_commit(op.barrier, op.mask, op.cta_group.value)


def tmem_alloc(op: sm.TmemAllocOp) -> None:
    nvvm.tcgen05_alloc(op.to, build.constant(op.columns.value), op.cta_group.value)


def tmem_relinquish(op: sm.TmemRelinquishOp) -> None:
    nvvm.tcgen05_relinquish_alloc_permit(op.cta_group.value)


def tmem_dealloc(op: sm.TmemDeallocOp) -> None:
    columns = build.constant(op.columns.value)
    nvvm.tcgen05_dealloc(_tensor_pointer(op.address), columns, op.cta_group.value)


def tmem_load(op: sm.TmemLoadOp) -> ir.Value:
    address = _tensor_pointer(op.address)
    return nvvm.tcgen05_ld(op.words.type, op.shape.value, address, _second_half(op))


def tmem_store(op: sm.TmemStoreOp) -> None:
    address = _tensor_pointer(op.address)
    nvvm.tcgen05_st(op.shape.value, address, op.words, _second_half(op))


def _second_half(op: sm.TmemLoadOp | sm.TmemStoreOp) -> ir.Value | None:
    """The column of lanes 16 to 31, for shapes in which it differs from that of lanes 0 to 15."""
    apart = op.shape.value == "16x32bx2"
    return build.constant(op.offset.value, build.i64()) if apart else None


def tmem_store_wait(_: sm.TmemStoreWaitOp) -> None:
    nvvm.tcgen05_wait("store")


def tmem_wait(op: sm.TmemWaitOp) -> ir.Value:
    """The wait, and an asm that ties the registers to it.

    Nothing in LLVM's IR ties a tcgen05.ld to its wait; an empty asm that takes and gives every
    register does, and emits no instruction.
    """
    nvvm.tcgen05_wait("load")
    (count,) = op.words.type.shape
    words = [vector.ExtractOp(op.words, [], [index]).result for index in range(count)]
    pinned = parts(_pinned(struct_of(words[0].type, count), words))
    return llvm.bitcast(op.values.type, vector.FromElementsOp(op.words.type, pinned).result)


def pin(op: sm.PinOp) -> ir.Value:
    return _pinned(op.before.type, parts(op.before))


def keep(op: sm.KeepOp) -> ir.Value:
    """A mov of each word, which LLVM cannot move up."""
    (count,) = op.before.type.shape
    words = [vector.ExtractOp(op.before, [], [index]).result for index in range(count)]
    kept = [
        llvm.inline_asm(build.i32(), [word], "mov.b32 $0, $1;", "=r,r", has_side_effects=True)
        for word in words
    ]
    return vector.FromElementsOp(op.before.type, kept).result


def _pinned(struct: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
    """The same registers as a struct, which LLVM cannot read before this point."""
    return llvm.inline_asm(struct, values, "", ties(values), has_side_effects=True)


def ties(registers: Sequence[ir.Value]) -> str:
    """The constraints of an asm that takes registers and returns them."""
    count, element = len(registers), registers[0].type
    letter = "r" if isinstance(element, ir.IntegerType) else "f"
    return ",".join([f"={letter}"] * count + [str(index) for index in range(count)])


def wgmma_fence(_: sm.WgmmaFenceOp) -> None:
    nvvm.wgmma_fence()


def wgmma_commit(_: sm.WgmmaCommitOp) -> None:
    nvvm.wgmma_commit()


def wgmma_wait(op: sm.WgmmaWaitOp) -> None:
    nvvm.wgmma_wait(op.pending.value)


PATTERNS = {
    sm.SmemDescriptorOp: smem_descriptor,
    sm.AdvanceOp: advance,
    sm.MmaOp: mma,
    sm.ScalingMmaOp: mma,
    sm.ScaledMmaOp: scaled_mma,
    sm.TmemCopyOp: tmem_copy,
    sm.CommitOp: commit,
    sm.TmemAllocOp: tmem_alloc,
    sm.TmemRelinquishOp: tmem_relinquish,
    sm.TmemDeallocOp: tmem_dealloc,
    sm.TmemLoadOp: tmem_load,
    sm.TmemWaitOp: tmem_wait,
    sm.TmemStoreOp: tmem_store,
    sm.TmemStoreWaitOp: tmem_store_wait,
    sm.MmaOfTensorMemoryOp: mma_of_tensor_memory,
    sm.KeepOp: keep,
    sm.PinOp: pin,
    sm.WgmmaFenceOp: wgmma_fence,
    sm.WgmmaCommitOp: wgmma_commit,
    sm.WgmmaWaitOp: wgmma_wait,
}
