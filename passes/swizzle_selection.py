"""Gives every operand tile the widest swizzle that fits, and TMA boxes as wide.

    !tile.smem<tensor<128x64xbf16>, "k", "none">  →  !tile.smem<tensor<128x64xbf16>, "k", "128B">
    !tile.map<…, box [8, 128], "none">            →  !tile.map<…, box [64, 128], "128B">

A swizzle permutes the 16-byte units of the lines of shared memory, so that neighbouring rows of a
tile begin in different banks. A wider one also lets one TMA box cover more of each row. The types
of tile, ring and tensor map change together, and nothing else moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..dialects.layout import (
    SWIZZLES,
    TileLayout,
    core_matrix_conflicts,
    row_conflicts,
    widest_swizzle,
)
from ..dialects.mlir import ir
from ..dialects.pipe import CreateOp
from ..dialects.ragged_maps import plain_rank
from ..dialects.tile import LoadOp, TmaLoadOp, TmaMulticastOp
from ..dialects.tile_types import SmemType, is_padded
from .base import PassLog, one_of, option, parse_bool, refused, the_kernel, walk
from .batches import set_map, view_of_map
from .dynamic_rows import least_rows
from .rings import is_operand_ring, retype_ring
from .tensor_maps import load_map_type, multicast_map


@dataclass(frozen=True)
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
        for copy in walk(kernel, TmaLoadOp | TmaMulticastOp):
            _change_map(copy, log)
        log.did(f"swizzle {', '.join(chosen)}")

    def _change_ring(self, create: CreateOp, chosen: list[str], log: PassLog) -> None:
        ring = create.ring.type
        tiles = [self._swizzled(create, SmemType(tile), chosen, log) for tile in ring.tiles]
        retype_ring(create, ring.stages, tiles)

    def _swizzled(self, op: Any, tile: SmemType, chosen: list[str], log: PassLog) -> SmemType:
        before = tile.layout
        if before.is_of_scales or is_padded(tile.element):  # they have the one that fits
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
