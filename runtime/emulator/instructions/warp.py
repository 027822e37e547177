"""shfl, vote, match, activemask, redux, elect and bar.warp (PTX ISA §9.7.9.6, §9.7.13)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import Trap, lane_text
from ..ptx import syntax
from ..ptx.decode import Decoded
from ..ptx.lanes import FULL, LANE_IDS, WARP_SIZE, first_lane, int_to_lanes, lanes_to_int
from ..ptx.operand_slots import Where
from ..ptx.registry import Blocked, Step, instruction
from ..ptx.values import Type

_ALL = 0xFFFFFFFF


class Members:
    """The membermask operand of a `.sync` instruction.

    `groups(warp, mask)` yields the lane masks that take part together, or raises; `blocked` is
    set instead when lanes of the membermask have not arrived yet.
    """

    def __init__(self, ins: Decoded, where: Where):
        self._constant = ins.immediate(where) & _ALL if ins.operand_is_immediate(where) else None
        self._read = ins.read(where, np.uint32)
        self._wanted = _ALL
        self.blocked = Blocked(
            "convergence",
            lambda: (
                "all live lanes of the membermask"
                f" 0x{self._wanted:08x} must execute this .sync instruction"
            ),
        )

    def groups(self, warp, mask: np.ndarray) -> list[np.ndarray] | None:
        """Lane masks that execute together; None if lanes are still missing."""
        if mask is FULL and self._constant == _ALL:
            return [FULL]
        present = lanes_to_int(mask)
        found = []
        for wanted in set(self._read(warp)[mask].tolist()):
            if wanted & warp.live & ~present:
                self._wanted = wanted
                return None
            found.append(self._group(warp, mask, wanted))
        return found

    def _group(self, warp, mask: np.ndarray, wanted: int) -> np.ndarray:
        group = mask & (self._read(warp) == np.uint32(wanted))
        outside = lanes_to_int(group) & ~wanted
        if outside:
            raise Trap(
                "convergence",
                f"lanes {lane_text(outside)} execute with membermask"
                f" 0x{wanted:08x}, which does not name them",
            )
        return FULL if group.all() else group


def _sync_step(members: Members, run: Callable) -> Step:
    """A step that calls `run(warp, lanes)` for every group that is complete."""

    def step(warp, mask):
        groups = members.groups(warp, mask)
        if groups is None:
            return members.blocked
        for lanes in groups:
            run(warp, lanes)
        return None

    return step


# -- shfl --------------------------------------------------------------------------------------


def _shuffle_source(mode: str, lane: np.ndarray, b: np.ndarray, c: np.ndarray):
    """(source lane, in range) of each lane: the formulas of the ISA."""
    bounds, segment = c & 0x1F, c >> 8 & 0x1F
    amount = b & 0x1F
    highest = lane & segment | bounds & ~segment
    lowest = lane & segment
    if mode == "up":
        source = lane - amount
        return source, source >= highest
    if mode == "down":
        source = lane + amount
    elif mode == "bfly":
        source = lane ^ amount
    else:
        source = lowest | amount & ~segment
    return source, source <= highest


def _two_results(operand: syntax.Operand) -> tuple[syntax.Operand, syntax.Operand]:
    """`d|p`, or `d` with a second result that nobody takes."""
    if isinstance(operand, syntax.Pair):
        return operand.first, operand.second
    return operand, syntax.Symbol("_")


@instruction("shfl", section="9.7.9.6")
def build_shfl(ins: Decoded) -> Step:
    """shfl.sync.{up,down,bfly,idx}.b32 d{|p}, a, b, c, membermask."""
    ins.required(("sync",))
    mode = ins.required(("up", "down", "bfly", "idx"))
    type_ = ins.take_type()
    ins.finish_modifiers()
    ins.expect_operands(5)
    if type_.name != "b32":
        ins.unmodelled(f"type .{type_.name}")
    operand = ins.operand(0)
    if ins.is_sink(operand):
        raise ins.trap("operand", "a result that cannot be `_`")
    first, second = _two_results(operand)
    write, flag = ins.write(first, np.uint32), ins.write(second, np.bool_)
    a, b, c = (ins.read(number, np.uint32) for number in (1, 2, 3))
    lane = LANE_IDS.astype(np.int64)

    def run(warp, lanes):
        values = a(warp)
        source, inside = _shuffle_source(
            mode, lane, b(warp).astype(np.int64), c(warp).astype(np.int64)
        )
        source = np.where(inside, source, lane)
        _check_sources(warp, lanes, source)
        write(warp, lanes, values[source])
        flag(warp, lanes, inside)

    return _sync_step(Members(ins, 4), run)


def _check_sources(warp, lanes: np.ndarray, source: np.ndarray) -> None:
    if lanes is FULL:
        return
    if not lanes[source[lanes]].all():
        bad = source[lanes][~lanes[source[lanes]]]
        warp.launch.warn(
            "undefined-shuffle",
            f"shfl reads lane {int(bad[0])}, which does not take part: the value is undefined",
        )


# -- votes -------------------------------------------------------------------------------------


@instruction("vote", section="9.7.13.9")
def build_vote(ins: Decoded) -> Step:
    """vote.sync.{all,any,uni}.pred d, {!}a, membermask and vote.sync.ballot.b32 d, {!}a, mask."""
    ins.required(("sync",))
    mode = ins.required(("all", "any", "uni", "ballot"))
    type_ = ins.take_type()
    ins.finish_modifiers()
    ins.expect_operands(3)
    if type_.name != ("b32" if mode == "ballot" else "pred"):
        ins.unmodelled(f"type .{type_.name}")
    read, write = ins.read_predicate(1), ins.write(0, type_)
    functions = {
        "all": lambda votes: votes.all(),
        "any": lambda votes: votes.any(),
        "uni": lambda votes: votes.all() or not votes.any(),
    }

    def run(warp, lanes):
        votes = read(warp)
        if mode == "ballot":
            answer = np.full(WARP_SIZE, lanes_to_int(votes & lanes), np.uint32)
        else:
            answer = np.full(WARP_SIZE, functions[mode](votes[lanes]), np.bool_)
        write(warp, lanes, answer)

    return _sync_step(Members(ins, 2), run)


@instruction("match", section="9.7.13.10")
def build_match(ins: Decoded) -> Step:
    """match.any.sync d, a, membermask: lanes with the same value; match.all.sync d{|p}."""
    ins.required(("sync",))
    every = ins.required(("any", "all")) == "all"
    type_ = ins.take_type("b32", "b64")
    ins.finish_modifiers()
    ins.expect_operands(3)
    operand = ins.operand(0)
    first, second = _two_results(operand)
    write, flag = ins.write(first, np.uint32), ins.write(second, np.bool_)
    read = ins.read(1, type_.raw)

    def run(warp, lanes):
        values = read(warp)
        equal = values[:, None] == values[None, :]
        equal &= lanes[None, :]
        answer = np.array([lanes_to_int(row) for row in equal], np.uint32)
        same = answer == lanes_to_int(lanes)
        write(warp, lanes, np.where(same, answer, np.uint32(0)) if every else answer)
        flag(warp, lanes, same)

    return _sync_step(Members(ins, 2), run)


@instruction("activemask", section="9.7.13.11")
def build_activemask(ins: Decoded) -> Step:
    """activemask.b32 d: the lanes that execute this together."""
    type_ = ins.take_type("b32")
    ins.finish_modifiers()
    write = ins.write(0, type_)
    return lambda warp, mask: write(warp, mask, np.full(WARP_SIZE, lanes_to_int(mask), np.uint32))


# -- redux and elect -----------------------------------------------------------------------------


def _reduction(ins: Decoded, operation: str, type_: Type) -> Callable:
    integer = {"add": np.add, "min": np.minimum, "max": np.maximum}
    logic = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    if operation in logic and type_.name == "b32":
        return logic[operation].reduce
    if operation in integer and type_.name in ("u32", "s32"):
        function = integer[operation]
        return lambda values: function.reduce(values, dtype=values.dtype)
    if operation in ("min", "max") and type_.name == "f32":
        return _float_reduction(ins, operation)
    return ins.unmodelled(f".{operation} on .{type_.name}")


def _float_reduction(ins: Decoded, operation: str) -> Callable:
    propagate, absolute = ins.flag("NaN"), ins.flag("abs")
    plain = {"min": np.fmin, "max": np.fmax}[operation]
    strict = {"min": np.minimum, "max": np.maximum}[operation]
    function = strict if propagate else plain
    return lambda values: function.reduce(np.abs(values) if absolute else values)


@instruction("redux", section="9.7.13.12")
def build_redux(ins: Decoded) -> Step:
    """redux.sync.op{.abs}{.NaN}.type d, a, membermask."""
    ins.required(("sync",))
    operation = ins.required(("add", "min", "max", "and", "or", "xor"))
    type_ = ins.take_type()
    reduce = _reduction(ins, operation, type_)
    ins.finish_modifiers()
    ins.expect_operands(3)
    read, write = ins.read(1, type_), ins.write(0, type_.dtype)

    def run(warp, lanes):
        write(warp, lanes, np.full(WARP_SIZE, reduce(read(warp)[lanes]), type_.dtype))

    return _sync_step(Members(ins, 2), run)


@instruction("elect.sync", section="9.7.13.14")
def build_elect(ins: Decoded) -> Step:
    """elect.sync d|p, membermask: p is true in one lane (the lowest), d its number in all."""
    ins.finish_modifiers()
    ins.expect_operands(2)
    pair = ins.operand(0)
    if not isinstance(pair, syntax.Pair):
        ins.unmodelled("elect.sync without a destination d|p")
    leader, elected = ins.write(pair.first, np.uint32), ins.write(pair.second, np.bool_)

    def run(warp, lanes):
        lane = first_lane(lanes)
        leader(warp, lanes, np.full(WARP_SIZE, lane, np.uint32))
        elected(warp, lanes, int_to_lanes(1 << lane))

    return _sync_step(Members(ins, 1), run)


@instruction("bar.warp.sync", section="9.7.13.2")
def build_warp_barrier(ins: Decoded) -> Step:
    """bar.warp.sync membermask."""
    ins.finish_modifiers()
    ins.expect_operands(1)
    return _sync_step(Members(ins, 0), _meet)


def _meet(warp, lanes) -> None:
    warp.launch.events.converged(warp, lanes)
