"""What a tile program means, computed in numpy: an interpreter of `tile` and `pipe` for tests.

It reads IR as the dialects' pages state it and knows no pass. Every CTA runs by itself, its roles
in turns; a ring is a queue of numbered slots. What the dialects leave undefined, as a tile that
nobody filled, is `Undefined`; a program whose roles wait for each other without end is, too.

Clusters are run CTA by CTA, which suits all but pairs; what the CTAs along z store is added up.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np

from tilewright.dialects.mlir import ir, scf
from tilewright.dialects.tile import KernelOp
from tilewright.dialects.tile_types import integers_of
from tilewright.passes.base import walk

COMPARES = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
LOOPS = ("scf.for", "tile.for_each_tile", "pipe.for_each_turn", "pipe.for_each_claim")
ROUNDS = 10_000


class Undefined(Exception):
    """The program has no meaning."""


def meaning(module, arrays):
    """C (float64, NaN where nothing is stored) of a module's kernel, its epilogue left out.

    `arrays` are a [M, K] and b [N, K], as float64.
    """
    (kernel,) = walk(module, KernelOp)
    c = np.full(tuple(list(kernel.body.blocks[0].arguments)[-1].type.shape), np.nan)
    along_m, along_n, parts = integers_of(kernel.grid)
    views = dict(zip("ab", arrays, strict=True))
    for place in itertools.product(range(along_m), range(along_n)):
        sums = [np.full_like(c, np.nan) for _ in range(parts)]
        for rank, part in enumerate(sums):
            Cta(kernel, (*place, rank), views, part).run()
        total = sum(sums)
        c = np.where(np.isnan(total), c, total)
    return c


class Cta:
    """One CTA: values of ops by agent, rings as lists of slots."""

    def __init__(self, kernel, place, arrays, c):
        self.kernel, self.place, self.c = kernel, place, c
        self.views = dict(zip(kernel.body.blocks[0].arguments, (*arrays.values(), c), strict=True))
        self.slots = defaultdict(dict)  # ring → number → tiles
        self.state = defaultdict(int)  # (ring, what) → how often
        self.values = {}

    def run(self):
        block = self.kernel.body.blocks[0]
        agents = [self.agent(block, self.values)]
        waiting = []
        for _ in range(ROUNDS):
            before, waiting = self.moves, []
            for agent in agents:
                new = self.step(agent)
                waiting += [agent] if new is None else new
            agents = waiting
            if not agents:
                return
            if before == self.moves:
                raise Undefined("all agents wait")
        raise Undefined("too long")

    moves = 0

    def step(self, agent):
        """Run an agent until it waits (None) or ends (the agents that it started)."""
        started = []
        for event in agent:
            if event == "wait":
                return None if not started else [agent, *started]
            self.moves += 1
            started.append(event)
        self.moves += 1
        return started

    def agent(self, block, values):
        return self.block(block, values)

    def block(self, block, values):
        for op in list(block.operations):
            name = op.operation.name
            if name == "pipe.role":
                yield self.block(op.body.blocks[0], dict(values))
                continue
            if name in LOOPS:
                yield from self.loop(op, values)
                continue
            rule = getattr(self, "op_" + name.replace(".", "_"), None)
            if rule is None:
                raise NotImplementedError(name)
            result = rule(op, values)
            if hasattr(result, "__next__"):
                yield from result

    def loop(self, op, values):
        if isinstance(op, scf.ForOp):
            low, high, step = (values[each] for each in (op.lowerBound, op.upperBound, op.step))
            if step < 1:
                raise Undefined("step")
            for number in range(low, high, step):
                values[op.induction_variable] = number
                yield from self.block(op.body, values)
            return
        body, tiles = op.body.blocks[0], integers_of(op.tiles)
        if op.operation.name == "pipe.for_each_claim":  # as if every cluster was launched
            values[body.arguments[0]], values[body.arguments[1]], _ = self.place
            yield from self.block(body, values)
            return
        (m, n, _), grid = integers_of(self.kernel.cluster), integers_of(self.kernel.grid)[0]
        clusters, along = grid // m, tiles[0] // m
        turn, turns = 0, 1
        if op.operation.name == "pipe.for_each_turn":
            turn, turns = op.turn.value, op.turns.value
        first, last = self.place[0] // m + turn * clusters, along * (tiles[1] // n)
        for number in range(first, last, turns * clusters):
            places = number % along * m + self.place[0] % m, number // along * n + self.place[1]
            values[body.arguments[0]], values[body.arguments[1]] = places
            yield from self.block(body, values)

    def op_scf_yield(self, op, values):
        pass

    def op_arith_constant(self, op, values):
        value = ir.IntegerAttr(op.operation.attributes["value"])
        is_flag = value.type == ir.IntegerType.get_signless(1)
        values[op.result] = value.value & 1 if is_flag else value.value

    def op_arith_addi(self, op, values):
        values[op.result] = values[op.operands[0]] + values[op.operands[1]]

    def op_arith_subi(self, op, values):
        values[op.result] = values[op.operands[0]] - values[op.operands[1]]

    def op_arith_muli(self, op, values):
        values[op.result] = values[op.operands[0]] * values[op.operands[1]]

    def op_arith_cmpi(self, op, values):
        predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
        sides = [values[each] for each in op.operands]
        if predicate > 5:
            predicate, sides = predicate - 4, [side % 2**64 for side in sides]
        values[op.result] = int(COMPARES[predicate](*sides))

    def op_tile_cta_tile(self, op, values):
        values[op.i], values[op.j], _ = self.place

    def op_tile_accumulator(self, op, values):
        values[op.acc] = [np.full(op.acc.type.shape, np.nan)]

    def op_tile_tensor_map(self, op, values):
        values[op.map] = self.views[op.view]

    def op_pipe_create(self, op, values):
        values[op.ring] = op.ring

    def op_tile_await_mma(self, op, values):
        pass

    op_pipe_set_registers = op_pipe_claim = op_tile_await_mma

    def tile_of(self, view, op, values):
        """Rows i*R.. and columns j*K.. of a view, zero outside."""
        layout = op.tile.type.layout
        rows = values[op.i] * layout.mn + np.arange(layout.mn)
        columns = values[op.j] * layout.k + np.arange(layout.k)
        inside = ((rows >= 0) & (rows < view.shape[0]))[:, None]
        inside = inside & ((columns >= 0) & (columns < view.shape[1]))
        at = np.clip(rows, 0, view.shape[0] - 1), np.clip(columns, 0, view.shape[1] - 1)
        return np.where(inside, view[np.ix_(*at)], 0.0)

    def op_tile_load(self, op, values):
        values[op.tile] = [self.tile_of(self.views[op.view], op, values)]

    def op_tile_copy(self, op, values):
        values[op.tile][0] = self.tile_of(self.views[op.view], op, values)

    def op_tile_tma_load(self, op, values):
        values[op.tile][0] = self.tile_of(values[op.map], op, values)

    op_tile_tma_multicast = op_tile_tma_load

    def op_tile_mma(self, op, values):
        acc, a, b = (values[each][0] for each in (op.acc, op.a, op.b))
        product = a @ b.T
        values[op.acc][0] = acc + product if values[op.accumulate] else product

    def op_tile_store(self, op, values):
        self.store(op, values, values[op.acc][0])

    op_tile_staged_store = op_tile_store

    def op_tile_reduced_store(self, op, values):
        self.store(op, values, values[op.acc][0])

    def op_tile_split_rank(self, op, values):
        values[op.rank] = self.place[2]

    def store(self, op, values, tile):
        (m, n), (height, width) = tile.shape, self.c.shape
        row, column = values[op.i] * m, values[op.j] * n
        if row < 0 or column < 0:
            raise Undefined("store")
        part = self.c[row : min(row + m, height), column : min(column + n, width)]
        part[...] = tile[: part.shape[0], : part.shape[1]]

    def op_pipe_acquire(self, op, values):
        ring = op.ring
        while self.state[ring, "commit"] - self.state[ring, "release"] >= ring.type.stages:
            yield "wait"
        number = self.state[ring, "commit"]
        self.slots[ring][number] = values[op.slot] = [
            [self.empty(tile)] for tile in ring.type.tiles
        ]
        self.moves += 1

    def empty(self, tile):
        if hasattr(tile, "layout"):
            return np.full((tile.layout.mn, tile.layout.k), np.nan)
        return np.full(tile.shape, np.nan) if hasattr(tile, "shape") else None

    def op_pipe_commit(self, op, values):
        self.state[op.ring, "commit"] += 1
        self.moves += 1

    def op_pipe_wait(self, op, values):
        ring, agent = op.ring, id(values)
        skipped = self.state[ring, "skip", agent]
        while self.state[ring, "commit"] <= self.state[ring, "wait", agent] + skipped:
            yield "wait"
        number = self.state[ring, "wait", agent] + skipped
        values[op.slot] = [[tile[0]] for tile in self.slots[ring][number]]
        self.state[ring, "wait", agent] += 1
        self.moves += 1

    def op_pipe_release(self, op, values):
        self.state[op.ring, "release"] += 1
        self.moves += 1

    def op_pipe_skip(self, op, values):
        self.state[op.ring, "skip", id(values)] += op.slots.value

    def op_pipe_tile(self, op, values):
        values[op.tile] = values[op.slot][op.index.value]
