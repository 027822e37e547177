"""Cuts each group of rows into tiles of equal height, and sizes the MMAs accordingly.

    520 rows, tiles of 256:   256, 256 and 8   →   174, 173 and 173

    mma %acc, %a, %b      →   level_mma %acc, %a, %b, %count {unit}
    tma_load %map, %b     →   level_load %map, %b, %count          boxes of `box` rows

A and B are exchanged (`tiling{swap=true}`), so the rows of groups are columns of the MMAs, and a
wgmma may have any multiple of 8 columns. There is one K loop for each multiple of `unit`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...dialects.mlir import ir
from ...dialects.mma_units import WGMMA
from ...dialects.record import record
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import KernelOp, MmaOp, SplitRankOp, TmaLoadOp
from ...dialects.tile.groups import GroupOp
from ...dialects.tile.level import LevelLoadOp, LevelMmaOp
from ...dialects.tile.scales import ALL_MMAS
from ...dialects.tile_types import TensorMapType, integers_of
from ..base import (
    PassLog,
    is_swapped,
    option,
    parse_positive,
    refused,
    target_of,
    the_kernel,
    walk,
)
from ..batches import set_map
from ..groups import LEVEL_ATTRIBUTE, group_of, is_level, rows_of_group

STEP = 8
"""The columns of a wgmma, and the rows of a box that begin in a swizzled tile, are multiples."""
CURE = "leave level-groups out"


@record
class LevelGroups:
    """Tiles of a group of rows → tiles of equal height, and MMAs with that many columns."""

    name: ClassVar[str] = "level-groups"
    makes: ClassVar[tuple[str, ...]] = (LevelMmaOp.OPERATION_NAME, LevelLoadOp.OPERATION_NAME)
    unit: int = option(STEP, parse_positive, "a number of rows")
    box: int = option(32, parse_positive, "a number of rows")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        _check_kernel(kernel, target_of(module))
        mmas = walk(kernel, ALL_MMAS)
        loads = [load for load in walk(kernel, TmaLoadOp) if rows_of_group(load.map) is not None]
        for mma in mmas:
            self._check_mma(mma)
        for load in loads:
            self._check_load(load)
        kernel.operation.attributes[LEVEL_ATTRIBUTE] = ir.UnitAttr.get()
        for load in loads:
            self._load(load)
        for mma in mmas:
            self._level(mma)
        log.did(f"MMAs of a multiple of {self.unit} rows, boxes of {self.box}")

    def _check_mma(self, mma: Any) -> None:
        if type(mma) is not MmaOp:
            rule = "level-groups: MMAs must be tile.mma"
            raise refused(mma, f"{rule}, got {mma.operation.name}; {CURE}")
        columns = mma.acc.type.shape[1]
        if self.unit % STEP or columns % self.unit:
            rule = f"level-groups: unit must be a multiple of {STEP} that divides the tile's"
            raise refused(mma, f"{rule} {columns} rows, got {self.unit}; take another")

    def _check_load(self, load: Any) -> None:
        rows = load.tile.type.layout.rows
        if self.box % self.unit or rows % self.box:
            rule = f"level-groups: box must be a multiple of unit, {self.unit}, that divides the"
            raise refused(load, f"{rule} tile's {rows} rows, got {self.box}; take another")
        layout, box = load.tile.type.layout, load.map.type.box
        if layout.major != "k" or layout.chunks != 1 or len(box) != 2 or box[0] != layout.span:
            rule = "level-groups: a box must be a K-major tile of rows of a group"
            raise refused(load, f"{rule}, got boxes of {list(box)}; cut K by less, or {CURE}")

    def _load(self, load: Any) -> None:
        old = load.map.type
        cut = TensorMapType.of(
            old.element, old.dims, old.strides, [old.box[0], self.box], old.swizzle
        )
        set_map(load.map, cut)
        with ir.InsertionPoint(load), load.location:
            count = _group_around(load).count
            LevelLoadOp(map=load.map, tile=load.tile, i=load.i, j=load.j, count=count)
        load.operation.erase()

    def _level(self, mma: Any) -> None:
        fields = {field.name: getattr(mma, field.name) for field in type(mma)._fields}
        with ir.InsertionPoint(mma), mma.location:
            LevelMmaOp(**fields, count=_group_around(mma).count, unit=attribute_of(self.unit))
        mma.operation.erase()


def _check_kernel(kernel: KernelOp, target: Target) -> None:
    """Whether rows of groups are columns of wgmmas, of a CTA by itself and all of K."""
    cluster, broken = integers_of(kernel.cluster), None
    if is_level(kernel):
        broken = "tiles that are whole, got some that are equally high already"
    elif group_of(kernel) is None or not is_swapped(kernel):
        broken = "groups of rows whose A and B are exchanged (tiling{swap=true}), got others"
    elif target.mma.name != WGMMA.name:
        broken = f"for a chip whose MMAs are wgmma.mma_async, got {target.mma.name}"
    elif cluster != [1, 1, 1]:
        broken = f"of CTAs without a cluster, got one of {cluster}"
    elif walk(kernel, SplitRankOp):
        broken = "of products that are not split along K, got a split one"
    if broken is not None:
        raise refused(kernel, f"level-groups: tiles must be {broken}; {CURE}")


def _group_around(op: Any) -> GroupOp:
    """What says which group the tile of an MMA or a load is of."""
    block = op.operation.block
    while True:
        for each in block.operations:
            if isinstance(each, GroupOp):
                return each
        block = block.owner.operation.block
