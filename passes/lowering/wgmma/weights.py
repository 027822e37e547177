"""`tile.exchanged_weight_mma` as wgmma: a warpgroup converts its rows of weights in registers.

    llvm.load               a pair of weights for each register of A: two rows, 8 apart, two pairs
    sm.wgmma_of_registers   64 rows of sums for 16 of K; a group (commit) for 32 of K

While MMAs run, threads widen what the next ones take, and load what follows. Each 32 of K of a step
have registers of their own, which the next step writes again when the MMAs that read them are done:
`wgmma.wait_group` leaves the MMAs after those under way.

    no scales, or of all of K    MMAs add to the sums, which `scaled_rows` multiplies when they are
                                 read
    scales of groups             sums = fma(product of a group, scale of the row, sums), 64 rows
                                 after the other, when all MMAs of the group are done
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.dtypes import operand_dtype
from ....dialects.mlir import ir, vector
from ....dialects.sm.tensor_core import PENDING_MAX
from ....dialects.target import WARPGROUP_WARPS
from ....dialects.tile.weights import ExchangedWeightMmaOp
from ... import build
from ...places import ATOM_M, ROW_DISTANCE, behind, held_row
from ...team import Team
from ...weights import MMA_K, WIDENED_K, groups_of_mmas, part_of
from ..mma_sync.weights import HALF_K, Weights
from ..operands.fragment_loads import Operand
from ..operands.mma_operands import operand_descriptor
from ..registers.register_accumulator import joined_parts, parts, pinned, struct_of_type
from ..scales.block_factors import atom_slots, begins, follows
from ..scales.group_scales import GroupScales
from ..scope.scope import Scope, place_of

PAIRS_OF_A = tuple((half, k) for k in (0, HALF_K) for half in (0, 1))
"""Of a thread's registers of A which of its two rows, and K after its first (PTX ISA, wgmma)."""
WARP_ROWS = ATOM_M // WARPGROUP_WARPS


def lower_weight_wgmma(scope: Scope, op: ExchangedWeightMmaOp) -> None:
    """MMAs add to the sums."""
    scales = None if op.scales is None else GroupScales.of(scope, op)
    slots, struct = atom_slots(scope, op.acc), struct_of_type(op.acc.type)
    multiply = _Multiply.of(scope, op, [None if scales is None else scales.zeros(0)])
    sums: list[ir.Value] = [llvm.load(struct, slot) for slot in slots]
    under_way = min(PENDING_MAX, groups_of_mmas(scope.kernel) - 1)
    atoms = tuple(range(len(slots)))
    slices = [_Slice(atoms, each, 0) for each in _cut(range(0, op.depth, MMA_K))]
    raw = multiply.load(slices[0])
    for slice_, following in pairwise([*slices, None]):
        assert slice_ is not None
        sm.WgmmaWaitOp.of(pending=under_way)
        words = multiply.widened(slice_, raw)
        raw = [] if following is None else multiply.load(following)
        sums = multiply.start(slice_, words, sums, None if slice_.ks[0] else op.accumulate)
    for registers, slot in zip(sums, slots, strict=True):
        llvm.store(registers, slot)


def lower_grouped_weight_wgmma(scope: Scope, op: ExchangedWeightMmaOp) -> None:
    """The products of each group by themselves, then their sums with what was there."""
    scales = GroupScales.of(scope, op)
    slots, struct = atom_slots(scope, op.acc), struct_of_type(op.acc.type)
    _clear(op, slots, struct)
    part = part_of(scope.kernel, op)
    groups = range(op.depth // part)
    multiply = _Multiply.of(scope, op, [scales.zeros(group) for group in groups])
    factors = [scales.factors(group) for group in groups]
    slices = [
        _Slice((atom,), each, group)
        for group in groups
        for atom in range(len(slots))
        for each in _cut(range(group * part, (group + 1) * part, MMA_K))
    ]
    product: list[ir.Value] = [llvm.undef(struct)]
    words, raw = multiply.widened(slices[0], multiply.load(slices[0])), []
    for slice_, following in pairwise([*slices, None]):
        assert slice_ is not None
        if following is not None:
            raw = multiply.load(following)
        begins_anew = build.constant(0, build.i1()) if slice_.ks[0] % part == 0 else None
        product = multiply.start(slice_, words, product, begins_anew)
        if following is not None:
            words = multiply.widened(following, raw)
        if following is None or following.ks[0] % part == 0:
            sm.WgmmaWaitOp.of(pending=0)
            (atom,) = slice_.atoms
            rows = factors[slice_.group][2 * atom : 2 * atom + 2]
            _add(pinned(product[0]), rows, slots[atom], struct)


class _Slice(NamedTuple):
    """What MMAs of some 64 rows multiply together, each of 16 of K from one of `ks` on, in a group
    of a step."""

    atoms: tuple[int, ...]
    ks: range
    group: int

    @property
    def mmas(self) -> list[tuple[int, int]]:
        """(64 rows, K) of each."""
        return [(atom, k) for k in self.ks for atom in self.atoms]


def _cut(ks: range) -> list[range]:
    """The ranges of MMAs whose weights are widened together."""
    together = WIDENED_K // MMA_K
    return [ks[first : first + together] for first in range(0, len(ks), together)]


class _Multiply(NamedTuple):
    """The MMAs of a step: weights that threads widen, the other tile's descriptor, and by group
    what is subtracted from each line of weights."""

    op: ExchangedWeightMmaOp
    weights: Weights
    b: ir.Value
    zeros: list[list[ir.Value] | None]

    @staticmethod
    def of(scope: Scope, op: ExchangedWeightMmaOp, zeros: list[list[ir.Value] | None]) -> _Multiply:
        return _Multiply(op, _weights_of(scope, op), operand_descriptor(scope, op, op.b), zeros)

    def load(self, slice_: _Slice) -> list[ir.Value]:
        """The pairs of a slice as they lie."""
        return [
            self.weights.pair(atom * ATOM_M + half * ROW_DISTANCE, k + behind_k)
            for atom, k in slice_.mmas
            for half, behind_k in PAIRS_OF_A
        ]

    def widened(self, slice_: _Slice, raw: list[ir.Value]) -> list[ir.Value]:
        """A's registers of each MMA of a slice."""
        zeros, count = self.zeros[slice_.group], len(PAIRS_OF_A)
        lines = [2 * atom + half for atom, _ in slice_.mmas for half, _ in PAIRS_OF_A]
        words = [
            self.weights.widened(each, None if zeros is None else zeros[line])
            for each, line in zip(raw, lines, strict=True)
        ]
        type_, starts = ir.VectorType.get([count], build.i32()), range(0, len(words), count)
        return [
            vector.FromElementsOp(type_, words[start : start + count]).result for start in starts
        ]

    def start(
        self,
        slice_: _Slice,
        words: list[ir.Value],
        sums: list[ir.Value],
        accumulate: ir.Value | None,
    ) -> list[ir.Value]:
        """A group of MMAs; the first ones add to the sums where `accumulate` does not say
        otherwise."""
        layout, (_, n) = self.op.b.type.layout, self.op.acc.type.shape
        fields: dict[str, Any] = {"m": ATOM_M, "n": n, "k": MMA_K, "d_type": "f32"}
        fields |= {"a_type": self.weights.wide, "b_type": self.weights.wide}
        fields |= {"b_major": layout.major}
        made = list(sums)
        sm.WgmmaFenceOp.of()
        for (atom, k), a in zip(slice_.mmas, words, strict=True):
            adds = build.true() if accumulate is None or k != slice_.ks[0] else accumulate
            at, offset = slice_.atoms.index(atom), {"b_offset": layout.offset(0, k)}
            operands, type_ = (made[at], a, self.b, adds), made[at].type
            made[at] = sm.WgmmaOfRegistersOp.of(*operands, **fields, **offset, sum=type_).sum
        sm.WgmmaCommitOp.of()
        return made


def _weights_of(scope: Scope, op: ExchangedWeightMmaOp) -> Weights:
    """The weights of this thread's warp: 16 of each 64 rows of its warpgroup."""
    m, thread = op.a.type.layout.mn, Team.of(op).thread
    warpgroups = scope.warpgroups(op.acc.type)
    rows = m // warpgroups
    firsts = tuple(
        rows * warpgroup + WARP_ROWS * warp
        for warpgroup in range(warpgroups)
        for warp in range(WARPGROUP_WARPS)
    )
    tile = Operand(
        op.a.type.layout, place_of(op.a), held_row(thread, m, rows), firsts, rows // ATOM_M, "a"
    )
    wide = operand_dtype(str(op.b.type.element))
    assert wide is not None  # check_weights has asked
    return Weights(tile, op.b_type.value, wide.name)


def _clear(op: ExchangedWeightMmaOp, slots: list[ir.Value], struct: ir.Type) -> None:
    """Zeros where sums may have to begin anew."""
    if follows(op):
        return
    with build.when(begins(op)):
        for slot in slots:
            llvm.store(llvm.zero(struct), slot)


def _add(product: ir.Value, rows: list[ir.Value], slot: ir.Value, struct: ir.Type) -> None:
    """`sums += product * scale of the row`, of 64 rows."""
    pairs = zip(parts(product), parts(llvm.load(struct, slot)), strict=True)
    made: list[ir.Value] = [
        llvm.fma(value, rows[behind(number)[0] // ROW_DISTANCE], before)
        for number, (value, before) in enumerate(pairs)
    ]
    llvm.store(joined_parts(struct, made), slot)
