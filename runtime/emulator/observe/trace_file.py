"""A trace as Chrome/Perfetto JSON: a process a CTA, a thread a row of warp, engine or barrier.

Source: the Trace Event Format (complete events `X`, flow events `s` and `f`, metadata `M`). A tick
is written as a microsecond; slices of one row must not overlap, so a track gets as many rows as it
needs.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

from ...atomic import write_file
from ..errors import LaunchError, Trap
from ..interface import Launch
from .tracer import Arrow, Slice, Tracer, Track

NOTE = (
    "order is exact; durations are steps of the emulator (one warp instruction or one completed"
    " operation each), not time on a chip"
)
KINDS = ("warp", "engine", "mbarrier")
WITHIN = 0.5
"""Where in a tick its arrow lies: inside the slice that ends with it."""

Event = dict[str, Any]
Row = tuple[Track, int]


@contextmanager
def tracing(launch: Launch, path: str | PathLike[str] | None) -> Iterator[None]:
    """Trace what runs inside into a file, also when it fails; without a path do nothing.

    The file appears whole or not at all. Raises LaunchError at once where its folder is missing,
    OSError at the end where it cannot be written.
    """
    if path is None:
        yield
        return
    if not Path(path).parent.is_dir():
        raise LaunchError(f"trace: must lie in a folder that exists, got {path}; make the folder")
    tracer, error = Tracer(launch), None
    launch.observe(tracer)
    try:
        yield
    except Trap as trap:
        error = str(trap).partition("\n")[0]
        raise
    finally:
        tracer.finish()
        trace = trace_dict(tracer, launch)
        trace["otherData"]["error"] = error
        write_file(Path(path), json.dumps(trace).encode())


def trace_dict(tracer: Tracer, launch: Launch) -> dict[str, Any]:
    """`traceEvents`, and `otherData` with the kernel, the meaning of durations, and how many slices
    and arrows were dropped beyond `tracer.MAX_SLICES`."""
    placed = list(_place(tracer.slices))
    rows = _Rows(launch)
    events = [_complete(rows, track, row, item) for (track, row), item in placed]
    events += _flows(rows, tracer.arrows, placed)
    return {
        "traceEvents": [*rows.metadata(), *events],
        "displayTimeUnit": "ms",
        "otherData": {"kernel": launch.entry, "note": NOTE, "dropped": tracer.dropped},
    }


def _place(slices: list[Slice]) -> Iterator[tuple[Row, Slice]]:
    """Give every slice the first row of its track that is free."""
    free: dict[Track, list[int]] = {}
    busy: dict[Track, list[tuple[int, int]]] = {}
    for item in sorted(slices, key=lambda item: (item.start, -item.end)):
        ends, rows = busy.setdefault(item.track, []), free.setdefault(item.track, [])
        while ends and ends[0][0] <= item.start:
            heapq.heappush(rows, heapq.heappop(ends)[1])
        row = heapq.heappop(rows) if rows else len(ends)
        heapq.heappush(ends, (item.end, row))
        yield (item.track, row), item


class _Rows:
    """Process and thread numbers, and their names."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._processes: dict[tuple[int, int, int], int] = {}
        self._threads: dict[Row, tuple[int, int]] = {}

    def place(self, track: Track, row: int) -> Event:
        """`pid` and `tid` of a row."""
        process = self._processes.setdefault(track.cta, len(self._processes) + 1)
        thread = self._threads.setdefault((track, row), (process, len(self._threads) + 1))
        return {"pid": process, "tid": thread[1]}

    def metadata(self) -> Iterator[Event]:
        for cta, process in self._processes.items():
            yield _named("process_name", process, 0, "cta ({},{},{})".format(*cta))
        order = sorted(self._threads, key=_row_order)
        for index, (track, row) in enumerate(order):
            process, thread = self._threads[track, row]
            yield _named("thread_name", process, thread, self._title(track, row))
            place = {"pid": process, "tid": thread, "args": {"sort_index": index}}
            yield {"ph": "M", "name": "thread_sort_index", **place}

    def _title(self, track: Track, row: int) -> str:
        suffix = f" #{row + 1}" if row else ""
        if track.kind == "warp":
            warp, idle = track.key
            role = self._launch.names.roles.get(warp)
            lanes = ", lanes that wait for the others" if idle else ""
            return f"warp {warp}{f' {role}' if role else ''}{lanes}{suffix}"
        if track.kind == "engine":
            return f"{track.key}{suffix}"
        name = self._launch.barrier_name(track.key)
        return f"mbarrier 0x{track.key:x}{f' {name}' if name else ''}{suffix}"


def _row_order(row: Row) -> tuple:
    track, number = row
    return track.cta[::-1], KINDS.index(track.kind), track.key, number


def _named(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _complete(rows: _Rows, track: Track, row: int, item: Slice) -> Event:
    return {
        "ph": "X",
        "name": item.name,
        "cat": track.kind,
        "ts": item.start,
        "dur": item.end - item.start,
        "args": item.details,
        **rows.place(track, row),
    }


def _flows(rows: _Rows, arrows: list[Arrow], placed: list[tuple[Row, Slice]]) -> Iterator[Event]:
    """Each end is bound to the slice that encloses it; arrows of dropped slices are left out."""
    ends = {(track, item.end): row for (track, row), item in placed if track.kind == "engine"}
    numbers = count(1)
    for arrow in arrows:
        row = ends.get((arrow.source, arrow.at + 1))
        if row is None:
            continue
        shared = {"name": "signal", "cat": "signal", "id": next(numbers), "ts": arrow.at + WITHIN}
        yield {"ph": "s", **shared, **rows.place(arrow.source, row)}
        yield {"ph": "f", "bp": "e", **shared, **rows.place(arrow.target, 0)}
