"""Tensor maps in global memory: who has modified them, and whose fences make that visible.

A tensor copy reads its map through the tensormap proxy. A map that was written during the launch is
visible to the copies of a CTA only after ``fence.proxy.tensormap::generic.acquire`` on its address
there, and only if the writer has released it (PTX ISA §9.7.13.4, membar and fence). The
contents at the time of the acquire are compared with those at the time of the copy.
"""

from __future__ import annotations

from ..copies.tensor_map_object import FIELD_BYTES
from ..errors import Trap
from ..interface import Cta, Warp
from ..machine.events import Listener
from ..ptx.addresses import GLOBAL_BASE

_Writer = tuple[tuple[int, int, int], int, int]
"""CTA, warp and PTX line of a modification."""


class TensorMapProxy(Listener):
    """State of one launch, by the address of a map object."""

    def __init__(self):
        self._placed: dict[int, bytes] = {}
        self._unreleased: dict[int, _Writer] = {}
        self._acquired: dict[tuple, bytes] = {}

    def map_placed(self, address: int, data: bytes) -> None:
        """The host has put a map there before the launch."""
        self._placed[address] = data[:FIELD_BYTES]

    def map_edited(self, warp: Warp, address: int) -> None:
        """``tensormap.replace`` has changed the map."""
        line = warp.program.source[warp.split.pc].line
        self._unreleased[address] = warp.cta.index, warp.index, line

    def map_published(self, address: int) -> None:
        """The map was replaced as a whole by an instruction that releases it."""
        self._unreleased.pop(address, None)

    def maps_released(self, warp: Warp) -> None:
        """A release fence of this warp: its modifications so far."""
        mine = warp.cta.index, warp.index
        left = {at: who for at, who in self._unreleased.items() if who[:2] != mine}
        self._unreleased = left

    def map_acquired(self, cta: Cta, address: int, data: bytes) -> None:
        """An acquire fence on a map by a thread of the CTA, which sees these contents."""
        self._acquired[cta.index, address] = data

    def map_used(self, cta: Cta, address: int, data: bytes) -> None:
        """Trap if a copy of the CTA would use a map in global memory that it may not see."""
        if address < GLOBAL_BASE:
            return
        if writer := self._unreleased.get(address):
            raise Trap(
                "proxy-fence",
                f"the tensor map at 0x{address:x} was modified by cta {writer[0]} warp {writer[1]}"
                f" (ptx:{writer[2]}) without fence.proxy.tensormap::generic.release afterwards",
            )
        if data not in (self._placed.get(address), self._acquired.get((cta.index, address))):
            raise Trap(
                "proxy-fence",
                f"the tensor map at 0x{address:x} was written during the launch;"
                f" fence.proxy.tensormap::generic.acquire on it first",
            )
