"""st.async and red.async: stores and reductions into a peer's shared memory (PTX ISA §9.7.9.13,
§9.7.13.7).

The value arrives later, and its bytes then complete a transaction of an mbarrier that lies in the
same CTA as the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...errors import Trap
from ...interface import Cta, Launch, Warp
from ...machine.barrier_operations import apply
from ...machine.engine import EngineOp, Move, Moves, Pieces
from ...machine.events import strong_accesses
from ...machine.shared_access import barrier_at, check_span, count_event, locate, shared_of
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import Type
from ..values.common import bit_type
from .atomic import combination

_STORED_LATER = ("b8", "b16", "u8", "u16", "s8", "s16")
_STORED = ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64")
_WIDEST_STORE = 128
"""Bits of a vector."""
_REDUCED = {
    "inc": ("u32",),
    "dec": ("u32",),
    "min": ("u32", "s32"),
    "max": ("u32", "s32"),
    "add": ("u32", "s32", "u64", "s64"),
    "and": ("b32",),
    "or": ("b32",),
    "xor": ("b32",),
}


@dataclass(frozen=True)
class Arrival:
    """The value of one lane on its way; `combine(old)` gives what is stored."""

    name: str
    target: Cta
    offset: int
    barrier: int
    width: int
    values: np.ndarray
    combine: Callable | None

    def run(self) -> None:
        if self.combine is None:
            self._perform()
        else:
            with strong_accesses(self.target.launch):
                self._perform()
        size = self.width * len(self.values)
        apply(self.target, self.barrier, lambda barrier: barrier.complete_tx(size))

    def _perform(self) -> None:
        region = self.target.shared
        at = np.array([region.base + self.offset], np.uint64)
        values = self.values
        if self.combine is not None:
            values = self.combine(region.load(at, self.width), values, None)
        shaped = values[None, :] if len(values) > 1 else values
        region.store(at, shaped, self.width, len(values))


@dataclass(frozen=True)
class GlobalArrival:
    """The same for a value that goes to global memory, which no barrier awaits; it releases."""

    launch: Launch
    address: int
    width: int
    values: np.ndarray
    combine: Callable | None

    def moves(self) -> Moves:
        """For profiles."""
        at = Pieces(np.array([self.address], np.uint64), np.array([self.width]))
        return (Move("global", "write", self.width, at),)

    def run(self) -> None:
        at, values, memory = (
            np.array([self.address], np.uint64),
            self.values,
            self.launch.global_memory,
        )
        with strong_accesses(self.launch, "release"):
            if self.combine is not None:
                values = self.combine(memory.load(at, self.width), values, None)
            memory.store(at, values, self.width)


def _build_global(ins: Decoded, type_: Type, combine: Callable | None) -> Step:
    """st.async and red.async{.mmio}.release.scope{.global}: performed later, without a signal."""
    scope = ins.required(("gpu", "sys"))
    if ins.flag("mmio") and scope != "sys":
        raise ins.trap("operand", f"{ins.mnemonic}.mmio has scope .sys, got .{scope}")
    ins.flag("global")
    ins.finish_modifiers()
    ins.expect_operands(2)
    address, read = ins.address(0), ins.read(1, bit_type(type_.bits))

    def step(warp: Warp, mask: np.ndarray) -> None:
        at, values, memory = address(warp), read(warp), warp.launch.global_memory
        for lane in np.flatnonzero(mask):
            place, value, size = int(at[lane]), values[lane : lane + 1], type_.bytes
            memory.region_at(place).check_range(place, size, "write", size)
            arrival = GlobalArrival(warp.launch, place, size, value, combine)
            name = f"{ins.mnemonic} of {size} bytes -> 0x{place:x}"
            _submit_late(warp, int(lane), EngineOp(
                name, arrival.run, agent="store", moves=arrival.moves, commits=True, generic=True
            ))  # fmt: skip

    return step


def _submit_late(warp: Warp, lane: int, op: EngineOp) -> None:
    op.stream = ("late stores", lane)
    warp.launch.engines.submit(op)


def _build(ins: Decoded, type_: Type, count: int, combine: Callable | None) -> Step:
    ins.required(("mbarrier::complete_tx::bytes",))
    space = ins.choice(("shared::cluster",), "generic")
    ins.finish_modifiers()
    ins.expect_operands(3)
    address, barrier = ins.address(0), ins.address(2)
    read = ins.read_vector(1, count, bit_type(type_.bits))

    def step(warp: Warp, mask: np.ndarray) -> None:
        to, at, values = address(warp), barrier(warp), np.stack(read(warp), axis=1)
        for lane in np.flatnonzero(mask):
            places = int(to[lane]), int(at[lane])
            _submit(warp, ins.mnemonic, space, places, type_.bytes, values[lane], combine)

    return step


def _submit(
    warp: Warp,
    name: str,
    space: str,
    places: tuple[int, int],
    width: int,
    values: np.ndarray,
    combine: Callable | None,
) -> None:
    size = width * len(values)
    target, offset = locate(warp.cta, places[0], space)
    owner, at = locate(warp.cta, places[1], space)
    if owner is not target:
        raise Trap("protocol", f"the mbarrier of {name} must lie in the CTA of the value, rank"
                               f" {target.rank}, got rank {owner.rank}")  # fmt: skip
    if target.exited:
        raise Trap("exited-cta", f"the CTA of cluster rank {target.rank} has exited")
    check_span(target, offset, size, size, name)
    barrier_at(target, at)
    arrival = Arrival(name, target, offset, at, width, values, combine)
    text = f"{name} of {size} bytes -> rank {target.rank} 0x{offset:x}"
    ctas = (target,)
    memory = shared_of(warp.cta, target)
    op = EngineOp(
        text,
        arrival.run,
        agent="store",
        touches=ctas,
        moves=lambda: (Move(memory, "write", size),),
        signals=(target, at),
        generic=True,
    )
    warp.launch.engines.submit(op)
    count_event(warp.cta, "remote store bytes", size)


@instruction("st.async", section="9.7.9.13")
def build_st_async(ins: Decoded) -> Step:
    """st.async{.weak}.shared::cluster.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar], and
    st.async{.mmio}.release.scope{.global}.type [a], b."""
    weak = ins.flag("weak")
    type_ = ins.take_type()
    if ins.flag("release"):
        if type_.name not in (*_STORED, *_STORED_LATER):
            ins.unmodelled(f"type .{type_.name}")
        return _build_global(ins, type_, None)
    if ins.flag("cluster") and weak:
        raise ins.trap("operand", "a .weak store has no scope, got .cluster")
    vector = ins.choice(("v2", "v4"))
    if type_.name not in _STORED:
        ins.unmodelled(f"type .{type_.name}")
    count = int(vector[1]) if vector else 1
    if count * type_.bits > _WIDEST_STORE:
        raise ins.trap("operand", f"st.async stores up to {_WIDEST_STORE} bits, got .{vector} of"
                                  f" .{type_.name}")  # fmt: skip
    return _build(ins, type_, count, None)


@instruction("red.async", section="9.7.13.7")
def build_red_async(ins: Decoded) -> Step:
    """red.async{.relaxed}{.cluster}.shared::cluster.….op.type [a], b, [mbar], and
    red.async{.mmio}.release.scope{.global}.op.type [a], b."""
    type_ = ins.take_type()
    operation = ins.required(tuple(_REDUCED))
    if type_.name not in _REDUCED[operation]:
        ins.unmodelled(f".{operation} on .{type_.name}")
    combine = combination(ins, operation, type_)
    if ins.flag("release"):
        return _build_global(ins, type_, combine)
    ins.flag("relaxed")
    ins.flag("cluster")
    return _build(ins, type_, 1, combine)
