"""Atoms of scales copied into shared memory by threads."""

from __future__ import annotations

from ...dialects.layout import ATOM_BYTES, UNIT_BYTES
from ...dialects.mlir import arith, ir, llvm
from ...dialects.tile import CopyOp
from .. import build
from .operands import first_atom
from .scope import Scope, lowered, place_of

ATOM_UNITS = ATOM_BYTES // UNIT_BYTES


def copy_atoms(scope: Scope, op: CopyOp) -> None:
    """The team's threads copy a tile's atoms by units; atoms outside the view are zero."""
    layout, start, view = op.tile.type.layout, place_of(op.tile), op.view.type
    along_mn, along_k = layout.atoms
    rows, blocks = view.shape[:2]
    row, block = first_atom(layout, op.i), build.as_i32(op.j) * along_k
    units = along_mn * along_k * ATOM_UNITS
    with build.loop(scope.team.thread, units, scope.team.threads) as unit:
        atom = unit // ATOM_UNITS
        at_row, at_block = row + atom // along_k, block + atom % along_k
        inside = build.both(build.less(at_row, rows), build.less(at_block, blocks))
        number = build.widen(at_row) * blocks + build.widen(at_block)
        offset = number * ATOM_BYTES + build.widen(unit % ATOM_UNITS * UNIT_BYTES)
        value = _read(lowered(op.view), offset, inside)
        llvm.store(value, build.shared_at(unit * UNIT_BYTES + start), alignment=UNIT_BYTES)


def _read(view: ir.Value, offset: ir.Value, inside: ir.Value) -> ir.Value:
    """A unit, or zeros: lanes outside read the first one and drop it."""
    type_ = ir.VectorType.get([UNIT_BYTES // 4], build.i32())
    offset = arith.select(inside, offset, build.constant(0, build.i64()))
    byte = ir.IntegerType.get_signless(8)
    loaded = llvm.load(type_, build.element_pointer(view, byte, offset), alignment=UNIT_BYTES)
    zero = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(build.i32(), 0))
    return arith.select(inside, loaded, arith.ConstantOp(type_, zero).result)
