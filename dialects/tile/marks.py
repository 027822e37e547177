"""Recording when a kernel reaches certain points.

tile.mark    marks[CTA, column] = the time, when a thread comes here first or last
"""

from ..mlir import ext, ir
from ..tile_types import Tile
from ..verify import refuse

FIRST, LAST = "first", "last"
KEPT = (FIRST, LAST)
UNITS = {"cycles": "clock", "nanoseconds": "globaltimer_lo"}
"""Special registers that tell the time (PTX ISA), by what they count; 32 bits of it."""
MARKS = "marks"
"""The argument of a kernel that marks are written to: a row a CTA, a column a place."""


class MarkOp(Tile.Operation, name="mark"):
    """`marks[CTA, column]` = the GPU's clock, in `unit`, when one thread of the agent gets here.

    If it gets here several times, `keep` says which time is kept. `place` is the name of the point.
    CTAs are numbered along x of the grid first.
    """

    marks: ext.Operand[ir.MemRefType]
    column: ir.IntegerAttr
    place: ir.StringAttr
    keep: ir.StringAttr
    unit: ir.StringAttr

    def verify_invariants(self) -> bool:
        if self.keep.value not in KEPT:
            return refuse(self, f"keep must be one of {KEPT}, got {self.keep.value!r}")
        if self.unit.value not in UNITS:
            return refuse(self, f"unit must be one of {tuple(UNITS)}, got {self.unit.value!r}")
        type_, column = ir.MemRefType(self.marks.type), self.column.value
        if type_.rank != 2 or str(type_.element_type) != "i32":
            return refuse(self, f"marks must be rows of i32, got {type_}")
        fits = 0 <= column < type_.shape[1]
        return fits or refuse(self, f"column must be below {type_.shape[1]}, got {column}")
