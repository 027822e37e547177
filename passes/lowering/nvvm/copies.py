"""Copies, addresses and launch control, from `sm` to nvvm and llvm: an op, a pattern."""

from __future__ import annotations

from ....dialects import sm
from ....dialects.entry_names import SHARED_MEMORY
from ....dialects.mlir import ir, llvm, nvvm, vector
from ... import build

QUERY = nvvm.ClusterLaunchControlQueryType
FIELDS = {
    "claimed": QUERY.IS_CANCELED,
    "x": QUERY.GET_FIRST_CTA_ID_X,
    "y": QUERY.GET_FIRST_CTA_ID_Y,
}
CACHES = {"ca": nvvm.LoadCacheModifierKind.CA, "cg": nvvm.LoadCacheModifierKind.CG}
INTRINSICS = {
    "ex2": "llvm.nvvm.ex2.approx.f32",
    "ex2.ftz": "llvm.nvvm.ex2.approx.ftz.f32",
    "rcp.ftz": "llvm.nvvm.rcp.approx.ftz.f",
    "rsqrt": "llvm.nvvm.rsqrt.approx.f",
}


def shared_address(op: sm.SharedAddressOp) -> ir.Value:
    base = llvm.AddressOfOp(op.pointer.type, SHARED_MEMORY).result
    return build.offset_pointer(base, op.offset)


def table(op: sm.TableOp) -> ir.Value:
    """The address of the global that `declare_tables` made of it."""
    return llvm.AddressOfOp(op.pointer.type, op.symbol.value).result


def prefetch_tensor_map(op: sm.PrefetchTensorMapOp) -> None:
    nvvm.prefetch(op.map, tensormap=True)


def prefetch_box(op: sm.PrefetchBoxOp) -> None:
    nvvm.cp_async_bulk_tensor_prefetch(op.map, list(op.coordinates), [])


def tma_load(op: sm.TmaLoadOp) -> None:
    """To this CTA, or to an address of the cluster's window, which is that of this CTA there."""
    in_cta = op.destination.value == "cta"
    nvvm.cp_async_bulk_tensor_shared_cluster_global(
        op.to if in_cta else llvm.addrspacecast(build.pointer(build.CLUSTER), op.to),
        op.map,
        list(op.coordinates),
        op.barrier,
        [],
        is_cta_only=in_cta or None,
        multicast_mask=op.mask,
        group=nvvm.CTAGroupKind.CTA_2 if op.cta_group.value == 2 else None,
    )


def tma_gather(op: sm.TmaGatherOp) -> None:
    """To this CTA, by its place in the window of the cluster, which alone LLVM has it for."""
    nvvm.cp_async_bulk_tensor_shared_cluster_global(
        llvm.addrspacecast(build.pointer(build.CLUSTER), op.to),
        op.map,
        list(op.coordinates),
        op.barrier,
        [],
        mode=ir.Attribute.parse("#nvvm.tma_load_mode<tile_gather4>"),
        group=nvvm.CTAGroupKind.CTA_2 if op.cta_group.value == 2 else None,
    )


def tma_store(op: sm.TmaStoreOp) -> None:
    nvvm.cp_async_bulk_tensor_global_shared_cta(op.map, op.source, list(op.coordinates))


def bulk_commit(_: sm.BulkCommitOp) -> None:
    nvvm.cp_async_bulk_commit_group()


def bulk_wait(op: sm.BulkWaitOp) -> None:
    nvvm.cp_async_bulk_wait_group(op.pending.value, read=True)


def cp_async(op: sm.CpAsyncOp) -> None:
    cache = CACHES[op.cache.value]
    nvvm.cp_async_shared_global(op.to, op.source, op.bytes.value, cache, cp_size=op.read)


def cp_async_commit(_: sm.CpAsyncCommitOp) -> None:
    nvvm.cp_async_commit_group()


def cp_async_wait(op: sm.CpAsyncWaitOp) -> None:
    nvvm.cp_async_wait_group(op.pending.value)


def stmatrix(op: sm.StmatrixOp) -> None:
    layout = "col" if isinstance(op, sm.StmatrixTransposedOp) else "row"
    texts = (
        f"#nvvm.mma_layout<{layout}>",
        "#nvvm.ld_st_matrix_shape<m = 8, n = 8>",
        "#nvvm.ld_st_matrix_elt_type<b16>",
    )
    nvvm.stmatrix(op.to, list(op.words), *(ir.Attribute.parse(text) for text in texts))


def try_cancel(op: sm.TryCancelOp) -> None:
    multicast = bool(op.multicast.value) or None
    nvvm.clusterlaunchcontrol_try_cancel(op.to, op.barrier, multicast=multicast)


def query_cancel(op: sm.QueryCancelOp) -> ir.Value:
    kind = FIELDS[op.field.value]
    return nvvm.clusterlaunchcontrol_query_cancel(kind, op.answer, results=[op.value.type])


def approximate(op: sm.ApproximateOp) -> ir.Value:
    if op.function.value == "tanh":  # LLVM has no intrinsic of it
        asm = "tanh.approx.f32 $0, $1;"
        return llvm.inline_asm(op.result.type, [op.value], asm, "=f,f")
    name = INTRINSICS[op.function.value]
    return llvm.call_intrinsic(op.result.type, name, [op.value], [], [])


def narrow(op: sm.NarrowOp) -> ir.Value:
    """The first operand of cvt goes to the upper half. Of 8 bits LLVM leaves satfinite unsaid."""
    to = op.to.value
    name = f"llvm.nvvm.ff.to.{to}x2.rn" + ("" if to in ("e4m3", "e5m2") else ".satfinite")
    return llvm.call_intrinsic(op.result.type, name, [op.high, op.low], [], [])


def load_once(op: sm.LoadOnceOp) -> ir.Value:
    """LLVM has no load that L1 does not keep."""
    words = "!llvm.struct<(i32, i32, i32, i32)>"
    text = "ld.global.nc.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];"
    loaded = llvm.inline_asm(ir.Type.parse(words), [op.address], text, "=r,=r,=r,=r,l")
    each = [llvm.extractvalue(build.i32(), loaded, [index]) for index in range(4)]
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
