"""One-dimensional bulk copies and bulk async-groups.

Source: PTX ISA, "cp.async.bulk", "cp.async.bulk.prefetch", "cp.async.bulk.commit_group",
"cp.async.bulk.wait_group". Sizes and addresses are multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...copies.bulk_groups import BulkOperation, bulk_groups
from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.barrier_operations import apply
from ...machine.engine import EngineOp, Move, Moves, Pieces
from ...machine.events import strong_accesses
from ...machine.shared_access import (
    WORD,
    barrier_at,
    check_span,
    check_target,
    count_event,
    locate,
    peer,
    read_words,
    shared_of,
    write_words,
)
from ...ptx.decode import Decoded
from ...ptx.registry import Blocked, Step, instruction
from .tensor_operand import take_policy

_UNIT = 16


@dataclass(frozen=True)
class Reduction:
    """``function(old, new, None)`` on arrays of ``dtype``: what a reducing copy stores."""

    function: Callable
    dtype: np.dtype

    def apply(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """The combined elements, in the dtype of ``new``."""
        with np.errstate(all="ignore"):
            stored = self.function(old.view(self.dtype), new.view(self.dtype), None)
        return stored.view(new.dtype)


Change = Reduction | int | None
"""How a store changes its target: a reduction, a mask of the bytes of each 16, or as a whole."""


def _check_size(size: int) -> None:
    if size % _UNIT or size == 0:
        raise Trap("misaligned", f"the size of a bulk copy must be a multiple of 16, got {size}")


def _take_size(ins: Decoded, at: int) -> Callable:
    if ins.operand_is_immediate(at):
        _check_size(ins.immediate(at))
    return ins.read(at, np.uint32)


def _piece(address: int, size: int) -> Pieces:
    return Pieces(np.array([address], np.uint64), np.array([size]))


def _word_range(offset: int, size: int) -> slice:
    return slice(offset // WORD, (offset + size) // WORD)


@instruction("cp.async.bulk", section="9.7.9.25.4.1")
def build_bulk_copy(ins: Decoded) -> Step:
    spaces = [m for m in ins.modifiers if m.startswith("shared") or m == "global"]
    for space in spaces[:2]:
        ins.flag(space)
    if spaces == ["global", "shared::cta"]:
        return build_from_shared(ins)
    if spaces in (["shared::cluster", "global"], ["shared::cta", "global"]):
        return build_to_shared(ins, spaces[0], from_global=True)
    if spaces == ["shared::cluster", "shared::cta"]:
        return build_to_shared(ins, spaces[0], from_global=False)
    return ins.unmodelled("a bulk copy between these spaces")


@dataclass(frozen=True)
class Copy:
    """One destination of an issued bulk copy into shared memory."""

    issuer: Cta
    source: int
    size: int
    target: Cta
    offset: int
    barrier: int
    from_global: bool
    reduction: Reduction | None
    first: bool = True

    def moves(self) -> Moves:
        """For profiles; a multicast reads its source once."""
        written = Move(shared_of(self.issuer, self.target), "write", self.size, rows=1)
        if not self.first:
            return (written,)
        if not self.from_global:
            return Move("shared", "read", self.size, rows=1), written
        return Move("global", "read", self.size, _piece(self.source, self.size)), written

    def describe(self) -> str:
        return f"bulk copy of {self.size} bytes -> rank {self.target.rank} 0x{self.offset:x}"

    @property
    def touches(self) -> tuple[Cta, ...]:
        """CTAs whose shared memory it reads or writes."""
        ctas = (self.target,) if self.from_global else (self.target, self.issuer)
        return tuple(dict.fromkeys(ctas))

    def run(self) -> None:
        words, span = self._read(), (self.offset, self.offset + self.size)
        check_target(self.target, *span, "a bulk copy")
        index = _word_range(self.offset, self.size)
        if self.reduction is None:
            write_words(self.target, index, words, span)
        else:
            with strong_accesses(self.target.launch):
                old = read_words(self.target, index, "a bulk reduction", span)
                write_words(self.target, index, self.reduction.apply(old, words), span)
        apply(self.target, self.barrier, lambda barrier: barrier.complete_tx(self.size))

    def _read(self) -> np.ndarray:
        if not self.from_global:
            index, span = (
                _word_range(self.source, self.size),
                (self.source, self.source + self.size),
            )
            return read_words(self.issuer, index, "a bulk copy", span)
        region = self.issuer.launch.global_memory.region_at(self.source)
        return region.read_bytes(self.source, self.size, _UNIT).view(np.uint64)


def build_to_shared(
    ins: Decoded, space: str, *, from_global: bool, reduction: Reduction | None = None
) -> Step:
    """A copy into shared memory, from global memory or from that of the issuing CTA."""
    ins.required(("mbarrier::complete_tx::bytes",))
    multicast = from_global and ins.flag("multicast::cluster")
    if multicast and space == "shared::cta":
        ins.unmodelled("modifier .multicast::cluster with .shared::cta")
    operands = 5 if multicast else 4
    take_policy(ins, operands) if from_global else ins.expect_operands(operands)
    ins.finish_modifiers()
    to, source, barrier = ins.address(0), ins.address(1), ins.address(3)
    size = _take_size(ins, 2)
    ctas = ins.read(4, np.uint16) if multicast else None

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask):
            numbers = [int(read(warp)[lane]) for read in (to, source, size, barrier)]
            ranks = int(ctas(warp)[lane]) if ctas else None
            _submit_copy(warp, numbers, space, from_global, ranks, reduction)

    return step


def _submit_copy(
    warp: Warp,
    numbers: list[int],
    space: str,
    from_global: bool,
    ranks: int | None,
    reduction: Reduction | None,
) -> None:
    to, source, size, barrier = numbers
    _check_size(size)
    if from_global:
        _check_global(warp.cta, source, size, "read")
    else:
        _, source = locate(warp.cta, source, "shared::cta")
        check_span(warp.cta, source, size, _UNIT, "a bulk copy")
    target, offset = locate(warp.cta, to, space)
    owner, at = locate(warp.cta, barrier, space)
    chosen = [target] if ranks is None else _selected(warp.cta, ranks)
    if ranks is None and owner is not target:
        raise Trap("tma", f"the mbarrier must lie in the CTA of the destination, rank "
                          f"{target.rank}, got rank {owner.rank}")  # fmt: skip
    for number, cta in enumerate(chosen):
        check_span(cta, offset, size, _UNIT, "a bulk copy")
        barrier_at(cta, at)
        copy = Copy(warp.cta, source, size, cta, offset, at, from_global, reduction, number == 0)
        _start(copy)


def _start(copy: Copy) -> None:
    touched = copy.touches
    op = EngineOp(
        copy.describe,
        copy.run,
        agent="tma",
        touches=touched,
        moves=copy.moves,
        signals=(copy.target, copy.barrier),
    )
    copy.issuer.launch.engines.submit(op)
    count_event(copy.issuer, "tma load bytes", copy.size)


def _selected(cta: Cta, ranks: int) -> list[Cta]:
    return [peer(cta, rank) for rank in range(16) if ranks >> rank & 1]


def _check_global(cta: Cta, address: int, size: int, access: str) -> None:
    cta.launch.global_memory.region_at(address).check_range(address, size, access, _UNIT)


def build_from_shared(ins: Decoded, reduction: Reduction | None = None) -> Step:
    """A copy from shared to global memory; with `.cp_mask`, of some bytes of each 16."""
    ins.required(("bulk_group",))
    masked = reduction is None and ins.flag("cp_mask")
    hinted = ins.flag("L2::cache_hint")
    ins.expect_operands(3 + hinted + masked)
    ins.finish_modifiers()
    to, source, size = ins.address(0), ins.address(1), _take_size(ins, 2)
    if hinted:
        ins.read(3, np.uint64)
    chosen = ins.read(3 + hinted, np.uint16) if masked else None

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask):
            start, begin, amount = (int(read(warp)[lane]) for read in (to, source, size))
            change = int(chosen(warp)[lane]) if chosen else reduction
            _submit_store(warp, int(lane), start, begin, amount, change)

    return step


def _write_global(cta: Cta, to: int, new: np.ndarray, change: Change) -> None:
    region = cta.launch.global_memory.region_at(to)
    if change is None:
        region.write_bytes(to, new, _UNIT)
    elif isinstance(change, Reduction):
        with strong_accesses(cta.launch):
            stored = change.apply(region.read_bytes(to, len(new)), new)
            region.write_bytes(to, stored, _UNIT)
    else:
        bits = [change >> i & 1 for i in range(_UNIT)]
        chosen = np.flatnonzero(np.resize(bits, len(new)))
        region.store(np.uint64(to) + chosen.astype(np.uint64), new[chosen], 1)


def _submit_store(warp: Warp, lane: int, to: int, source: int, size: int, change: Change) -> None:
    cta = warp.cta
    _check_size(size)
    _check_global(cta, to, size, "write")
    _, offset = locate(cta, source, "shared::cta")
    check_span(cta, offset, size, _UNIT, "a bulk store")
    data: list[np.ndarray] = []

    def read() -> None:
        words = read_words(cta, _word_range(offset, size), "a bulk store", (offset, offset + size))
        data.append(words.view(np.uint8))

    def write() -> None:
        _write_global(cta, to, data[0], change)

    name = f"bulk store of {size} bytes 0x{offset:x} -> 0x{to:x}"
    ctas = (cta,)
    first = EngineOp(
        f"{name} (read)",
        read,
        agent="tma",
        notifies=ctas,
        moves=lambda: (Move("shared", "read", size, rows=1),),
    )
    second = EngineOp(
        f"{name} (write)",
        write,
        (first,),
        agent="tma",
        notifies=ctas,
        moves=lambda: (Move("global", "write", size, _piece(to, size)),),
    )
    first.stream, second.stream = ("bulk reads", lane), ("bulk writes", lane)
    warp.launch.engines.submit(first)
    warp.launch.engines.submit(second)
    warp.launch.events.source_issued(warp, lane, (offset, offset + size), first)
    bulk_groups(cta, warp.index, lane).add(BulkOperation(first, second))
    count_event(cta, "tma store bytes", size)


@instruction("cp.async.bulk.prefetch", section="9.7.9.25.4.3")
def build_bulk_prefetch(ins: Decoded) -> Step:
    """A hint: the range is checked, nothing moves."""
    ins.required(("L2",))
    ins.required(("global",))
    take_policy(ins, 2)
    ins.finish_modifiers()
    source, size = ins.address(0), _take_size(ins, 1)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask):
            amount = int(size(warp)[lane])
            _check_size(amount)
            _check_global(warp.cta, int(source(warp)[lane]), amount, "read")

    return step


@instruction("cp.async.bulk.commit_group", section="9.7.9.25.3.1")
def build_commit_group(ins: Decoded) -> Step:
    ins.finish_modifiers()
    ins.expect_operands(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask):
            bulk_groups(warp.cta, warp.index, int(lane)).commit()

    return step


@instruction("cp.async.bulk.wait_group", section="9.7.9.25.3.2")
def build_wait_group(ins: Decoded) -> Step:
    read = ins.flag("read")
    ins.finish_modifiers()
    ins.expect_operands(1)
    newest = ins.natural(0)
    part = "reading" if read else "pending"
    blocked = Blocked("bulk-group", lambda: f"waits until at most {newest} bulk groups are {part}")

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        groups = [bulk_groups(warp.cta, warp.index, int(lane)) for lane in np.flatnonzero(mask)]
        operations = [op for group in groups for op in group.awaited(newest, read)]
        if not all(op.done for op in operations):
            return blocked
        warp.launch.events.operations_awaited(warp, operations)
        for group in groups:
            group.release(newest, read)
        return None

    return step
