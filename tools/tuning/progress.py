"""Progress of `tilewright tune`, and the remaining time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import TypeVar

from ..command_line.progress import Progress

Item = TypeVar("Item")


def timed(items: Collection[Item], verb: str, progress: Progress) -> Iterator[Item]:
    """The items in turn, each named on stderr as `verb shape 3 of 40, 2 min left`."""
    started = time.monotonic()
    for done, item in enumerate(items):
        seconds = time.monotonic() - started
        progress.update(f"{verb} shape {done + 1} of {len(items)}{left(done, len(items), seconds)}")
        yield item


def left(done: int, count: int, seconds: float) -> str:
    """What `count - done` items take if they go on as `done` did in `seconds`; empty before any."""
    if not done:
        return ""
    rest = seconds / done * (count - done)
    return f", {rest:.0f} s left" if rest < 100 else f", {rest / 60:.0f} min left"
