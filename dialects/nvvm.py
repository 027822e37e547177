"""Builders for the ops of upstream's `nvvm` dialect, at the current insertion point.

They are built by name, for the reason that `llvm.py` has. Words for scopes, kinds and shapes are
those of NVVM's attributes (NVVMOps.td). An operand of None is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from .mlir import ir

Values = Sequence[ir.Value]


def _made(name: str, *operands: ir.Value | None, **attributes: ir.Attribute) -> None:
    _create(name, [], operands, attributes)


def _value(
    name: str, type_: ir.Type, *operands: ir.Value | None, **attributes: ir.Attribute
) -> ir.Value:
    return _create(name, [type_], operands, attributes).result


def _create(
    name: str,
    results: Sequence[ir.Type],
    operands: Sequence[ir.Value | None],
    attributes: Mapping[str, ir.Attribute],
) -> ir.Operation:
    given = [operand for operand in operands if operand is not None]
    return ir.Operation.create(
        f"nvvm.{name}", results=results, operands=given, attributes=attributes
    )


def _counted(name: str, *operands: ir.Value | Values | None, **attributes: ir.Attribute) -> None:
    """An op that says how many values it has for each of its operands."""
    every = [_values(operand) for operand in operands]
    counts = ir.DenseI32ArrayAttr.get([len(values) for values in every])
    _made(name, *chain(*every), operandSegmentSizes=counts, **attributes)


def _values(operand: ir.Value | Values | None) -> list[ir.Value]:
    if operand is None:
        return []
    return [operand] if isinstance(operand, ir.Value) else list(operand)


def _word(kind: str, word: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#nvvm.{kind}<{word}>")


def _enumerated(kind: str, word: str) -> ir.Attribute:
    """The attribute of an enumeration that NVVM prints in another way."""
    return ir.Attribute.parse(f"#nvvm<{kind} {word}>")


def _group(ctas: int) -> ir.Attribute:
    return _word("cta_group", f"cta_{ctas}")


def _scope(scope: str | None) -> dict[str, ir.Attribute]:
    return {} if scope is None else {"scope": _word("mem_scope", scope)}


def _i32(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _flags(**flags: bool) -> dict[str, ir.Attribute]:
    return {name: ir.UnitAttr.get() for name, given in flags.items() if given}


# Threads


def special_register(register: str) -> ir.Value:
    """What a special register of 32 bits holds, such as `tid.x`; MLIR writes `_lo` as `.lo`."""
    name = register.replace("_", ".")
    return _value(f"read.ptx.sreg.{name}", ir.IntegerType.get_signless(32))


def elect_sync() -> ir.Value:
    return _value("elect.sync", ir.IntegerType.get_signless(1))


def bar_warp_sync(lanes: ir.Value) -> None:
    _made("bar.warp.sync", lanes)


def barrier(number: ir.Value | None = None, threads: ir.Value | None = None) -> None:
    """A barrier of threads; without a number, of the whole CTA."""
    _counted("barrier", number, threads)


def barrier_arrive(number: ir.Value, threads: ir.Value) -> None:
    _made("barrier.arrive", number, threads)


def cluster_arrive(releases: bool) -> None:
    _made("cluster.arrive" if releases else "cluster.arrive.relaxed", **_flags(aligned=True))


def cluster_wait() -> None:
    _made("cluster.wait", **_flags(aligned=True))


def mapa(type_: ir.Type, address: ir.Value, rank: ir.Value) -> ir.Value:
    return _value("mapa", type_, address, rank)


def setmaxregister(count: int, action: str) -> None:
    _made("setmaxregister", regCount=_i32(count), action=_enumerated("action", action))


def griddepcontrol(action: str) -> None:
    _made("griddepcontrol", kind=_enumerated("grid_dep_action", action))


def try_cancel(to: ir.Value, barrier: ir.Value, multicast: bool) -> None:
    _made("clusterlaunchcontrol.try.cancel", to, barrier, **_flags(multicast=multicast))


def query_cancel(type_: ir.Type, query: str, answer: ir.Value) -> ir.Value:
    kind = _enumerated("cluster_launch_control_query_type", query)
    return _value("clusterlaunchcontrol.query.cancel", type_, answer, query_type=kind)


# Barriers in memory, and fences


def mbarrier_init(barrier: ir.Value, count: ir.Value) -> None:
    _made("mbarrier.init", barrier, count)


def mbarrier_expect_tx(barrier: ir.Value, count: ir.Value) -> None:
    _made("mbarrier.expect_tx", barrier, count)


def mbarrier_arrive_expect_tx(barrier: ir.Value, count: ir.Value) -> None:
    _made("mbarrier.arrive.expect_tx", barrier, count)


def mbarrier_arrive(barrier: ir.Value, scope: str | None) -> None:
    _made("mbarrier.arrive", barrier, **_scope(scope))


def mbarrier_try_wait(barrier: ir.Value, parity: ir.Value, scope: str | None) -> ir.Value:
    done = ir.IntegerType.get_signless(1)
    return _value("mbarrier.try_wait", done, barrier, parity, **_scope(scope))


def fence_mbarrier_init() -> None:
    _made("fence.mbarrier.init")


def fence_proxy_async_shared() -> None:
    kind, space = _word("proxy_kind", "async.shared"), _word("shared_space", "cta")
    _made("fence.proxy", kind=kind, space=space)


def tcgen05_fence(side: str) -> None:
    _made("tcgen05.fence", kind=_word("tcgen05_fence", side))


# Copies


def prefetch_tensor_map(map_: ir.Value) -> None:
    _made("prefetch", map_, **_flags(tensormap=True))


def bulk_tensor_prefetch(map_: ir.Value, coordinates: Values) -> None:
    _counted("cp.async.bulk.tensor.prefetch", map_, coordinates, None, None)


def bulk_tensor_load(
    to: ir.Value,
    map_: ir.Value,
    coordinates: Values,
    barrier: ir.Value,
    *,
    mask: ir.Value | None = None,
    in_cta: bool = False,
    gathers: bool = False,
    ctas: int = 1,
) -> None:
    """`to` is an address of the CTA where `in_cta`, else of the cluster's window."""
    attributes: dict[str, ir.Attribute] = {}
    if gathers:
        attributes["mode"] = _word("tma_load_mode", "tile_gather4")
    if in_cta:
        attributes["isCTAOnly"] = ir.BoolAttr.get(True)
    if ctas == 2:
        attributes["group"] = _group(ctas)
    name = "cp.async.bulk.tensor.shared.cluster.global"
    _counted(name, to, map_, coordinates, barrier, None, mask, None, None, **attributes)


def bulk_tensor_store(map_: ir.Value, source: ir.Value, coordinates: Values) -> None:
    name = "cp.async.bulk.tensor.global.shared.cta"
    _counted(name, map_, source, coordinates, None, None)


def bulk_commit() -> None:
    _made("cp.async.bulk.commit.group")


def bulk_wait_read(pending: int) -> None:
    """Until all but the last `pending` groups have been read."""
    _made("cp.async.bulk.wait_group", group=_i32(pending), **_flags(read=True))


def cp_async(
    to: ir.Value, source: ir.Value, size_bytes: int, cache: str, read: ir.Value | None
) -> None:
    """Bytes from `read` on, where given, are zeros."""
    modifier = _enumerated("load_cache_modifier", cache)
    _made("cp.async.shared.global", to, source, read, size=_i32(size_bytes), modifier=modifier)


def cp_async_commit() -> None:
    _made("cp.async.commit.group")


def cp_async_wait(pending: int) -> None:
    _made("cp.async.wait.group", n=_i32(pending))


def _matrices(layout: str, columns: int, element: str) -> dict[str, ir.Attribute]:
    return {
        "layout": _word("mma_layout", layout),
        "shape": _word("ld_st_matrix_shape", f"m = 8, n = {columns}"),
        "eltType": _word("ld_st_matrix_elt_type", element),
    }


def ldmatrix(
    type_: ir.Type, address: ir.Value, count: int, layout: str, columns: int, element: str
) -> ir.Value:
    """Matrices of 8 rows: a word, or a struct of `count`, for each lane."""
    form = _matrices(layout, columns, element)
    return _value("ldmatrix", type_, address, num=_i32(count), **form)


def stmatrix(to: ir.Value, words: Values, layout: str) -> None:
    _made("stmatrix", to, *words, **_matrices(layout, 8, "b16"))


# Tensor cores


def tcgen05_mma(
    kind: str,
    ctas: int,
    d: ir.Value,
    a: ir.Value,
    b: ir.Value,
    descriptor: ir.Value,
    accumulate: ir.Value,
    shift: ir.Value | None = None,
) -> None:
    """d = a · b, + d · 2^-shift where it accumulates."""
    attributes = {"kind": _word("tcgen05_mma_kind", kind), "ctaGroup": _group(ctas)}
    _counted("tcgen05.mma", d, a, b, descriptor, accumulate, shift, None, **attributes)


def tcgen05_mma_block_scale(
    kind: str, block: int, ctas: int, operands: Values, scales: Values
) -> None:
    """Operands are d, a, b, the descriptor, and whether it accumulates; scales are a's and b's."""
    _made(
        "tcgen05.mma.block_scale",
        *operands,
        *scales,
        kind=_word("tcgen05_mma_kind", kind),
        ctaGroup=_group(ctas),
        blockScale=_word("tcgen05_mma_block_scale", f"block{block}"),
    )


def tcgen05_cp(shape: str, to: ir.Value, source: ir.Value, ctas: int, multicast: str) -> None:
    _made(
        "tcgen05.cp",
        to,
        source,
        shape=_word("tcgen05_cp_shape", f"shape_{shape}"),
        group=_group(ctas),
        multicast=_word("tcgen05_cp_multicast", multicast),
    )


def tcgen05_commit(barrier: ir.Value, mask: ir.Value | None, ctas: int) -> None:
    _made("tcgen05.commit", barrier, mask, group=_group(ctas))


def tcgen05_alloc(to: ir.Value, columns: ir.Value, ctas: int) -> None:
    _made("tcgen05.alloc", to, columns, group=_group(ctas))


def tcgen05_relinquish_alloc_permit(ctas: int) -> None:
    _made("tcgen05.relinquish_alloc_permit", group=_group(ctas))


def tcgen05_dealloc(address: ir.Value, columns: ir.Value, ctas: int) -> None:
    _made("tcgen05.dealloc", address, columns, group=_group(ctas))


def tcgen05_ld(type_: ir.Type, shape: str, address: ir.Value, offset: ir.Value | None) -> ir.Value:
    kind = _word("tcgen05_ldst_shape", f"shape_{shape}")
    return _value("tcgen05.ld", type_, address, offset, shape=kind)


def tcgen05_st(shape: str, address: ir.Value, words: ir.Value, offset: ir.Value | None) -> None:
    kind = _word("tcgen05_ldst_shape", f"shape_{shape}")
    _made("tcgen05.st", address, words, offset, shape=kind)


def tcgen05_wait(kind: str) -> None:
    _made("tcgen05.wait", kind=_word("tcgen05_wait", kind))


def wgmma_fence() -> None:
    _made("wgmma.fence.aligned")


def wgmma_commit() -> None:
    _made("wgmma.commit.group.sync.aligned")


def wgmma_wait(pending: int) -> None:
    group = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), pending)
    _made("wgmma.wait.group.sync.aligned", group=group)
