"""Planted faults in what the emulator says of parts that are left out, and of loops that spin."""

from __future__ import annotations

from fault import Fault

COVERED = ("test/emulator/test_coverage.py",)
SPUN = ("test/emulator/test_spinning.py",)

LEFT_OUT = [
    Fault(
        "coverage: what a tensor copy reads is taken for written",
        "        self._read(self._like(at, view), ...)",
        "        self._write(self._like(at, view), ...)",
        COVERED,
    ),
    Fault(
        "coverage: an element counts as written where one of its bytes is",
        "    return np.asarray((marks & how != 0).all(-1))",
        "    return np.asarray((marks & how != 0).any(-1))",
        COVERED,
    ),
    Fault(
        "spinning: a byte that changes does not end the look",
        "        moved = self._changes.any() or ",
        "        moved = ",
        SPUN,
    ),
    Fault(
        "spinning: one warp that repeats itself is enough",
        "self._again.issuperset(running)",
        "bool(self._again)",
        SPUN,
    ),
    Fault(
        "unused-sums: what a register was computed of needs no other",
        "                    into |= sources",
        "                    pass",
        ("test/emulator/test_unused_sums.py",),
    ),
]

WHOLE = [
    Fault(
        "coverage: sums of what lies past an edge need a reader",
        " & _adds(array)\n",
        "\n",
        COVERED,
    ),
    Fault(
        "whole-arrays: weights of groups without rows need a reader",
        "    filled = np.diff(ends, prepend=0) > 0",
        "    filled = np.diff(ends, prepend=0) >= 0",
        ("test/runtime/test_whole_arrays.py",),
    ),
]
