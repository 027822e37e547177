"""tcgen05.commit, wait and fence: when operations of the tensor core are done, and for whom.

Source: PTX ISA, "TensorCore 5th Generation Instructions".
"""

from __future__ import annotations

import numpy as np

from ...interface import Cta, Warp
from ...interface import EngineOp as Operation
from ...machine.barrier_operations import apply
from ...machine.engine import EngineOp
from ...machine.shared_access import barrier_at, count_event, locate, peer
from ...ptx.decode import Decoded
from ...ptx.lane_forms import address_of, note_lane_form, value_of
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.tensor_engine import tensor_engine
from ..threads.convergence import one_lane, take_aligned

_COMMIT_SECTION = "9.7.16.12"
TENSOR_STREAM = "tensor core operations"
"""The operations of a thread that tcgen05.commit tracks."""


def take_group(ins: Decoded) -> int:
    """Consume ``.cta_group::1`` or ``::2``."""
    return int(ins.required(("cta_group::1", "cta_group::2"))[-1])


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync",
             section="9.7.16.11.1")  # fmt: skip
def build_fence(ins: Decoded) -> Step:
    ins.finish_modifiers()
    ins.expect_operands(0)
    before = "before" in ins.mnemonic

    def alone(warp: Warp, lane: int) -> None:
        warp.launch.events.tensor_fenced(warp, before)

    def step(warp: Warp, mask: np.ndarray) -> None:
        warp.launch.events.tensor_fenced(warp, before)

    note_lane_form(ins, alone)
    return step


@instruction("tcgen05.wait::ld", "tcgen05.wait::st", section="9.7.16.8.5")
def build_wait(ins: Decoded) -> Step:
    converged = take_aligned(ins)
    ins.finish_modifiers()
    ins.expect_operands(0)
    name = "tcgen05." + ins.mnemonic[-2:]

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        warp.launch.events.columns_waited(warp, name, None)
        return None

    return step


@instruction("tcgen05.commit", section=_COMMIT_SECTION)
def build_commit(ins: Decoded) -> Step:
    take_group(ins)
    ins.required(("mbarrier::arrive::one",))
    space = ins.choice(("shared::cluster",), "generic")
    multicast = ins.flag("multicast::cluster")
    ins.required(("b64",))
    ins.finish_modifiers()
    ins.expect_operands(2 if multicast else 1)
    address = ins.lane_address(0)
    ctas = ins.read_lane(1, np.uint16) if multicast else None
    if multicast:
        ins.bound_constant(1, 0, 0xFFFF)

    def alone(warp: Warp, lane: int, at: int, ranks: int | None = None) -> None:
        target, offset = locate(warp.cta, at, space)
        reached = 1 << target.rank if ranks is None else ranks
        targets = [peer(warp.cta, rank) for rank in range(16) if reached >> rank & 1]
        _submit_commit(warp, lane, targets, offset)

    def step(warp: Warp, mask: np.ndarray) -> None:
        lane = one_lane(mask, "tcgen05.commit")
        alone(warp, lane, address(warp, lane), ctas(warp, lane) if ctas else None)

    values = [address_of(ins, 0), *([value_of(ins, 1, np.uint16)] if multicast else [])]
    note_lane_form(ins, alone, *values)
    return step


def _submit_commit(warp: Warp, lane: int, targets: list[Cta], offset: int) -> None:
    before = tensor_engine(warp.cta).outstanding(warp.index, lane)
    for target in targets:
        barrier = barrier_at(target, offset)
        warp.launch.events.mbarrier_used(warp, barrier, "tcgen05.commit")
    count_event(warp.cta, "commits")
    if not tensor_engine(warp.cta).has_issued(warp.index, lane):
        count_event(warp.cta, "empty commits")
        warp.launch.warn(
            "empty-commit", "tcgen05.commit by a thread that has issued nothing arrives at once"
        )
    for target in targets:
        _submit_arrival(warp, lane, target, offset, before)


def _submit_arrival(
    warp: Warp, lane: int, target: Cta, offset: int, before: tuple[Operation, ...]
) -> None:
    """The arrival at one CTA, at another one behind the thread's earlier ones there, as GPUs have
    it; nobody can be hurt by one at the own CTA after its exit."""

    def arrive() -> None:
        if not target.exited:
            apply(target, offset, lambda barrier: barrier.arrive())

    def name() -> str:
        return f"commit -> rank {target.rank} mbarrier 0x{offset:x}"

    touches = () if target is warp.cta else (target,)
    newest = warp.cta.state("newest commits", dict)
    earlier = newest.get((warp.index, lane, target)) if touches else None
    if earlier is not None and not earlier.done:
        before = (*before, earlier)
    op = EngineOp(name, arrive, before, agent="commits", touches=touches, commits=True)
    op.stream, op.joins = (TENSOR_STREAM, lane), True
    if touches:
        newest[warp.index, lane, target] = op
    warp.launch.engines.submit(op)
