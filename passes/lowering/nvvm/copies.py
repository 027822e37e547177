"""Copies, addresses and launch control, from `sm` to nvvm and llvm: one pattern per op."""

from __future__ import annotations

from ....dialects import llvm, nvvm, sm
from ....dialects.entry_names import SHARED_MEMORY
from ....dialects.mlir import ir, vector
from ... import build

QUERIES = {"claimed": "is_canceled", "x": "get_first_cta_id_x", "y": "get_first_cta_id_y"}
INTRINSICS = {
    "ex2": "llvm.nvvm.ex2.approx.f32",
    "ex2.ftz": "llvm.nvvm.ex2.approx.ftz.f32",
    "lg2": "llvm.nvvm.lg2.approx.f",
    "rcp.ftz": "llvm.nvvm.rcp.approx.ftz.f",
    "rsqrt": "llvm.nvvm.rsqrt.approx.f",
}


def shared_address(op: sm.SharedAddressOp) -> ir.Value:
    base = llvm.address_of(op.pointer.type, SHARED_MEMORY)
    return build.offset_pointer(base, op.offset)


def table(op: sm.TableOp) -> ir.Value:
    """The address of the global that `declare_tables` made of it."""
    return llvm.address_of(op.pointer.type, op.symbol.value)


def prefetch_tensor_map(op: sm.PrefetchTensorMapOp) -> None:
    nvvm.prefetch_tensor_map(op.map)


def prefetch_box(op: sm.PrefetchBoxOp) -> None:
    nvvm.bulk_tensor_prefetch(op.map, list(op.coordinates))


def tma_load(op: sm.TmaLoadOp) -> None:
    """To this CTA, or to an address of the cluster's window, which is that of this CTA there."""
    in_cta = op.destination.value == "cta"
    nvvm.bulk_tensor_load(
        op.to if in_cta else llvm.addrspacecast(build.pointer(build.CLUSTER), op.to),
        op.map,
        list(op.coordinates),
        op.barrier,
        mask=op.mask,
        in_cta=in_cta,
        ctas=op.cta_group.value,
    )


def tma_gather(op: sm.TmaGatherOp) -> None:
    """To this CTA, by its place in the window of the cluster, which alone LLVM has it for."""
    nvvm.bulk_tensor_load(
        llvm.addrspacecast(build.pointer(build.CLUSTER), op.to),
        op.map,
        list(op.coordinates),
        op.barrier,
        gathers=True,
        ctas=op.cta_group.value,
    )


def tma_store(op: sm.TmaStoreOp) -> None:
    nvvm.bulk_tensor_store(op.map, op.source, list(op.coordinates))


def bulk_commit(_: sm.BulkCommitOp) -> None:
    nvvm.bulk_commit()


def bulk_wait(op: sm.BulkWaitOp) -> None:
    nvvm.bulk_wait_read(op.pending.value)


def cp_async(op: sm.CpAsyncOp) -> None:
    nvvm.cp_async(op.to, op.source, op.bytes.value, op.cache.value, op.read)


def cp_async_commit(_: sm.CpAsyncCommitOp) -> None:
    nvvm.cp_async_commit()


def cp_async_wait(op: sm.CpAsyncWaitOp) -> None:
    nvvm.cp_async_wait(op.pending.value)


def stmatrix(op: sm.StmatrixOp) -> None:
    layout = "col" if isinstance(op, sm.StmatrixTransposedOp) else "row"
    nvvm.stmatrix(op.to, list(op.words), layout)


def try_cancel(op: sm.TryCancelOp) -> None:
    nvvm.try_cancel(op.to, op.barrier, bool(op.multicast.value))


def query_cancel(op: sm.QueryCancelOp) -> ir.Value:
    return nvvm.query_cancel(op.value.type, QUERIES[op.field.value], op.answer)


def approximate(op: sm.ApproximateOp) -> ir.Value:
    if op.function.value == "tanh":  # LLVM has no intrinsic of it
        asm = "tanh.approx.f32 $0, $1;"
        return llvm.inline_asm(op.result.type, [op.value], asm, "=f,f")
    name = INTRINSICS[op.function.value]
    return llvm.call_intrinsic(op.result.type, name, [op.value])


def narrow(op: sm.NarrowOp) -> ir.Value:
    """The first operand of cvt goes to the upper half. Of 8 bits LLVM leaves satfinite unsaid."""
    to = op.to.value
    name = f"llvm.nvvm.ff.to.{to}x2.rn" + ("" if to in ("e4m3", "e5m2") else ".satfinite")
    return llvm.call_intrinsic(op.result.type, name, [op.high, op.low])


def load_once(op: sm.LoadOnceOp) -> ir.Value:
    """LLVM has no load that L1 does not keep."""
    words = "!llvm.struct<(i32, i32, i32, i32)>"
    text = "ld.global.nc.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];"
    loaded = llvm.inline_asm(ir.Type.parse(words), [op.address], text, "=r,=r,=r,=r,l")
    each = [llvm.extractvalue(build.i32(), loaded, index) for index in range(4)]
    vector_ = ir.VectorType.get([4], build.i32())
    return llvm.bitcast(op.value.type, vector.FromElementsOp(vector_, each).result)


PATTERNS = {
    sm.SharedAddressOp: shared_address,
    sm.TableOp: table,
    sm.PrefetchTensorMapOp: prefetch_tensor_map,
    sm.PrefetchBoxOp: prefetch_box,
    sm.TmaLoadOp: tma_load,
    sm.TmaGatherOp: tma_gather,
    sm.TmaStoreOp: tma_store,
    sm.BulkCommitOp: bulk_commit,
    sm.BulkWaitOp: bulk_wait,
    sm.CpAsyncOp: cp_async,
    sm.CpAsyncCommitOp: cp_async_commit,
    sm.CpAsyncWaitOp: cp_async_wait,
    sm.LoadOnceOp: load_once,
    sm.StmatrixOp: stmatrix,
    sm.StmatrixTransposedOp: stmatrix,
    sm.TryCancelOp: try_cancel,
    sm.QueryCancelOp: query_cancel,
    sm.ApproximateOp: approximate,
    sm.NarrowOp: narrow,
}
