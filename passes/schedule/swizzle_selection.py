"""Gives every operand tile the widest swizzle that fits, and TMA boxes of that width.

    !tile.smem<tensor<128x64xbf16>, "k", "none">  →  !tile.smem<tensor<128x64xbf16>, "k", "128B">
    !tile.map<…, box [8, 128], "none">            →  !tile.map<…, box [64, 128], "128B">

A swizzle permutes the 16-byte units of the lines of shared memory, so that adjacent rows of a tile
begin in different banks. A wider one also lets one TMA box cover more of each row. The types of
tile, ring and tensor map change together. For gathered rows, TMA gather replaces the copies by
threads where rows fill whole lines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ...dialects.layout import (
    SWIZZLES,
    TileLayout,
    core_matrix_conflicts,
    row_conflicts,
    widest_swizzle,
)
from ...dialects.mlir import ir
from ...dialects.pipe import CreateOp
from ...dialects.ragged_maps import plain_rank
from ...dialects.record import record
from ...dialects.target import Target
from ...dialects.tile import CopyOp, LoadOp, TmaGatherOp, TmaLoadOp, TmaMulticastOp
from ...dialects.tile_types import SmemType, is_padded
from ...dialects.verify import gather_refusal
from ..base import (
    PassLog,
    defining_op,
    one_of,
    option,
    parse_bool,
    refused,
    target_of,
    the_kernel,
    walk,
)
from ..batches import drop_unused, map_of_view, set_map, view_of_map
from ..dynamic_rows import least_rows
from ..groups import gathered_of
from ..rings import is_operand_ring, retype_ring
from ..tensor_maps import gather_map, load_map_type, multicast_map, tma_refusal


@record
class SwizzleSelection:
    """Layout none → the widest legal swizzle, K-major or MN-major.

    `force` takes one swizzle for every tile instead. `report` adds a remark on bank conflicts for
    each tile.
    """

    name: ClassVar[str] = "swizzle-selection"
    force: str = option("widest", one_of("widest", *SWIZZLES), "widest, none, 32B, 64B or 128B")
    report: bool = option(False, parse_bool, "true or false")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        chosen: list[str] = []
        for load in walk(kernel, LoadOp):
            load.tile.set_type(self._swizzled(load, load.tile.type, chosen, log))
        for create in filter(is_operand_ring, walk(kernel, CreateOp)):
            self._change_ring(create, chosen, log)
        target = target_of(module)
        by_tma = bool(walk(kernel, TmaLoadOp))  # else threads copy all of a slot
        for copy in [each for each in walk(kernel, CopyOp) if by_tma and _gathers(each, target)]:
            _gather(copy)
        drop_unused(kernel)
        for copy in walk(kernel, TmaLoadOp | TmaMulticastOp):
            _change_map(copy, log)
        log.did(f"swizzle {', '.join(chosen)}")

    def _change_ring(self, create: CreateOp, chosen: list[str], log: PassLog) -> None:
        ring = create.ring.type
        tiles = [self._swizzled(create, SmemType(tile), chosen, log) for tile in ring.tiles]
        retype_ring(create, ring.stages, tiles)

    def _swizzled(self, op: Any, tile: SmemType, chosen: list[str], log: PassLog) -> SmemType:
        before = tile.layout
        fixed = before.is_of_scales or before.is_vector
        if fixed or is_padded(tile.element):  # they have the one that fits
            return tile
        swizzle = widest_swizzle(before) if self.force == "widest" else self.force
        after = replace(before, swizzle=swizzle)
        reason = after.fits()
        if reason:
            raise refused(op, f"swizzle-selection: {reason}; drop force={self.force}")
        if self.report:
            log.remark(op, f"swizzle-selection: {_conflicts(before)} → {_conflicts(after)}")
        chosen.append(f"{after.major}-major {swizzle}")
        return SmemType.of(after, tile.element)


def _gathers(copy: CopyOp, target: Target) -> bool:
    """Whether TMA can gather the rows that threads copy: four at a time, whole 128-byte lines."""
    gathered, layout = gathered_of(copy.view), copy.tile.type.layout
    if gathered is None or not target.gathers_rows:
        return False
    return not (tma_refusal(gathered.whole.type, layout, target) or gather_refusal(layout))


def _gather(copy: CopyOp) -> None:
    """Let TMA copy the rows, through a tensor map of the whole view."""
    whole = defining_op(copy.view).whole
    with ir.InsertionPoint.at_block_begin(whole.owner), copy.location:
        map_ = map_of_view(copy.view, gather_map(whole.type, copy.tile.type))
    where = {"tile": copy.tile, "i": copy.i, "j": copy.j, "loc": copy.location}
    TmaGatherOp(map=map_, ip=ir.InsertionPoint(copy), **where)
    copy.operation.erase()


def _change_map(copy: TmaLoadOp | TmaMulticastOp, log: PassLog) -> None:
    view = view_of_map(copy.map)
    if isinstance(copy, TmaMulticastOp):
        set_map(copy.map, multicast_map(view, copy.tile.type, copy.parts.value))
        return
    rank = plain_rank(copy.map.type)
    remark, least = lambda why: log.remark(copy, why), least_rows(copy)
    new = load_map_type(view, copy.tile.type, rank, remark, least)
    set_map(copy.map, new)


def _conflicts(layout: TileLayout) -> str:
    return (
        f"{layout.mn}x{layout.k} {layout.swizzle}: bank conflicts {row_conflicts(layout)}-way "
        f"writing a row, {core_matrix_conflicts(layout)}-way reading a core matrix"
    )
