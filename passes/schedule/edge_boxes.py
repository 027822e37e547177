"""Shrinks the TMA boxes of the last tiles along M and N to the rows in bounds.

    load %a[%i, %k]   →   %count = edge_rows %i, %k      rows of the tile in bounds
                          edge_load %a[%i, %k], %count, %end

    a tile of 128 rows, 90 of them in bounds:  a box of 128 rows   →   a box of 90

TMA fills out-of-bounds rows with zeros, but still sends an L2 request for each of them, all to one
place: such a CTA takes up to twice as long as the others. The first load into every slot of the
ring still uses the whole box. Its zeros stay, since later boxes do not write these rows.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...dialects.fallback import fallback_of
from ...dialects.mlir import ir, scf
from ...dialects.record import record
from ...dialects.tile import KernelOp, PairMmaOp, TensorMapOp, TmaLoadOp, TmaMulticastOp
from ...dialects.tile.edges import (
    STEP,
    EdgeLoadOp,
    EdgeMulticastOp,
    EdgeRowsOp,
    part_rows,
)
from ...dialects.tile_types import TensorMapType, extent_of, integer, integers_of
from ..base import PassLog, defining_op, many, refused, the_kernel, walk
from ..batches import map_of_other_stack, matrix_of, view_of_map
from ..clone import constant_of
from ..indices import place_of
from .load_loops import load_loop

CURE = "leave edge-boxes out"
BOXES_MOST = 4
"""Of a part. A box takes an H200 some 60 cycles, a step as many as six of them."""


@record
class EdgeBoxes:
    """Loads of tiles that extend past a view → loads of the rows in bounds.

    The pass runs after warp-specialization. It changes loads of K-major tiles, some of which extend
    past the view or, as the last ones of a cluster may, lie outside it. A CTA that loads a tile for
    itself gets a box of exactly the rows in bounds. One that loads a slice for several CTAs gets
    smaller boxes for parts of its slice, and loads at least one.
    """

    name: ClassVar[str] = "edge-boxes"
    makes: ClassVar[tuple[str, ...]] = (EdgeLoadOp.OPERATION_NAME, EdgeMulticastOp.OPERATION_NAME)

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        if walk(kernel, PairMmaOp):
            rule = "edge-boxes: a CTA must load for its own MMAs, got 2-CTA MMAs"
            raise refused(kernel, f"{rule}; {CURE}")
        loop = load_loop(kernel, self.name)
        _check_steps(loop)
        loads = [each for each in walk(loop, TmaLoadOp | TmaMulticastOp) if _hangs(kernel, each)]
        if fallback_of(kernel) is not None:
            rule = "edge-boxes: the CTAs of a line must all be in a cluster, got a fallback"
            raise refused(kernel, f"{rule}; {CURE}")
        if not loads:
            rule = "edge-boxes: K-major tiles of known rows must hang over a, b or both"
            raise refused(kernel, f"{rule}, got none that do; {CURE}")
        for load in loads:
            _change(load, loop)
        log.did(f"{many(len(loads), 'load')} limited to rows in bounds")


def _change(load: Any, loop: scf.ForOp) -> None:
    layout, multicast = load.tile.type.layout, isinstance(load, TmaMulticastOp)
    box = _unit(part_rows(load)) if multicast else _extent(load) % layout.rows or layout.rows
    slots = defining_op(defining_op(load.tile).slot).ring.type.stages
    numbers = {"extent": _extent(load), "rows": layout.rows, "first": slots}
    numbers["unit"] = box if multicast else 1
    how = {name: integer(number) for name, number in numbers.items()}
    with ir.InsertionPoint.at_block_begin(loop.body), load.location:
        step = loop.induction_variable
        count = EdgeRowsOp(i=load.i, step=step, **how, count=ir.IndexType.get()).count
    fields = {field.name: getattr(load, field.name) for field in type(load)._fields}
    made = EdgeMulticastOp if multicast else EdgeLoadOp
    with ir.InsertionPoint(load), load.location:
        made(**fields, count=count, end=_end(load, box))
    load.operation.erase()


def _unit(rows: int) -> int:
    """Rows of a box of which several make up a part: few boxes, each of which takes time."""
    units = range(STEP, rows + 1, STEP)
    return next(unit for unit in units if rows % unit == 0 and rows // unit <= BOXES_MOST)


def _check_steps(loop: scf.ForOp) -> None:
    if (constant_of(loop.lowerBound), constant_of(loop.step)) != (0, 1):
        rule = "edge-boxes: steps along K must be counted from 0 by 1"
        raise refused(loop, f"{rule}, got others; {CURE}")


def _hangs(kernel: KernelOp, load: Any) -> bool:
    """Whether the tile of some CTA has rows past the last of a view, or of a stack's matrix."""
    layout, axis = load.tile.type.layout, place_of(load.i)
    is_matrix = matrix_of(load.map) is not None
    by_itself = isinstance(load.map.owner.opview, TensorMapOp) or is_matrix
    if type(load) not in (TmaLoadOp, TmaMulticastOp) or not by_itself or axis is None:
        return False
    in_rows = layout.major == "k" and not layout.is_of_scales
    if not in_rows or part_rows(load) % STEP or _extent(load) < layout.rows:
        return False
    tiles, rest = divmod(_extent(load), layout.rows)
    return rest > 0 or tiles % integers_of(kernel.cluster)[axis] > 0


def _extent(load: Any) -> int:
    """Rows of the view; negative where a launch says them."""
    return extent_of(view_of_map(load.map), 0)


def _end(load: Any, rows: int) -> ir.Value:
    """The map of the same view whose boxes have so many rows of a chunk, beside the whole one."""
    layout, view, whole = load.tile.type.layout, view_of_map(load.map), load.map.type
    dims, box = [view.shape[1], _extent(load)], [layout.span, rows]
    type_ = TensorMapType.of(whole.element, dims, whole.strides[:1], box, whole.swizzle)
    return map_of_other_stack(load.map, type_)
