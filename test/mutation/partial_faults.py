"""Faults of what is told of sums that are read in part, and of CTAs that stay in memory."""

from __future__ import annotations

from fault import Fault

READ = ("test/emulator/tensor_core/test_unread_sums.py",)

PARTS = [
    Fault(
        "partly-read-sums: each tile must read all places that others read",
        "        place.read |= read\n",
        "        place.read = read\n",
        READ,
    ),
    Fault(
        "partly-read-sums: columns that are read last say nothing of those before",
        "        left[:, _last(place.read.any(0)) :] = False\n",
        "        left[:, 0:] = False\n",
        READ,
    ),
    Fault(
        "tracker: what clusters have known stays when they have ended",
        "        del self._domain_of[cluster]\n",
        "",
        ("test/emulator/test_ended_ctas.py",),
    ),
]
