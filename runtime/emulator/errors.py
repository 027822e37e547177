"""What the emulator raises: syntax errors, traps and deadlocks.

A `Trap` is created where the rule is broken, with a category and a message; the core adds the
place (kernel, CTA, warp, lanes, PTX line) on the way out, so instructions never build it.
"""

from __future__ import annotations

from typing import Any

from ..errors import DeviceError, LaunchError

__all__ = ["Deadlock", "DeviceError", "LaunchError", "PtxSyntaxError", "Trap", "UnwrittenRead",
           "lane_text", "short_name"]  # fmt: skip
SHOWN_NAME = 60
"""Characters of a kernel's name in a message; mangled names of templates have thousands."""


class PtxSyntaxError(DeviceError):
    """The text is not a PTX module: `ptx:line:column: rule, got value`."""

    def __init__(self, message: str, line: int, column: int):
        super().__init__(f"ptx:{line}:{column}: error: {message}")
        self.line, self.column = line, column


def short_name(name: str) -> str:
    """A kernel's name for a message: a long one without its middle."""
    if len(name) <= SHOWN_NAME:
        return name
    head = SHOWN_NAME * 2 // 3
    return f"{name[:head]}…{name[head + 1 - SHOWN_NAME :]}"


def lane_text(lanes: int) -> str:
    """Lanes of a 32-bit mask as ranges: `0-3,17`."""
    runs, lane = [], 0
    while lane < 32:
        if not lanes >> lane & 1:
            lane += 1
            continue
        start = lane
        while lane < 32 and lanes >> lane & 1:
            lane += 1
        runs.append(str(start) if lane - start == 1 else f"{start}-{lane - 1}")
    return ",".join(runs) or "none"


class Trap(DeviceError):
    """The emulated program broke a rule of the PTX ISA, or met what is not modelled.

    Fields: `category` (kebab-case: out-of-bounds, misaligned, uninitialised-read, read-only,
    unmodelled, protocol, convergence, deadlock, tmem, trap), `message`, and once located
    `kernel`, `cta` (x, y, z), `warp`, `lanes` (32-bit mask), `line`, `text`, `remarks`: warnings
    that may be its cause, and `origins`: where the PTX lines that it cites come from, if the text
    has `.loc`; a line each.
    """

    def __init__(self, category: str, message: str, *, lanes: int | None = None):
        super().__init__(message)
        self.category, self.message, self.lanes = category, message, lanes
        self.kernel: str | None = None
        self.cta: tuple[int, int, int] | None = None
        self.warp: int | None = None
        self.line: int | None = None
        self.text: str | None = None
        self.remarks: tuple[str, ...] = ()
        self.origins: tuple[str, ...] = ()

    def locate(self, *, kernel=None, cta=None, warp=None, lanes=None, line=None, text=None) -> Trap:
        """Fill the fields that are still unknown; returns self."""
        known = dict(kernel=kernel, cta=cta, warp=warp, lanes=lanes, line=line, text=text)
        for name, value in known.items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self

    def _place(self) -> list[str]:
        place = [] if self.line is None else [f"ptx:{self.line}: error"]
        if self.kernel is not None:
            place.append(f"kernel {short_name(self.kernel)}")
        if self.cta is not None:
            place.append(f"cta ({self.cta[0]},{self.cta[1]},{self.cta[2]})")
        if self.warp is not None:
            place.append(f"warp {self.warp}")
        if self.lanes is not None:
            place.append(f"lanes {lane_text(self.lanes)}")
        return place

    def __str__(self) -> str:
        place = self._place()
        where = place[0] + (": " + ", ".join(place[1:]) if place[1:] else "") if place else "error"
        text = f": `{self.text}`" if self.text else ""
        verdict = f"{where}{text}: {self.category}: {self.message}"
        return "\n  ".join([verdict, *self.remarks, *self.origins])


class UnwrittenRead(Trap):
    """A read of memory that nobody has written. memory: takes the attribute `forgiving`, which
    lets it be read for once, with any value. unwritten: bool[lanes, bytes or words] of each lane
    that reads, None where that is not known."""

    def __init__(self, message: str, memory: Any, unwritten: Any = None):
        super().__init__("uninitialised-read", message)
        self.memory, self.unwritten = memory, unwritten


class Deadlock(Trap):
    """Every thread waits for what can no longer happen; the message lists who, what and for whom.

    report: the same as plain data, see `as_dict`.
    """

    def __init__(self, message: str, report: dict[str, Any] | None = None):
        super().__init__("deadlock", message)
        self.report = report or {"agents": [], "operations": []}

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: `verdict`, `kernel`, `agents` and `operations`.

        An agent is `cta`, `warp`, `role`, `lanes`, `ptx_line`, `ptx_text`, `waits_for` (null if it
        can run), `expected_from` and `last_signal` (docs/emulator-reference.md).
        """
        verdict = self.message.partition("\n")[0]
        return {"verdict": verdict, "kernel": self.kernel, **self.report}
