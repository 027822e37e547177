"""Splits one sequential program into roles that run concurrently.

    for %k { load(%k) … mma(%k) … }        pipe.role "epilogue" { %acc = wait %accs
    store %acc                        →                           store %acc      release %accs }
                                           pipe.role "load"     { for %k { load(%k) } }
                                           pipe.role "mma"      { %acc = acquire %accs
                                                                  for %k { mma(%k) }
                                                                  commit %accs }

Every op belongs to an agent: the one that loads, the one that issues MMAs, or the epilogue. A role
is a set of warps that runs the ops of its agent in their original order, inside copies of their
loops. If the loops into which pipelining split a loop are equal within a role, they become one
loop again. The accumulator becomes a slot of a ring, so that roles communicate only through pipes.

If MMAs leave their results in registers (wgmma), one role, the consumer, issues MMAs and stores
their results. With two warpgroups it takes most of the registers that the load role does not need:

    for %k { load(%k) … mma(%k) … }        pipe.role "consumer" { set_registers 232
    store %acc                        →                           for %k { mma(%k) }  store %acc }
                                           pipe.role "load"     { set_registers 40
                                                                  for %k { load(%k) } }
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ...dialects import legality
from ...dialects.held_registers import SUMS_MAX, of_sums, scales_of_columns, scales_one_by_one
from ...dialects.mlir import ir, scf
from ...dialects.mma_units import WGMMA_ADDED
from ...dialects.pipe import (
    REGISTERS_STEP,
    AcquireOp,
    CommitOp,
    CreateOp,
    ReleaseOp,
    RingType,
    RoleOp,
    SetRegistersOp,
    SlotType,
    TileOp,
    WaitOp,
)
from ...dialects.record import record
from ...dialects.target import WARPGROUP_WARPS, Target
from ...dialects.tile import (
    MMAS,
    STORES,
    AccumulatorOp,
    AwaitMmaOp,
    CopyOp,
    CtaTileOp,
    KernelOp,
    LoadOp,
    PairRankOp,
    SplitRankOp,
    TensorMapOp,
    TmaGatherOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ...dialects.tile.ahead import LoadAheadOp, ReadAheadOp
from ...dialects.tile.blockwise import BLOCKWISE_MMAS
from ...dialects.tile.groups import GroupStepsOp
from ...dialects.tile.parts import WorkspaceOp
from ...dialects.tile_types import AccumulatorType, SmemType, integer
from ..base import PassLog, defining_op, many, refused, require, target_of, the_kernel, walk
from ..clone import Mapping, clone, erase_unused, fuse_loops, is_pure

# In the order of their warps: a warp reads the tensor-memory lanes of its index modulo 4, so the
# epilogue's four come first.
EPILOGUE, LOAD, MMA, CONSUMER = "epilogue", "load", "mma", "consumer"
SHARED_BY_ALL = (TensorMapOp, CreateOp, CtaTileOp, PairRankOp, SplitRankOp, WorkspaceOp)
# Registers a thread of a load role: TMA needs a few, 24 are the least, which leave 8 more to those
# who add wide products; copies hold several units under way.
TMA_REGISTERS, TMA_REGISTERS_MIN, COPY_REGISTERS = 40, 24, 136


class Role(NamedTuple):
    """A role to create: the agents whose ops it runs, its warps, and its registers if set."""

    name: str
    agents: tuple[str, ...]
    warps: int
    registers: int | None = None


@record
class WarpSpecialization:
    """One program → load, mma and epilogue roles that communicate only through pipes.

    With accumulators in registers there are two roles, load and consumer.
    """

    name: ClassVar[str] = "warp-specialization"

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        require(kernel, legality.agents(target), "leave it out", "warp-specialization: ")
        require(kernel, legality.one_program(target), f"drop {self.name}", f"{self.name}: ")
        _check(kernel)
        roles = _roles(kernel, target)
        if target.has_tensor_memory:
            for accumulator in walk(kernel, AccumulatorOp):
                _pipe_accumulator(accumulator)
        block = kernel.body.blocks[0]
        program = [op for op in list(block.operations) if not _stays(op)]
        for role in roles:
            _add_role(block, program, role)
        for op in reversed(program):
            op.operation.erase()
        erase_unused(block)
        _end_with_groups(kernel)
        threads = 32 * sum(role.warps for role in roles)
        kernel.operation.attributes["threads"] = integer(threads)
        said = [f"{role.name} ({many(role.warps, 'warp')})" for role in roles]
        log.did(f"roles {', '.join(said)}")


def _end_with_groups(kernel: KernelOp) -> None:
    """Let K loops take as few steps as the group has, in roles with a single loop."""
    limits = walk(kernel, GroupStepsOp)
    if all(limit.less.value == 0 for limit in limits):
        for limit in limits:
            limit.operation.attributes["least"] = integer(1)


def _roles(kernel: KernelOp, target: Target) -> list[Role]:
    """The roles, in the order of their warps."""
    load_warps = _load_warps(kernel)
    if not target.issuers_store:
        parts = {EPILOGUE: WARPGROUP_WARPS, LOAD: load_warps, MMA: 1}
        return [Role(name, (name,), warps) for name, warps in parts.items()]
    warps = kernel.threads.value // 32
    if warps <= WARPGROUP_WARPS:
        return [Role(CONSUMER, (MMA, EPILOGUE), warps), Role(LOAD, (LOAD,), load_warps)]
    loads = load_registers(kernel, target)
    consumes = registers_left(target, warps, loads)
    return [
        Role(CONSUMER, (MMA, EPILOGUE), warps, consumes),
        Role(LOAD, (LOAD,), WARPGROUP_WARPS, loads),
    ]


def load_registers(kernel: KernelOp, target: Target) -> int:
    """Registers per thread that the load role keeps if it is a warpgroup that gives some up."""
    if walk(kernel, CopyOp):
        return COPY_REGISTERS
    adds = target.mma.name == WGMMA_ADDED.name
    held = [_held(op, target) for op in walk(kernel, AccumulatorOp) if adds]
    return TMA_REGISTERS_MIN if max(held, default=0) > SUMS_MAX else TMA_REGISTERS


def _held(op: AccumulatorOp, target: Target) -> int:
    """Registers of a thread for accumulators, a product, and the scales that multiply it."""
    m, n = op.acc.type.shape
    warpgroups = target.mma_warpgroups(m, n) or 1
    users = [use.owner.opview for use in op.acc.uses]
    of_columns = any(
        isinstance(user, BLOCKWISE_MMAS) and isinstance(user.b_scales.type, SmemType)
        for user in users
    )
    scales = scales_of_columns(n) if of_columns and scales_one_by_one(m, n, warpgroups) else 0
    return of_sums(m, n, warpgroups) + scales


def registers_left(target: Target, warps: int, taken: int) -> int:
    """Registers a thread of `warps` warps when a warpgroup beside them has `taken` a thread.

    setmaxnreg is for whole warpgroups and moves registers in steps of 8 (PTX ISA, setmaxnreg).
    """
    all_warps = warps + WARPGROUP_WARPS
    pool = all_warps * target.launch_registers(32 * all_warps)
    return (pool - WARPGROUP_WARPS * taken) // warps // REGISTERS_STEP * REGISTERS_STEP


def _check(kernel: KernelOp) -> None:
    if walk(kernel, RoleOp):
        raise refused(kernel, "warp-specialization: the program has roles already; run it once")
    if not walk(kernel, CtaTileOp):
        raise refused(
            kernel, "warp-specialization: tiles are handed out already; run it before persistence"
        )
    loads = walk(kernel, LoadOp)
    if loads:
        raise refused(
            loads[0],
            "warp-specialization: operands must come through a pipe; run tma-insertion first",
        )


def _pipe_accumulator(accumulator: AccumulatorOp) -> None:
    """Replace an accumulator by a slot of a ring, filled by the MMAs and read by the store."""
    users = [use.owner.opview for use in accumulator.acc.uses]
    stores = [user for user in users if isinstance(user, STORES)]
    if not stores:
        raise refused(accumulator, "warp-specialization: must be stored, got no store of it")
    block = stores[0].operation.block
    stores = [op for op in list(block.operations) if op in stores]  # in program order
    store = stores[0]
    type_: AccumulatorType = accumulator.acc.type
    with ir.InsertionPoint(accumulator), accumulator.location:
        ring = CreateOp(ring=RingType.of(1, [type_])).ring
    first = list(store.operation.block.operations)[_after_handles(store.operation.block)]
    with ir.InsertionPoint(first), accumulator.location:
        filled = _tile(AcquireOp(ring=ring, slot=ring.type.slot).slot)
    with ir.InsertionPoint(store), accumulator.location:
        CommitOp(ring=ring)
        read = _tile(WaitOp(ring=ring, slot=ring.type.slot).slot)
    ReleaseOp(ring=ring, loc=store.location, ip=ir.InsertionPoint.after(stores[-1]))
    for each in stores:
        each.operation.operands[0] = read
    accumulator.acc.replace_all_uses_with(filled)
    accumulator.operation.erase()


def _after_handles(block: ir.Block) -> int:
    """The index of the first op of a block that belongs to an agent."""
    ops = list(block.operations)
    is_handle = [_stays(op) or isinstance(op, AccumulatorOp) for op in ops]
    return is_handle.index(False)


def _tile(slot: ir.Value[SlotType]) -> ir.Value:
    return TileOp(slot=slot, index=integer(0), tile=slot.type.tiles[0]).tile


def _stays(op: Any) -> bool:
    """Whether an op of the kernel is shared by all roles."""
    return is_pure(op) or isinstance(op, SHARED_BY_ALL)


def _load_warps(kernel: KernelOp) -> int:
    """One warp issues TMA copies; copies by threads need a warpgroup."""
    return WARPGROUP_WARPS if walk(kernel, CopyOp) else 1


def _add_role(block: ir.Block, program: list[Any], role: Role) -> None:
    location = program[0].operation.location
    with ir.InsertionPoint(block), location:
        op = RoleOp(agent=ir.StringAttr.get(role.name), warps=integer(role.warps))
    body = op.body.blocks.append()
    if role.registers is not None:
        with ir.InsertionPoint(body), location:
            SetRegistersOp(count=integer(role.registers))
    _slice(program, role.agents, body, {})
    erase_unused(body)
    fuse_loops(body)
    erase_unused(body)


def _slice(ops: list[Any], agents: tuple[str, ...], block: ir.Block, mapping: Mapping) -> bool:
    """Copy the agents' ops to the end of `block`. Returns whether any has a side effect."""
    kept = False
    for op in ops:
        if isinstance(op, scf.ForOp):
            kept |= _slice_loop(op, agents, block, mapping)
        elif is_pure(op) or isinstance(op, CtaTileOp):
            _copy(op, block, mapping)
        elif _agent(op) in agents:
            _copy(op, block, mapping)
            kept = True
    return kept


def _copy(op: Any, block: ir.Block, mapping: Mapping) -> None:
    with ir.InsertionPoint(block):
        clone(op, mapping)


def _slice_loop(
    loop: scf.ForOp, agents: tuple[str, ...], block: ir.Block, mapping: Mapping
) -> bool:
    bounds = [mapping.get(bound, bound) for bound in (loop.lowerBound, loop.upperBound, loop.step)]
    with ir.InsertionPoint(block), loop.operation.location:
        copy = scf.ForOp(*bounds)
    inner = {**mapping, loop.induction_variable: copy.induction_variable}
    kept = _slice(list(loop.body.operations)[:-1], agents, copy.body, inner)
    if not kept:
        copy.operation.erase()
        return False
    with ir.InsertionPoint(copy.body), loop.operation.location:
        scf.YieldOp([])
    return True


def _agent(op: Any) -> str:
    """The agent to which an op belongs."""
    if isinstance(op, TmaLoadOp | TmaGatherOp | TmaMulticastOp | CopyOp):
        return LOAD
    if isinstance(op, (*MMAS, AccumulatorOp, AwaitMmaOp)):
        return MMA
    if isinstance(op, (*STORES, LoadAheadOp, ReadAheadOp)):
        return EPILOGUE
    if isinstance(op, TileOp):
        return _agent(defining_op(op.slot))
    carries_accumulator = _carries_accumulator(op)
    if isinstance(op, AcquireOp | CommitOp):
        return MMA if carries_accumulator else LOAD
    if isinstance(op, WaitOp | ReleaseOp):
        return EPILOGUE if carries_accumulator else MMA
    raise refused(op, "warp-specialization: no agent runs this op; run the pass before it is added")


def _carries_accumulator(op: Any) -> bool:
    return isinstance(op.ring.type.tiles[0], AccumulatorType)
