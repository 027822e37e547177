"""Checks of the protocol of pipes on a whole program: who fills and empties each ring.

    pairing    an agent commits each slot that it acquires before it acquires the next, and releases
               the slots that it waits for in that order; at the end, none is left open
    iteration  an iteration leaves as many slots of a ring open as it found; loops that move slots
               have constant bounds
    holding    a tile of a slot is written between acquire and commit, read between wait and release
    filling    between acquire and commit one copy fills every operand tile, or an MMA the sums
    finishing  where agents wait for their MMAs, those that read a slot are done at its release
    room       an agent holds no more slots than the ring has; a program without roles acquires no
               slot that is still full and waits for none that is still empty
    one way    a ring leads from one role to others, and every ring that is filled is emptied
    balance    over a tile, the one side takes out as many slots as the other puts in
    claims     one role asks for claims and every other one reads each answer
    turns      two agents that share a ring by `pipe.skip` read it in turns, each its own tiles

No single op can know these rules, so they are no op's verifier: the pass manager runs them on what
comes in and on what each pass leaves. The message that refuses a program names the rule.
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.pipe import ClaimOp, ClaimType, CreateOp, ForEachClaimOp, ForEachTurnOp, RoleOp
from ....dialects.sm.ring_memory import CopyRingOp, RingOp, TurnsOp
from ....dialects.sm.threads import WarpsOp
from ....dialects.tile import KernelOp
from ...base import attributes_of, refused, target_of
from ...thread_rules import members
from .pipe_agents import Agent, End

SHARERS = 2  # agents that can share a ring
Ring = CreateOp | RingOp | TurnsOp | CopyRingOp
LOOP = ("tiles", "order", "group")


def check_pipes(module: ir.Module) -> None:
    """Refuse, at the op, a kernel of the module that breaks a rule; one without pipes has none."""
    for kernel in module.body.operations:
        if not isinstance(kernel, KernelOp):
            continue
        ops = list(members(kernel.body.blocks[0]))
        rings = [op for op in ops if isinstance(op, Ring)]
        if rings:
            _check_kernel(kernel, ops, rings, target_of(module).awaits_mmas)


def _check_kernel(kernel: KernelOp, ops: list[Any], rings: list[Ring], awaits: bool) -> None:
    for create in rings:
        if not list(create.ring.uses):
            raise refused(create, "one way: a ring must be filled and emptied, got no use; drop it")
    roles = [op for op in ops if isinstance(op, RoleOp | WarpsOp)]
    if not roles:
        Agent(kernel, alone=True, awaits=awaits)
        return
    agents = [Agent(role, alone=False, awaits=awaits) for role in roles]
    for create in rings:
        if isinstance(create.ring.type.tiles[0], ClaimType):
            _check_claims(create, agents)
        else:
            _check_ring(create, agents)


def _check_claims(create: Ring, agents: list[Agent]) -> None:
    """One role asks, and every other reads the answers."""
    ring, asking, reading = create.ring, [], []
    for agent in agents:
        ops = list(members(agent.op.body.blocks[0]))
        asking += [agent for op in ops if isinstance(op, ClaimOp) and op.ring == ring]
        loop = agent.tile_loop
        reading += [agent] if isinstance(loop, ForEachClaimOp) and loop.ring == ring else []
    others = [agent for agent in agents if agent not in asking]
    if len(asking) != 1 or reading != others:
        names = [f"{agent.op.agent.value!r}" for agent in others if agent not in reading]
        raise refused(
            create,
            "claims: one role asks and every other reads the answers, got "
            f"{len(asking)} pipe.claim and {' and '.join(names) or 'no role'} without a "
            "pipe.for_each_claim; give each role but one the loop",
        )


def _check_ring(create: Ring, agents: list[Agent]) -> None:
    """Whether what the agents do at their ends of a ring fits together."""
    ring = create.ring
    ends = [(agent, agent.ends[ring]) for agent in agents if ring in agent.ends]
    fills = [each for each in ends if _moves(each[1], "commits")]
    empties = [each for each in ends if _moves(each[1], "waits") or _moves(each[1], "skips")]
    if not fills and not empties:
        return
    shared = len(empties) == SHARERS
    if len(fills) != 1 or not empties or len(empties) > SHARERS or fills[0] in empties:
        raise refused(
            create,
            "one way: one role must fill a ring and another empty it, or two in turns, got "
            f"{_names(fills)} to fill and {_names(empties)} to empty it; give each its own ring",
        )
    for reader in empties:
        _check_balance(fills[0], reader)
    if shared:
        _check_turns(create, empties)


def _moves(end: End, what: str) -> bool:
    return bool(getattr(end.counts, what) or getattr(end.each, what))


def _names(ends: list[tuple[Agent, End]]) -> str:
    return " and ".join(repr(agent.op.agent.value) for agent, _ in ends) or "none"


def _check_balance(writer: tuple[Agent, End], reader: tuple[Agent, End]) -> None:
    (source, full), (sink, empty) = writer, reader
    tiles = [_tiles_of(agent.tile_loop) for agent in (source, sink)]
    if tiles[0] != tiles[1]:
        raise refused(
            sink.op if sink.tile_loop is None else sink.tile_loop,
            f"balance: roles that share a ring must loop over the same tiles, got {tiles[1]} and "
            f"{tiles[0]} in {source.op.agent.value!r}; give both one loop",
        )
    if full.counts.commits != empty.counts.waits:
        raise _unbalanced(empty, source, full.counts.commits, f"{empty.counts.waits}", "")
    put, taken = full.each.commits, empty.each
    if not isinstance(sink.tile_loop, ForEachTurnOp):
        if put != taken.waits:
            raise _unbalanced(empty, source, put, f"{taken.waits}", " a tile")
        return
    turn, turns = sink.tile_loop.turn.value, sink.tile_loop.turns.value
    if isinstance(source.tile_loop, ForEachTurnOp):
        if source.tile_loop.turn.value >= turn:
            raise refused(
                full.first, "turns: the agent of the first turn must fill, got the other; swap them"
            )
        turn, turns = 0, 1
    if (taken.waits, taken.skips) != (put, (turns - 1) * put):
        got = f"{taken.waits} and {taken.skips} skipped of {turns} tiles"
        raise _unbalanced(empty, source, put, got, " a tile")
    if empty.lead != turn * put:
        raise refused(
            empty.first,
            f"turns: {turn * put} slots of tiles before must be skipped first, got {empty.lead}; "
            "skip them before the first pipe.wait and the rest after the last",
        )


def _unbalanced(empty: End, source: Agent, put: int, got: str, each: str) -> Exception:
    return refused(
        empty.first,
        f"balance: must take the {put} slots{each} that {source.op.agent.value!r} commits, got "
        f"{got}; let both count alike",
    )


def _tiles_of(loop: Any) -> str:
    """Over which tiles, in which order, a loop runs; turns share those of a loop over all."""
    if loop is None:
        return "no loop"
    kind = "claims" if isinstance(loop, ForEachClaimOp) else "tiles"
    attributes = attributes_of(loop)
    return f"{kind} {', '.join(f'{name} = {attributes[name]}' for name in LOOP)}"


def _check_turns(create: Ring, empties: list[tuple[Agent, End]]) -> None:
    turns = sorted(
        agent.tile_loop.turn.value if isinstance(agent.tile_loop, ForEachTurnOp) else -1
        for agent, _ in empties
    )
    if turns != list(range(SHARERS)):
        raise refused(
            create,
            f"turns: two roles that empty a ring take turns 0 and 1, got {turns}; let each run a "
            "pipe.for_each_turn",
        )
    for _, end in empties:
        if end.unguarded is not None:
            raise refused(
                end.unguarded,
                "turns: a slot of a shared ring is waited for with a slot of !pipe.turn at hand, "
                "got none; acquire or wait for a turn before it",
            )
