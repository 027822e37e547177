"""Tensor maps in global memory: who has modified them, and whose fences make that visible.

A tensor copy reads its map through the tensormap proxy. A map that was written during the launch is
visible to the copies of a CTA only after ``fence.proxy.tensormap::generic.acquire`` on its address
there, and only if the writer has released it (PTX ISA §9.7.13.4, membar and fence). The scopes of
both must reach the other CTA (§8.5). The contents at the time of the acquire are compared with
those at the time of the copy.
"""

from __future__ import annotations

from typing import NamedTuple

from ..copies.tensor_map_object import FIELD_BYTES
from ..errors import Trap
from ..interface import Cta, Warp
from ..machine.events import Listener
from ..ptx.addresses import GLOBAL_BASE
from .races.clock import REACH


class _Writer(NamedTuple):
    """Who has modified a map, and the PTX line and the scope of the release, once there is one."""

    cta: Cta
    warp: int
    line: int
    scope: str = ""


class TensorMapProxy(Listener):
    """State of one launch, by the address of a map object."""

    def __init__(self):
        self._placed: dict[int, bytes] = {}
        self._unreleased: dict[int, _Writer] = {}
        self._released: dict[int, _Writer] = {}
        self._acquired: dict[tuple, tuple[bytes, str]] = {}

    def map_placed(self, address: int, data: bytes) -> None:
        """The host has put a map there before the launch."""
        self._placed[address] = data[:FIELD_BYTES]

    def map_edited(self, warp: Warp, address: int) -> None:
        """``tensormap.replace`` has changed the map."""
        self._unreleased[address] = _writer(warp)

    def map_published(self, warp: Warp, address: int, scope: str) -> None:
        """The map was replaced as a whole by an instruction that releases it."""
        self._unreleased.pop(address, None)
        self._released[address] = _writer(warp, scope)

    def maps_released(self, warp: Warp, scope: str) -> None:
        """A release fence of this warp: its modifications so far."""
        for address, writer in [*self._released.items(), *self._unreleased.items()]:
            if writer.cta is warp.cta and writer.warp == warp.index:
                self._unreleased.pop(address, None)
                self._released[address] = _writer(warp, max(scope, writer.scope, key=_reach))

    def map_acquired(self, cta: Cta, address: int, data: bytes, scope: str) -> None:
        """An acquire fence on a map by a thread of the CTA, which sees these contents."""
        known, before = self._acquired.get((cta.index, address), (None, ""))
        reach = max(scope, before, key=_reach) if known == data else scope
        self._acquired[cta.index, address] = data, reach

    def map_used(self, cta: Cta, address: int, data: bytes) -> None:
        """Trap if a copy of the CTA would use a map in global memory that it may not see."""
        if address < GLOBAL_BASE:
            return
        if writer := self._unreleased.get(address):
            raise Trap(
                "proxy-fence",
                f"the tensor map at 0x{address:x} was modified by cta {writer.cta.index} warp"
                f" {writer.warp} (ptx:{writer.line}) without"
                " fence.proxy.tensormap::generic.release afterwards",
            )
        if data == self._placed.get(address):
            return
        acquired, scope = self._acquired.get((cta.index, address), (None, ""))
        if data != acquired:
            raise Trap(
                "proxy-fence",
                f"the tensor map at 0x{address:x} was written during the launch;"
                f" fence.proxy.tensormap::generic.acquire on it first",
            )
        if writer := self._released.get(address):
            _check_scopes(cta, address, writer, scope)


def _reach(scope: str) -> int:
    return REACH[scope] if scope else -1


def _writer(warp: Warp, scope: str = "") -> _Writer:
    return _Writer(warp.cta, warp.index, warp.program.source[warp.split.pc].line, scope)


def _check_scopes(cta: Cta, address: int, writer: _Writer, acquired: str) -> None:
    for order, scope in (("release", writer.scope), ("acquire", acquired)):
        near = writer.cta is cta if scope == "cta" else writer.cta.cluster is cta.cluster
        if scope in ("cta", "cluster") and not near:
            raise Trap(
                "proxy-fence",
                f"the tensor map at 0x{address:x} was released by cta {writer.cta.index} warp"
                f" {writer.warp} (ptx:{writer.line}), and the scope .{scope} of the {order} leaves"
                f" out {'this CTA' if order == 'release' else 'that CTA'} (PTX ISA section 8.5)",
            )
