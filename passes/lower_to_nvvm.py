"""Lowers `tile` and `pipe` to a gpu.module of llvm and nvvm ops only.

The one place that knows barrier words, descriptors, addresses and phases. One thread, the leader,
runs pipe ops, TMA copies and MMAs; all threads copy tiles and store the result. After the source
ops are emitted with scf and arith, upstream passes take those to the llvm dialect.

The module keeps what a launch needs as attributes of the kernel: `tile.launch`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ..dialects.layout import SLOT_ALIGNMENT
from ..dialects.mlir import gpu, ir, llvm, nvvm, passmanager, scf
from ..dialects.pipe import (
    AcquireOp,
    ClaimOp,
    CommitOp,
    CreateOp,
    ForEachClaimOp,
    ReleaseOp,
    RoleOp,
    TileOp,
    WaitOp,
)
from ..dialects.target import Target
from ..dialects.tile import (
    MMAS,
    AccumulatorOp,
    CopyOp,
    CtaTileOp,
    ForEachTileOp,
    KernelOp,
    LoadOp,
    MmaOp,
    PairMmaOp,
    PairRankOp,
    StagedStoreOp,
    StoreOp,
    TensorMapOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ..dialects.tile_types import AccumulatorType
from .base import PassLog, option, parse_bool, refused, target_of, the_kernel, walk
from .clone import is_pure
from .lowering import build as b
from .lowering.claims import lower_claim, lower_for_each_claim
from .lowering.frame import SHARED_SYMBOL, Frame
from .lowering.launch import launch_attribute
from .lowering.mma import lower_mma
from .lowering.operands import lower_copy, lower_load, lower_tma_load, lower_tma_multicast
from .lowering.pipes import (
    drain,
    lower_acquire,
    lower_commit,
    lower_release,
    lower_tile,
    lower_wait,
)
from .lowering.plan import Plan, has_copies, is_synchronous, make_plan
from .lowering.staged_store import finish_stores, lower_staged_store
from .lowering.store import lower_store
from .lowering.tiles import lower_cta_tile, lower_for_each_tile, lower_pair_rank

TENSOR_MAP_BYTES = 128
LEADER, ISSUER = "leader", "issuer"
UPSTREAM = (
    "builtin.module(convert-vector-to-llvm,convert-scf-to-cf,convert-cf-to-llvm,"
    "convert-arith-to-llvm,convert-math-to-llvm,convert-nvvm-to-llvm,"
    "gpu.module(llvm.func(reconcile-unrealized-casts,canonicalize,cse)))"
)


@dataclass(frozen=True)
class LowerToNvvm:
    """`tile.kernel` → `llvm.func` in a `gpu.module`, llvm and nvvm ops only.

    `pdl` is for programmatic dependent launch: the kernel waits for the grids before it where it
    first reads global memory, and lets the grids after it start once its loads are issued.
    """

    name: ClassVar[str] = "lower-to-nvvm"
    pdl: bool = option(False, parse_bool, "true or false")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        plan = make_plan(kernel, target)
        _emit(module, kernel, plan, target, self.pdl)
        kernel.operation.erase()
        passmanager.PassManager.parse(UPSTREAM).run(module.operation)
        log.did(
            f"{len(plan.parameters)} parameters, {plan.shared_bytes} bytes of shared memory, "
            f"{plan.tmem_columns} tensor-memory columns"
        )


def _emit(module: ir.Module, kernel: KernelOp, plan: Plan, target: Target, pdl: bool) -> None:
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(kernel), kernel.location:
        chip = ir.Attribute.parse(f'#nvvm.target<chip = "{target.chip}">')
        gpu_module = gpu.GPUModuleOp("kernels", targets=ir.ArrayAttr.get([chip]))
    body = gpu_module.bodyRegion.blocks.append()
    with ir.InsertionPoint(body), kernel.location:
        _declare_shared()
        function = _declare_function(kernel, plan, pdl)
    entry = function.body.blocks[0]
    keys = [(parameter.argument, _map(parameter)) for parameter in plan.parameters]
    parameters = dict(zip(keys, entry.arguments, strict=True))
    frame = Frame(kernel, target, plan, parameters, pdl=pdl)
    with ir.InsertionPoint(entry), kernel.location:
        frame.open()
        if pdl:
            nvvm.griddepcontrol(nvvm.GridDepActionKind.wait)
        _emit_program(frame, kernel.body.blocks[0])
        frame.close()
        llvm.return_()


def _map(parameter: Any) -> ir.Value | None:
    return parameter.map.map if parameter.map is not None else None


def _declare_shared() -> None:
    llvm.GlobalOp(
        ir.Type.parse("!llvm.array<0 x i8>"),
        SHARED_SYMBOL,
        ir.Attribute.parse("#llvm.linkage<external>"),
        alignment=SLOT_ALIGNMENT,
        addr_space=b.SHARED,
    )


def _declare_function(kernel: KernelOp, plan: Plan, pdl: bool) -> llvm.LLVMFuncOp:
    types = [b.pointer(0 if parameter.map else b.GLOBAL) for parameter in plan.parameters]
    signature = ", ".join(str(type_) for type_ in types)
    function = llvm.LLVMFuncOp(
        kernel.sym_name,
        ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<void ({signature})>")),
        arg_attrs=ir.ArrayAttr.get([_parameter_attributes(item) for item in plan.parameters]),
    )
    attributes = function.operation.attributes
    for flag in ("gpu.kernel", "nvvm.kernel"):
        attributes[flag] = ir.UnitAttr.get()
    attributes["nvvm.reqntid"] = ir.DenseI32ArrayAttr.get([kernel.threads.value, 1, 1])
    attributes["tile.launch"] = launch_attribute(kernel, plan, pdl)
    function.body.blocks.append(*types)
    return function


def _parameter_attributes(parameter: Any) -> ir.DictAttr:
    if parameter.map is None:
        return ir.DictAttr.get({})
    return ir.DictAttr(
        ir.Attribute.parse(
            f"{{llvm.byval = !llvm.array<{TENSOR_MAP_BYTES} x i8>, nvvm.grid_constant, "
            "llvm.align = 64 : i64}"
        )
    )


def _emit_program(frame: Frame, block: ir.Block) -> None:
    """What one team runs from start to end."""
    _emit_block(frame, block, frozenset())
    owner = block.owner.opview
    if walk(owner, RoleOp):
        return
    if frame.pdl and walk(owner, TmaLoadOp | TmaMulticastOp | CopyOp | LoadOp):
        nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
    if frame.cluster.size > 1:
        _drain(frame, owner)
    if walk(owner, StagedStoreOp):
        finish_stores(frame)


def _drain(frame: Frame, owner: ir.OpView) -> None:
    """The producer of a cluster stays until nothing is on its way to its barriers."""
    rings = list(dict.fromkeys(acquire.ring for acquire in walk(owner, AcquireOp)))
    for ring in rings:
        if frame.plan.rings[ring].kind == "operands":
            with frame.team.once():
                drain(frame, ring)


def _emit_block(frame: Frame, block: ir.Block, held: frozenset[str]) -> None:
    """Emit the ops of a block; runs of ops that need the same condition share one `if`.

    `held` is what the place of emission has ensured already.
    """
    group: scf.IfOp | None = None
    group_needs: frozenset[str] = frozenset()
    for op in _program(block):
        needs = _needs(frame, op) - held
        if _is_pure(op) or not needs:
            group = group if _is_pure(op) else None
            with ir.InsertionPoint(group) if group else ir.InsertionPoint.current:
                _emit_op(frame, op, held)
            continue
        if group is None or needs != group_needs:
            group, group_needs = _open_group(frame, needs), needs
        with ir.InsertionPoint.at_block_terminator(group.then_block):
            _emit_op(frame, op, held | needs)


def _open_group(frame: Frame, needs: frozenset[str]) -> scf.IfOp:
    """An empty `if`, to be filled before its terminator; the warp is converged again after it."""
    condition = b.both(
        frame.team.leader if LEADER in needs else None, frame.issues if ISSUER in needs else None
    )
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([])
    if LEADER in needs:
        frame.team.converge()
    return branch


def _is_pure(op: ir.OpView) -> bool:
    return is_pure(op) or isinstance(op, (*HANDLES, PairRankOp))


def _needs(frame: Frame, op: ir.OpView) -> frozenset[str]:
    """The conditions under which a thread runs an op: one thread of the team, the pair's issuer."""
    if isinstance(op, ClaimOp):
        return frozenset({LEADER})
    if isinstance(op, scf.ForOp | ForEachTileOp | ForEachClaimOp):
        block = op.body if isinstance(op, scf.ForOp) else op.body.blocks[0]
        inner = [_needs(frame, each) for each in _program(block) if not _is_pure(each)]
        return frozenset.intersection(*inner) if inner else frozenset()
    issuing = frozenset({LEADER, ISSUER} if frame.cluster.pair else {LEADER})
    if isinstance(op, MMAS):
        return frozenset() if is_synchronous(op) else issuing
    if isinstance(op, TmaLoadOp | TmaMulticastOp):
        return frozenset({LEADER})
    if isinstance(op, TileOp):
        return _needs(frame, op.slot.owner.opview)
    if isinstance(op, AcquireOp | CommitOp | WaitOp | ReleaseOp):
        return _pipe_needs(op, issuing)
    return frozenset()


def _pipe_needs(op: ir.OpView, issuing: frozenset[str]) -> frozenset[str]:
    """Accumulators are filled, and operands read, by the issuer; the other ends are the team's."""
    fills = isinstance(op, AcquireOp | CommitOp)
    if isinstance(op.ring.type.tiles[0], AccumulatorType):
        return issuing if fills else frozenset()
    if not fills:
        return issuing
    return frozenset() if has_copies(op.ring) else frozenset({LEADER})


def _program(block: ir.Block) -> list[ir.OpView]:
    return [op for op in list(block.operations) if op.operation.name != "scf.yield"]


def _emit_op(frame: Frame, op: ir.OpView, held: frozenset[str]) -> None:
    with op.operation.location:
        if isinstance(op, scf.ForOp):
            _emit_loop(frame, op, held)
        elif isinstance(op, RoleOp):
            _emit_role(frame, op)
        elif isinstance(op, ForEachTileOp):
            body = partial(_emit_block, frame, op.body.blocks[0], held)
            lower_for_each_tile(frame, op, body)
        elif isinstance(op, ForEachClaimOp):
            body = partial(_emit_block, frame, op.body.blocks[0], held)
            lower_for_each_claim(frame, op, LEADER in held, body)
        elif type(op) in LOWERINGS:
            LOWERINGS[type(op)](frame, op)
        elif is_pure(op):
            _copy(frame, op)
        else:
            raise refused(op, "lower-to-nvvm has no lowering for it")


def _emit_role(frame: Frame, op: RoleOp) -> None:
    roles = walk(frame.kernel, RoleOp)
    number = [role.operation for role in roles].index(op.operation)
    first = sum(role.warps.value for role in roles[:number])
    with frame.role(first, op.warps.value, number + 1):
        _emit_program(frame, op.body.blocks[0])


def _emit_loop(frame: Frame, op: scf.ForOp, held: frozenset[str]) -> None:
    if len(op.inner_iter_args):
        raise refused(op, "a loop of a kernel must not carry values")
    bounds = [frame.values[bound] for bound in (op.lowerBound, op.upperBound, op.step)]
    copy = scf.ForOp(*bounds)
    frame.values[op.induction_variable] = copy.induction_variable
    with ir.InsertionPoint(copy.body):
        _emit_block(frame, op.body, held)
        scf.YieldOp([])


def _copy(frame: Frame, op: ir.OpView) -> None:
    clone = op.operation.clone()
    for index, operand in enumerate(op.operation.operands):
        clone.operands[index] = frame.values[operand]
    for old, new in zip(op.operation.results, clone.results, strict=True):
        frame.values[old] = new


def _lower_handle(frame: Frame, op: ir.OpView) -> None:
    """A compile-time handle: the plan knows where it lies."""


HANDLES = (TensorMapOp, CreateOp, AccumulatorOp)
LOWERINGS: dict[type, Callable[[Frame, Any], None]] = {
    CtaTileOp: lower_cta_tile,
    ClaimOp: lower_claim,
    **dict.fromkeys(HANDLES, _lower_handle),
    LoadOp: lower_load,
    CopyOp: lower_copy,
    TmaLoadOp: lower_tma_load,
    TmaMulticastOp: lower_tma_multicast,
    PairRankOp: lower_pair_rank,
    PairMmaOp: lower_mma,
    AcquireOp: lower_acquire,
    CommitOp: lower_commit,
    WaitOp: lower_wait,
    TileOp: lower_tile,
    ReleaseOp: lower_release,
    MmaOp: lower_mma,
    StoreOp: lower_store,
    StagedStoreOp: lower_staged_store,
}
