"""The order in which CTAs with one tile each take tiles: `tile.order` of a kernel.

CTAs start in the order of %ctaid.x, then %ctaid.y, so that without an order those that run together
have neighbours along M. `expand-loops` writes an order out (`expand_order`).
"""

from __future__ import annotations

from typing import Any

from ..dialects import sm
from ..dialects.hilbert import CELLS_MAX
from ..dialects.mlir import arith, ir
from ..dialects.sm.types import attribute_of
from ..dialects.tile import CtaTileOp, KernelOp
from ..dialects.tile.place import PlaceOp
from ..dialects.tile_types import DYNAMIC, integers, integers_of
from ..dialects.verify import GROUP_DEFAULT, ORDERS, order_refusal
from .base import refused, walk
from .build import constant
from .dynamic_rows import clusters_along_m, place_at

ORDER_ATTRIBUTE = "tile.order"
ORDER, GROUP = "order", "group"
GRID_ORDER = "m"


def say_order(kernel: KernelOp, matmul: Any, order: str, group: int | None) -> None:
    """Write an order down; none for that of the grid itself."""
    if group is not None and order != "grouped":
        raise refused(matmul, f"tiling: group is for order=grouped, got order={order}")
    if order != GRID_ORDER:
        said = {ORDER: attribute_of(order), GROUP: attribute_of(group or GROUP_DEFAULT)}
        kernel.operation.attributes[ORDER_ATTRIBUTE] = ir.DictAttr.get(said)
        check_order(kernel)


def said_order(kernel: KernelOp) -> tuple[str, int] | None:
    """(order, group) that a kernel says, None where it says none."""
    attributes = kernel.operation.attributes
    if ORDER_ATTRIBUTE not in attributes:
        return None
    said: Any = attributes[ORDER_ATTRIBUTE]
    try:
        order, group = ir.StringAttr(said[ORDER]).value, ir.IntegerAttr(said[GROUP]).value
    except (KeyError, TypeError, ValueError):
        order, group = "", 0
    if order not in ORDERS or len(said) != 2:
        wanted = f"{{group = 8 : i64, order = {ORDERS[2]!r}}}, the order one of {ORDERS}"
        raise refused(kernel, f"{ORDER_ATTRIBUTE} must be as {wanted}, got {said}")
    if broken := order_refusal(order, group):
        raise refused(kernel, f"{ORDER_ATTRIBUTE}: {broken}; say the order of a persistence pass")
    return order, group


def expand_order(kernel: KernelOp) -> None:
    """A CTA's place in the grid by its number, counted along x, then y."""
    said = said_order(kernel)
    if said is None:
        return
    for place in walk(kernel, CtaTileOp):
        with ir.InsertionPoint(place), place.location:
            made = _place(kernel, *said)
        for old, new in zip(place.operation.results, made.operation.results, strict=True):
            old.replace_all_uses_with(new)
        place.operation.erase()
    del kernel.operation.attributes[ORDER_ATTRIBUTE]


def _place(kernel: KernelOp, order: str, group: int) -> PlaceOp:
    tiles, cluster = integers_of(kernel.grid)[:2], integers_of(kernel.cluster)
    x, y = (_cluster_along(axis, extent) for axis, extent in zip("xy", cluster, strict=False))
    number = arith.addi(arith.muli(y, clusters_along_m(kernel, tiles[0])), x)
    how = {"tiles": integers(tiles), ORDER: attribute_of(order), GROUP: attribute_of(group)}
    return place_at(kernel, number, how)


def _cluster_along(axis: str, extent: int) -> ir.Value:
    """Which cluster this CTA's is along an axis of the grid."""
    cta = sm.SpecialRegisterOp.of(register=f"ctaid.{axis}").value
    return cta if extent == 1 else arith.divui(cta, constant(extent))


def check_order(kernel: KernelOp) -> None:
    """Refuse an order that the kernel's grid cannot have."""
    said, tiles = said_order(kernel), integers_of(kernel.grid)[:2]
    if said is None or said[0] != "hilbert":
        return
    if DYNAMIC in tiles:
        rule = f"{ORDER_ATTRIBUTE} hilbert is a table of known tiles, got any number"
        raise refused(kernel, f"{rule}; take order=grouped")
    if tiles[0] * tiles[1] > CELLS_MAX:
        raise refused(
            kernel,
            f"{ORDER_ATTRIBUTE} hilbert has at most {CELLS_MAX} tiles, got {tiles[0]}x{tiles[1]}; "
            "take order=grouped",
        )
