"""bar, barrier{.cta} and barrier.cluster (PTX ISA §9.7.13.1, §9.7.13.3).

`bar.x` is `barrier.cta.x.aligned`. An arrival counts the lanes that execute it; with an explicit
thread count an aligned arrival of a partial warp counts as a whole warp.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import Trap
from ...machine.named_barrier import NamedBarrier
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE, lanes_to_int
from ...ptx.registry import Blocked, Step, instruction
from ...truth import all_of, any_of

BARRIERS = 16


class BarrierOperands:
    """Barrier number and thread count of an instruction, read once a warp."""

    def __init__(self, ins: Decoded, number_at: int, *, has_count: bool):
        _check_constants(ins, number_at, has_count=has_count)
        self._number = ins.read_uniform(number_at, np.uint32, "the barrier number")
        self.counted = has_count
        self._count = (
            ins.read_uniform(number_at + 1, np.uint32, "the thread count") if has_count else None
        )

    def barrier(self, warp, mask: np.ndarray) -> NamedBarrier:
        number = self._number(warp, mask)
        if number >= BARRIERS:
            raise Trap(
                "out-of-bounds", f"the barrier number must be 0..{BARRIERS - 1}, got {number}"
            )
        return warp.cta.barriers[number]

    def count(self, warp, mask: np.ndarray) -> int | None:
        return None if self._count is None else self._count(warp, mask)


def _check_constants(ins: Decoded, number_at: int, *, has_count: bool) -> None:
    number = ins.operand(number_at)
    if any(isinstance(each, syntax.Float) for each in ins.operands):
        raise ins.trap("operand", "a barrier's number and thread count cannot be floating")
    if isinstance(number, syntax.Integer) and not 0 <= number.value < BARRIERS:
        raise ins.trap("operand", f"the barrier number must be 0..{BARRIERS - 1}, got"
                                  f" {number.value}")  # fmt: skip
    count = ins.operand(number_at + 1) if has_count else None
    least = 1 if ins.mnemonic.endswith("arrive") else 0
    if isinstance(count, syntax.Integer) and (count.value < least or count.value % WARP_SIZE):
        which = f"barrier {number.value}: " if isinstance(number, syntax.Integer) else ""
        rule = f"{which}the thread count must be a positive multiple of {WARP_SIZE}"
        raise ins.trap("operand", f"{rule}, got {count.value}")


class Waiting:
    """The token of lanes that have arrived: the barrier and the generation that frees them."""

    __slots__ = ("barrier", "ticket")

    def __init__(self, barrier, ticket: int):
        self.barrier, self.ticket = barrier, ticket

    def over(self) -> bool:
        return self.barrier.generation >= self.ticket


def _threads(warp, mask: np.ndarray, counted: bool, aligned: bool) -> int:
    if counted and aligned:
        return WARP_SIZE
    return lanes_to_int(mask).bit_count()


def _sync_step(
    operands: BarrierOperands, check: Callable | None, flags: Callable, finish: Callable
) -> Step:
    """Arrive once, then wait for the generation; `finish(warp, mask, token)` at the end."""

    def step(warp, mask):
        token = warp.split.token
        if token is None:
            if check is not None and (blocked := check(warp, mask)) is not None:
                return blocked
            barrier = operands.barrier(warp, mask)
            warp.launch.events.released(warp)
            threads = _threads(warp, mask, operands.counted, check is not None)
            ticket = barrier.arrive(warp, threads, operands.count(warp, mask), flags(warp, mask))
            token = Waiting(barrier, ticket)
        if not token.over():
            warp.split.token = token
            return Blocked("barrier", token.barrier.describe, token.barrier, token.barrier)
        warp.split.token = None
        warp.launch.events.acquired(warp)
        warp.launch.events.barrier_waited(token.barrier, warp, token.ticket)
        finish(warp, mask, token)
        return None

    return step


def _nothing(warp, mask, token) -> None:
    return None


def _no_flags(warp, mask) -> None:
    return None


def _is_aligned(ins: Decoded) -> bool:
    return ins.mnemonic.startswith("bar.") or ins.flag("aligned")


@instruction("bar.sync", "bar.cta.sync", "barrier.sync", "barrier.cta.sync", section="9.7.13.1")
def build_bar_sync(ins: Decoded) -> Step:
    """bar.sync a{, b}: arrive and wait for all threads, or for b of them."""
    check = ins.whole_warp() if _is_aligned(ins) else None
    ins.finish_modifiers()
    ins.expect_operands(1, 2)
    return _sync_step(
        BarrierOperands(ins, 0, has_count=len(ins.operands) == 2), check, _no_flags, _nothing
    )


@instruction(
    "bar.arrive", "bar.cta.arrive", "barrier.arrive", "barrier.cta.arrive", section="9.7.13.1"
)
def build_bar_arrive(ins: Decoded) -> Step:
    """bar.arrive a, b: arrive without waiting."""
    check = ins.whole_warp() if _is_aligned(ins) else None
    ins.finish_modifiers()
    ins.expect_operands(2)
    operands = BarrierOperands(ins, 0, has_count=True)

    def step(warp, mask):
        if check is not None and (blocked := check(warp, mask)) is not None:
            return blocked
        warp.launch.events.released(warp)
        threads = _threads(warp, mask, True, check is not None)
        operands.barrier(warp, mask).arrive(warp, threads, operands.count(warp, mask))
        return None

    return step


@instruction("bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red", section="9.7.13.1")
def build_bar_red(ins: Decoded) -> Step:
    """bar.red.popc.u32 d, a{, b}, {!}c and bar.red.{and,or}.pred p, a{, b}, {!}c."""
    check = ins.whole_warp() if _is_aligned(ins) else None
    operation = ins.required(("popc", "and", "or"))
    type_ = ins.take_type("u32" if operation == "popc" else "pred")
    ins.finish_modifiers()
    ins.expect_operands(3, 4)
    read, write = ins.read_predicate(len(ins.operands) - 1), ins.write(0, type_.dtype)

    def flags(warp, mask):
        return read(warp)[mask].tolist()

    def finish(warp, mask, token):
        answer = token.barrier.result(token.ticket, operation)
        write(warp, mask, np.full(WARP_SIZE, answer, type_.dtype))

    operands = BarrierOperands(ins, 1, has_count=len(ins.operands) == 4)
    return _sync_step(operands, check, flags, finish)


@instruction("barrier.cluster.arrive", section="9.7.13.3")
def build_cluster_arrive(ins: Decoded) -> Step:
    """barrier.cluster.arrive{.release,.relaxed}{.aligned}."""
    relaxed = ins.choice(("release", "relaxed")) == "relaxed"
    check = ins.whole_warp() if ins.flag("aligned") else None
    ins.finish_modifiers()

    def step(warp, mask):
        if check is not None and (blocked := check(warp, mask)) is not None:
            return blocked
        pending = warp.state("cluster arrivals", lambda: np.zeros(WARP_SIZE, np.int64))
        if any_of(pending[mask]):
            raise Trap(
                "protocol",
                "barrier.cluster.arrive must be followed by"
                " barrier.cluster.wait before the next arrive",
            )
        if not relaxed:
            warp.launch.events.released(warp)
        pending[mask] = warp.cta.cluster.arrive(warp, lanes_to_int(mask), relaxed=relaxed)
        return None

    return step


@instruction("barrier.cluster.wait", section="9.7.13.3")
def build_cluster_wait(ins: Decoded) -> Step:
    """barrier.cluster.wait{.acquire}{.aligned}."""
    ins.flag("acquire")
    check = ins.whole_warp() if ins.flag("aligned") else None
    ins.finish_modifiers()

    def step(warp, mask):
        if check is not None and (blocked := check(warp, mask)) is not None:
            return blocked
        pending = warp.state("cluster arrivals", lambda: np.zeros(WARP_SIZE, np.int64))
        if not all_of(pending[mask]):
            raise Trap("protocol", "barrier.cluster.wait without barrier.cluster.arrive")
        cluster = warp.cta.cluster
        if cluster.generation < int(pending[mask].max()):
            return Blocked("barrier", cluster.describe, cluster, cluster)
        pending[mask] = 0
        warp.launch.events.acquired(warp)
        warp.launch.events.barrier_waited(cluster, warp, cluster.generation)
        return None

    return step
