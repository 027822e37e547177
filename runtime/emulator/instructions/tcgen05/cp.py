"""tcgen05.cp: shared memory to tensor memory, elements of 4 and 6 bits expanded to bytes too.

Source: PTX ISA, "tcgen05.cp". One thread issues; a later mma of the CTA runs behind the copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.engine import EngineOp, Move, Moves
from ...machine.shared_access import WORD, count_event, read_partly_written_words
from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...tensor.descriptor import SharedDescriptor, shared_operand
from ...tensor.element_formats import to_containers
from ...tensor.shared_operands import read_padded_words
from ...tensor.spans import Access, Claim, Span
from ...tensor.tensor_core import gather_plan, operand_layout
from ...tensor.tensor_engine import pair_of, tensor_engine, track
from ...tensor.tensor_memory import LANES, WRITTEN, split_address
from ..threads.convergence import one_lane
from .order import TENSOR_STREAM, take_group

_BEHIND_SHIFTS = 4
"""Rows of the shape that is executed behind an earlier tcgen05.shift (PTX ISA §9.7.16.6.2)."""
_SOURCE_BITS = {"b4x16_p64": 4, "b6x16_p32": 6}
"""Bits of an element in shared memory, where 16 of them take 16 bytes with the padding."""


@dataclass(frozen=True)
class Shape:
    """Rows and bytes of a copied matrix, and the lanes each row goes to."""

    rows: int
    row_bytes: int
    lanes: np.ndarray

    @property
    def columns(self) -> int:
        return self.row_bytes // 4


def _lanes(*starts: tuple[int, int]) -> np.ndarray:
    """``int64[copies, rows]``: each copy is a run of (first lane, rows)."""
    return np.array([[first + row for row in range(rows)] for first, rows in starts])


def _pairs_01_23() -> np.ndarray:
    row = np.arange(64)
    first = row % 32 + 64 * (row // 32)
    return np.stack([first, first + 32])


_SHAPES = {
    ("128x256b", None): Shape(128, 32, _lanes((0, 128))),
    ("128x128b", None): Shape(128, 16, _lanes((0, 128))),
    ("4x256b", None): Shape(4, 32, 32 * np.arange(4)[None, :]),
    ("64x128b", "warpx2::02_13"): Shape(64, 16, _lanes((0, 64), (64, 64))),
    ("64x128b", "warpx2::01_23"): Shape(64, 16, _pairs_01_23()),
    ("32x128b", "warpx4"): Shape(32, 16, _lanes((0, 32), (32, 32), (64, 32), (96, 32))),
}


@instruction("tcgen05.cp", section="9.7.16.9.2")
def build_cp(ins: Decoded) -> Step:
    group = take_group(ins)
    name = ins.required(tuple(dict.fromkeys(name for name, _ in _SHAPES)))
    spread = ins.choice(("warpx2::02_13", "warpx2::01_23", "warpx4"))
    if (name, spread) not in _SHAPES:
        ins.unmodelled(f"shape .{name} with multicast .{spread}" if spread else f"bare .{name}")
    to_bytes, source_format = ins.flag("b8x16"), ins.choice(tuple(_SOURCE_BITS))
    if to_bytes != (source_format is not None):
        ins.unmodelled("a source format without .b8x16, or .b8x16 alone")
    bits = _SOURCE_BITS[source_format] if source_format else 8
    ins.finish_modifiers()
    ins.expect_operands(2)
    address, source = ins.address(0), ins.read(1, np.uint64)
    shape = _SHAPES[name, spread]

    def step(warp: Warp, mask: np.ndarray) -> None:
        lane = one_lane(mask, "tcgen05.cp")
        descriptor = shared_operand(int(source(warp)[lane]), warp.launch.events)
        to = split_address(int(address(warp)[lane]))
        _submit(warp, lane, Copy(pair_of(warp.cta, group), shape, descriptor, *to, bits))

    return step


@dataclass(frozen=True)
class Copy:
    """One issued copy, into every CTA of ``ctas`` from its own shared memory.

    ``source_bits``: of an element, 8 if the bytes are copied as they are.
    """

    ctas: tuple[Cta, ...]
    shape: Shape
    source: SharedDescriptor
    lane: int
    column: int
    source_bits: int

    def moves(self) -> Moves:
        """For profiles."""
        read = self.shape.rows * self.shape.row_bytes * len(self.ctas)
        return Move("shared", "read", read), Move("tensor", "write", read * len(self.shape.lanes))

    def run(self) -> None:
        for cta in self.ctas:
            self._run_in(cta)

    def _run_in(self, cta: Cta) -> None:
        layout = operand_layout(self.source, self.shape.rows, self.shape.row_bytes, 8, False, "S")
        plan = gather_plan(layout)
        low, high = self.source.start + plan.low, self.source.start + plan.high
        if low < cta.shared.lowest or high > len(cta.shared.data):
            raise Trap("out-of-bounds", f"tcgen05.cp reads shared offsets 0x{low:x}..0x{high:x}, "
                                        f"outside the CTA's shared memory")  # fmt: skip
        index = plan.words + self.source.start // WORD
        what = "the source of tcgen05.cp"
        cta.launch.events.operand_read(cta, index, self.source, what, "")
        values, marks = self._values(cta, index, (low, high))
        columns = self.column + np.arange(self.shape.columns)
        cta.launch.events.columns_copied(cta, range(self.column, self.column + len(columns)))
        memory = tensor_engine(cta).memory
        for lanes in self.shape.lanes:
            memory.scatter(lanes[:, None] + self.lane, columns[None, :], values, marks)

    def _values(
        self, cta: Cta, index: np.ndarray, span: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray | int]:
        """uint32 rows as tensor memory gets them, and which of their bytes were ever written.

        Smaller elements become bytes (§9.7.16.9.1). Scale factors come in whole blocks, of which
        padding may be garbage as long as no product uses it.
        """
        what, bits = "tcgen05.cp", self.source_bits
        if bits == 8:
            words, marks = read_partly_written_words(cta, index, what, span)
            return _as_columns(words), _as_columns(marks)
        words = read_padded_words(cta, index, what, span, bits)
        return to_containers(np.ascontiguousarray(words), bits).view(np.uint32), WRITTEN


def _as_columns(words: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(words).view(np.uint32)


def _submit(warp: Warp, lane: int, copy: Copy) -> None:
    if copy.lane and (copy.shape.rows != 4 or copy.lane >= 32):
        raise Trap("tmem", f"tcgen05.cp of this shape must start at lane 0, got {copy.lane}")

    op = EngineOp(
        "cp -> tensor memory", copy.run, agent="tensor core", touches=copy.ctas, moves=copy.moves
    )
    op.stream = (TENSOR_STREAM, lane)
    for cta in copy.ctas:
        _order(cta, copy, op, warp)
    tensor_engine(copy.ctas[0]).copies.append(op)
    tensor_engine(warp.cta).note_issue(warp.index, lane, warp.launch.engines.submit(op))
    count_event(warp.cta, "tensor memory copies")


def _order(cta: Cta, copy: Copy, op: EngineOp, warp: Warp) -> None:
    engine = tensor_engine(cta)
    line = warp.program.source[warp.split.pc].line
    engine.memory.check_columns(copy.column, copy.shape.columns, "tcgen05.cp")
    span = Span(0, LANES, copy.column, copy.column + copy.shape.columns)
    access = Access("tcgen05.cp", span, line, warp.index, op, rank=warp.cta.rank)
    others = ("tcgen05.ld", "tcgen05.st", "tcgen05.mma")
    if copy.shape.rows == _BEHIND_SHIFTS:
        op.after += tuple(each for each in engine.shifts if not each.done)
    else:
        others += ("tcgen05.shift",)
    claim = Claim(span, "tcgen05.cp", others, behind_products_of=access.who)
    cta.launch.events.columns_claimed(cta, claim)
    if products := engine.products_before(span, access.who):
        op.after += products
        warp.launch.warn(
            "unlisted-order",
            "tcgen05.cp replaces what an earlier tcgen05.mma of the thread may still"
            " read; PTX ISA §9.7.16.6.2 lists no order of the two, issue order is assumed",
        )
    cta.launch.events.columns_used(cta, warp, claim, True)
    track(cta, access)
