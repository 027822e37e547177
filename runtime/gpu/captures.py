"""The state of a stream while a CUDA graph captures it.

Among kernels of ours one that may start before the one in front has ended gains by that. Next to
others' kernels it loses as much in a graph, on its way in and on its way out (docs/hopper.md,
"Back to back"): so launches are dependent within a run of ours. A capture knows what is in front;
a stream that runs does not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from .driver import Driver

KERNEL_NODE = 0  # CU_GRAPH_NODE_TYPE_KERNEL
RUN = 2
"""Launches of ours in front of one that is dependent: an H200 gains nothing in shorter runs."""
MANY = 8


@dataclass(frozen=True)
class Captures:
    """The graph captures on the streams of one GPU."""

    driver: Driver
    context: Any

    def number(self, where: str, stream: int) -> int:
        """What tells one capture of the stream from every other; 0 outside of any."""
        return int(self._info(where, stream)[1]) if self.capturing(where, stream) else 0

    def capturing(self, where: str, stream: int) -> bool:
        """Whether a graph captures what is launched on the stream."""
        asked = self.driver.api.cuStreamIsCapturing
        status, *found = asked(stream)
        if status:  # this thread may have no context yet
            with self.driver.entered(where, self.context):
                status, *found = asked(stream)
        return not status and bool(int(found[0]))

    def within_a_run(self, stream: int, functions: Collection[Any]) -> bool:
        """Whether the next launch of a capture comes after `RUN` launches of these, and they after
        nothing else. What a driver does not say is no run: any launch may be serial."""
        found = self._asked("cuStreamGetCaptureInfo", stream)
        nodes = found[3] or () if found else ()
        for _ in range(RUN):
            if not nodes or any(self._function(node) not in functions for node in nodes):
                return False
            nodes = [before for node in nodes for before in self._before(node)]
        return True

    def _before(self, node: Any) -> Sequence[Any]:
        """The nodes that one comes after; none where there are many."""
        found = self._asked("cuGraphNodeGetDependencies", node, MANY)
        return found[0][: found[-1]] if found and found[-1] < MANY else ()

    def _function(self, node: Any) -> Any:
        """The function of a kernel node; None for a copy, an event or another graph."""
        kind = self._asked("cuGraphNodeGetType", node)
        if not kind or int(kind[0]) != KERNEL_NODE:
            return None
        found = self._asked("cuGraphKernelNodeGetParams", node)
        return found[0].func if found else None

    def _asked(self, name: str, *arguments: Any) -> Sequence[Any]:
        """What a call answers, nothing where it fails."""
        status, *values = getattr(self.driver.api, name)(*arguments)
        return () if status else values

    def _info(self, where: str, stream: int) -> tuple[Any, ...]:
        """Status, number, graph and the nodes that come before what is launched next."""
        return self.driver.check(where, self.driver.api.cuStreamGetCaptureInfo(stream))
