"""Turns thread copies into TMA copies through a one-slot pipe.

    for %k {                              %map = tensor_map %a      %ring = pipe.create
      %ta = load %a[%i, %k]               for %k {
      %tb = load %b[%j, %k]        →        %sa, %sb = pipe.acquire %ring
      mma %acc, %ta, %tb }                  tma_load %map → %sa …      pipe.commit %ring
                                            %ta, %tb = pipe.wait %ring
                                            mma %acc, %ta, %tb         pipe.release %ring }

(`pipe.tile` takes a slot's tiles apart; it is left out here.)

A view whose rows TMA cannot address keeps its thread copy, with a remark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialects.mlir import ir
from ..dialects.pipe import AcquireOp, CommitOp, CreateOp, ReleaseOp, RingType, TileOp, WaitOp
from ..dialects.target import Target
from ..dialects.tile import KernelOp, LoadOp, MmaOp, TensorMapOp, TmaLoadOp
from .base import PassLog, one_of, option, target_of, the_kernel, walk
from .tensor_maps import map_type, tma_refusal


@dataclass(frozen=True)
class TmaInsertion:
    """`tile.load` → `tile.tma_load` into a one-slot pipe.

    `box` is the rank of the TMA boxes: `2d` issues one copy for every chunk of a tile, `3d` one
    copy for the whole tile where its contiguous extent allows it.
    """

    name: ClassVar[str] = "tma-insertion"
    box: str = option("2d", one_of("2d", "3d"), "2d or 3d")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        rank = int(self.box[0])
        copies = 0
        for mma in walk(kernel, MmaOp):
            loads = _tma_loads(mma, target, log)
            if loads:
                _insert(kernel, mma, loads, rank, log)
                copies += len(loads)
        log.did(f"{copies} tile loads by TMA, {self.box} boxes")


def _tma_loads(mma: MmaOp, target: Target, log: PassLog) -> list[LoadOp]:
    """The loads of A and B that TMA can do; the others stay, with a remark."""
    loads = []
    for operand, name in ((mma.a, "A"), (mma.b, "B")):
        load = operand.owner.opview
        if not isinstance(load, LoadOp):
            continue
        reason = tma_refusal(load.view.type, load.tile.type.layout, target)
        if reason:
            log.remark(load, f"tma-insertion: {name} stays a copy by threads: {reason}")
        else:
            loads.append(load)
    return loads


def _insert(kernel: KernelOp, mma: MmaOp, loads: list[LoadOp], rank: int, log: PassLog) -> None:
    tiles = [load.tile.type for load in loads]
    top = ir.InsertionPoint.at_block_begin(kernel.body.blocks[0])
    with top, mma.location:
        maps = [_tensor_map(load, rank, log) for load in loads]
        ring = CreateOp(ring=RingType.of(1, tiles)).ring
    with ir.InsertionPoint(mma), mma.location:
        empty = AcquireOp(ring=ring, slot=ring.type.slot).slot
        for load, map_, tile in zip(loads, maps, slot_tiles(empty), strict=True):
            TmaLoadOp(map=map_, tile=tile, i=load.i, j=load.j, loc=load.location)
        CommitOp(ring=ring)
        full = slot_tiles(WaitOp(ring=ring, slot=ring.type.slot).slot)
        ReleaseOp(ring=ring).operation.move_after(mma.operation)
    for load, tile in zip(loads, full, strict=True):
        load.tile.replace_all_uses_with(tile)
        load.operation.erase()


def slot_tiles(slot: ir.Value) -> list[ir.Value]:
    """Emit a `pipe.tile` for every payload tile of a slot."""
    i64 = ir.IntegerType.get_signless(64)
    return [
        TileOp(slot=slot, index=ir.IntegerAttr.get(i64, index), tile=type_).tile
        for index, type_ in enumerate(slot.type.tiles)
    ]


def _tensor_map(load: LoadOp, rank: int, log: PassLog) -> ir.Value:
    type_ = map_type(load.view.type, load.tile.type, rank, lambda why: log.remark(load, why))
    return TensorMapOp(map=type_, view=load.view).map
