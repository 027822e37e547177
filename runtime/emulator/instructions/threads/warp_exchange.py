"""Lanes of a membermask that meet at `.sync` instructions, and tell each other values.

By the PTX ISA a lane waits "until all non-exited threads corresponding to membermask have executed"
an instruction "with the same qualifiers and same membermask value" (§9.7.13.9, and alike §9.7.9.6,
§9.7.13.2, .10 and .12). It need not be the same one: two sides of a branch may have one each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...errors import Trap, lane_text
from ...interface import Split, Warp
from ...machine.warp import Split as NewSplit
from ...ptx.decode import Decoded
from ...ptx.lanes import FULL, canonical, lanes_to_int
from ...ptx.operand_slots import Where
from ...ptx.registry import CONTROL, Blocked, Step
from ...truth import any_of

_ALL = 0xFFFFFFFF
Send = Callable[[Warp], np.ndarray]
Receive = Callable[[Warp, np.ndarray, np.ndarray, np.ndarray], None]


def nothing(_: Warp) -> np.ndarray:
    """What lanes send that only meet."""
    return FULL


class Exchange:
    """One `.sync` instruction with a membermask, the operand `where`.

    send(warp): the values of its lanes; receive(warp, lanes, values, members): what its own lanes
    make of the values of all members, called once all of them are there.
    """

    def __init__(self, ins: Decoded, where: Where, send: Send, receive: Receive):
        self.kind, self.send, self.receive = ins.opcode, send, receive
        self._constant = ins.immediate(where) & _ALL if ins.operand_is_immediate(where) else None
        self._read = ins.read(where, np.uint32)
        self._waiting = Waiting(self)

    def step(self) -> Step:
        return self._step

    def _step(self, warp: Warp, mask: np.ndarray) -> object:
        if mask is FULL and self._constant == _ALL:
            self.receive(warp, FULL, self.send(warp), FULL)
            return None
        wanted = set(self._read(warp)[mask].tolist())
        groups = {each: self._group(warp, mask, each) for each in wanted}
        complete = {each: found for each, found in groups.items() if found is not None}
        for parties in complete.values():
            _meet(warp, parties)
        if not complete:
            self._waiting.wanted = min(wanted)
            return self._waiting
        return self._leave(warp, mask, complete)

    def lanes_of(self, warp: Warp, mask: np.ndarray, wanted: int) -> np.ndarray:
        """The wanted lanes that execute with this membermask."""
        return mask & (self._read(warp) == np.uint32(wanted))

    def _group(self, warp: Warp, mask: np.ndarray, wanted: int) -> list[Party] | None:
        """Who meets by a membermask, this instruction first; None while lanes are missing."""
        own = self.lanes_of(warp, mask, wanted)
        if outside := lanes_to_int(own) & ~wanted:
            text = f"lanes {lane_text(outside)} execute with membermask 0x{wanted:08x}, which does"
            self._unnamed(warp, f"{text} not name them", apart=outside == lanes_to_int(own))
        parties = [Party(warp.split, self, own), *self._others(warp, wanted)]
        present = sum(lanes_to_int(party.lanes) for party in parties)
        return None if wanted & warp.live & ~present else parties

    def _unnamed(self, warp: Warp, text: str, *, apart: bool) -> None:
        """PTX leaves it undefined. An H200 lets such lanes take part in `shfl` with the named ones
        that execute it beside them, by which libraries go; where they execute it apart it stops."""
        if apart or not self.kind.startswith("shfl."):
            raise Trap("convergence", text)
        warp.launch.events.departed("convergence", "unnamed-lanes", f"shfl.sync: {text}")

    def _others(self, warp: Warp, wanted: int) -> list[Party]:
        """Who waits at such an instruction elsewhere."""
        found = []
        for split in warp.splits:
            reason = split.reason
            if split is warp.split or not isinstance(reason, Waiting):
                continue
            lanes = reason.exchange.lanes_of(warp, split.mask, wanted)
            if reason.exchange.kind == self.kind and any_of(lanes):
                found.append(Party(split, reason.exchange, lanes))
        return found

    def _leave(self, warp: Warp, mask: np.ndarray, complete: dict[int, list[Party]]) -> object:
        """The lanes that have met go on, those that have not wait."""
        met = np.logical_or.reduce([parties[0].lanes for parties in complete.values()])
        for party in (party for parties in complete.values() for party in parties[1:]):
            _go_on(warp, party.split, party.lanes)
        behind = mask & ~met
        if not any_of(behind):
            if all(len(parties) == 1 for parties in complete.values()):
                return None
            warp.split.pc += 1
            return CONTROL
        _go_on(warp, warp.split, warp.split.mask & ~behind)
        self._waiting.wanted = int(self._read(warp)[behind][0])
        warp.split.reason, warp.split.parked_at = self._waiting, warp.cta.events
        return CONTROL


class Party(NamedTuple):
    """Lanes of a split that are at an instruction of an exchange."""

    split: Split
    exchange: Exchange
    lanes: np.ndarray


class Waiting(Blocked):
    """Lanes wait for the others of their membermask; wanted: a membermask, for reports."""

    __slots__ = ("exchange", "wanted")

    def __init__(self, exchange: Exchange):
        super().__init__("convergence", self._describe)
        self.exchange, self.wanted = exchange, _ALL

    def _describe(self) -> str:
        return (
            f"all live lanes of the membermask 0x{self.wanted:08x} must execute"
            f" `{self.exchange.kind}` with it"
        )


def _meet(warp: Warp, parties: list[Party]) -> None:
    """Everybody gets the values of everybody."""
    values, members = parties[0].exchange.send(warp), parties[0].lanes
    for party in parties[1:]:
        values = np.where(party.lanes, party.exchange.send(warp), values)
        members = members | party.lanes
    members = canonical(members)
    for party in parties:
        lanes = members if len(parties) == 1 else party.lanes
        party.exchange.receive(warp, lanes, values, members)


def _go_on(warp: Warp, split: Split, lanes: np.ndarray) -> None:
    """The lanes of a split go behind its instruction; the others of it stay there."""
    staying = split.mask & ~lanes
    if any_of(staying):
        warp.splits.append(NewSplit(split.pc + 1, canonical(lanes), split.stack))
        split.mask = canonical(staying)
    else:
        split.pc += 1
        split.parked_at = split.reason = None
