"""Where lines of PTX come from, as `.loc` and `.file` say: for verdicts, after the fact.

Source: PTX ISA §11.5.2 (.file), §11.5.3 (.loc). A `.loc` holds for the instructions behind it, up
to the next one or the end of the function.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_CITED = re.compile(r"ptx:(\d+)")
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
_END = re.compile(r"^\s*\}\s*$")


def origins_of(ptx: str, cited: str) -> tuple[str, ...]:
    """`ptx:LINE is from FILE:LINE:COLUMN` for each line of `ptx` that a text cites as `ptx:LINE`.

    Lines without an origin, or with line 0 (which compilers give to what they made up), get none.
    """
    origins = Origins(ptx)
    found = []
    for line in sorted({int(text) for text in _CITED.findall(cited)}):
        place = origins.of(line)
        if place is not None:
            found.append(f"ptx:{line} is from {place}")
    return tuple(found)


class Origins:
    """Where each line of a PTX text comes from."""

    def __init__(self, ptx: str) -> None:
        self._runs = origin_runs(ptx)
        self._starts = [start for start, _ in self._runs]

    def of(self, line: int) -> str | None:
        """`FILE:LINE:COLUMN` for a line of the PTX, None where it says nothing."""
        at = bisect_right(self._starts, line) - 1
        return self._runs[at][1] if at >= 0 else None


def origin_runs(ptx: str) -> list[tuple[int, str | None]]:
    """(first line, where it is from) of every run of lines, in order."""
    if ".loc" not in ptx:
        return []
    files, runs = {}, []
    for number, line in enumerate(ptx.splitlines(), 1):
        if found := _LOC.match(line):
            runs.append((number, found.groups()))
        elif _END.match(line) and runs:
            runs.append((number + 1, None))
        elif found := _FILE.match(line):
            files[found[1]] = found[2]
    return [(number, _place(files, place)) for number, place in runs]


def _place(files: dict[str, str], place: tuple[str, str, str] | None) -> str | None:
    if place is None or place[1] == "0" or place[0] not in files:
        return None
    return f"{files[place[0]]}:{place[1]}:{place[2]}"
