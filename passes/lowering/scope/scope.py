"""The context of the patterns of `select-instructions`, and the values of lowered ops.

What threads know of themselves is in the IR: `Team.of` an op, and `Scope.place`, find the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....dialects import sm
from ....dialects.integers import Integer
from ....dialects.mlir import ir
from ....dialects.sm.memory import ColumnsOp
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ....dialects.tile_types import DYNAMIC, AccumulatorType
from ... import build
from ...base import defining_op, refused
from ...clone import constant_of
from ...cluster import Cluster
from ...dynamic_rows import DEPTH, MATRICES, ROWS, ROWS_MOST, row_bounds
from .cta_place import CtaPlace

CAST = "builtin.unrealized_conversion_cast"


class Scope(NamedTuple):
    """The kernel's facts. Values that its threads have are in the IR: `sm.team`, `sm.cta_place`.

    A launch says the `sizes`, its last parameters. `shared` is what ops of the block that is being
    converted have computed for those behind them.
    """

    kernel: KernelOp
    target: Target
    cluster: Cluster
    sizes: tuple[str, ...]
    shared: dict[Any, Any]

    def in_block(self) -> Scope:
        """That of a block whose conversion begins."""
        return self._replace(shared={})

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Values that several ops of a block need, computed in front of the first of them."""
        if key not in self.shared:
            self.shared[key] = compute()
        return self.shared[key]

    @property
    def place(self) -> CtaPlace:
        """The place of this CTA in its cluster, after the prologue."""
        return CtaPlace.of(self.kernel, self.cluster)

    def extent(self, known: int) -> int | ir.Value:
        """An extent of a view, as `extent_of` gives it: its number or what a launch says."""
        if known != DYNAMIC:
            return known
        # check_views lets rows alone be dynamic, or matrices, with c's, or both operands' K
        size = next(each for each in (ROWS, MATRICES, DEPTH) if each in self.sizes)
        least, most = row_bounds(self.kernel) if size == ROWS else (1, ROWS_MOST)
        return least if least == most else self._said(size)

    @property
    def matrices(self) -> ir.Value:
        """How many matrices a launch says."""
        return self._said(MATRICES)

    def _said(self, size: str) -> ir.Value:
        arguments = list(self.kernel.body.blocks[0].arguments)
        return Integer(arguments[self.sizes.index(size) - len(self.sizes)])

    @property
    def cta_group(self) -> int:
        """What every tcgen05 instruction of the kernel must say."""
        return 2 if self.cluster.pair else 1

    def warpgroups(self, sums: AccumulatorType) -> int:
        """Warpgroups that hold an accumulator together."""
        count = self.target.mma_warpgroups(*sums.shape)
        assert count is not None  # check_operands lets no other tile through
        return count

    def mma_rows(self, tile_m: int) -> int:
        """M of the MMAs that cover a tile of `tile_m` rows."""
        rows = self.target.mma_rows(tile_m)
        assert rows is not None  # check_operands lets no other tile through
        return rows

    def atom_columns(self, atom_m: int, n: int) -> int:
        """Tensor-memory columns of one MMA's accumulator in this CTA.

        With 64 rows a CTA, a pair keeps the second half of N in the upper lanes (PTX ISA, data path
        layout B).
        """
        return n // 2 if self.cluster.pair and atom_m == 64 else n


def lowered_as(values: ir.Value | Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """A value of a type that no instruction takes, which stands for values that some do.

    Who reads it asks `lowered` for them. It is gone when all of the kernel is converted.
    """
    parts = [values] if isinstance(values, ir.Value) else list(values)
    return ir.Operation.create(CAST, results=[type_], operands=parts).result


def sums_at(sums: ir.Value[AccumulatorType]) -> tuple[ir.Value, ir.Value | int]:
    """(address of the allocation, first column in it) of an accumulator in tensor memory."""
    op = defining_op(sums)
    if isinstance(op, ColumnsOp):
        return lowered(op.memory), op.first.value
    base, column = lowered_parts(sums)
    return base, known(column)


def lowered(value: ir.Value) -> ir.Value:
    """The one value that `lowered_as` has put in the place of another."""
    (part,) = lowered_parts(value)
    return part


def lowered_parts(value: ir.Value) -> list[ir.Value]:
    """The values that it has put there."""
    return list(ir.OpResult(value).owner.operands)


def taken(value: ir.Value) -> ir.Value:
    """What instructions take of a value: what stands for it, if they do not take its type."""
    owner = ir.OpResult(value).owner
    return owner.operands[0] if owner.name == CAST else value


def place_of(tile: ir.Value) -> ir.Value:
    """The byte of dynamic shared memory where a tile begins."""
    op = ir.OpResult(tile).owner.opview
    return build.constant(op.offset.value) if isinstance(op, sm.TileMemoryOp) else lowered(tile)


def known(value: ir.Value) -> ir.Value | int:
    """A value, the number where it is known: the index in a ring of one slot, a first column."""
    number = constant_of(value)
    return value if number is None else number


def slot_of(op: Any) -> tuple[Any, ir.Value | int]:
    """(the op that made its ring, its index) of the slot that an op is on."""
    slot = defining_op(op.slot)
    if not isinstance(slot, sm.SlotOp):
        rule = "slots: must be of a slot that sm.slot gives"
        raise refused(op, f"{rule}, got that of {slot.operation.name}; take a slot of a ring")
    return defining_op(slot.ring), known(slot.index)


def element_pointer(view: ir.Value[ir.MemRefType], offset: ir.Value) -> ir.Value:
    """Pointer to an element of a tensor that the kernel takes by its address."""
    return build.element_pointer(lowered_parts(view)[0], view.type.element_type, offset)
