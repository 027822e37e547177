"""tcgen05.mma, dense, without block scaling, operand A in shared or in tensor memory.

Source: PTX ISA, "tcgen05.mma". One thread issues; the operation runs later, behind the earlier mma
of its CTA (pair), and reads its operands only then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from ..errors import Trap
from ..interface import Cta, Warp
from ..interface import EngineOp as AnyOperation
from ..machine.engine import EngineOp, Move, Moves
from ..machine.shared_access import count_event
from ..ptx import syntax
from ..ptx.decode import Decoded
from ..ptx.registry import Step, instruction
from ..tensor.descriptor import (
    KINDS,
    InstructionDescriptor,
    SharedDescriptor,
    decode_instruction,
    decode_shared,
)
from ..tensor.shared_operands import gather
from ..tensor.spans import HALF_LANES, Access, Claim, Span
from ..tensor.tensor_core import Block, accumulate, data_path, dense_layout, multiply, to_float32
from ..tensor.tensor_engine import pair_of, tensor_engine, track
from ..tensor.tensor_memory import LANES, TensorMemory, split_address
from ..tensor.zero_columns import zero_columns
from .tcgen05 import TENSOR_STREAM, one_lane, take_group

_SECTION = "9.7.16.10.9"
KIND_MODIFIERS = tuple(
    f"kind::{name}" for name in ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
)
_USES = ("fill", "use", "lastuse", "discard")
COLLECTORS = tuple(f"collector::a::{use}" for use in _USES)
_STATIONARY_COLLECTORS = tuple(f"collector::b{i}::{use}" for i in range(4) for use in _USES)
_WORD_BITS = 32
WORD_BYTES = 4
_MAX_SCALE = 15


Operation = TypeVar("Operation", bound="Multiply")


@dataclass(frozen=True)
class Operands:
    """Closures of the operands of one tcgen05.mma."""

    d: Callable
    a: Callable
    b: Callable
    descriptor: Callable
    disabled: Callable | None
    enable: Callable
    scale: int
    a_in_tensor_memory: bool


@instruction("tcgen05.mma", section=_SECTION)
def build_mma(ins: Decoded) -> Step:
    """tcgen05.mma{.ws}.cta_group.kind{.collector} [d], a, b, idesc{, lanes}, p{, scale}."""
    group, stationary = take_group(ins), ins.flag("ws")
    if ins.flag("sp"):
        ins.unmodelled("a sparse operand A")
    kind = ins.required(KIND_MODIFIERS).removeprefix("kind::")
    if kind not in KINDS or (stationary and group == 2):
        ins.unmodelled(f"modifier .kind::{kind}")
    ins.choice(_STATIONARY_COLLECTORS if stationary else COLLECTORS)
    ins.finish_modifiers()
    make = _stationary(ins) if stationary else _dense
    operands = decode_operands(ins, group)
    form = kind, group, stationary, False

    def step(warp: Warp, mask: np.ndarray) -> None:
        lane = one_lane(mask, "tcgen05.mma")
        submit(warp, lane, bind(warp, lane, operands, form, make(warp, lane)))

    return step


def _dense(warp: Warp, lane: int) -> Callable[..., Multiply]:
    return Multiply


def _stationary(ins: Decoded) -> Callable[[Warp, int], Callable[..., Multiply]]:
    """Take the zero-column mask of a .ws operation off its operands; without one none is zero."""
    ins.expect_operands(5, 6)
    if len(ins.operands) == 5:
        return _dense
    read = ins.read(5, np.uint64)
    ins.operands = ins.operands[:5]
    return lambda warp, lane: partial(StationaryMultiply, mask=int(read(warp)[lane]))


def decode_operands(ins: Decoded, group: int) -> Operands:
    ins.expect_operands(5, 6, 7)
    disables = isinstance(ins.operand(4), syntax.Vector)
    at = 5 if disables else 4
    if len(ins.operands) <= at:
        ins.unmodelled("a tcgen05.mma without enable-input-d")
    in_tensor_memory = isinstance(ins.operand(1), syntax.Address)
    return Operands(
        d=ins.address(0),
        a=ins.address(1) if in_tensor_memory else ins.read(1, np.uint64),
        b=ins.read(2, np.uint64),
        descriptor=ins.read(3, np.uint32),
        disabled=ins.read_vector(4, 4 * group, np.uint32) if disables else None,
        enable=ins.read_predicate(at),
        scale=_scale(ins, at + 1),
        a_in_tensor_memory=in_tensor_memory,
    )


def _scale(ins: Decoded, at: int) -> int:
    if len(ins.operands) <= at:
        return 0
    ins.expect_operands(at + 1)
    scale = ins.immediate(at)
    if not 0 <= scale <= _MAX_SCALE:
        raise ins.trap("operand", f"scale-input-d must be 0..{_MAX_SCALE}, got {scale}")
    return scale


@dataclass(frozen=True)
class Place:
    """A tensor memory address split up."""

    lane: int
    column: int


@dataclass(frozen=True)
class Multiply:
    """One issued operation; ``ctas`` is the CTA or the pair, even rank first."""

    ctas: tuple[Cta, ...]
    descriptor: InstructionDescriptor
    d: Place
    a: SharedDescriptor | Place
    b: SharedDescriptor
    add: bool
    scale: int
    disabled: np.ndarray | None

    @property
    def group(self) -> int:
        return len(self.ctas)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Where D lies."""
        return data_path(self.layout, self.descriptor.n)

    @cached_property
    def layout(self) -> str:
        """Letter of the data-path layout."""
        return dense_layout(self.descriptor.m, self.group, self.descriptor.stationary)

    @property
    def half(self) -> int | None:
        """Which half of each 32 lanes the rows of M=64 take; None for all lanes."""
        return self.d.lane // HALF_LANES if self.layout == "F" else None

    @cached_property
    def d_columns(self) -> int:
        """Tensor memory columns of the accumulator."""
        columns = self.blocks[0].columns
        return columns.stop - columns.start

    @property
    def a_columns(self) -> int:
        """Tensor memory columns of operand A."""
        return self.descriptor.stored_k * self.descriptor.a.bits // _WORD_BITS

    def describe(self) -> str:
        d = self.descriptor
        return f"mma {d.m}x{d.n}x{d.k} {d.kind} -> column {self.d.column}"

    def moves(self) -> Moves:
        """For profiles: both operands, and the accumulator (written, and read to add to it)."""
        d, result = self.descriptor, self.descriptor.m * self.d_columns * WORD_BYTES
        a_memory = "tensor" if isinstance(self.a, Place) else "shared"
        return (
            Move(a_memory, "read", d.m * d.stored_k * d.a.bits // 8),
            Move("shared", "read", d.n * d.k * d.b.bits // 8),
            Move("tensor", "read", result if self.add else 0),
            Move("tensor", "write", result),
        )

    def run(self) -> None:
        """Read both operands, multiply, update the accumulator."""
        if isinstance(self.a, Place):
            self._run_in_blocks(self.a)
            return
        product = multiply(self.descriptor, self._read_a(), self._read_b())
        for block in self.blocks:
            self._write(block, product[block.rows, block.columns])

    def _run_in_blocks(self, a: Place) -> None:
        """The lanes that hold a block of D take the rows of A from themselves: where several groups
        of lanes work on the same rows, each has its own copy."""
        b = self._read_b()
        rows = [self._read_lanes(block, a) for block in self.blocks]
        for block, left in zip(self.blocks, rows, strict=True):
            self._write(block, multiply(self.descriptor, left, b[block.columns]))

    def _read_a(self) -> np.ndarray:
        if isinstance(self.a, Place):
            return self._read_tensor_memory(self.a)
        d, rows = self.descriptor, self.descriptor.m // self.group
        return gather(self.ctas, self.a, rows, d.stored_k, d.a, d.a_transposed, "A")

    def _read_b(self) -> np.ndarray:
        d, rows = self.descriptor, self.descriptor.n // self.group
        return gather(self.ctas, self.b, rows, d.k, d.b, d.b_transposed, "B")

    def _read_tensor_memory(self, place: Place) -> np.ndarray:
        return np.concatenate([self._read_lanes(block, place) for block in self.blocks])

    def _read_lanes(self, block: Block, place: Place) -> np.ndarray:
        columns = slice(place.column, place.column + self.a_columns)
        lanes = _shifted(block.lanes, place.lane)
        memory = tensor_engine(self.ctas[block.cta]).memory
        memory.require_written(lanes, columns, "tcgen05.mma operand A")
        words = np.ascontiguousarray(memory.part(lanes, columns))
        return to_float32(words, self.descriptor.a.name)

    def _write(self, block: Block, product: np.ndarray) -> None:
        memory = tensor_engine(self.ctas[block.cta]).memory
        lanes = _shifted(block.lanes, self.d.lane)
        first = self.d.column + block.first_column
        columns = slice(first, first + self.d_columns)
        if self.disabled is None:
            self._update(memory, lanes, columns, product)
            return
        kept = np.flatnonzero(~self.disabled[block.cta][lanes])
        for row in kept:
            lane = slice(lanes.start + int(row), lanes.start + int(row) + 1)
            self._update(memory, lane, columns, product[row : row + 1])

    def _update(
        self, memory: TensorMemory, lanes: slice, columns: slice, product: np.ndarray
    ) -> None:
        if self.add:
            memory.require_written(lanes, columns, "tcgen05.mma accumulator")
        words, name = memory.accumulator(lanes, columns), self.descriptor.accumulator
        accumulate(words, product, name, self.add, self.scale)
        memory.mark_written(lanes, columns)


@dataclass(frozen=True)
class StationaryMultiply(Multiply):
    """An operation with ``.ws`` and a zero-column mask descriptor, ``mask``."""

    mask: int

    def __post_init__(self) -> None:
        """Refuse a bad descriptor where the operation is issued."""
        zero_columns(self.mask, self.descriptor.m, self.descriptor.n)

    def _read_b(self) -> np.ndarray:
        zero = zero_columns(self.mask, self.descriptor.m, self.descriptor.n)
        return np.where(zero[:, None], np.float32(0), super()._read_b())


def _shifted(lanes: slice, by: int) -> slice:
    return slice(lanes.start + by, lanes.stop + by)


def bind(
    warp: Warp,
    lane: int,
    operands: Operands,
    form: tuple[str, int, bool, bool],
    make: Callable[..., Operation],
) -> Operation:
    """What ``make`` makes of the operands' values; ``form``: kind, CTAs, ``.ws``, sparse."""
    descriptor, group = decode_instruction(int(operands.descriptor(warp)[lane]), *form), form[1]
    a = int(operands.a(warp)[lane])
    return make(
        ctas=pair_of(warp.cta, group),
        descriptor=descriptor,
        d=Place(*split_address(int(operands.d(warp)[lane]))),
        a=Place(*split_address(a)) if operands.a_in_tensor_memory else decode_shared(a),
        b=decode_shared(int(operands.b(warp)[lane])),
        add=bool(operands.enable(warp)[lane]),
        scale=operands.scale,
        disabled=_disabled_lanes(operands, warp, lane, group),
    )


def _disabled_lanes(operands: Operands, warp: Warp, lane: int, group: int) -> np.ndarray | None:
    """``bool[CTAs, 128]`` of lanes that are not written; lane 0 is the LSB of the first word."""
    if operands.disabled is None:
        return None
    words = np.array([word[lane] for word in operands.disabled(warp)], "<u4")
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return bits.astype(bool).reshape(group, LANES)


def submit(warp: Warp, lane: int, multiply_: Multiply) -> None:
    _check_place(multiply_)
    leader = tensor_engine(multiply_.ctas[0])
    earlier = (leader.last, *leader.copies)
    after = tuple(op for op in earlier if op is not None and not op.done)

    op = EngineOp(
        multiply_.describe,
        multiply_.run,
        after,
        agent="tensor core",
        touches=multiply_.ctas,
        moves=multiply_.moves,
    )
    op.stream = (TENSOR_STREAM, lane)
    for cta in multiply_.ctas:
        _order(cta, multiply_, op, warp)
    leader.last, leader.copies = op, []
    tensor_engine(warp.cta).note_issue(warp.index, lane, warp.launch.engines.submit(op))
    descriptor = multiply_.descriptor
    count_event(warp.cta, "mma count")
    count_event(warp.cta, "mma flops", 2 * descriptor.m * descriptor.n * descriptor.k)


def _check_place(multiply_: Multiply) -> None:
    descriptor = multiply_.descriptor
    legal = (0, 16) if multiply_.layout == "F" else (0,)
    if multiply_.d.lane not in legal:
        raise Trap("tmem", f"the accumulator of M={descriptor.m} must start at lane "
                           f"{' or '.join(map(str, legal))}, got {multiply_.d.lane}")  # fmt: skip
    if isinstance(multiply_.a, Place):
        _check_a(multiply_, multiply_.a)


def _check_a(multiply_: Multiply, a: Place) -> None:
    descriptor = multiply_.descriptor
    if descriptor.a_transposed:
        raise Trap("descriptor", "operand A in tensor memory must be K-major (transpose A = 0)")
    if a.lane != multiply_.d.lane:
        raise Trap("tmem", f"A and D must start at the same tensor memory lane, got {a.lane} and "
                           f"{multiply_.d.lane}")  # fmt: skip


def _order(cta: Cta, multiply_: Multiply, op: EngineOp, warp: Warp) -> None:
    """Check columns and ordering in one CTA and note what the operation will touch there."""
    engine, line = tensor_engine(cta), warp.program.source[warp.split.pc].line
    engine.use_group(multiply_.group)
    first, count = multiply_.d.column, multiply_.d_columns
    engine.memory.check_columns(first, count, "tcgen05.mma accumulator")
    shape = (first, multiply_.descriptor.m, multiply_.descriptor.n)
    span = Span(0, LANES, first, first + count, multiply_.half)
    others = ("tcgen05.ld", "tcgen05.st", "tcgen05.mma")
    claim = Claim(span, "tcgen05.mma accumulator", others, shape)
    cta.launch.events.columns_claimed(cta, claim)
    if isinstance(multiply_.a, Place):
        _order_a(cta, multiply_, multiply_.a, op, warp)
    access = Access("tcgen05.mma", span, line, warp.index, op, shape, rank=warp.cta.rank)
    cta.launch.events.columns_used(cta, warp, Claim(span, "tcgen05.mma", ()), True)
    track(cta, access)


def _order_a(cta: Cta, multiply_: Multiply, a: Place, op: EngineOp, warp: Warp) -> None:
    columns = slice(a.column, a.column + multiply_.a_columns)
    order_read(cta, "tcgen05.mma operand A", columns, op, warp, multiply_.half)


def order_read(
    cta: Cta,
    what: str,
    columns: slice,
    op: AnyOperation | None,
    warp: Warp,
    half: int | None = None,
) -> None:
    """Check columns and ordering of an operand in tensor memory, which ``op`` will read."""
    engine, line = tensor_engine(cta), warp.program.source[warp.split.pc].line
    engine.memory.check_columns(columns.start, columns.stop - columns.start, what)
    span = Span(0, LANES, columns.start, columns.stop, half)
    claim = Claim(span, what, ("tcgen05.st", "tcgen05.mma"), reads=True)
    cta.launch.events.columns_claimed(cta, claim)
    access = Access("tcgen05.mma", span, line, warp.index, op, reads=True, rank=warp.cta.rank)
    cta.launch.events.columns_used(cta, warp, claim, True)
    track(cta, access)
