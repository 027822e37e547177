"""`tile.store`: tensor memory → registers → epilogue → global memory, by all four warps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ...dialects.mlir import ir, llvm, nvvm, vector
from ...dialects.tile import ElementOp, StoreOp, element_bytes
from ..base import walk
from . import build as b
from .frame import Frame
from .plan import is_synchronous, mma_before
from .scalar_ops import apply_epilogue, widened

VECTOR_BYTES = 32
REGISTERS = 32


@dataclass(frozen=True)
class Fragment:
    """How one tcgen05.ld spreads an MMA's accumulator over a warp's threads.

    M=128 (PTX ISA, data path layout D): lane i is row i, so .32x32b gives thread t row t of the
    warp's 32. M=64 (layout F): each warp has 16 rows, so .16x32bx2 gives threads 0-15 the first
    and 16-31 the second half of the columns. A thread gets `registers` columns of one row.
    """

    rows_per_warp: int
    registers: int

    @staticmethod
    def of(atom_m: int, n: int) -> Fragment:
        halves = 1 if atom_m == 128 else 2
        registers = REGISTERS
        while n % (registers * halves):
            registers //= 2
        return Fragment(atom_m // 4, registers)

    @property
    def halves(self) -> int:
        return 32 // self.rows_per_warp

    @property
    def columns(self) -> int:
        """Columns of the accumulator that one load covers."""
        return self.registers * self.halves


def lower_store(frame: Frame, op: StoreOp) -> None:
    """Wait for the MMAs, then write every atom of the accumulator."""
    await_accumulator(frame, op)
    m, n = op.acc.type.shape
    atom_m = frame.target.mma_rows(m)
    fragment = Fragment.of(atom_m, n)
    for atom in range(m // atom_m):
        column = b.plus(frame.columns[op.acc], atom * n)
        _store_atom(frame, op, fragment, atom * atom_m, column)


def await_accumulator(frame: Frame, op: StoreOp) -> None:
    """Wait for the MMAs of an accumulator that came through no pipe and was not waited for."""
    mma = mma_before(op)
    if op.acc in frame.plan.accumulators and not is_synchronous(mma):
        with frame.team.once():
            frame.commit(frame.shared_at(frame.plan.mma_done))
        frame.wait_mma_done()


def _store_atom(
    frame: Frame, op: StoreOp, fragment: Fragment, row: int, column: ir.Value | int
) -> None:
    m, n = op.acc.type.shape
    rows = fragment.rows_per_warp
    warp = b.div(frame.team.thread, 32)
    in_warp = frame.lane if rows == 32 else b.rem(frame.lane, rows)
    in_tile = b.add(b.add(b.mul(warp, rows), in_warp), row)
    output_row = b.add(b.mul(frame.index(op.i), m), in_tile)
    inside = None if op.view.type.shape[0] % m == 0 else b.less(output_row, op.view.type.shape[0])
    first_column = b.mul(frame.index(op.j), n)
    lanes = b.mul(warp, 32 << 16)
    with b.loop(b.constant(0), n, fragment.columns) as chunk:
        address = frame.tmem_pointer(b.add(b.add(lanes, chunk), column))
        values = _read(fragment, address)
        start = b.add(first_column, chunk)
        if fragment.halves == 2:
            start = b.add(start, b.mul(b.div(frame.lane, rows), fragment.registers))
        with b.when(inside):
            _write(frame, op, values, output_row, start)


def _read(fragment: Fragment, address: ir.Value) -> ir.Value:
    """`registers` f32 of one row; the data is in registers when this returns."""
    words = ir.VectorType.get([fragment.registers], b.i32())
    if fragment.halves == 1:
        loaded = nvvm.tcgen05_ld(words, nvvm.Tcgen05LdStShape.SHAPE_32X32B, address)
    else:
        half = b.constant(fragment.registers, b.i64())
        shape = nvvm.Tcgen05LdStShape.SHAPE_16X32BX2
        loaded = nvvm.tcgen05_ld(words, shape, address, offset=half)
    nvvm.tcgen05_wait(nvvm.Tcgen05WaitKind.LOAD)
    loaded = _pin(loaded, fragment.registers)
    return llvm.bitcast(ir.VectorType.get([fragment.registers], ir.F32Type.get()), loaded)


def _pin(words: ir.Value, count: int) -> ir.Value:
    """Keep LLVM from reading the registers before this point.

    Nothing in LLVM's IR ties a tcgen05.ld to its wait; an empty asm that takes and gives every
    register does, and emits no instruction.
    """
    elements = [vector.ExtractOp(words, [], [index]).result for index in range(count)]
    outputs = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
    ties = ",".join(["=r"] * count + [str(index) for index in range(count)])
    pinned = llvm.inline_asm(outputs, elements, "", ties, has_side_effects=True)
    parts = [llvm.extractvalue(b.i32(), pinned, [index]) for index in range(count)]
    return vector.FromElementsOp(words.type, parts).result


def vector_width(op: StoreOp, registers: int) -> int:
    """Elements of one store: up to 32 bytes, and a row is a whole number of them."""
    width = min(registers, VECTOR_BYTES // element_bytes(op.view.type.element_type))
    while op.view.type.shape[1] % width:
        width //= 2
    return width


def pointer_alignment(op: StoreOp, view: ir.Value) -> int:
    """Bytes that the address of `view`, written or read by the store, must be a multiple of."""
    m, n = op.acc.type.shape
    fragment = Fragment.of(128 if m % 128 == 0 else m, n)
    reads = [element for element in walk(op, ElementOp) if element.source == view]
    one_a_row = bool(reads) and all(element.axes.value == "m" for element in reads)
    width = 1 if one_a_row else vector_width(op, fragment.registers)
    return width * element_bytes(view.type.element_type)


def _write(frame: Frame, op: StoreOp, values: ir.Value, row: ir.Value, column: ir.Value) -> None:
    """Run the epilogue on `values` and store them, vector by vector, inside the view."""
    registers = ir.VectorType(values.type).shape[0]
    width = vector_width(op, registers)
    n = op.acc.type.shape[1]
    whole = op.view.type.shape[1] % n == 0
    for start in range(0, registers, width):
        at = b.add(column, start)
        with b.when(None if whole else b.less(at, op.view.type.shape[1])):
            accumulated = _slice(values, start, width)
            read = partial(_elements, frame, row, at, width)
            result = apply_epilogue(op, accumulated, width, read)
            _store(frame, op.view, row, at, result, width)


def _slice(values: ir.Value, start: int, width: int) -> ir.Value:
    if width == 1:
        return vector.ExtractOp(values, [], [start]).result
    element = ir.VectorType(values.type).element_type
    mask = list(range(start, start + width))
    return llvm.shufflevector(ir.VectorType.get([width], element), values, values, mask)


def _elements(frame: Frame, row: ir.Value, column: ir.Value, width: int, op: ElementOp) -> ir.Value:
    """`width` elements of another operand, at the place that is being stored."""
    view, axes, element = op.source, op.axes.value, op.value.type
    if axes == "m":
        one = llvm.load(element, _at(frame, view, b.widen(row)))
        return one if width == 1 else vector.BroadcastOp(widened(element, width), one).result
    offset = b.widen(column)
    if axes == "mn":
        offset = b.add(b.mul(b.widen(row), view.type.shape[1]), offset)
    pointer = _at(frame, view, offset)
    return llvm.load(widened(element, width), pointer, alignment=width * element_bytes(element))


def _store(
    frame: Frame, view: ir.Value, row: ir.Value, column: ir.Value, result: ir.Value, width: int
) -> None:
    offset = b.add(b.mul(b.widen(row), view.type.shape[1]), b.widen(column))
    pointer = _at(frame, view, offset)
    llvm.store(result, pointer, alignment=width * element_bytes(view.type.element_type))


def _at(frame: Frame, view: ir.Value, offset: ir.Value) -> ir.Value:
    return b.element_pointer(frame.parameters[view, None], view.type.element_type, offset)
