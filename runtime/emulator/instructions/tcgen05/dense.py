"""tcgen05.mma, dense, without block scaling, operand A in shared or in tensor memory.

Source: PTX ISA, "tcgen05.mma". One thread issues; the operation runs later, behind the earlier mma
of its CTA (pair), and reads its operands only then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...interface import EngineOp as AnyOperation
from ...machine.engine import EngineOp
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lane_forms import address_of, note_lane_form, predicate_of, value_of
from ...ptx.registry import Step, instruction
from ...tensor.descriptor import KINDS, decode_instruction, shared_operand
from ...tensor.spans import Access, Claim, Span
from ...tensor.tensor_engine import pair_of, tensor_engine, track
from ...tensor.tensor_memory import LANES, split_address
from ..threads.convergence import one_lane
from .collector import Usage, take_usage
from .order import TENSOR_STREAM, take_group
from .product import Multiply, Place, StationaryMultiply
from .series import Series, count_product, follow

_SECTION = "9.7.16.10.9"
KIND_MODIFIERS = tuple(
    f"kind::{name}" for name in ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
)
_MAX_SCALE = 15
SHIFTED_ROWS = (128, 256)
"""M of operations with `.ashift`."""
SCALED_SUMS = ("f16", "tf32")
"""The kinds whose sums scale-input-d may scale."""


Form = tuple[str, int, bool, bool]
"""Kind, CTAs, ``.ws``, sparse."""
Operation = TypeVar("Operation", bound=Multiply)


@dataclass(frozen=True, eq=False)
class Operands:
    """Closures of the operands of one tcgen05.mma; values: those of its instruction descriptor, A,
    B, D and enable-input-d in a lane."""

    values: tuple[Callable[[Warp, int], int], ...]
    disabled: Callable | None
    scale: int
    a_in_tensor_memory: bool
    collector: Usage
    shifts: bool


@instruction("tcgen05.mma", section=_SECTION)
def build_mma(ins: Decoded) -> Step:
    """tcgen05.mma{.ws}.cta_group.kind{.collector} [d], a, b, idesc{, lanes}, p{, scale}."""
    group, stationary = take_group(ins), ins.flag("ws")
    if ins.flag("sp"):
        ins.unmodelled("a sparse operand A")
    kind = ins.required(KIND_MODIFIERS).removeprefix("kind::")
    if kind not in KINDS or (stationary and group == 2):
        ins.unmodelled(f"modifier .kind::{kind}")
    collector = take_usage(ins, stationary=stationary)
    shifts = not stationary and take_shift(ins, collector)
    ins.finish_modifiers()
    make = _stationary(ins) if stationary else _dense
    operands = decode_operands(ins, (kind, group), collector, shifts=shifts)
    form = kind, group, stationary, False
    if not stationary and operands.disabled is None:
        _note_lane_form(ins, operands, form)

    def step(warp: Warp, mask: np.ndarray) -> None:
        lane = one_lane(mask, "tcgen05.mma")
        values = tuple([read(warp, lane) for read in operands.values])
        submit(warp, lane, bind(warp, lane, operands, values, form, make(warp, lane)))

    return step


def take_shift(ins: Decoded, collector: Usage) -> bool:
    """Consume `.ashift`, of an operand A in tensor memory that the collector does not keep."""
    if not ins.flag("ashift"):
        return False
    if collector.use in ("fill", "use"):
        raise ins.trap("operand", f"tcgen05.mma.ashift goes without {collector}")
    if not isinstance(ins.operand(1), syntax.Address):
        raise ins.trap("operand", "tcgen05.mma.ashift needs operand A in tensor memory")
    return True


def _note_lane_form(ins: Decoded, operands: Operands, form: Form) -> None:
    """Say how one lane issues it, and that products in a row are issued as one."""

    def alone(warp: Warp, lane: int, *values: int) -> None:
        submit(warp, lane, bind(warp, lane, operands, values, form, Multiply))

    def behind(warp: Warp, lane: int, *values: int) -> None:
        product = bind(warp, lane, operands, values, form, Multiply)
        if not follow(warp, product):
            submit(warp, lane, product)

    a = address_of(ins, 1) if operands.a_in_tensor_memory else value_of(ins, 1, np.uint64)
    word, b, at = value_of(ins, 3, np.uint32), value_of(ins, 2, np.uint64), address_of(ins, 0)
    values = word, a, b, at, predicate_of(ins, 4)
    note_lane_form(ins, alone, *values, kind="tcgen05.mma", follows=behind)


def _dense(warp: Warp, lane: int) -> Callable[..., Multiply]:
    return Multiply


def _stationary(ins: Decoded) -> Callable[[Warp, int], Callable[..., Multiply]]:
    """Without a zero-column mask none is zero."""
    read = take_column_mask(ins)
    if read is None:
        return _dense
    return lambda warp, lane: partial(StationaryMultiply, mask=int(read(warp)[lane]))


def take_column_mask(ins: Decoded) -> Callable[[Warp], np.ndarray] | None:
    """Take the zero-column mask of a .ws operation off its operands, if there is one."""
    ins.expect_operands(5, 6)
    if len(ins.operands) == 5:
        return None
    read = ins.read(5, np.uint64)
    ins.operands = ins.operands[:5]
    return read


def decode_operands(
    ins: Decoded, form: tuple[str, int], collector: Usage, *, shifts: bool
) -> Operands:
    """The operands of a dense operation of this form."""
    kind, group = form
    ins.expect_operands(5, 6, 7)
    disables = isinstance(ins.operand(4), syntax.Vector)
    at = 5 if disables else 4
    if len(ins.operands) <= at:
        ins.unmodelled("a tcgen05.mma without enable-input-d")
    in_tensor_memory = isinstance(ins.operand(1), syntax.Address)
    d = ins.lane_address(0)
    a = ins.lane_address(1) if in_tensor_memory else ins.read_lane(1, np.uint64)
    b, word = ins.read_lane(2, np.uint64), ins.read_lane(3, np.uint32)
    disabled = ins.read_vector(4, 4 * group, np.uint32) if disables else None
    enable = ins.read_predicate(at)
    return Operands(
        values=(word, a, b, d, lambda warp, lane: enable(warp).item(lane)),
        disabled=disabled,
        scale=_scale(ins, at + 1, kind),
        a_in_tensor_memory=in_tensor_memory,
        collector=collector,
        shifts=shifts,
    )


def _scale(ins: Decoded, at: int, kind: str) -> int:
    if len(ins.operands) <= at:
        return 0
    if kind not in SCALED_SUMS:
        legal = " and ".join(f".kind::{name}" for name in SCALED_SUMS)
        raise ins.trap("operand", f"scale-input-d is for {legal}, got .kind::{kind}")
    ins.expect_operands(at + 1)
    scale = ins.immediate(at)
    if not 0 <= scale <= _MAX_SCALE:
        raise ins.trap("operand", f"scale-input-d must be 0..{_MAX_SCALE}, got {scale}")
    return scale


def bind(
    warp: Warp,
    lane: int,
    operands: Operands,
    values: tuple[int, ...],
    form: Form,
    make: Callable[..., Operation],
) -> Operation:
    """What ``make`` makes of the operands' values; ``form``: kind, CTAs, ``.ws``, sparse.

    A thread goes through the same few operations again and again, one for each stage of a ring.
    """
    known = warp.state("products", dict)
    key = operands, values
    found = known.get(key)
    if found is None or make is not Multiply or operands.disabled is not None:
        found = known[key] = _made(warp, lane, operands, values, form, make)
    else:
        pair_of(warp.cta, form[1])  # a Trap once one of them has exited
    return found


def _made(
    warp: Warp,
    lane: int,
    operands: Operands,
    values: tuple[int, ...],
    form: Form,
    make: Callable[..., Operation],
) -> Operation:
    word, a, b, d, add = values
    descriptor, events = decode_instruction(word, *form), warp.launch.events
    return make(
        ctas=pair_of(warp.cta, form[1]),
        descriptor=descriptor,
        d=Place(*split_address(d)),
        a=Place(*split_address(a)) if operands.a_in_tensor_memory else shared_operand(a, events),
        b=shared_operand(b, events),
        add=bool(add),
        scale=operands.scale,
        disabled=_disabled_lanes(operands, warp, lane, form[1]),
        collector=operands.collector,
        shifts=operands.shifts,
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

    series = leader.series = Series(multiply_)
    op = series.op = EngineOp(
        series.describe,
        series.run,
        after,
        agent="tensor core",
        touches=multiply_.ctas,
        moves=series.moves,
    )
    op.stream = (TENSOR_STREAM, lane)
    line, sums = warp.program.source[warp.split.pc].line, multiply_.sums
    where = line, warp.index, op, sums.shape
    adds = multiply_.add if multiply_.disabled is None else None
    access = Access("tcgen05.mma", sums.span, *where, rank=warp.cta.rank, adds=adds)
    for cta in multiply_.ctas:
        _order(cta, multiply_, access, warp)
    multiply_.announce(line)
    leader.last, leader.copies = op, []
    tensor_engine(warp.cta).note_issue(warp.index, lane, warp.launch.engines.submit(op))
    count_product(warp.cta, multiply_)


def _check_place(multiply_: Multiply) -> None:
    descriptor = multiply_.descriptor
    legal = (0, 16) if multiply_.layout == "F" else (0,)
    if multiply_.d.lane not in legal:
        raise Trap("tmem", f"the accumulator of M={descriptor.m} must start at lane "
                           f"{' or '.join(map(str, legal))}, got {multiply_.d.lane}")  # fmt: skip
    if isinstance(multiply_.a, Place):
        _check_a(multiply_, multiply_.a)
    if multiply_.shifts and descriptor.m not in SHIFTED_ROWS:
        raise Trap("descriptor", f"tcgen05.mma.ashift needs M = 128 or 256, got {descriptor.m}")


def _check_a(multiply_: Multiply, a: Place) -> None:
    descriptor = multiply_.descriptor
    if descriptor.a_transposed:
        raise Trap("descriptor", "operand A in tensor memory must be K-major (transpose A = 0)")
    if a.lane != multiply_.d.lane:
        raise Trap("tmem", f"A and D must start at the same tensor memory lane, got {a.lane} and "
                           f"{multiply_.d.lane}")  # fmt: skip


def _order(cta: Cta, multiply_: Multiply, access: Access, warp: Warp) -> None:
    """Check columns and ordering in one CTA and note what the operation will touch there."""
    engine = tensor_engine(cta)
    sums = multiply_.sums
    engine.memory.check_columns(multiply_.d.column, multiply_.d_columns, sums.what)
    cta.launch.events.columns_claimed(cta, sums._replace(behind_reads_of=access.who))
    if isinstance(multiply_.a, Place):
        _order_operand(cta, multiply_.a_access, access.op, warp)
    cta.launch.events.columns_used(cta, warp, multiply_.access, True)
    track(cta, access)


def order_read(cta: Cta, what: str, columns: slice, op: AnyOperation | None, warp: Warp) -> None:
    """Check columns and ordering of an operand in tensor memory, which ``op`` will read."""
    span = Span(0, LANES, columns.start, columns.stop)
    claim = Claim(span, what, ("tcgen05.st", "tcgen05.mma"), reads=True)
    _order_operand(cta, claim, op, warp)


def _order_operand(cta: Cta, claim: Claim, op: AnyOperation | None, warp: Warp) -> None:
    span, line = claim.span, warp.program.source[warp.split.pc].line
    columns = span.column_end - span.column
    tensor_engine(cta).memory.check_columns(span.column, columns, claim.what)
    cta.launch.events.columns_claimed(cta, claim)
    access = Access(
        "tcgen05.mma",
        span,
        line,
        warp.index,
        op,
        shape=claim.shape,
        reads=claim.reads,
        rank=warp.cta.rank,
    )
    cta.launch.events.columns_used(cta, warp, claim, True)
    track(cta, access)
