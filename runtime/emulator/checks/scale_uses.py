"""Which bytes of scale factors in tensor memory products use: one for all, and the others never?

A word holds the factors of four blocks along K, and the scale factor id says which of them a
product takes; kinds that take whole words name other columns instead. A kernel that does not
advance the id, or the column, contradicts nothing in the ISA: each step along K is scaled, by
factors of another step. It shows where bytes that a tcgen05.cp brought are replaced or given up:
some have scaled several parts of an operand, others none.
Factors that hold for more elements than the instruction's block are used so on purpose. Then all
of them are used, except behind the end of K, where a column of bytes that are all alike is padding.
Factors of a multiple of 128 rows that begin within a copy end in another one, as with a column that
is one off.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..interface import Cta, Launch
from ..machine.events import Listener
from ..tensor.block_scale import factor_columns
from ..tensor.spans import Claim, Span
from ..tensor.tensor_engine import tensor_engine
from ..tensor.tensor_memory import LANES, QUARTER, by_row

_BYTES = range(4)
_ATOM = 4
"""Columns that `tcgen05.cp.32x128b` fills."""


class _Uses:
    """The scales in the tensor memory of one CTA: the copies that are there, and what each byte
    scaled.

    of: by (column, byte), the parts of operands; rows: by column, lanes of a quarter that count.
    """

    def __init__(self) -> None:
        self.copies: list[range] = []
        self.of: dict[tuple[int, int], set[Any]] = defaultdict(set)
        self.rows: dict[int, int] = {}

    def note(self, columns: range, rows: int, used: range, part: Any) -> None:
        """A product has scaled a part of an operand by these bytes of these columns."""
        for at, column in enumerate(columns):
            self.rows[column] = min(rows - at * QUARTER, QUARTER)
            for byte in used:
                self.of[column, byte].add(part)

    def shared(self) -> list[tuple[int, int]]:
        """(column, byte) of what has scaled several parts."""
        return [place for place, parts in self.of.items() if len(parts) > 1]

    def idle(self, copy: range) -> list[tuple[int, int]]:
        """(column, byte) of a copy that have scaled nothing, in the columns that are used if some
        are: a tile of B may take a part of the columns of an atom."""
        used = [column for column in copy if column in self.rows] or copy
        places = ((column, byte) for column in used for byte in _BYTES)
        return [place for place in places if place not in self.of]

    def forget(self, columns: range) -> None:
        """Other bytes come to these columns."""
        self.copies = [copy for copy in self.copies if not _meet(copy, columns)]
        if not self.of and not self.rows:
            return
        for column in columns:
            self.rows.pop(column, None)
            for byte in _BYTES:
                self.of.pop((column, byte), None)


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


class ScaleUses(Listener):
    """Warns of scale factors that are used for several parts of K beside others never used."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._of: dict[Cta, _Uses] = defaultdict(_Uses)

    def product_scaled(self, product: Any, b: list[Any]) -> None:
        scaling, descriptor = product.scaling, product.descriptor
        operands = (
            (product.a_factors, scaling.a_id, descriptor.m // len(product.ctas), product.a),
            (product.b_factors, scaling.b_id, descriptor.n // product.column_groups, product.b),
        )
        for cta in product.ctas:
            for first, byte, rows, part in operands:
                columns = range(first, first + factor_columns(rows))
                self._check_start(cta, columns)
                self._of[cta].note(columns, rows, range(byte, byte + scaling.blocks), part)

    def _check_start(self, cta: Cta, columns: range) -> None:
        """Warn of factors of whole atoms, 128 rows in four columns, that begin inside of one."""
        if len(columns) % _ATOM:
            return
        for copy in self._of[cta].copies:
            if copy.start < columns.start < copy.stop:
                self._launch.warn(
                    "scale-columns",
                    f"scale factors of {QUARTER * len(columns)} rows begin in column"
                    f" {columns.start}, inside of what tcgen05.cp brought to columns"
                    f" {copy.start}..{copy.stop - 1}; name the first of these",
                )

    def columns_copied(self, cta: Cta, columns: range) -> None:
        self._judge(cta, columns)
        self._of[cta].copies.append(columns)

    def columns_claimed(self, cta: Cta, claim: Claim) -> None:
        if claim.what == "tcgen05.st":
            self._judge(cta, range(claim.span.column, claim.span.column_end))

    def columns_freed(self, cta: Cta, span: Span) -> None:
        self._judge(cta, range(span.column, span.column_end))

    def _judge(self, cta: Cta, columns: range) -> None:
        uses = self._of[cta]
        copies = [copy for copy in uses.copies if _meet(copy, columns)]
        shared = uses.shared() if copies else []
        for copy in copies if shared else ():
            idle = [place for place in uses.idle(copy) if self._varies(cta, uses, *place)]
            if idle:
                self._warn(uses, copy, shared, idle)
        uses.forget(columns)

    def _varies(self, cta: Cta, uses: _Uses, column: int, byte: int) -> bool:
        """Whether the rows have different factors there: padding has one."""
        words = tensor_engine(cta).memory.part(slice(0, LANES), slice(column, column + 1))
        found = by_row(words, uses.rows.get(column, QUARTER))[0, :, byte]
        return bool((found != found[0]).any())

    def _warn(self, uses: _Uses, copy: range, shared: list, idle: list) -> None:
        near = [place for place in shared if place[0] in copy] or shared
        (column, byte), (idle_column, idle_byte) = near[0], idle[0]
        self._launch.warn(
            "scale-id",
            f"byte {byte} of the scale factors in column {column} has scaled"
            f" {len(uses.of[column, byte])} parts of an operand, byte {idle_byte} of column"
            f" {idle_column}, which tcgen05.cp brought too, none; advance the scale factor id, or"
            " the column, with K",
        )
