"""Loads operand tiles through a one-slot pipe, by TMA if it can address the view.

    for %k {                              %map = tensor_map %a      %ring = pipe.create
      %ta = load %a[%i, %k]               for %k {
      %tb = load %b[%j, %k]        →        %sa, %sb = pipe.acquire %ring
      mma %acc, %ta, %tb }                  tma_load %map → %sa …      pipe.commit %ring
                                            %ta, %tb = pipe.wait %ring
                                            mma %acc, %ta, %tb         pipe.release %ring }

The producer acquires an empty slot of the ring, fills it and commits it. The consumer waits for a
full slot, reads it and releases it. (`pipe.tile`, which extracts the tiles of a slot, is omitted
above.) If TMA cannot address the rows of a view, the producer's threads copy its tile into the slot
instead, by `tile.copy`, and a remark says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from ...dialects import legality
from ...dialects.mlir import ir
from ...dialects.pipe import (
    AcquireOp,
    CommitOp,
    CreateOp,
    ReleaseOp,
    RingType,
    SlotType,
    TileOp,
    WaitOp,
)
from ...dialects.record import record
from ...dialects.target import Target
from ...dialects.tile import AwaitMmaOp, CopyOp, KernelOp, LoadOp, MmaOp, TmaLoadOp
from ...dialects.tile.blockwise import BlockwiseMmaOp
from ...dialects.tile.scales import ALL_MMAS, smem_operands
from ...dialects.tile.sums import ViewMmaOp
from ...dialects.tile_types import integer
from ..base import PassLog, many, one_of, option, refused, require, target_of, the_kernel, walk
from ..batches import argument_of, drop_unused, map_of_view, step_bytes
from ..dynamic_rows import least_rows, rows_multiple
from ..groups import gathered_of
from ..shared_scales import padding_read
from ..tensor_maps import load_map_type, tma_refusal, vector_refusal

MMA_NAMES = frozenset(each.OPERATION_NAME for each in ALL_MMAS)


@record
class TmaInsertion:
    """`tile.load` → `tile.tma_load` into a one-slot pipe.

    `box` is the rank of the TMA boxes. `2d` issues one copy for every chunk of a tile. `3d` issues
    one copy for the whole tile, where its contiguous extent allows that.
    """

    name: ClassVar[str] = "tma-insertion"
    box: str = option("2d", one_of("2d", "3d"), "2d or 3d")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        require(kernel, legality.tma(target), "use copy-insertion", "tma-insertion: ")
        padding = padding_read(kernel)
        copies = pipe_operands(kernel, target, self.name, partial(self._map, target, log, padding))
        drop_unused(kernel)
        log.did(f"{many(copies, 'operand tile')} by TMA, {self.box} boxes")

    def _map(
        self, target: Target, log: PassLog, padding: str | None, load: LoadOp
    ) -> ir.Value | None:
        """The tensor map of the load's view, or None, with a remark, if TMA cannot address it."""
        refusal = vector_refusal if _is_vector_of_scales(load) else tma_refusal
        multiple = rows_multiple(load)
        reason = refusal(load.view.type, load.tile.type.layout, target, multiple)
        reason = reason or legality.stack_pitch(target, multiple * step_bytes(load.view))
        if gathered_of(load.view) is not None:
            reason = reason or "its rows lie anywhere"
        if load.tile.type.layout.is_of_scales:
            reason = reason or padding
        if reason:
            name = _argument_name(load)
            log.remark(load, f"tma-insertion: {name} is copied by threads: {reason}")
            return None
        rank = int(self.box[0])
        type_ = load_map_type(
            load.view.type,
            load.tile.type,
            rank,
            lambda why: log.remark(load, why),
            least_rows(load),
        )
        return map_of_view(load.view, type_)


def pipe_operands(
    kernel: KernelOp, target: Target, name: str, map_of: Callable[[LoadOp], ir.Value | None]
) -> int:
    """Load the operands of each MMA through a pipe. Returns how many TMA copies; `name` is the
    pass."""
    if walk(kernel, ViewMmaOp):
        raise refused(
            kernel,
            f"{name}: operands must be loaded as tiles, got MMAs that read global memory "
            "themselves; tile without operands=global",
        )
    if not walk(kernel, LoadOp):
        raise refused(kernel, f"{name}: operands come through a pipe already; run it once")
    for load in walk(kernel, LoadOp):
        _check_use(load, name)
    copies = 0
    for mma in walk(kernel, MmaOp):
        operands: list[Any] = smem_operands(mma)
        loads = [operand.owner.opview for operand in operands]
        if all(isinstance(load, LoadOp) for load in loads):
            copies += _insert(kernel, mma, loads, target, map_of)
    return copies


def _insert(
    kernel: KernelOp,
    mma: MmaOp,
    loads: list[LoadOp],
    target: Target,
    map_of: Callable[[LoadOp], ir.Value | None],
) -> int:
    """Load the operands of one MMA through a pipe. Returns how many of them TMA copies."""
    tiles = [load.tile.type for load in loads]
    top = ir.InsertionPoint.at_block_begin(kernel.body.blocks[0])
    with top, mma.location:
        maps = [map_of(load) for load in loads]
        ring = CreateOp(ring=RingType.of(1, tiles)).ring
    with ir.InsertionPoint(mma), mma.location:
        empty = AcquireOp(ring=ring, slot=ring.type.slot).slot
        for load, map_, tile in zip(loads, maps, slot_tiles(empty), strict=True):
            _fill(load, map_, tile)
        CommitOp(ring=ring)
        full = slot_tiles(WaitOp(ring=ring, slot=ring.type.slot).slot)
    with ir.InsertionPoint.after(mma.operation), mma.location:
        if target.awaits_mmas:
            await_mmas(0)
        ReleaseOp(ring=ring)
    for load, tile in zip(loads, full, strict=True):
        load.tile.replace_all_uses_with(tile)
        load.operation.erase()
    return len([map_ for map_ in maps if map_ is not None])


def _check_use(load: LoadOp, name: str) -> None:
    """Check that each tile is loaded for a single MMA, since a slot belongs to one step."""
    readers = [use.owner.name for use in load.tile.uses]
    if len(readers) != 1 or readers[0] not in MMA_NAMES:
        raise refused(
            load,
            f"{name}: a tile must be loaded for one MMA, got {len(readers)} that read it; "
            "load it for each",
        )


def _fill(load: LoadOp, map_: ir.Value | None, tile: ir.Value) -> None:
    where = {"tile": tile, "i": load.i, "j": load.j, "loc": load.location}
    if map_ is None:
        CopyOp(view=load.view, **where)
    else:
        TmaLoadOp(map=map_, **where)


def _is_vector_of_scales(load: LoadOp) -> bool:
    """Whether a tile is a row of scales that threads read one at a time."""
    readers = {use.owner.name for use in load.tile.uses}
    return load.tile.type.layout.is_vector and readers == {BlockwiseMmaOp.OPERATION_NAME}


def _argument_name(load: LoadOp) -> str:
    view = ir.BlockArgument(argument_of(load.view))
    return view.owner.owner.opview.arg_names[view.arg_number].value


def await_mmas(pending: int) -> AwaitMmaOp:
    """Emit a `tile.await_mma`."""
    return AwaitMmaOp(pending=integer(pending))


def slot_tiles(slot: ir.Value[SlotType]) -> list[ir.Value]:
    """Emit a `pipe.tile` for every payload tile of a slot."""
    return [
        TileOp(slot=slot, index=integer(index), tile=type_).tile
        for index, type_ in enumerate(slot.type.tiles)
    ]
