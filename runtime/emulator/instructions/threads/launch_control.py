"""clusterlaunchcontrol: taking over clusters that have not started (PTX ISA §9.7.13.17-18).

A request takes one un-launched cluster off the grid, atomically, or fails; its 16-byte response
is written by the async proxy. The response is opaque: its bits differ from launch to launch, and
bytes that no request wrote are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import Trap
from ...interface import Cta, Launch, Warp
from ...machine.barrier_operations import apply
from ...machine.engine import EngineOp, Move, Moves
from ...machine.shared_access import (
    WORD,
    barrier_at,
    check_span,
    check_target,
    count_event,
    locate,
    peer,
    write_words,
)
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE
from ...ptx.registry import Step, instruction
from ...ptx.values import TYPES

RESPONSE_BYTES = 16
_AXIS_BITS = (31, 16, 16)
_MARK = 0x636C_6320_7265_7370
_OBSERVED = "observed a failed cancellation"
Ctaid = tuple[int, int, int]


# -- the response ------------------------------------------------------------------------------


def _key(launch: Launch) -> tuple[int, int]:
    """What the two words of a response are mixed with in this launch."""
    words = launch.poison_bytes(RESPONSE_BYTES).view(np.uint64)
    return int(words[0]), int(words[1])


def encode_response(launch: Launch, first: Ctaid | None) -> np.ndarray:
    """uint64[2]: success with the first CTA of the cancelled cluster, or failure (None)."""
    word = 0
    for value, bits in zip(reversed(first or ()), reversed(_AXIS_BITS), strict=False):
        word = word << bits | value
    word = word << 1 | (first is not None)
    key = launch.state("launch control key", lambda: _key(launch))
    return np.array([word ^ key[0], _MARK ^ word ^ key[1]], np.uint64)


def decode_response(launch: Launch, low: int, high: int) -> Ctaid | None:
    """The inverse of `encode_response`; Trap for 16 bytes that are no response."""
    key = launch.state("launch control key", lambda: _key(launch))
    word = low ^ key[0]
    if high ^ key[1] != _MARK ^ word:
        raise Trap(
            "protocol",
            "the 16 bytes are no response of clusterlaunchcontrol.try_cancel; wait for its"
            " mbarrier and load all of them",
        )
    canceled, word = word & 1, word >> 1
    values = []
    for bits in _AXIS_BITS:
        values.append(word & (1 << bits) - 1)
        word >>= bits
    return tuple(values) if canceled else None


# -- requests ----------------------------------------------------------------------------------


@dataclass
class Request:
    """One cancellation request; `response` is set when it has been decided."""

    launch: Launch
    response: np.ndarray | None = None

    def decide(self) -> None:
        cluster = self.launch.scheduler.take_unlaunched()
        first = None
        if cluster is not None:
            x, y, z = (i * n for i, n in zip(cluster, self.launch.cluster, strict=True))
            first = (x, y, z)
            self.launch.engine_counts["clusters cancelled"] += 1
        self.response = encode_response(self.launch, first)

    def deliver(self, cta: Cta, offset: int, barrier: int) -> None:
        """Write the response of one CTA and complete its transaction."""
        check_target(cta, offset, offset + RESPONSE_BYTES, "a cancellation response")
        index, span = slice(offset // WORD, offset // WORD + 2), (offset, offset + 16)
        assert self.response is not None  # it is decided before it is delivered
        write_words(cta, index, self.response, span)
        cta.launch.events.response_written(cta, offset)
        apply(cta, barrier, lambda b: b.complete_tx(RESPONSE_BYTES))


@instruction("clusterlaunchcontrol.try_cancel", section="9.7.13.17")
def build_try_cancel(ins: Decoded) -> Step:
    """clusterlaunchcontrol.try_cancel.async{.shared::cta}.…{.multicast::cluster::all}.b128."""
    ins.required(("async",))
    space = ins.choice(("shared::cta",), "generic")
    ins.required(("mbarrier::complete_tx::bytes",))
    multicast = ins.flag("multicast::cluster::all")
    ins.required(("b128",))
    ins.finish_modifiers()
    ins.expect_operands(2)
    response, barrier = ins.address(0), ins.address(1)

    def step(warp: Warp, mask: np.ndarray) -> None:
        to, at = response(warp), barrier(warp)
        for lane in np.flatnonzero(mask):
            _request(warp, int(to[lane]), int(at[lane]), space, multicast)

    return step


def _request(warp: Warp, to: int, at: int, space: str, multicast: bool) -> None:
    if warp.state(_OBSERVED, list):
        raise Trap(
            "protocol",
            "clusterlaunchcontrol.try_cancel after this warp has seen a request fail; leave the"
            " loop when is_canceled is false",
        )
    if warp.launch.preferred != warp.launch.cluster:
        raise Trap(
            "unmodelled",
            "clusterlaunchcontrol.try_cancel in a launch that prefers another cluster: the ISA does"
            " not say of which shape the cluster is that it cancels",
        )
    cta = warp.cta
    owner, offset = locate(cta, to, space)
    signalled, barrier = locate(cta, at, space)
    if owner is not cta or signalled is not cta:
        raise Trap("address-space", "response and mbarrier of clusterlaunchcontrol.try_cancel"
                                    " must lie in the own CTA")  # fmt: skip
    chosen = [peer(cta, other.rank) for other in cta.cluster.ctas] if multicast else [cta]
    for target in chosen:
        check_span(target, offset, RESPONSE_BYTES, RESPONSE_BYTES, "a cancellation response")
        barrier_at(target, barrier)
        target.launch.events.response_asked(target, offset)
    _submit(warp, chosen, offset, barrier)


def _response_moves() -> Moves:
    return (Move("shared", "write", RESPONSE_BYTES),)


def _submit(warp: Warp, targets: list[Cta], offset: int, barrier: int) -> None:
    engines, request = warp.launch.engines, Request(warp.launch)
    name = f"cancellation request -> 0x{offset:x}"
    decided = engines.submit(EngineOp(name, request.decide, agent="launch control"))
    for target in targets:

        def deliver(target: Cta = target) -> None:
            request.deliver(target, offset, barrier)

        name = f"cancellation response -> rank {target.rank} 0x{offset:x}"
        ctas = (target,)
        engines.submit(
            EngineOp(
                name,
                deliver,
                (decided,),
                agent="launch control",
                touches=ctas,
                moves=_response_moves,
                signals=(target, barrier),
            )
        )
    count_event(warp.cta, "cancellation requests")


# -- queries -----------------------------------------------------------------------------------


def _responses(ins: Decoded, at: int) -> Callable:
    """A function (warp, mask) → [(lanes, Ctaid or None)], one entry for each distinct response."""
    read = ins.read(at, TYPES["b128"])

    def responses(warp: Warp, mask: np.ndarray) -> list[tuple[np.ndarray, Ctaid | None]]:
        words = read(warp)
        found = []
        for low, high in sorted(set(map(tuple, words[mask].tolist()))):
            lanes = mask & (words[:, 0] == np.uint64(low)) & (words[:, 1] == np.uint64(high))
            found.append((lanes, decode_response(warp.launch, low, high)))
        return found

    return responses


_GARBAGE = 0x5AFE0BAD
"""A CTA index that no grid has along y or z, and none here along x."""


@instruction("clusterlaunchcontrol.query_cancel.is_canceled", section="9.7.13.18")
def build_is_canceled(ins: Decoded) -> Step:
    """clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response."""
    ins.required(("pred",))
    ins.required(("b128",))
    ins.finish_modifiers()
    ins.expect_operands(2)
    write, responses = ins.write(0, np.bool_), _responses(ins, 1)

    def step(warp: Warp, mask: np.ndarray) -> None:
        answer = np.zeros(WARP_SIZE, bool)
        for lanes, first in responses(warp, mask):
            answer |= lanes & (first is not None)
            if first is None and not warp.state(_OBSERVED, list):
                warp.state(_OBSERVED, list).append(True)
        write(warp, mask, answer)

    return step


def _first_ctaid(warp: Warp, mask: np.ndarray, responses: Callable) -> np.ndarray:
    """uint32[3, 32]; garbage and a warning where the request has failed.

    The CuTe DSL asks always, and leaves the answer unused where is_canceled says no.
    """
    values = np.zeros((3, WARP_SIZE), np.uint32)
    for lanes, first in responses(warp, mask):
        if first is None:
            _warn_of_failure(warp)
            first = (_GARBAGE, _GARBAGE, _GARBAGE)
        values[:, lanes] = np.array(first, np.uint32)[:, None]
    return values


def _warn_of_failure(warp: Warp) -> None:
    warp.launch.warn(
        "undefined-query",
        "get_first_ctaid of a request that failed is undefined (PTX ISA §9.7.13.18);"
        " its result must not be used",
    )


@instruction("clusterlaunchcontrol.query_cancel.get_first_ctaid", section="9.7.13.18")
def build_first_ctaid(ins: Decoded) -> Step:
    """clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, response."""
    ins.required(("v4",))
    ins.required(("b32",))
    ins.required(("b128",))
    ins.finish_modifiers()
    ins.expect_operands(2)
    if not isinstance(ins.operand(0), syntax.Vector):
        ins.unmodelled("a destination that is no vector")
    elements = ins.elements(0, 4)
    writes = [ins.write(element, np.uint32) for element in elements[:3]]
    responses = _responses(ins, 1)

    def step(warp: Warp, mask: np.ndarray) -> None:
        for write, value in zip(writes, _first_ctaid(warp, mask, responses), strict=True):
            write(warp, mask, value)

    return step


def _register_axis(number: int, axis: str) -> None:
    @instruction(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}", section="9.7.13.18")
    def build_axis(ins: Decoded) -> Step:
        """clusterlaunchcontrol.query_cancel.get_first_ctaid::axis.b32.b128 d, response."""
        ins.required(("b32",))
        ins.required(("b128",))
        ins.finish_modifiers()
        ins.expect_operands(2)
        write, responses = ins.write(0, np.uint32), _responses(ins, 1)

        def step(warp: Warp, mask: np.ndarray) -> None:
            write(warp, mask, _first_ctaid(warp, mask, responses)[number])

        return step


for _number, _axis in enumerate("xyz"):
    _register_axis(_number, _axis)
