"""Who fills the slots of a ring, with how many bytes by TMA, and who releases them."""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.mma_units import ISSUED, WAIT_GROUP
from ..dialects.pipe import AcquireOp, RingType
from ..dialects.sm.threads import WarpsOp
from ..dialects.target import WARPGROUP_WARPS, Target
from ..dialects.tile import CopyOp, KernelOp, TmaLoadOp, TmaMulticastOp
from ..dialects.tile.loads import TmaGatherOp
from ..dialects.tile_types import SmemType, moved_bytes


def agent_of(op: ir.Operation | ir.OpView) -> Any:
    """The role, or the kernel, that runs an op."""
    while not isinstance(op.opview, WarpsOp | KernelOp):
        op = op.parent
    return op.opview


def ring_tiles(ring: ir.Value, end: str) -> list[ir.Value[Any]]:
    """The payload tiles that `pipe.tile` takes from what `end` ("acquire" or "wait") gives."""
    slots = [use.owner.opview.slot for use in ring.uses if use.owner.name == f"pipe.{end}"]
    return [use.owner.opview.tile for slot in slots for use in slot.uses]


def has_copies(ring: ir.Value) -> bool:
    """Whether threads fill a tile of the ring, so that the whole team produces."""
    return any(shared_fills(tile) for tile in ring_tiles(ring, "acquire"))


def gathers_alone(ring: ir.Value) -> bool:
    """Whether all that the team does for the ring is to start copies of TMA."""
    return not any(_is_copied(tile) for tile in ring_tiles(ring, "acquire"))


def is_self_filled(ring: ir.Value, target: Target) -> bool:
    """Whether the CTA's threads both copy into the ring's slots and multiply what they copied, by
    MMAs that are complete when they are issued."""
    tiles = ring_tiles(ring, "acquire")
    ends = [agent_of(use.owner) for use in ring.uses]
    return (
        target.mma.completion == ISSUED
        and bool(tiles)
        and all(_is_copied(tile) for tile in tiles)
        and all(isinstance(agent, KernelOp) for agent in ends)
    )


def releases(ring: ir.Value, warps: int, ctas: int, target: Target) -> int:
    """Arrivals by which so many warps of each of so many CTAs, whose MMAs read what one CTA has
    loaded, give its slot back."""
    if not target.releases_by_warp:
        return ctas
    together = ctas > 1 and may_release_together(ring, target)
    return ctas * (warps // WARPGROUP_WARPS if together else warps)


def may_release_together(ring: ir.Value, target: Target) -> bool:
    """Whether one warp of a warpgroup may give a slot back for all four.

    MMAs alone read it, and a group of them is one of the warpgroup (PTX ISA, wgmma.commit_group).
    """
    alone = target.mma.completion == WAIT_GROUP and not target.mma.threads_load
    return alone and not has_vectors(ring)


def has_vectors(ring: ir.Value) -> bool:
    """Whether a slot has scales, which threads read."""
    tiles = RingType(ring.type).tiles
    return any(isinstance(tile, SmemType) and tile.layout.is_vector for tile in tiles)


def _is_copied(tile: ir.Value) -> bool:
    return bool(_copies_into(tile))


def shared_fills(tile: ir.Value) -> list[CopyOp | TmaGatherOp]:
    """What fills the tile by all threads of a team."""
    fills = [use.owner.opview for use in tile.uses]
    return [fill for fill in fills if isinstance(fill, CopyOp | TmaGatherOp)]


def _copies_into(tile: ir.Value) -> list[CopyOp]:
    return [use.owner.opview for use in tile.uses if use.owner.name == "tile.copy"]


def transaction_bytes(acquire: AcquireOp) -> int:
    """Bytes that TMA will bring into the acquired slot, but by boxes whose rows a launch says."""
    tiles = [use.owner.opview.tile for use in acquire.slot.uses]
    by_tma = [tile for tile in tiles if not _is_copied(tile) and not _loads_of_own_rows(tile)]
    filled = ((tile.type, tile.type.layout.size_bytes - _missing_bytes(tile)) for tile in by_tma)
    return sum(moved_bytes(type_.element, size) for type_, size in filled)


def loads_of_own_rows(acquire: AcquireOp) -> list[TmaLoadOp | TmaMulticastOp]:
    """The loads into the acquired slot by boxes whose rows a launch says."""
    tiles = [use.owner.opview.tile for use in acquire.slot.uses]
    return [load for tile in tiles for load in _loads_of_own_rows(tile)]


def _loads_of_own_rows(tile: ir.Value[Any]) -> list[TmaLoadOp | TmaMulticastOp]:
    fills = [use.owner.opview for use in tile.uses]
    return [
        fill for fill in fills if isinstance(fill, TmaLoadOp | TmaMulticastOp) and fill.counts_rows
    ]


def _missing_bytes(tile: ir.Value[Any]) -> int:
    """Bytes of a tile that its copy's boxes leave out."""
    layout, fills = tile.type.layout, [use.owner.opview for use in tile.uses]
    missing = [fill.missing_rows for fill in fills if isinstance(fill, TmaLoadOp)]
    return max(missing, default=0) * layout.span_bytes * layout.chunks
