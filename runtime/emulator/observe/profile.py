"""What a profile holds; plain data, with its words and its JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .global_requests import SECTOR, SIZES, Requests

THREADS = "threads"
SHOWN_OPCODES = 8
SHOWN_TEXT = 72


@dataclass
class Conflicts:
    """Shared-memory passes of one instruction; see `bank_conflicts`. worst_ways: 1 is none."""

    ptx_line: int
    ptx_text: str
    executions: int = 0
    passes: int = 0
    least_passes: int = 0
    worst_ways: int = 0


@dataclass(frozen=True)
class Totals:
    """Of a launch. Shared memory: passes and the least; conflicts: those beyond it. Global memory:
    bytes that were asked for, requests by size, sectors, and different ones read and written."""

    passes: int
    least_passes: int
    asked_bytes: int
    sectors: int
    unique_read_sectors: int
    unique_written_sectors: int
    requests: dict[int, int]

    @property
    def conflicts(self) -> int:
        """Passes that other places of the same data would save."""
        return self.passes - self.least_passes

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        requests = {str(size): count for size, count in self.requests.items()}
        return vars(self) | {"conflicts": self.conflicts, "requests": requests}


@dataclass
class BarrierUse:
    """One barrier, in all CTAs together. signals: operations that arrived or brought bytes;
    phases: that completed; waits: instructions of warps; suspended: those that had to wait."""

    name: str
    signals: int = 0
    phases: int = 0
    waits: int = 0
    suspended: int = 0


@dataclass
class Role:
    """Warps that run the same code, and what they execute: warp instructions by opcode."""

    name: str
    warps: list[int]
    instructions: Counter[str] = field(default_factory=Counter)


@dataclass
class Profile:
    """bytes: by (memory, `read` or `write`, who: `threads` or an engine); operations: by (unit,
    type of operands), see `operations`; unique_sectors: of global memory, by `read` and `write`."""

    bytes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    operations: Counter[tuple[str, str]] = field(default_factory=Counter)
    conflicts: list[Conflicts] = field(default_factory=list)
    requests: list[Requests] = field(default_factory=list)
    unique_sectors: dict[str, int] = field(default_factory=dict)
    barriers: list[BarrierUse] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)

    def totals(self) -> Totals:
        """What all instructions together took."""
        sizes: Counter[int] = Counter()
        for each in self.requests:
            sizes.update(each.sizes)
        return Totals(
            passes=sum(each.passes for each in self.conflicts),
            least_passes=sum(each.least_passes for each in self.conflicts),
            asked_bytes=sum(each.asked_bytes for each in self.requests),
            sectors=sum(each.sectors for each in self.requests),
            unique_read_sectors=self.unique_sectors.get("read", 0),
            unique_written_sectors=self.unique_sectors.get("write", 0),
            requests={size: sizes[size] for size in SIZES},
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON (docs/emulator-reference.md)."""
        return {
            "bytes": [
                {"memory": memory, "direction": direction, "by": who, "bytes": amount}
                for (memory, direction, who), amount in sorted(self.bytes.items())
            ],
            "operations": [
                {"unit": unit, "type": type_, "operations": count}
                for (unit, type_), count in sorted(self.operations.items())
            ],
            "totals": self.totals().as_dict(),
            "global_requests": [each.as_dict() for each in self.requests],
            "shared_memory_passes": [vars(each) for each in self.conflicts],
            "barriers": [vars(each) for each in self.barriers],
            "roles": [
                {
                    "name": role.name,
                    "warps": role.warps,
                    "total": role.instructions.total(),
                    "instructions": dict(role.instructions.most_common()),
                }
                for role in self.roles
            ],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield "bytes moved"
        yield from _table(
            ("memory", "direction", "by", "bytes"),
            [(*key, amount) for key, amount in sorted(self.bytes.items())],
        )
        yield "shared-memory passes (32 banks of 4 bytes; ways above 1 are bank conflicts)"
        yield from _table(
            ("ptx", "executed", "passes", "least", "worst ways", "instruction"),
            [
                (
                    c.ptx_line,
                    c.executions,
                    c.passes,
                    c.least_passes,
                    c.worst_ways,
                    _short(c.ptx_text),
                )
                for c in self.conflicts
            ],
        )
        yield from self._request_lines()
        yield "barriers"
        yield from _table(
            ("barrier", "signals", "phases", "waits", "suspended"),
            [tuple(vars(each).values()) for each in self.barriers],
        )
        yield "instructions by role"
        yield from _table(
            ("role", "warps", "total", "most often"), [_role_row(role) for role in self.roles]
        )

    def _request_lines(self) -> Iterator[str]:
        totals = self.totals()
        yield f"  total: {totals.passes} passes, {totals.conflicts} of them beyond the least"
        yield "global-memory requests by size (a line has 128 bytes, a sector 32)"
        yield from _table(
            ("ptx", "executed", "asked", "sectors", *map(str, SIZES), "instruction"),
            [_request_row(each) for each in self.requests],
        )
        yield f"  total: {totals.asked_bytes} bytes asked for, {totals.sectors * SECTOR} moved"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_TEXT else f"{text[: SHOWN_TEXT - 1]}…"


def _request_row(each: Requests) -> tuple[Any, ...]:
    counts = (each.sizes[size] for size in SIZES)
    return (
        each.ptx_line,
        each.executions,
        each.asked_bytes,
        each.sectors,
        *counts,
        _short(each.ptx_text),
    )


def _role_row(role: Role) -> tuple[Any, ...]:
    most = role.instructions.most_common(SHOWN_OPCODES)
    words = ", ".join(f"{opcode} {count}" for opcode, count in most)
    return role.name, warp_text(role.warps), role.instructions.total(), words


def warp_text(warps: list[int]) -> str:
    """Warp numbers as ranges: `0-3,5`."""
    runs: list[list[int]] = []
    for warp in warps:
        if runs and runs[-1][1] == warp - 1:
            runs[-1][1] = warp
        else:
            runs.append([warp, warp])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """Lines with columns: numbers to the right, words to the left."""
    texts = [head, *(tuple(map(str, row)) for row in rows)]
    if len(texts) == 1:
        yield "  none"
        return
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    numeric = [cell.isdigit() for cell in texts[1]]
    for row in texts:
        cells = zip(row, widths, numeric, strict=True)
        padded = (text.rjust(width) if right else text.ljust(width) for text, width, right in cells)
        yield "  " + "  ".join(padded).rstrip()
