"""Products that one thread issues in a row, performed as one operation.

Nothing happens between them, and each is executed behind the one before it. So they may as well
come together at the moment when the first of them comes: their operands are read as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.engine import EngineOp, Moves
from ...machine.shared_access import count_event
from ...tensor.shared_operands import (
    Operand,
    announce,
    gather_words,
    join_operands,
    may_join,
    read_joined,
)
from ...tensor.spans import Access
from ...tensor.tensor_engine import tensor_engine
from .collector import collect
from .product import Multiply


class Series:
    """parts: products of one form on one accumulator, in their order; op: which performs them."""

    def __init__(self, first: Multiply):
        self.parts = [first]
        self.op: EngineOp | None = None
        self._pcs: list[int] = []

    def describe(self) -> str:
        """For reports."""
        count, each = len(self.parts), self.parts[0].describe()
        return f"{count} times {each}" if count > 1 else each

    def moves(self) -> Moves:
        """For profiles."""
        return tuple(move for part in self.parts for move in part.moves())

    def take(self, warp: Warp, part: Multiply) -> bool:
        """Let a product join that follows the others at once; False if it is of another form."""
        if self.op is None or not _may_join(self.parts[0], part):
            return False
        self.parts.append(part)
        self._pcs.append(warp.split.pc)
        events, line = warp.launch.events, warp.program.source[warp.split.pc].line
        if events.hears("columns_issued"):
            span, shape = part.sums.span, part.sums.shape
            rank = warp.cta.rank
            where = line, warp.index, self.op, shape
            access = Access("tcgen05.mma", span, *where, rank=rank, adds=True)
            for cta in part.ctas:
                events.columns_issued(cta, access)
        part.announce(line)
        count_product(warp.cta, part)
        return True

    def run(self) -> None:
        """Perform them."""
        first = self.parts[0]
        collect(first)
        if len(self.parts) == 1:
            first.run()
            if first.shifts:
                first.shift_a()
            return
        a, b = _joined(self.parts)
        if first.ctas[0].launch.events.hears("operand_read"):
            self._announce()
        try:
            words_a, words_b = ([read_joined(cta, side) for cta in first.ctas] for side in (a, b))
        except Trap:
            self._read_one_by_one()
            raise
        first.join_products(words_a, words_b, len(self.parts))

    def _announce(self) -> None:
        """Say of each what it reads."""
        for part in self._each():
            for operand in (part.operand_a, part.operand_b):
                for cta in part.ctas:
                    announce(cta, operand)

    def _read_one_by_one(self) -> None:
        """Find the product that a verdict is about."""
        for part in self._each():
            gather_words(part.ctas, part.operand_a)
            gather_words(part.ctas, part.operand_b)

    def _each(self) -> Iterator[Multiply]:
        """The products, each while the operation stands for it alone."""
        assert self.op is not None  # it runs
        place = self.op.place
        yield self.parts[0]
        for part, pc in zip(self.parts[1:], self._pcs, strict=True):
            self.op.stand_at(pc)
            yield part
        self.op.stand_at(place)


def count_product(cta: Cta, product: Multiply) -> None:
    """Count it for the report."""
    descriptor = product.descriptor
    count_event(cta, "mma count")
    count_event(cta, "mma flops", 2 * descriptor.m * descriptor.n * descriptor.k)


def follow(warp: Warp, product: Multiply) -> bool:
    """Let a product join the one that its thread has issued just before."""
    series = tensor_engine(product.ctas[0]).series
    return series is not None and series.take(warp, product)


def _joined(parts: list[Multiply]) -> tuple[Operand, Operand]:
    """Both operands of all of them."""
    d = parts[0].descriptor
    a = join_operands(tuple([part.operand_a for part in parts]), d.a_transposed)
    return a, join_operands(tuple([part.operand_b for part in parts]), d.b_transposed)


def _may_join(first: Multiply, part: Multiply) -> bool:
    if not (first.is_plain and part.is_plain and part.add):
        return False
    same = part.descriptor is first.descriptor and part.d == first.d and part.ctas == first.ctas
    alike = may_join(first.operand_a, part.operand_a)
    return same and alike and may_join(first.operand_b, part.operand_b)
