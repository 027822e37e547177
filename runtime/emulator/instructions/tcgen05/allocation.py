"""tcgen05.alloc, dealloc, relinquish_alloc_permit: who has tensor memory (PTX ISA §9.7.16.7)."""

from __future__ import annotations

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.shared_access import check_span, locate
from ...ptx.decode import Decoded
from ...ptx.lanes import first_lane
from ...ptx.registry import Blocked, Step, instruction
from ...tensor.spans import Claim, Span
from ...tensor.tensor_engine import pair_of, tensor_engine
from ...tensor.tensor_memory import ALLOCATION_SIZES, LANES
from ..threads.convergence import take_aligned
from .order import take_group

_ALLOC_SECTION = "9.7.16.7"


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
        if group == 2:
            warp.launch.events.pair_asked(warp, _peer(warp.cta), "tcgen05.alloc.cta_group::2")
        asked = columns(warp, mask)
        start = _allocate(warp.cta, group, asked)
        if start is None:
            return waiting
        target, offset = locate(warp.cta, to, space)
        check_span(target, offset, 4, 4, "tcgen05.alloc")
        warp.launch.events.columns_allocated(warp, target, offset, asked)
        _write_result(target, offset, start)
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
    if group == 1:
        return engine.memory.allocate(columns)
    engine.memory.check_allocation(columns)
    return _allocate_in_pair(cta, columns)


def _allocate_in_pair(cta: Cta, columns: int) -> int | None:
    """Both CTAs ask, then both get the same columns; the second asker picks them for both."""
    granted = tensor_engine(cta).requests
    if "granted" in granted:
        return granted.pop("granted")
    other = _peer(cta)
    wanted = tensor_engine(other).requests.get("columns")
    if wanted is None:
        granted["columns"] = columns
        return None
    if wanted != columns:
        raise Trap("tmem", f"both CTAs of a pair must allocate the same number of columns, got "
                           f"{columns} and {wanted}")  # fmt: skip
    return _grant_pair(cta, other, columns)


def _peer(cta: Cta) -> Cta:
    return next(other for other in pair_of(cta, 2) if other is not cta)


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


def _write_result(target: Cta, offset: int, start: int) -> None:
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
        everything = Span(0, LANES, place[0] & 0xFFFF, (place[0] & 0xFFFF) + place[1])
        claim = Claim(everything, "tcgen05.dealloc", ())
        warp.launch.events.columns_used(warp.cta, warp, claim, False)
        if group == 1:
            _deallocate(warp.cta, *place)
        elif not _deallocate_in_pair(warp, *place):
            return waiting
        return None

    return step


_FREED = 0
"""The state of a pair's deallocation that the other CTA has completed."""


def _deallocate_in_pair(warp: Warp, address: int, columns: int) -> bool:
    """Free the columns in both CTAs once both have asked; False while the other one has not.

    The ISA lets dealloc wait for the other CTA, so one that cannot come is found in every run.
    """
    cta = warp.cta
    key, mine = f"dealloc {address}", tensor_engine(cta).requests
    if mine.get(key) == _FREED:
        del mine[key]
        return True
    other = _peer(cta)
    cta.launch.events.pair_freed(warp, other)
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
    everything = ("tcgen05.ld", "tcgen05.st", "tcgen05.mma", "tcgen05.cp", "tcgen05.shift")
    cta.launch.events.columns_claimed(cta, Claim(span, "tcgen05.dealloc", everything))


def _deallocate(cta: Cta, address: int, columns: int) -> None:
    _check_unused(cta, address, columns)
    tensor_engine(cta).memory.deallocate(address, columns)
    first = address & 0xFFFF
    cta.launch.events.columns_freed(cta, Span(0, LANES, first, first + columns))
    cta.notify()


@instruction("tcgen05.relinquish_alloc_permit", section=_ALLOC_SECTION)
def build_relinquish(ins: Decoded) -> Step:
    take_group(ins)
    converged = take_aligned(ins)
    ins.finish_modifiers()
    ins.expect_operands(0)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        tensor_engine(warp.cta).memory.relinquish()
        warp.launch.events.permit_given_up(warp)
        return None

    return step
