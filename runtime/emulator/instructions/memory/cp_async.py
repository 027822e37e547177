"""Non-bulk cp.async: copies of 4, 8 or 16 bytes a thread from global to shared memory.

The copy runs later; until then its destination counts as never written. Each thread has its own
groups: wait_group and wait_all look at the copies of the executing threads alone. The bytes become
writes of the generic proxy when the copy is complete, so a proxy fence before the wait for it
covers nothing.
Source: PTX ISA §9.7.9.25.3 (non-bulk copies), §9.7.13.15.15 (cp.async.mbarrier.arrive).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.barrier_operations import apply
from ...machine.engine import EngineOp, Move, Moves, Pieces
from ...machine.mbarrier import Mbarrier
from ...machine.shared_access import barrier_at, locate
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE
from ...ptx.registry import Blocked, Step, instruction
from ...truth import any_of
from ..threads.mbarrier import take_space
from .memory import PREFETCH

_SIZES = {"ca": (4, 8, 16), "cg": (16,)}
_SHARED = ("shared", "shared::cta")
_OFFSET_MASK = np.uint64((1 << 24) - 1)
_WORD = 4
_STREAM = ("cp.async", None)
_WRITTEN = 0xFF


@dataclass
class ThreadCopies:
    """Copies of one thread: those not committed yet, and the groups from old to new."""

    open: list[EngineOp] = field(default_factory=list)
    groups: list[list[EngineOp]] = field(default_factory=list)

    def commit(self) -> None:
        """Close the group of the copies so far; it may be empty."""
        self.groups.append(self.open)
        self.open = []

    def older(self, newest: int) -> list[EngineOp]:
        """The copies of all groups but the `newest` last ones."""
        groups = self.groups[: max(0, len(self.groups) - newest)]
        return [op for group in groups for op in group]

    def forget(self, newest: int) -> None:
        """The thread has waited for those."""
        del self.groups[: max(0, len(self.groups) - newest)]

    def all(self) -> list[EngineOp]:
        """Every copy that has not been waited for, committed or not."""
        return [*self.older(0), *self.open]

    def outstanding(self) -> list[EngineOp]:
        """The copies that are not done."""
        return [op for op in self.all() if not op.done]

    def forget_all(self) -> None:
        """The thread has waited for every copy."""
        self.groups, self.open = [], []


def _copies(warp: Warp) -> list[ThreadCopies]:
    return warp.state("cp.async", lambda: [ThreadCopies() for _ in range(WARP_SIZE)])


@dataclass(frozen=True)
class Copy:
    """One issued instruction: addresses and bytes to read of k threads.

    to: window offsets int64[k]; source: uint64[k]; amounts: int64[k], the rest of `size` is zero;
    warp, mask, line: who issued it, and the PTX line.
    """

    warp: Warp
    mask: np.ndarray
    size: int
    to: np.ndarray
    source: np.ndarray
    amounts: np.ndarray
    line: int

    @property
    def cta(self) -> Cta:
        return self.warp.cta

    @property
    def cells(self) -> np.ndarray:
        """Offsets of all destination bytes, int64[k, size]."""
        return self.to[:, None] + np.arange(self.size)

    def part(self, lanes: set[int]) -> tuple[np.ndarray, np.ndarray, int]:
        """The given lanes, the addresses they write, and the number of bytes."""
        every = np.flatnonzero(self.mask)
        chosen = np.isin(every, list(lanes))
        return every[chosen], self.to[chosen], self.size

    def moves(self) -> Moves:
        """For profiles."""
        lanes, written = np.flatnonzero(self.mask), self.size * len(self.to)
        source = Pieces(self.source, self.amounts, lanes)
        to = Pieces(self.to.astype(np.uint64), np.full(len(self.to), self.size), lanes)
        return (
            Move("global", "read", int(self.amounts.sum()), source),
            Move("shared", "write", written, to),
        )

    def run(self) -> None:
        if self.cta.exited:
            return
        cells = self.cells
        shared = self.cta.shared
        for tell in shared.heard("copying"):
            tell(self.warp, self.mask, self.to, self.size, self.line)
        shared.data[cells] = self._read()
        if shared.written is not None:
            shared.written[cells] = _WRITTEN

    def _read(self) -> np.ndarray:
        data = np.zeros((len(self.to), self.size), np.uint8)
        memory = self.cta.launch.global_memory
        whole = self.amounts == self.size
        if any_of(whole):
            words = memory.load(self.source[whole], _WORD, self.size // _WORD)
            data[whole] = np.ascontiguousarray(words).view(np.uint8).reshape(-1, self.size)
        for thread in np.flatnonzero(~whole & (self.amounts > 0)):
            address, amount = int(self.source[thread]), int(self.amounts[thread])
            data[thread, :amount] = memory.region_at(address).read_bytes(address, amount)
        return data


@instruction("cp.async", section="9.7.9.25.3.1")
def build_cp_async(ins: Decoded) -> Step:
    """cp.async.{ca,cg}.shared.global{.hints} [d], [a], size{, src-size | ignore-src}{, policy}."""
    sizes = _SIZES[ins.required(("ca", "cg"))]
    shared = ins.required(_SHARED)
    ins.required(("global",))
    if ins.modifiers.index(shared) > ins.modifiers.index("global"):
        raise ins.trap("operand", f"{ins.mnemonic} copies to .{shared} from .global")
    ins.choice(PREFETCH)
    hinted = ins.flag("L2::cache_hint")
    ins.finish_modifiers()
    ins.expect_operands(*((4, 5) if hinted else (3, 4)))
    size = ins.immediate(2)
    if size not in sizes:
        raise ins.trap("operand", f"{ins.opcode} copies {_listed(sizes)} bytes, got {size}")
    if hinted:
        ins.read(len(ins.operands) - 1, np.uint64)
    amounts = _amounts(ins, size) if len(ins.operands) - hinted == 4 else _always(size)
    return _copy_step(ins.address(0), ins.address(1), amounts, size)


def _listed(sizes: tuple[int, ...]) -> str:
    return " or ".join(map(str, sizes))


def _always(size: int) -> Callable:
    amounts = np.full(WARP_SIZE, size, np.int64)
    return lambda warp, mask: amounts


def _amounts(ins: Decoded, size: int) -> Callable:
    """A function (warp, mask) → int64[32] bytes to read, of the operand behind the size."""
    if _is_predicate(ins, ins.operand(3)):
        ignore = ins.read_predicate(3)
        return lambda warp, mask: np.where(ignore(warp), 0, size)
    if ins.operand_is_immediate(3) and not 0 <= ins.immediate(3) <= size:
        raise ins.trap("operand", f"the src-size of cp.async must be at most {size}, got"
                                  f" {ins.immediate(3)}")  # fmt: skip
    read = ins.read(3, np.uint32)

    def amounts(warp: Warp, mask: np.ndarray) -> np.ndarray:
        values = read(warp).astype(np.int64)
        if any_of(values[mask] > size):
            raise Trap("operand", f"the src-size of cp.async must be at most {size}, got "
                                  f"{int(values[mask].max())}")  # fmt: skip
        return values

    return amounts


def _is_predicate(ins: Decoded, operand: syntax.Operand) -> bool:
    if isinstance(operand, syntax.Negated):
        return True
    register = ins.scope.register(operand.name) if isinstance(operand, syntax.Symbol) else None
    return register is not None and register.bits == 1


def _copy_step(to: Callable, source: Callable, amounts: Callable, size: int) -> Step:
    def step(warp: Warp, mask: np.ndarray) -> None:
        addresses, read = to(warp)[mask], amounts(warp, mask)[mask]
        sources = source(warp)[mask]
        _check_aligned(sources, size)
        offsets = _claim(warp, mask, addresses, size)
        line = warp.program.source[warp.split.pc].line
        copy = Copy(warp, mask, size, offsets, sources, read, line)
        name = f"cp.async of {len(offsets)} x {size} bytes -> 0x{int(offsets[0]):x}"
        op = EngineOp(
            name,
            copy.run,
            agent="cp.async",
            notifies=(warp.cta,),
            stream=_STREAM,
            generic=True,
            moves=copy.moves,
        )
        warp.launch.engines.submit(op)
        threads = _copies(warp)
        lanes = np.flatnonzero(mask).tolist()
        _waiting(warp)[op] = copy, set(lanes)
        for lane in lanes:
            threads[lane].open.append(op)
        _count(warp, int(read.sum()), size * len(offsets))

    return step


def _count(warp: Warp, read: int, written: int) -> None:
    warp.launch.report.memory_bytes["global", "read"] += read
    warp.launch.report.memory_bytes["shared", "write"] += written


def _check_aligned(addresses: np.ndarray, size: int) -> None:
    bad = addresses % np.uint64(size) != 0
    if any_of(bad):
        raise Trap("misaligned", f"the source of cp.async must be aligned to {size} bytes, got "
                                 f"0x{int(addresses[bad][0]):x}")  # fmt: skip


def _claim(warp: Warp, mask: np.ndarray, addresses: np.ndarray, size: int) -> np.ndarray:
    """Window offsets int64[k] of checked destinations, which count as unwritten from now on."""
    region = warp.cta.shared
    for address in addresses[addresses & ~_OFFSET_MASK != region.base].tolist():
        locate(warp.cta, address, "shared::cta")
    own = (addresses & _OFFSET_MASK) + np.uint64(region.base)
    if region.index(own, size) is None:
        raise region.refusal(own, size, "write")
    offsets = (own - np.uint64(region.base)).astype(np.int64)
    for tell in region.heard("claiming"):
        tell(warp, mask, offsets, size)
    return offsets


def _waiting(warp: Warp) -> dict[EngineOp, tuple[Copy, set[int]]]:
    """By operation its copy, and the lanes that have not waited for their part of it."""
    return warp.state("cp.async waits", dict)


def _observe(warp: Warp, mask: np.ndarray, waited: list[list[EngineOp]]) -> None:
    """Each of these lanes has waited for its copies; one is over for the warp when all of its lanes
    have. Lanes that came apart may be a group ahead of others, for which the same copy is newer."""
    waiting, lanes = _waiting(warp), np.flatnonzero(mask).tolist()
    alike = all(each == waited[0] for each in waited)
    over = []
    listeners = warp.cta.shared.heard("copy_awaited")
    for op in dict.fromkeys(op for each in waited[: 1 if alike else None] for op in each):
        own = zip(lanes, waited, strict=True)
        copy, left = waiting[op]
        now = left.intersection(lanes if alike else (lane for lane, ops in own if op in ops))
        for tell in listeners:
            tell(warp, *copy.part(now))
        left -= now
        if not left:
            del waiting[op]
            over.append(op)
    warp.launch.events.operations_awaited(warp, over)


@instruction("cp.async.commit_group", section="9.7.9.25.3.2")
def build_commit_group(ins: Decoded) -> Step:
    """cp.async.commit_group."""
    ins.finish_modifiers()
    ins.expect_operands(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        threads = _copies(warp)
        for lane in np.flatnonzero(mask):
            threads[lane].commit()

    return step


@instruction("cp.async.wait_group", section="9.7.9.25.3.3")
def build_wait_group(ins: Decoded) -> Step:
    """cp.async.wait_group n: at most the n newest groups of each thread stay under way."""
    ins.finish_modifiers()
    ins.expect_operands(1)
    newest = ins.natural(0)
    blocked = Blocked("cp.async", lambda: f"waits until {newest} groups of cp.async are left")

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        threads = [_copies(warp)[lane] for lane in np.flatnonzero(mask)]
        waited = [thread.older(newest) for thread in threads]
        if not all(op.done for ops in waited for op in ops):
            return blocked
        _observe(warp, mask, waited)
        for thread in threads:
            thread.forget(newest)
        return None

    return step


@instruction("cp.async.wait_all", section="9.7.9.25.3.3")
def build_wait_all(ins: Decoded) -> Step:
    """cp.async.wait_all: every copy of each thread is done, committed or not."""
    ins.finish_modifiers()
    ins.expect_operands(0)
    blocked = Blocked("cp.async", lambda: "waits for all of its cp.async operations")

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        threads = [_copies(warp)[lane] for lane in np.flatnonzero(mask)]
        waited = [thread.all() for thread in threads]
        if not all(op.done for ops in waited for op in ops):
            return blocked
        _observe(warp, mask, waited)
        for thread in threads:
            thread.forget_all()
        return None

    return step


@instruction("cp.async.mbarrier.arrive", section="9.7.13.15.15")
def build_arrive(ins: Decoded) -> Step:
    """cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [bar]: arrive when earlier copies are done.

    Without .noinc the pending count grows by one first, so that the arrival leaves it as it was.
    """
    adds = not ins.flag("noinc")
    space = take_space(ins, _SHARED)
    ins.required(("b64",))
    ins.finish_modifiers()
    ins.expect_operands(1)
    address = ins.address(0)

    def step(warp: Warp, mask: np.ndarray) -> None:
        cta, addresses = warp.cta, address(warp)[mask].tolist()
        offsets = [_own_barrier(cta, value, space) for value in addresses]
        for offset in offsets if adds else ():
            _expect_one_more(barrier_at(cta, offset))
        _submit_arrivals(warp, mask, offsets)

    return step


def _own_barrier(cta: Cta, address: int, space: str) -> int:
    owner, offset = locate(cta, address, space)
    if owner is not cta:
        raise Trap("address-space", f"cp.async.mbarrier.arrive must address the own CTA's shared "
                                    f"memory, got rank {owner.rank}")  # fmt: skip
    barrier_at(cta, offset)
    return offset


def _expect_one_more(barrier: Mbarrier) -> None:
    barrier.pending += 1


def _submit_arrivals(warp: Warp, mask: np.ndarray, offsets: list[int]) -> None:
    cta, threads = warp.cta, _copies(warp)
    earlier = [op for lane in np.flatnonzero(mask) for op in threads[lane].outstanding()]

    def run() -> None:
        for offset in () if cta.exited else offsets:
            apply(cta, offset, lambda barrier: barrier.arrive())

    name = f"arrival of cp.async at mbarrier 0x{offsets[0]:x}"
    after = tuple(dict.fromkeys(earlier))
    warp.launch.engines.submit(
        EngineOp(
            name,
            run,
            after,
            agent="cp.async",
            stream=_STREAM,
            joins=True,
            commits=True,
            generic=True,
        )
    )
