"""Planted faults in how ptxas is started ahead of its PTX."""

from __future__ import annotations

from fault import Fault

AHEAD = [
    Fault(
        "ptxas ahead: one that fails at a pipe is not followed by one that reads a file",
        "        if self._process.returncode != 0:\n            return None\n",
        "",
        ("test/backend/test_ptxas_ahead.py",),
    ),
    Fault(
        "ptxas ahead: it counts for a command with other options",
        "        if self._is_asked or list(command) != self._command:\n",
        "        if self._is_asked:\n",
        ("test/backend/test_ptxas_ahead.py",),
    ),
]
