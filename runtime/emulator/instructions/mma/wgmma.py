"""wgmma: asynchronous products of a warpgroup, D in registers (PTX ISA §9.7.15).

Each of the four warps w computes rows 16w .. 16w+15 of the 64 by itself. With g = lane / 4 and
q = lane % 4, register i of a 32-bit D is row 16w + g + 8·(i/2 % 2), column 8·(i/4) + 2q + i % 2; a
register of an f16 D holds two neighbours of a row. A in registers has the fragments of mma.sync.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from ...machine.engine import EngineOp, Move, Moves
from ...machine.shared_access import WORD, count_event, read_words
from ...ptx import syntax
from ...ptx.decode import Decoded
from ...ptx.lanes import WARP_SIZE, first_lane
from ...ptx.registry import Blocked, Step, instruction
from ...ptx.values import TYPES
from ...tensor.descriptor import SharedDescriptor
from ...tensor.element_formats import BITS
from ...tensor.short_sums import SUMS, short_sum
from ...tensor.tensor_core import Layout, check_row, gather_plan, operand_layout, operand_matrix
from ...tensor.wgmma_descriptor import decode_shared
from ...tensor.wgmma_registers import Pending, WarpProducts, numbers_of, owner_of
from ...tensor.wgmma_sparse import Metadata, take_metadata
from ...truth import any_of
from .dense import saturated, warp_rows
from .wgmma_form import FLOAT8, K_BYTES, WgmmaForm, take_form, with_immediates

_SECTION = "9.7.15.5.2"
_GROUP = 4
_M, _WARP_M = 64, 16
_A_REGISTERS = 4
_REGISTERS_OF_D = {"f16": "f16x2"}
"""Types of D's registers, where they are not that of its elements."""
_LATE_MOVE = (
    "registers of wgmma.mma_async are moved behind the wgmma.fence of their group, which must come"
    " between (PTX ISA §9.7.15.7.1); ptxas orders such copies"
)


@dataclass
class WarpProduct:
    """What one warp computes of an issued wgmma.mma_async.

    read: what registers of A held. old: registers of D, None for zero, or the product that owns
    them all in their order. warpgroup: the parts that the four warps have issued. metadata: of a
    sparse A. sums: the rows that it has computed, [16, n].
    """

    cta: Cta
    form: WgmmaForm
    row: int
    line: int
    slots: tuple[int, ...]
    read: dict[int, np.ndarray]
    a: SharedDescriptor | list[np.ndarray]
    b: SharedDescriptor
    old: list | WarpProduct | None
    warpgroup: list[EngineOp]
    metadata: Metadata | None = None
    sums: np.ndarray | None = None
    _results: list[np.ndarray] | None = None
    op: EngineOp = field(init=False)

    @property
    def done(self) -> bool:
        """Whether the operation, which is the warpgroup's, is complete."""
        return len(self.warpgroup) == _GROUP and all(op.done for op in self.warpgroup)

    @property
    def results(self) -> list[np.ndarray]:
        """Registers of D, which nobody asks for where the next product owns them."""
        if self._results is None:
            assert self.sums is not None  # the operation is done
            self._results = _registers(self.sums, self.form)
        return self._results

    def moves(self) -> Moves:
        """For profiles: the warp's rows of A and its share of B, which the group reads once."""
        a = 0 if isinstance(self.a, list) else _WARP_M * K_BYTES
        return (Move("shared", "read", a + self.form.n * self.form.row_bytes // _GROUP),)

    def run(self) -> None:
        a, b, form = self._rows_of_a(), self._gather(self.b, self.form.n, 1), self.form
        old, self.old = self._accumulator(), None
        if self._is_short():
            signed = a * np.float32(form.scales[0] * form.scales[1])
            self.sums = short_sum(signed, b, (form.a, form.b), old)
            return
        with np.errstate(all="ignore"):
            raw = a @ b.T if self.metadata is None else self.metadata.product(a, b, form.a)
            product = raw if form.scales[0] == form.scales[1] else 0 - raw  # a sum begins at +0
            self.sums = product if old is None else product + old

    def _is_short(self) -> bool:
        """Whether the launch asks for sums of 8-bit floats as Hopper forms them."""
        dense_floats = self.form.a in FLOAT8 and self.metadata is None and self.form.d == "f32"
        return dense_floats and self.cta.launch.fp8_sums != SUMS[0]

    def _rows_of_a(self) -> np.ndarray:
        if isinstance(self.a, list):
            return warp_rows(self.a, self.form.a, 2)
        return self._gather(self.a, _M, 0)[self.row : self.row + _WARP_M]

    def _gather(self, descriptor: SharedDescriptor, rows: int, which: int) -> np.ndarray:
        form, name = self.form, "AB"[which]
        type_ = form.b if which else form.a
        at = _place_of(
            descriptor, rows, form.depths[which], BITS[type_], form.transposed[which], name
        )
        _check_inside(self.cta, at.span, at.what)
        self.cta.launch.events.operand_read(self.cta, at.words, descriptor, at.what, type_)
        return operand_matrix(read_words(self.cta, at.words, at.what, at.span), at.layout, type_)

    def _accumulator(self) -> np.ndarray | None:
        """Numbers [16, n] of the registers of D, None for zero."""
        old = self.old
        if old is None:
            return None
        if isinstance(old, list):
            return numbers_of(old, self.form.d)
        if self.form.d == "f32" and old.sums is not None and old.sums.dtype == np.float32:
            return old.sums  # what its registers hold
        return numbers_of(old.results, self.form.d)


class _Place(NamedTuple):
    """Where an operand lies: its words, and the bytes [low, high) that they span."""

    layout: Layout
    words: np.ndarray
    span: tuple[int, int]
    what: str


@lru_cache(maxsize=1024)
def _place_of(
    descriptor: SharedDescriptor, rows: int, depth: int, bits: int, transposed: bool, name: str
) -> _Place:
    """The same words for whoever reads the operand: checks know again what they have judged."""
    layout = operand_layout(descriptor, rows, depth, bits, transposed, name)
    what = f"wgmma.mma_async operand {name}"
    check_row(layout, what)
    plan = gather_plan(layout)
    words = plan.words + descriptor.start // WORD
    words.flags.writeable = False
    return _Place(layout, words, (descriptor.start + plan.low, descriptor.start + plan.high), what)


def _check_inside(cta: Cta, span: tuple[int, int], what: str) -> None:
    low, high = cta.shared.lowest, len(cta.shared.data)
    if span[0] < low or span[1] > high:
        raise Trap(
            "out-of-bounds",
            f"{what} covers shared offsets 0x{span[0]:x}..0x{span[1]:x}, the CTA's shared memory "
            f"is 0x{low:x}..0x{high:x}",
        )


def _registers(total: np.ndarray, form: WgmmaForm) -> list[np.ndarray]:
    """Registers (each uint[32]) of D from numbers [16, n]."""
    parts = total.reshape(2, 8, -1, 4, 2).transpose(2, 0, 1, 3, 4)
    if form.d == "f16":
        halves = np.ascontiguousarray(parts.astype(np.float16))
        return list(halves.view(np.uint32).reshape(-1, WARP_SIZE))
    values = parts.transpose(0, 1, 4, 2, 3).reshape(-1, WARP_SIZE)
    if form.d == "f32":
        return list(values.astype(np.float32).view(np.uint32))
    return list(saturated(values, form.saturates))


@instruction("wgmma.mma_async", section=_SECTION)
@instruction("wgmma.mma_async.sp", section="9.7.15.6.4")
def build_mma_async(ins: Decoded) -> Step:
    """wgmma.mma_async{.sp}.sync.aligned.m64nNkK{.satfinite}.dtype.atype.btype d, a, b,
    {metadata, selector,} p, ±1, …."""
    converged, form = take_form(ins)
    read_metadata = take_metadata(ins, form.a) if form.sparse else None
    from_registers = isinstance(ins.operand(1), syntax.Vector)
    form = with_immediates(ins, form, from_registers)
    slots = _accumulator_slots(ins, form)
    slots_of_a = _slots_of_a(ins) if from_registers else ()
    read_a = None if from_registers else ins.read_uniform(1, np.uint64, "the descriptor of A")
    if ins.operand_is_immediate(3):
        ins.bound_constant(3, 0, 1)
    b, enabled = ins.read_uniform(2, np.uint64, "the descriptor of B"), ins.read_predicate(3)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        words = (None if read_a is None else read_a(warp, mask)), b(warp, mask)
        adds = _uniform(enabled(warp), mask)
        parts = _join_group(warp, (*words, adds))
        read = {slot: warp.regs[slot] for slot in slots_of_a}
        a = [read[slot] for slot in slots_of_a] if words[0] is None else decode_shared(words[0])
        metadata = read_metadata(warp) if read_metadata else None
        _submit(warp, form, (slots, read), a, decode_shared(words[1]), adds, parts, metadata)
        return None

    return step


def _uniform(values: np.ndarray, mask: np.ndarray) -> bool:
    first = bool(values[first_lane(mask)])
    if any_of(values[mask] != first):
        raise Trap("convergence", "scale-d of wgmma.mma_async must be the same in all lanes")
    return first


def _accumulator_slots(ins: Decoded, form: WgmmaForm) -> tuple[int, ...]:
    count, type_ = form.d_registers, TYPES[_REGISTERS_OF_D.get(form.d, form.d)]
    slots = [ins.target(element, type_) for element in ins.elements(0, count)]
    found = tuple(slot for slot in slots if slot is not None)
    if len(set(found)) != count:
        ins.unmodelled(f"D of fewer than {count} different registers")
    return found


def _slots_of_a(ins: Decoded) -> tuple[int, ...]:
    return tuple(ins.slot(element, TYPES["b32"]) for element in ins.elements(1, _A_REGISTERS))


def _join_group(warp: Warp, operands: tuple) -> list[EngineOp]:
    """The operation's parts so far; Trap unless the warpgroup's warps issue the same operations."""
    cta, first = warp.cta, warp.index // _GROUP * _GROUP
    if first + _GROUP > len(cta.warps):
        missing = first + _GROUP - len(cta.warps)
        raise Trap("convergence", f"wgmma needs all warps of a warpgroup, {missing} do not exist")
    issued = cta.state(f"wgmma of warp {first}", lambda: _issue_table(cta, first))
    products = products_of(warp)
    number, products.issued = products.issued, products.issued + 1
    operation, parts = issued.setdefault(number, ((warp.split.pc, operands), []))
    if operation != (warp.split.pc, operands):
        raise Trap("convergence", "all warps of a warpgroup must execute the same wgmma.mma_async "
                                  "with the same descriptors and scale-d")  # fmt: skip
    if len(parts) == _GROUP - 1:
        del issued[number]
    return parts


def _issue_table(cta: Cta, first: int) -> dict[int, tuple[tuple, list[EngineOp]]]:
    """Operations that some warp of the warpgroup has not issued yet, by their number."""
    table: dict[int, tuple[tuple, list[EngineOp]]] = {}

    def check() -> None:
        if table:
            raise Trap("convergence", f"the CTA exits and some of warps {first}..{first + 3} have "
                                      f"not executed a wgmma.mma_async of the others")  # fmt: skip

    cta.at_exit(check)
    return table


def products_of(warp: Warp) -> WarpProducts:
    return warp.state("wgmma", WarpProducts)


def _submit(
    warp: Warp,
    form: WgmmaForm,
    registers: tuple[tuple[int, ...], dict[int, np.ndarray]],
    a: SharedDescriptor | list[np.ndarray],
    b: SharedDescriptor,
    adds: bool,
    parts: list[EngineOp],
    metadata: Metadata | None,
) -> None:
    slots, read = registers
    old = [warp.regs[slot] for slot in slots]
    owner = owner_of(old)
    if owner is not None and owner.form.accumulator == form.accumulator:
        _check_registers(warp, form, {}, read)
        earlier, kept = (owner.op,), owner
    else:
        _check_registers(warp, form, dict(zip(slots, old, strict=True)), read)
        owners = (value.product.op for value in old if type(value) is Pending)
        earlier, kept = tuple(dict.fromkeys(owners)), old
        if adds and warp.launch.tracks_writing:
            _check_written(warp, slots)
    line = warp.program.source[warp.split.pc].line
    row = warp.index % _GROUP * _WARP_M
    kept = kept if adds else None
    product = WarpProduct(warp.cta, form, row, line, slots, read, a, b, kept, parts, metadata)
    product.op = EngineOp(
        f"wgmma m64n{form.n}k{form.k} rows {row}..{row + 15}",
        product.run,
        earlier,
        agent="tensor core",
        notifies=(warp.cta,),
        touches=(warp.cta,),
        moves=product.moves,
        stream=("wgmma", None),
    )
    parts.append(warp.launch.engines.submit(product.op))
    if len(parts) == _GROUP:
        _announce(warp, product, adds and _goes_on(warp, slots, old))
    products_of(warp).last[slots] = product
    for number, slot in enumerate(slots):
        warp.regs[slot] = Pending(product, number)
    products_of(warp).open.append(product)
    count_event(warp.cta, "wgmma flops", 2 * _WARP_M * form.n * form.k)


def _announce(warp: Warp, product: WarpProduct, adds: bool) -> None:
    a, form, events = product.a, product.form, warp.launch.events
    operands = (a, product.b) if isinstance(a, SharedDescriptor) else None
    sums = warp.index // _GROUP, product.slots
    events.product_issued(warp.cta, product.line, sums, adds, operands, form)


def _goes_on(warp: Warp, slots: tuple[int, ...], old: list) -> bool:
    """Whether the registers of D hold what the last product left there, and nothing else, such as
    the zeros with which many compilers let sums begin."""
    last = products_of(warp).last.get(slots)
    if last is None or owner_of(old) is last:
        return last is not None
    return last.done and all(one is two for one, two in zip(old, last.results, strict=True))


def _check_written(warp: Warp, slots: tuple[int, ...]) -> None:
    """Trap if an instruction adds to a register that nothing has written."""
    for number, slot in enumerate(slots):
        if warp.launch.is_unwritten(slot, warp.regs[slot]):
            raise Trap("uninitialised-read", f"nothing has written register {number} of the"
                                             f" accumulator, which is added to")  # fmt: skip


def _check_registers(warp: Warp, form: WgmmaForm, old: dict[int, Any], a: dict[int, Any]) -> None:
    products, late = products_of(warp), False
    for slot, value in old.items():
        late |= products.moved_late(slot, value, "the accumulator of wgmma.mma_async")
        if type(value) is Pending and value.product.form.accumulator != form.accumulator:
            value.refuse()
    for slot, value in a.items():
        late |= products.moved_late(slot, value, "operand A of wgmma.mma_async")
        if type(value) is Pending:
            value.refuse()
    if late:
        warp.launch.warn("late-move", _LATE_MOVE)
