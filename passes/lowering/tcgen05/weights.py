"""`tile.exchanged_weight_mma` as tcgen05.mma: threads convert weights into tensor memory.

    llvm.load                  up to 16 bytes of weights of this thread's row, as they lie
    sm.tmem_store              the same as words of two floats, in neighbouring columns of its lane
    sm.tmem_store_wait, meet   all of A is there
    sm.mma_of_tensor_memory    one lane: 16 of K each; commit

A has two places, of which threads write one while MMAs read the other. An MMA of 128 rows has a row
in each lane, and two warpgroups halve K between them; one of 64 has 16 in each quarter of the
lanes, and the halves of a warp do.

    no scales, or of all of K    MMAs add to one product, which `tile.finish_sums` reads;
                                 `scaled_rows` multiplies it
    scales of groups             as `added_tcgen05`: a product of its own for each group of a step,
                                 which threads add while the next one is made

A place is written again when the MMAs that read it are done: of groups, threads have added their
product by then.
"""

from __future__ import annotations

import math
from typing import Any

from ....dialects import llvm, sm
from ....dialects.dtypes import DTYPES, operand_dtype
from ....dialects.layout import UNIT_BYTES, TileLayout
from ....dialects.mlir import ir, vector
from ....dialects.mma_units import PRODUCT_SLOTS
from ....dialects.record import record
from ....dialects.sm.memory import WeightColumnsOp
from ....dialects.target import WARP_THREADS, WARPGROUP_THREADS, WARPGROUP_WARPS
from ....dialects.tile import AccumulatorOp
from ....dialects.tile.sums import FinishSumsOp
from ....dialects.tile.weights import ExchangedWeightMmaOp
from ... import build
from ...base import refused, walk
from ...mma_uses import is_synchronous
from ...places import ROW_DISTANCE
from ...team import Team, team_op
from ...weights import MMA_K, part_of, product_slots
from ..operands.mma_operands import operand_descriptor
from ..operands.units import unit_offset
from ..registers.carried_products import is_carried, mma_of
from ..registers.register_accumulator import joined_parts, struct_of_type
from ..registers.tensor_memory import lanes_of
from ..registers.widened_words import widened_word
from ..scales.block_factors import begins, follows
from ..scales.group_scales import GroupScales, hold_scales, row_of_lane
from ..scope.scope import Scope, lowered, lowered_as, lowered_parts, place_of
from .added import (
    Held,
    add_product,
    await_product,
    begin_product,
    finish_added,
    hold_separate_sums,
    products_of,
    read_product,
)

WORD_BYTES, HALVES = 4, 2
ROWS = 2  # of the sums of a thread


def hold_widened_sums(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """As other sums whose products are in tensor memory; then scales of the last product, and
    after all those that were asked for."""
    slots = lowered_parts(hold_separate_sums(scope, op))
    with ir.InsertionPoint.after(team_op(scope.kernel)):
        one, f32 = build.constant(1), ir.F32Type.get()
        slots += [llvm.alloca(build.pointer(), one, f32) for _ in range(ROWS)]
        slots += hold_scales(scope, op)
    return lowered_as(slots, op.acc.type)


def lower_weight_tcgen05(scope: Scope, op: ExchangedWeightMmaOp) -> None:
    """MMAs add to the sums in tensor memory, which `tile.finish_sums` reads."""
    if not any(isinstance(use.owner.opview, FinishSumsOp) for use in op.acc.uses):
        rule = "finish: sums in tensor memory must end with tile.finish_sums"
        raise refused(op, f"{rule}, got none; run expand-loops")
    held = Held.of(op.acc)
    scales = None if op.scales is None else GroupScales.of(scope, op)
    number: ir.Value = llvm.load(build.i32(), held.begun)
    await_product(scope, number + (-PRODUCT_SLOTS))
    zeros = None if scales is None else scales.zeros(0)
    number = _begin(scope, op, held, range(op.depth), zeros, op.accumulate)
    if is_synchronous(op):
        await_product(scope, number)


def lower_grouped_weight_tcgen05(scope: Scope, op: ExchangedWeightMmaOp) -> None:
    """Begin the product of each group of this step, and add the one before."""
    held, at_once = Held.of(op.acc), not is_carried(op)
    scales, part = GroupScales.of(scope, op), part_of(scope.kernel, op)
    never = build.constant(0, build.i1())
    for group in range(op.depth // part):
        ks = range(group * part, (group + 1) * part)
        number = _begin(scope, op, held, ks, scales.zeros(group), never)
        if group == 0 and not follows(op):
            _begin_anew(op, held)
        if not at_once:
            _add_before(scope, op, number, group == 0)
        _keep(op, scales.factors(group))
        if at_once:
            _add(scope, op.acc, number)


def finish_widened(scope: Scope, op: FinishSumsOp) -> None:
    """The product of the last group, or that of all MMAs."""
    mma = mma_of(op.acc)
    if not isinstance(mma, ExchangedWeightMmaOp):
        finish_added(scope, op)
        return
    held = Held.of(op.acc)
    number: ir.Value = llvm.load(build.i32(), held.begun) + (-1)
    if product_slots(scope.kernel) > 1:
        if is_carried(mma):
            _add(scope, op.acc, number)
        return
    await_product(scope, number)
    values = [value for _, value in read_product(scope, op.acc, 0)]
    llvm.store(joined_parts(struct_of_type(op.acc.type), values), held.sums)


def _begin(
    scope: Scope,
    op: ExchangedWeightMmaOp,
    held: Held,
    ks: range,
    zeros: list[ir.Value] | None,
    adds: ir.Value,
) -> ir.Value:
    """Widen the weights of some of a step's K, and let one lane multiply them; its number."""
    place = llvm.load(build.i32(), held.begun) % PRODUCT_SLOTS
    rows, b = _Rows.of(scope, op, ks), operand_descriptor(scope, op, op.b)
    columns = _columns(scope)
    start = lowered(columns.memory) + columns.first.value
    rows.store(start + place * columns.each.value, zeros)
    sm.TmemStoreWaitOp.of()

    def issue(which: ir.Value) -> None:
        products = products_of(scope)
        slot = which if product_slots(scope.kernel) > 1 else 0
        d = lowered(products.memory) + products.first.value + slot * products.each.value
        a = start + which * columns.each.value
        fields = _fields(op)
        for k in range(0, len(ks), MMA_K):
            offset = op.b.type.layout.offset(0, ks.start + k)
            flag = adds if k == 0 else build.true()
            sm.MmaOfTensorMemoryOp.of(d, a + k // 2, b, flag, **fields, b_offset=offset)

    return begin_product(scope, op, held, issue)


def _fields(op: ExchangedWeightMmaOp) -> dict[str, Any]:
    m, n = op.acc.type.shape
    wide, major = _wide(op), op.b.type.layout.major
    types = {"a_type": wide, "b_type": wide, "d_type": "f32"}
    return {"m": m, "n": n, "k": MMA_K, "b_major": major, **types}


@record
class _Rows:
    """What a thread widens of `count` elements of K of a tile, from `first` on: one of two halves
    of its row."""

    op: ExchangedWeightMmaOp
    row: ir.Value
    half: ir.Value
    warp: ir.Value
    first: int
    count: int

    @staticmethod
    def of(scope: Scope, op: ExchangedWeightMmaOp, ks: range) -> _Rows:
        team, m = Team.of(op), op.acc.type.shape[0]
        warp = team.thread // WARP_THREADS % WARPGROUP_WARPS
        whole = scope.warpgroups(op.acc.type) == HALVES
        half = team.thread // WARPGROUP_THREADS if whole else team.lane // (WARP_THREADS // HALVES)
        return _Rows(op, row_of_lane(team, m), half, warp, ks.start, len(ks))

    def store(self, start: ir.Value, zeros: list[ir.Value] | None) -> None:
        """Widen them into the columns from `start` on."""
        columns = self.count // HALVES // 2
        start = start + lanes_of(self.warp)
        whole = self.op.acc.type.shape[0] == WARPGROUP_THREADS
        fields: dict[str, Any] = {"shape": "32x32b", "offset": 0}
        if whole:
            start = start + self.half * columns
        else:
            fields = {"shape": "16x32bx2", "offset": columns}
        at = 0
        for raw in self._load():
            words = self._widened(raw, None if zeros is None else zeros[0])
            sm.TmemStoreOp.of(start + at, words, **fields)
            at += ir.VectorType(words.type).shape[0]

    def _load(self) -> list[list[ir.Value]]:
        """The words of the thread's half as they lie, as many together as one load brings."""
        bits = DTYPES[self.op.b_type.value].bits
        size, first = self.count * bits // 8 // HALVES, self.first * bits // 8
        width = math.gcd(UNIT_BYTES, size)
        return [self._words(first, size, at, width) for at in range(0, size, width)]

    def _words(self, first: int, size: int, at: int, width: int) -> list[ir.Value]:
        """The words of `width` bytes, `at` bytes after the start of the half, which has `size`."""
        layout: TileLayout = self.op.a.type.layout
        byte = self.half * size + (first + at)
        within: ir.Value | int = 0
        if size % UNIT_BYTES or (first + at) % UNIT_BYTES:
            within = byte % UNIT_BYTES
        place = place_of(self.op.a) + unit_offset(layout, self.row, byte // UNIT_BYTES) + within
        count = width // WORD_BYTES
        type_ = build.i32() if count == 1 else ir.VectorType.get([count], build.i32())
        value = llvm.load(type_, build.shared_at(place), alignment=width)
        if count == 1:
            return [value]
        return [vector.ExtractOp(value, [], [index]).result for index in range(count)]

    def _widened(self, raw: list[ir.Value], zeros: ir.Value | None) -> ir.Value:
        dtype, wide = self.op.b_type.value, _wide(self.op)
        words = [each for word in raw for each in widened_word(word, dtype, wide, zeros)]
        type_ = ir.VectorType.get([len(words)], build.i32())
        return vector.FromElementsOp(type_, words).result


def _wide(op: ExchangedWeightMmaOp) -> str:
    """The type that weights are widened to."""
    wide = operand_dtype(str(op.b.type.element))
    assert wide is not None  # check_weights has asked
    return wide.name


def _columns(scope: Scope) -> WeightColumnsOp:
    (columns,) = walk(scope.kernel, WeightColumnsOp)
    return columns


def _begin_anew(op: ExchangedWeightMmaOp, held: Held) -> None:
    with build.when(begins(op)):
        llvm.store(llvm.zero(struct_of_type(op.acc.type)), held.sums)


def _add_before(scope: Scope, op: ExchangedWeightMmaOp, number: ir.Value, first: bool) -> None:
    """The product before, which the first group of a step has where sums do not begin."""
    if first and not follows(op):
        with build.when(op.accumulate):
            _add(scope, op.acc, number + (-1))
        return
    _add(scope, op.acc, number + (-1))


def _add(scope: Scope, acc: ir.Value, number: ir.Value) -> None:
    """The product of that number, times the scales that are kept."""
    await_product(scope, number)
    rows = [llvm.load(ir.F32Type.get(), slot) for slot in _kept(acc)]

    def factor(row: int, _: int) -> ir.Value:
        return rows[row // ROW_DISTANCE]

    add_product(scope, acc, number % PRODUCT_SLOTS, factor)


def _kept(acc: ir.Value) -> list[ir.Value]:
    return Held.of(acc).scales[:ROWS]


def _keep(op: ExchangedWeightMmaOp, factors: list[ir.Value]) -> None:
    for slot, value in zip(_kept(op.acc), factors, strict=True):
        llvm.store(value, slot)
