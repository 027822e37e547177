"""Checks of a kernel after `expand-loops`, except the indices of its stores.

The rules are those of `check_kernels` on views, roles, loads, MMAs and epilogues, which hold there
as before. Those on pipes and stores do not: what follows in them is no op of its own any more.
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.sm.ring_memory import StagingOp
from ...dialects.sm.threads import WarpsOp
from ...dialects.target import Target
from ...dialects.tile import CtaTileOp, KernelOp
from ...dialects.tile.ahead import AwaitPieceOp, LoadPieceOp
from ...dialects.tile.boxes import GatherBoxesOp, LoadBoxesOp, MulticastBoxesOp
from ...dialects.tile.stores import TmaStoreOp
from ...dialects.tile.sums import ViewMmaOp
from ...dialects.tile_types import bits_of, integers_of
from ..base import defining_op, operations, refused, walk
from ..batches import loaded_argument, view_of_map
from ..duals import first_other, is_dual
from ..tile_order import check_order
from .groups.stacks import check_stacks
from .kernel import LOADS, MMAS
from .launch.launch import check_registers, check_source
from .launch.roles import check_roles
from .launch.tiles import check_counted, check_tiles
from .products.blockwise import check_steps
from .products.edges import check_edges
from .products.mma import check_mma
from .products.operands import check_load, check_views
from .products.shares import check_view_mma
from .products.swapped import check_swapped
from .stores.ahead import check_piece
from .stores.epilogue import check_epilogue
from .stores.written import check_written

BOXES = (LoadBoxesOp, GatherBoxesOp, MulticastBoxesOp)


def check_expanded(kernel: KernelOp, target: Target) -> None:
    """Refuse, at the op, what breaks a rule."""
    if not walk(kernel, (*MMAS, ViewMmaOp)):
        raise refused(kernel, "sums: a kernel must multiply, got no MMA; give it one")
    for check in (
        check_source,
        check_views,
        check_swapped,
        check_order,
        check_stacks,
        check_steps,
        check_edges,
    ):
        check(kernel)
    _check_places(kernel, target)
    _check_ops(kernel, target)
    check_written(kernel)


def _check_places(kernel: KernelOp, target: Target) -> None:
    """Which warps run what, and on which tiles, unless loops over tiles say so by arithmetic."""
    roles, places = walk(kernel, WarpsOp), walk(kernel, CtaTileOp)
    check_roles(kernel, roles)
    check_registers(kernel, roles, target)
    check_counted(kernel, integers_of(kernel.grid))
    if places:
        check_tiles(kernel, places[:1], [])  # who asks for tiles early finds the same place anew


def _check_ops(kernel: KernelOp, target: Target) -> None:
    """What loads, multiplies and computes elements of C."""
    for op in walk(kernel, (*LOADS, *BOXES)):
        if isinstance(op, BOXES) and _is_of_epilogue(kernel, op):
            check_piece(op)
        else:
            check_load(kernel, op, target)
    for op in walk(kernel, MMAS):
        check_mma(kernel, op, target)
    for op in walk(kernel, ViewMmaOp):
        check_view_mma(kernel, op, target)
    for op in walk(kernel, LoadPieceOp | AwaitPieceOp):
        _check_ring(op)
    tiles = {op.acc.type.shape for op in walk(kernel, (*MMAS, ViewMmaOp))}
    for op in operations(kernel.operation):
        if hasattr(op, "epilogue"):
            check_epilogue(op, kernel, is_expanded=True)
        if hasattr(op, "extents"):
            _check_extents(op, tiles, is_dual(kernel))


def _check_ring(op: Any) -> None:
    """Pieces that are on their way have a ring with barriers, unlike those that are stored."""
    if isinstance(defining_op(op.ring), StagingOp):
        rule = "ahead: the ring must have barriers, got that of sm.staging"
        raise refused(op, f"{rule}; take that of the loads")


def _is_of_epilogue(kernel: KernelOp, op: Any) -> bool:
    """Whether a load brings what the epilogue reads."""
    view = loaded_argument(op)
    is_argument = isinstance(view.owner, ir.Block)
    return is_argument and ir.BlockArgument(view).arg_number >= first_other(kernel)


def _check_extents(op: Any, tiles: set[tuple[int, int]], dual: bool) -> None:
    """The tile of C, by whose number an op finds its place: of sums of two products the columns of
    one, of packed elements that are stored as bytes those bytes."""
    products, bits = 2 if dual else 1, _bits_of_columns(op)
    wanted = {(m, n * bits[0] // (products * bits[1])) for m, n in tiles}
    got = tuple(integers_of(op.extents))
    if got not in wanted:
        rule = f"extents: must be those of a tile of C, {list(*wanted)}"
        raise refused(op, f"{rule}, got {list(got)}; say those")


def _bits_of_columns(op: Any) -> tuple[int, int]:
    """Of an element of C, and of what a column of the op's tile is."""
    if not isinstance(op, TmaStoreOp):
        return 1, 1
    return bits_of(view_of_map(op.map).element_type), bits_of(op.buffer.type.element)
