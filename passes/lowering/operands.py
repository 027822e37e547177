"""Bringing operand tiles into shared memory: copies by threads and TMA copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...dialects.layout import SPAN_BYTES, TileLayout
from ...dialects.mlir import arith, ir, llvm, nvvm, vector
from ...dialects.tile import CopyOp, LoadOp, TmaLoadOp, TmaMulticastOp
from . import build as b
from .frame import Frame

UNIT_BYTES = 16
EVEN_CTA_MASK = 0xFEFFFFFF - 2**32


def lower_load(frame: Frame, op: LoadOp) -> None:
    """All threads copy the tile into its buffer."""
    start = b.constant(frame.plan.buffers[op.tile])
    _copy_tile(frame, op, start)
    frame.tiles[op.tile] = start


def lower_copy(frame: Frame, op: CopyOp) -> None:
    """The producer's threads copy the tile into the acquired slot."""
    _copy_tile(frame, op, frame.tiles[op.tile])


def _copy_tile(frame: Frame, op: LoadOp | CopyOp, start: ir.Value) -> None:
    """Threads copy 16-byte units to shared byte `start` on; elements outside the view are zero."""
    layout = op.tile.type.layout
    source = _Source.of(frame, op)
    with _each_unit(frame, layout) as (row, column):
        value = source.read_unit(row, column)
        address = frame.shared_at(b.add(unit_offset(layout, row, column), start))
        llvm.store(value, address, alignment=UNIT_BYTES)


@contextmanager
def _each_unit(frame: Frame, layout: TileLayout) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Emit the body for every (row, unit of the row), spread over the team's threads.

    Neighbouring threads take neighbouring units of global memory where their number in a row is a
    power of two; else each takes whole rows, so that no K step divides.
    """
    in_row = layout.contiguous * layout.element_bytes // UNIT_BYTES
    team = frame.team
    if in_row & (in_row - 1) == 0:
        with b.loop(team.thread, layout.rows * in_row, team.threads) as unit:
            yield b.div(unit, in_row), b.rem(unit, in_row)
        return
    with (
        b.loop(team.thread, layout.rows, team.threads) as row,
        b.loop(b.constant(0), in_row, 1) as column,
    ):
        yield row, column


def unit_offset(layout: TileLayout, row: ir.Value, column: ir.Value) -> ir.Value:
    """Byte offset of a unit in the tile, swizzled (the tile starts on its pattern)."""
    in_chunk = layout.span_bytes // UNIT_BYTES
    chunk = b.mul(b.div(column, in_chunk), layout.chunk_bytes)
    within = b.add(b.mul(row, layout.span_bytes), chunk)
    if in_chunk > 1:
        within = b.add(within, b.mul(b.rem(column, in_chunk), UNIT_BYTES))
    if layout.swizzle == "none":
        return within
    mask = SPAN_BYTES[layout.swizzle] // UNIT_BYTES - 1
    line = arith.andi(b.div(within, 128), b.constant(mask))
    return b.xor(within, b.mul(line, UNIT_BYTES))


@dataclass
class _Source:
    """Where a tile's elements are in global memory."""

    pointer: ir.Value
    element: ir.Type
    element_bytes: int
    rows: int
    contiguous: int
    pitch: int
    first_row: ir.Value
    first_column: ir.Value
    whole_rows: bool
    whole_columns: bool

    @staticmethod
    def of(frame: Frame, op: LoadOp | CopyOp) -> _Source:
        layout, view = op.tile.type.layout, op.view.type
        strides, _ = view.get_strides_and_offset()
        inner = 1 if layout.major == "k" else 0
        tile_indices = [frame.index(op.i), frame.index(op.j)]
        rows, contiguous = view.shape[1 - inner], view.shape[inner]
        return _Source(
            pointer=frame.parameters[op.view, None],
            element=view.element_type,
            element_bytes=layout.element_bytes,
            rows=rows,
            contiguous=contiguous,
            pitch=strides[1 - inner],
            first_row=b.mul(tile_indices[1 - inner], layout.rows),
            first_column=b.mul(tile_indices[inner], layout.contiguous),
            whole_rows=rows % layout.rows == 0,
            whole_columns=contiguous % layout.contiguous == 0,
        )

    def read_unit(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """16 bytes of one row, as a vector of elements."""
        count = UNIT_BYTES // self.element_bytes
        row = b.add(self.first_row, row)
        column = b.add(self.first_column, b.mul(column, count))
        inside = None if self.whole_rows else b.less(row, self.rows)
        start = b.mul(b.widen(row), self.pitch)
        if self.pitch % count == 0:
            return self._read_vector(start, column, count, inside)
        return self._read_elements(start, column, count, inside)

    def _read_vector(
        self, start: ir.Value, column: ir.Value, count: int, inside: ir.Value | None
    ) -> ir.Value:
        """One vector load: a unit of an aligned row lies wholly inside or outside."""
        if not self.whole_columns:
            inside = b.both(inside, b.less(column, self.contiguous))
        type_ = ir.VectorType.get([count], self.element)
        return self._read(b.add(start, b.widen(column)), type_, UNIT_BYTES, inside)

    def _read_elements(
        self, start: ir.Value, column: ir.Value, count: int, inside: ir.Value | None
    ) -> ir.Value:
        elements = []
        for index in range(count):
            at = b.add(column, index)
            inside_both = b.both(inside, b.less(at, self.contiguous))
            offset = b.add(start, b.widen(at))
            elements.append(self._read(offset, self.element, self.element_bytes, inside_both))
        return vector.FromElementsOp(ir.VectorType.get([count], self.element), elements).result

    def _read(
        self, offset: ir.Value, type_: ir.Type, alignment: int, inside: ir.Value | None
    ) -> ir.Value:
        """Load at an element offset, or zero: outside lanes read element 0 and drop it."""
        if inside is not None:
            offset = arith.select(inside, offset, b.constant(0, b.i64()))
        pointer = b.element_pointer(self.pointer, self.element, offset)
        value = llvm.load(type_, pointer, alignment=alignment)
        if inside is None:
            return value
        return arith.select(inside, value, _zero(type_))


def _zero(type_: ir.Type) -> ir.Value:
    if not isinstance(type_, ir.VectorType):
        return arith.ConstantOp(type_, ir.FloatAttr.get(type_, 0.0)).result
    vector_type = ir.VectorType(type_)
    zero = ir.FloatAttr.get(vector_type.element_type, 0.0)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, zero)).result


def lower_tma_load(frame: Frame, op: TmaLoadOp) -> None:
    """The leader issues one copy a box; the acquired slot's full barrier counts the bytes."""
    layout = op.tile.type.layout
    row, chunk = _first_row(frame, op), _first_chunk(frame, op)
    if len(op.map.type.box) == 3:
        _copy(frame, op, frame.tiles[op.tile], [b.constant(0), row, chunk], None)
        return
    for index in range(layout.chunks):
        column = b.mul(b.add(chunk, index), layout.span)
        destination = b.add(frame.tiles[op.tile], index * layout.chunk_bytes)
        _copy(frame, op, destination, [column, row], None)


def lower_tma_multicast(frame: Frame, op: TmaMulticastOp) -> None:
    """This CTA's part of every box goes to all CTAs of the line, at the same place in each."""
    layout, axis = op.tile.type.layout, op.axis.value
    part_rows = layout.rows // op.parts.value
    part, mask = _line(frame, axis)
    row = b.add(_first_row(frame, op), b.mul(part, part_rows))
    chunk = _first_chunk(frame, op)
    start = b.add(frame.tiles[op.tile], b.mul(part, part_rows * layout.span_bytes))
    for index in range(layout.chunks):
        column = b.mul(b.add(chunk, index), layout.span)
        _copy(frame, op, b.add(start, index * layout.chunk_bytes), [column, row], mask)


def _line(frame: Frame, axis: str) -> tuple[ir.Value, ir.Value]:
    """(this CTA's number in its line, mask of the line) along "m" or "n"."""
    x, y = frame.place
    cluster = frame.cluster
    if axis == "n":
        return y, frame.line(cluster.a_peers, x, 0)
    if not cluster.pair:
        return x, frame.line(cluster.b_peers, 0, y)
    return b.div(x, 2), frame.line(cluster.b_peers, b.rem(x, 2), y)


def _first_row(frame: Frame, op: TmaLoadOp | TmaMulticastOp) -> ir.Value:
    layout = op.tile.type.layout
    return b.mul(frame.index(op.i if layout.major == "k" else op.j), layout.rows)


def _first_chunk(frame: Frame, op: TmaLoadOp | TmaMulticastOp) -> ir.Value:
    layout = op.tile.type.layout
    return b.mul(frame.index(op.j if layout.major == "k" else op.i), layout.chunks)


def _copy(
    frame: Frame,
    op: TmaLoadOp | TmaMulticastOp,
    destination: ir.Value,
    coordinates: list[ir.Value],
    mask: ir.Value | None,
) -> None:
    """One TMA copy of a box; with pairs the even CTA's barrier hears of it."""
    slot = frame.slots[op.tile.owner.opview.slot]
    map_ = frame.parameters[op.map.owner.opview.view, op.map]
    full = frame.barrier_at(frame.plan.rings[slot.ring].full, slot.index)
    to = frame.shared_at(destination)
    if mask is None and not frame.cluster.pair:
        nvvm.cp_async_bulk_tensor_shared_cluster_global(
            to, map_, coordinates, full, [], is_cta_only=True
        )
        return
    group = nvvm.CTAGroupKind.CTA_2 if frame.cluster.pair else None
    if frame.cluster.pair:
        full = _in_even_cta(full)
    nvvm.cp_async_bulk_tensor_shared_cluster_global(
        llvm.addrspacecast(b.pointer(b.CLUSTER), to),
        map_,
        coordinates,
        full,
        [],
        multicast_mask=mask,
        group=group,
    )


def _in_even_cta(barrier: ir.Value) -> ir.Value:
    """The same barrier in the first CTA of the pair: bit 24 of a shared address is rank bit 0."""
    address = llvm.ptrtoint(b.i32(), barrier)
    return llvm.inttoptr(b.pointer(b.SHARED), arith.andi(address, b.constant(EVEN_CTA_MASK)))
