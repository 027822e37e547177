"""Bulk async-groups: the bulk stores of a thread, which it waits for together.

Source: PTX ISA, "cp.async.bulk.commit_group".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ..interface import Cta, EngineOp


@dataclass
class BulkOperation:
    """A bulk store: `read` is done when its source is free, `write` when the result is there."""

    read: EngineOp
    write: EngineOp


@dataclass
class BulkGroups:
    """Bulk async-groups of one thread: operations not committed yet, and committed groups.

    written: the last write that is done but that the thread has not waited for.
    """

    open: list[BulkOperation] = field(default_factory=list)
    committed: deque[list[BulkOperation]] = field(default_factory=deque)
    written: list[EngineOp] = field(default_factory=list)

    def add(self, operation: BulkOperation) -> None:
        """An operation initiated by the thread."""
        self.open.append(operation)

    def commit(self) -> None:
        """Close the open group (an empty one is a group too)."""
        self.committed.append(self.open)
        self.open = []

    def _older(self, newest: int) -> list[BulkOperation]:
        groups = list(self.committed)[: max(0, len(self.committed) - newest)]
        return [operation for group in groups for operation in group]

    def awaited(self, newest: int, read: bool) -> list[EngineOp]:
        """What a wait for all but the ``newest`` groups waits for (the reading, with ``read``)."""
        older = self._older(newest)
        parts = [operation.read for operation in older]
        return parts if read else [*parts, *self.written, *(each.write for each in older)]

    def release(self, newest: int, read: bool) -> None:
        """Forget the groups that are complete."""
        self.written = self.written[-1:] if read else []
        for _ in range(max(0, len(self.committed) - newest)):
            if not all(operation.write.done for operation in self.committed[0]):
                return
            done = self.committed.popleft()
            if read and done:
                self.written = [done[-1].write]


def bulk_groups(cta: Cta, warp: int, lane: int) -> BulkGroups:
    """The groups of one thread; made at first use."""
    table = cta.state("bulk groups", dict)
    return table.setdefault((warp, lane), BulkGroups())
