"""shfl, vote, match, activemask, redux, elect and bar.warp (PTX ISA §9.7.9.6, §9.7.13)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lanes import FULL, WARP_SIZE, first_lane, int_to_lanes, lanes_to_int
from ...ptx.registry import Step, instruction
from ...ptx.shuffles import shuffle_source
from ...ptx.values import Type
from .warp_exchange import Exchange, nothing

# -- shfl --------------------------------------------------------------------------------------


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

    def receive(warp, lanes, values, members):
        source, inside = shuffle_source(mode, b(warp).astype(np.int64), c(warp).astype(np.int64))
        _check_sources(warp, source[lanes], members)
        write(warp, lanes, values[source])
        flag(warp, lanes, inside)

    return Exchange(ins, 4, a, receive).step()


def _check_sources(warp, sources: np.ndarray, members: np.ndarray) -> None:
    if members is FULL:
        return
    bad = sources[~members[sources]]
    if len(bad):
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

    def receive(warp, lanes, votes, members):
        if mode == "ballot":
            answer = np.full(WARP_SIZE, lanes_to_int(votes & members), np.uint32)
        else:
            answer = np.full(WARP_SIZE, functions[mode](votes[members]), np.bool_)
        write(warp, lanes, answer)

    return Exchange(ins, 2, read, receive).step()


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

    def receive(warp, lanes, values, members):
        equal = values[:, None] == values[None, :]
        equal &= members[None, :]
        answer = np.array([lanes_to_int(row) for row in equal], np.uint32)
        same = answer == lanes_to_int(members)
        write(warp, lanes, np.where(same, answer, np.uint32(0)) if every else answer)
        flag(warp, lanes, same)

    return Exchange(ins, 2, read, receive).step()


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

    def receive(warp, lanes, values, members):
        write(warp, lanes, np.full(WARP_SIZE, reduce(values[members]), type_.dtype))

    return Exchange(ins, 2, read, receive).step()


@instruction("elect.sync", section="9.7.13.14")
def build_elect(ins: Decoded) -> Step:
    """elect.sync d|p, membermask: p is true in one lane (the lowest), d its number in all."""
    ins.finish_modifiers()
    ins.expect_operands(2)
    pair = ins.operand(0)
    if not isinstance(pair, syntax.Pair):
        ins.unmodelled("elect.sync without a destination d|p")
    leader, elected = ins.write(pair.first, np.uint32), ins.write(pair.second, np.bool_)

    def receive(warp, lanes, _, members):
        lane = first_lane(members)
        leader(warp, lanes, np.full(WARP_SIZE, lane, np.uint32))
        elected(warp, lanes, int_to_lanes(1 << lane))

    return Exchange(ins, 1, nothing, receive).step()


@instruction("bar.warp.sync", section="9.7.13.2")
def build_warp_barrier(ins: Decoded) -> Step:
    """bar.warp.sync membermask."""
    ins.finish_modifiers()
    ins.expect_operands(1)
    return Exchange(ins, 0, nothing, _converge).step()


def _converge(warp, lanes, _, members) -> None:
    """All who meet come together once: when the first of them is told."""
    if lanes[first_lane(members)]:
        warp.launch.events.converged(warp, members)
