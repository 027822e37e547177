"""tcgen05.alloc, dealloc, relinquish_alloc_permit, commit, wait, fence, cp.

Source: PTX ISA, "TensorCore 5th Generation Instructions". mma, ld and st have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import Trap, lane_text
from ..interface import Cta, Warp
from ..interface import EngineOp as Operation
from ..machine.barrier_operations import apply
from ..machine.engine import EngineOp
from ..machine.shared_access import barrier_at, check_span, count_event, locate, peer
from ..ptx.decode import Decoded
from ..ptx.lane_forms import address_of, note_lane_form, value_of
from ..ptx.lanes import first_lane, lanes_in
from ..ptx.registry import Blocked, Step, instruction
from ..tensor.spans import Claim, Span
from ..tensor.tensor_engine import pair_of, tensor_engine
from ..tensor.tensor_memory import ALLOCATION_SIZES, LANES

_ALLOC_SECTION = "9.7.16.7"
_COMMIT_SECTION = "9.7.16.12"
_ALL_LANES = 0xFFFFFFFF
TENSOR_STREAM = "tensor core operations"
"""The operations of a thread that tcgen05.commit tracks."""


def take_group(ins: Decoded) -> int:
    """Consume ``.cta_group::1`` or ``::2``."""
    return int(ins.required(("cta_group::1", "cta_group::2"))[-1])


def one_lane(mask: np.ndarray, name: str) -> int:
    """The only active lane; a Trap if several lanes would issue the operation."""
    lanes = lanes_in(mask)
    if len(lanes) != 1:
        raise Trap(
            "convergence",
            f"{name} is issued by one thread, got {len(lanes)} active lanes: each of them would "
            f"issue its own operation",
        )
    return lanes[0]


def take_aligned(ins: Decoded) -> Callable:
    """Consume ``.sync.aligned`` and return the convergence check of `all_threads`."""
    ins.required(("sync",))
    ins.required(("aligned",))
    return all_threads(ins)


def all_threads(ins: Decoded) -> Callable:
    """The convergence check of the whole warp, for what needs all 32 threads of it.

    All of them must be there: the behaviour is undefined once one of them has exited.
    """
    converged = ins.whole_warp()

    def check(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if warp.live != _ALL_LANES:
            gone = lane_text(~warp.live & _ALL_LANES)
            raise Trap(
                "convergence",
                f"{ins.mnemonic} needs all 32 threads of the warp, lanes {gone} are not alive",
            )
        return converged(warp, mask)

    return check


@instruction("tcgen05.alloc", section=_ALLOC_SECTION)
def build_alloc(ins: Decoded) -> Step:
    group, converged = take_group(ins), take_aligned(ins)
    space = ins.choice(("shared::cta",), "generic")
    ins.required(("b32",))
    ins.finish_modifiers()
    ins.expect_operands(2)
    _check_columns(ins)
    address = ins.address(0)
    columns = ins.read_uniform(1, np.uint32, "the column count of tcgen05.alloc")
    waiting = Blocked("tmem", lambda: "waits until that many tensor memory columns are free")

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        to = int(address(warp)[first_lane(mask)])
        start = _allocate(warp.cta, group, columns(warp, mask))
        if start is None:
            return waiting
        _write_result(warp, to, "generic" if space == "generic" else "shared::cta", start)
        return None

    return step


def _check_columns(ins: Decoded) -> None:
    """The count of operand 1, if it is a constant (PTX ISA §9.7.16.7.1)."""
    if not ins.operand_is_immediate(1):
        return
    if ins.immediate(1) not in ALLOCATION_SIZES:
        raise ins.trap("operand", f"columns must be one of {', '.join(map(str, ALLOCATION_SIZES))},"
                                  f" got {ins.immediate(1)}")  # fmt: skip


def _allocate(cta: Cta, group: int, columns: int) -> int | None:
    """Start column, or None while it must wait (for room, or for the other CTA of the pair)."""
    engine = tensor_engine(cta)
    engine.use_group(group)
    if group == 1:
        return engine.memory.allocate(columns)
    engine.memory.check_allocation(columns)
    return _allocate_in_pair(cta, columns)


def _allocate_in_pair(cta: Cta, columns: int) -> int | None:
    """Both CTAs ask, then both get the same columns; the second asker picks them for both."""
    granted = tensor_engine(cta).requests
    if "granted" in granted:
        return granted.pop("granted")
    other = next(c for c in pair_of(cta, 2) if c is not cta)
    wanted = tensor_engine(other).requests.get("columns")
    if wanted is None:
        granted["columns"] = columns
        return None
    if wanted != columns:
        raise Trap("tmem", f"both CTAs of a pair must allocate the same number of columns, got "
                           f"{columns} and {wanted}")  # fmt: skip
    return _grant_pair(cta, other, columns)


def _grant_pair(cta: Cta, other: Cta, columns: int) -> int | None:
    mine, theirs = tensor_engine(cta), tensor_engine(other)
    start = mine.memory.allocate(columns)
    if start is None:
        return None
    theirs.memory.allocate_at(start, columns)
    del theirs.requests["columns"]
    theirs.requests["granted"] = start
    other.notify()
    return start


def _write_result(warp: Warp, to: int, space: str, start: int) -> None:
    target, offset = locate(warp.cta, to, space)
    check_span(target, offset, 4, 4, "tcgen05.alloc")
    warp.launch.events.columns_allocated(warp, target, offset)
    target.shared.data[offset : offset + 4] = np.frombuffer(start.to_bytes(4, "little"), np.uint8)
    if target.shared.written is not None:
        target.shared.written[offset : offset + 4] = 0xFF


@instruction("tcgen05.dealloc", section=_ALLOC_SECTION)
def build_dealloc(ins: Decoded) -> Step:
    group, converged = take_group(ins), take_aligned(ins)
    ins.required(("b32",))
    ins.finish_modifiers()
    ins.expect_operands(2)
    _check_columns(ins)
    address = ins.read_uniform(0, np.uint32, "the address of tcgen05.dealloc")
    columns = ins.read_uniform(1, np.uint32, "the column count of tcgen05.dealloc")
    waiting = Blocked("tmem", lambda: "waits for tcgen05.dealloc by the other CTA of its pair")

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        place = address(warp, mask), columns(warp, mask)
        tensor_engine(warp.cta).use_group(group)
        everything = Span(0, LANES, place[0] & 0xFFFF, (place[0] & 0xFFFF) + place[1])
        claim = Claim(everything, "tcgen05.dealloc", ())
        warp.launch.events.columns_used(warp.cta, warp, claim, False)
        if group == 1:
            _deallocate(warp.cta, *place)
        elif not _deallocate_in_pair(warp.cta, *place):
            return waiting
        return None

    return step


_FREED = 0
"""The state of a pair's deallocation that the other CTA has completed."""


def _deallocate_in_pair(cta: Cta, address: int, columns: int) -> bool:
    """Free the columns in both CTAs once both have asked; False while the other one has not.

    The ISA lets dealloc wait for the other CTA, so one that cannot come is found in every run.
    """
    key, mine = f"dealloc {address}", tensor_engine(cta).requests
    if mine.get(key) == _FREED:
        del mine[key]
        return True
    other = next(c for c in pair_of(cta, 2) if c is not cta)
    theirs = tensor_engine(other).requests
    if theirs.get(key) != columns:
        _check_unused(cta, address, columns)
        tensor_engine(cta).memory.check_deallocation(address, columns)
        mine[key] = columns
        return False
    for member in (cta, other):
        _deallocate(member, address, columns)
    theirs[key] = _FREED
    return True


def _check_unused(cta: Cta, address: int, columns: int) -> None:
    span = Span(0, LANES, address & 0xFFFF, (address & 0xFFFF) + columns)
    everything = ("tcgen05.ld", "tcgen05.st", "tcgen05.mma", "tcgen05.cp")
    cta.launch.events.columns_claimed(cta, Claim(span, "tcgen05.dealloc", everything))


def _deallocate(cta: Cta, address: int, columns: int) -> None:
    _check_unused(cta, address, columns)
    tensor_engine(cta).memory.deallocate(address, columns)
    first = address & 0xFFFF
    cta.launch.events.columns_freed(cta, Span(0, LANES, first, first + columns))
    cta.notify()


@instruction("tcgen05.relinquish_alloc_permit", section=_ALLOC_SECTION)
def build_relinquish(ins: Decoded) -> Step:
    group, converged = take_group(ins), take_aligned(ins)
    ins.finish_modifiers()
    ins.expect_operands(0)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        engine = tensor_engine(warp.cta)
        engine.use_group(group)
        engine.memory.relinquish()
        return None

    return step


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
    group = take_group(ins)
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
        tensor_engine(warp.cta).use_group(group)
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
    """The arrival at one CTA; nobody can be hurt by one at the own CTA after its exit."""

    def arrive() -> None:
        if not target.exited:
            apply(target, offset, lambda barrier: barrier.arrive())

    def name() -> str:
        return f"commit -> rank {target.rank} mbarrier 0x{offset:x}"

    touches = () if target is warp.cta else (target,)
    op = EngineOp(name, arrive, before, agent="commits", touches=touches, commits=True)
    op.stream, op.joins = (TENSOR_STREAM, lane), True
    warp.launch.engines.submit(op)
