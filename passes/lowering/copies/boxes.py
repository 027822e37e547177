"""TMA copies of boxes into operand tiles."""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.layout import ATOM_BYTES, BLOCKED, TileLayout
from ....dialects.mlir import arith, ir, scf
from ....dialects.ragged_maps import FAR, is_ragged, plain_rank
from ....dialects.tile.boxes import GatherBoxesOp, LoadBoxesOp, MulticastBoxesOp, PrefetchBoxesOp
from ....dialects.tile.edges import part_rows
from ....dialects.tile.level import LEAST_ROWS
from ....dialects.verify import GATHERED_ROWS
from ... import build
from ...base import defining_op
from ...groups import form_of_scales
from ...team import Team
from ..operands.units import first_atom
from ..scope.scope import Scope, lowered, lowered_parts
from ..tiles.groups import atom_of_whole, is_of_depth, is_of_group, placed_row, row_of_whole


def lower_load_boxes(scope: Scope, op: LoadBoxesOp) -> None:
    """One copy a box."""
    layout = op.tile.type.layout
    if layout.swizzle == BLOCKED:
        _load_atoms(scope, op)
        return
    row, chunk = _first_row(op), _first_chunk(op)
    if plain_rank(op.map.type) == 3:
        _copy(scope, op, lowered(op.tile), [build.constant(0), row, chunk], None)
        return
    for index in range(layout.chunks):
        column = (chunk + index) * layout.span
        destination = lowered(op.tile) + index * layout.chunk_bytes
        _copy(scope, op, destination, [column, row], None)


def lower_edge_boxes(scope: Scope, op: Any) -> None:
    """The boxes of a whole tile, those of the rows that there are, or none."""
    count = build.as_i32(op.count)
    with build.when(build.equal(count, op.tile.type.layout.rows)):
        lower_load_boxes(scope, op)
    if op.end.type.box[1] < op.tile.type.layout.rows:
        with build.when(build.equal(count, op.end.type.box[1])):
            _copy_edge(scope, op, build.constant(0), None)


def lower_edge_multicast_boxes(scope: Scope, op: Any) -> None:
    """This CTA's part of the rows: a whole box, boxes of those that there are, or one."""
    rows, unit = part_rows(op), op.end.type.box[1]
    before = build.as_value(scope.place.part(op.axis.value) * rows)
    whole = build.less(before + (rows - 1), build.as_i32(op.count))
    with build.when(whole):
        lower_multicast_boxes(scope, op)
    with build.when(whole ^ build.true()):
        end = arith.maxui(build.as_i32(op.count), build.as_value(before + 1))
        boxes = scf.ForOp(before, end, build.constant(unit))
        with ir.InsertionPoint(boxes.body):
            _copy_edge(scope, op, boxes.induction_variable, op.mask)
            scf.YieldOp([])


def _copy_edge(scope: Scope, op: Any, at: ir.Value, mask: ir.Value | None) -> None:
    """A box of `end` in each chunk, from row `at` of the tile on."""
    layout, chunk = op.tile.type.layout, _first_chunk(op)
    row, place = build.as_value(_first_row(op) + at), lowered(op.tile) + at * layout.span_bytes
    for index in range(layout.chunks):
        column = (chunk + index) * layout.span
        _copy(scope, op, place + index * layout.chunk_bytes, [column, row], mask, op.end)


def lower_level_boxes(scope: Scope, op: Any) -> None:
    """Emit as many copies as there are boxes with rows of the group."""
    layout, unit = op.tile.type.layout, op.map.type.box[1]
    row, chunk = _first_row(op), _first_chunk(op)
    for first in range(0, layout.rows, unit):
        asked = build.less(build.constant(first), build.as_i32(op.count))
        with build.when(asked if first >= LEAST_ROWS else None):
            destination = lowered(op.tile) + first * layout.span_bytes
            _copy(scope, op, destination, [chunk * layout.span, row + first], None)


def lower_gather_boxes(scope: Scope, op: GatherBoxesOp) -> None:
    """The team's threads share the fours of rows; each copies a four in all chunks of K."""
    layout, team = op.tile.type.layout, Team.of(op)
    first = row_of_whole(op.map, build.as_i32(op.i) * layout.rows)
    chunk, whole = build.as_i32(op.j) * layout.chunks, lowered_parts(op.map)[0]
    with build.loop(team.thread, layout.rows // GATHERED_ROWS, team.threads) as four:
        row = four * GATHERED_ROWS
        rows = [placed_row(op.map, first + (row + each)) for each in range(GATHERED_ROWS)]
        start = lowered(op.tile) + row * layout.span_bytes
        for index in range(layout.chunks):
            sm.TmaGatherOp.of(
                build.shared_at(start + index * layout.chunk_bytes),
                whole,
                _barrier(op.barrier),
                [(chunk + index) * layout.span, *rows],
                cta_group=scope.cta_group,
            )


def _load_atoms(scope: Scope, op: LoadBoxesOp) -> None:
    """One copy of all atoms of a tile's scales; half an atom is a row of the box."""
    layout = op.tile.type.layout
    halves = build.as_i32(op.j) * (2 * layout.atoms[1])
    coordinates = [build.constant(0), halves, first_atom(layout, op.i)]
    _copy(scope, op, lowered(op.tile), coordinates, None)


def lower_multicast_boxes(scope: Scope, op: MulticastBoxesOp) -> None:
    """This CTA's part of every box goes to all CTAs of the line, at the same place in each; in a
    fallback cluster also those parts that nobody else of the line has."""
    place, axis = scope.place, op.axis.value
    if place.fallback is None:
        _multicast_part(scope, op, place.part(axis))
        return
    parts = scf.ForOp(*place.parts(axis, op.parts.value), build.constant(1))
    with ir.InsertionPoint(parts.body):
        _multicast_part(scope, op, parts.induction_variable)
        scf.YieldOp([])


def _multicast_part(scope: Scope, op: MulticastBoxesOp, part: ir.Value | int) -> None:
    layout = op.tile.type.layout
    if layout.is_of_scales:
        _multicast_atoms(scope, op, part)
        return
    part_rows = layout.rows // op.parts.value
    row = _first_row(op) + part * part_rows
    chunk = _first_chunk(op)
    start = lowered(op.tile) + part * (part_rows * layout.span_bytes)
    for index in range(layout.chunks):
        column = (chunk + index) * layout.span
        _copy(scope, op, start + index * layout.chunk_bytes, [column, row], op.mask)


def lower_prefetch_boxes(scope: Scope, op: PrefetchBoxesOp) -> None:
    """One prefetch a box, as the load has copies."""
    layout = _layout(op)
    row, chunk = _first_row(op), _first_chunk(op)
    if op.axis.value:
        row = row + scope.place.part(op.axis.value) * (layout.rows // op.parts.value)
    if plain_rank(op.map.type) == 3:
        sm.PrefetchBoxOp.of(*map_at(op.map, [build.constant(0), row, chunk]))
        return
    for index in range(layout.chunks):
        sm.PrefetchBoxOp.of(*map_at(op.map, [(chunk + index) * layout.span, row]))


def _multicast_atoms(scope: Scope, op: MulticastBoxesOp, part: ir.Value | int) -> None:
    """A part of a tile's scales: rows of atoms by one box, or some halves of each row."""
    layout, parts = op.tile.type.layout, op.parts.value
    along_mn, along_k = layout.atoms
    row = first_atom(layout, op.i)
    _, halves, rows = op.map.type.box
    by_rows = along_mn % parts == 0
    first = build.as_i32(op.j) * (2 * along_k)
    column, row = (first, row + part * rows) if by_rows else (first + part * halves, row)
    start = lowered(op.tile) + part * (halves * rows * ATOM_BYTES // 2)
    for index in range(1 if by_rows else along_mn):
        place = start + index * (along_k * ATOM_BYTES)
        _copy(scope, op, place, [build.constant(0), column, row + index], op.mask)


def _layout(op: LoadBoxesOp | MulticastBoxesOp | PrefetchBoxesOp) -> TileLayout:
    tile: Any = op.tile.value if isinstance(op, PrefetchBoxesOp) else op.tile.type
    return tile.layout


def _first_row(op: LoadBoxesOp | MulticastBoxesOp | PrefetchBoxesOp) -> ir.Value:
    layout = _layout(op)
    return build.as_i32(op.i if layout.major == "k" else op.j) * layout.rows


def _first_chunk(op: LoadBoxesOp | MulticastBoxesOp | PrefetchBoxesOp) -> ir.Value:
    layout = _layout(op)
    return build.as_i32(op.j if layout.major == "k" else op.i) * layout.chunks


def map_at(map_: ir.Value, coordinates: list[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
    """The parameter that a map is, and coordinates in it; of a stack the matrix is the last.

    The rows of a group are the second one, after those of the view before them, or in front of
    where the map ends. Atoms of a group are the third.
    """
    whole, *matrix = lowered_parts(map_)
    type_: Any = map_.type
    if form_of_scales(map_):
        column, row, atom = coordinates
        return whole, [column, row, atom_of_whole(map_, atom)]
    if is_of_group(map_) or is_of_depth(map_):
        column, row, *others = coordinates
        if is_ragged(type_):
            first, count = matrix
            last = [first + count, build.constant(FAR)]
            return whole, [column, build.constant(FAR) - count + row, *others, *last]
        return whole, [column, row_of_whole(map_, row), *others]
    return whole, [*coordinates, *matrix]


def _copy(
    scope: Scope,
    op: LoadBoxesOp | MulticastBoxesOp,
    destination: ir.Value,
    coordinates: list[ir.Value],
    mask: ir.Value | None,
    by: ir.Value | None = None,
) -> None:
    """One TMA copy of a box; in a pair, the barrier may be that of the other CTA."""
    map_, coordinates = map_at(op.map if by is None else by, coordinates)
    sm.TmaLoadOp.of(
        build.shared_at(destination),
        map_,
        _barrier(op.barrier),
        coordinates,
        destination="cta" if mask is None and not scope.cluster.pair else "cluster",
        cta_group=scope.cta_group,
        mask=mask,
    )


def _barrier(barrier: ir.Value) -> ir.Value:
    """A barrier of this CTA, or of its leader, whose address is computed where it is used."""
    op = defining_op(barrier)
    if not isinstance(op, sm.LeaderBarrierOp):
        return barrier
    return sm.LeaderBarrierOp.of(op.barrier, leader=op.leader.type).leader
