"""Faults of what is told of sums and copies that are read in part, and of CTAs that have ended."""

from __future__ import annotations

from fault import Fault

READ = ("test/emulator/tensor_core/test_unread_sums.py",)
COPIES = ("test/emulator/test_unread_copies.py",)

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
        "unread-copies: bytes behind all that are read need a reader",
        "            left[_last(read) :] = False\n",
        "",
        COPIES,
    ),
    Fault(
        "unread-copies: zeros need a reader",
        " & (self._region.data[offsets] != 0)]",
        "]",
        COPIES,
    ),
    Fault(
        "unused-sums: all of a vector that is loaded must be used",
        "and not needed & _bits(_whole(results))\n",
        "and bool(_bits(_whole(results)) & ~needed)\n",
        ("test/emulator/test_unused_sums.py",),
    ),
    Fault(
        "unread-stores: what is stored over unread words is forgotten",
        "            self._replaced(cta, claim.span)\n            line =",
        "            line =",
        ("test/emulator/tensor_core/test_unread_stores.py",),
    ),
    Fault(
        "tracker: what clusters have known stays when they have ended",
        "        del self._domain_of[cluster]\n",
        "",
        ("test/emulator/test_ended_ctas.py",),
    ),
]
