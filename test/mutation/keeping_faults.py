"""Planted faults in what keeps files and processes: the cache, bundles, locks, signals."""

from __future__ import annotations

from fault import Fault

KEEPING = [
    Fault(
        "bundle-writer: an entry of the cache is believed in the place of another",
        "    if own != path.name:\n",
        "    if not own:\n",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "bundle-writer: a folder with other files is a bundle",
        "    strange = next((name for name in names if not _OURS.fullmatch(name)), None)\n",
        "    strange = None\n",
        ("test/runtime/test_bundle.py",),
    ),
    Fault(
        "locks: a child waits for a thread that it has not",
        "            lock._at_fork_reinit()\n",
        "            pass\n",
        ("test/runtime/test_forks.py",),
    ),
    Fault(
        "own-process: a signal breaks native code that is being loaded",
        'isinstance(frame.f_locals.get("self"), ExtensionFileLoader)',
        "False",
        ("test/tools/test_odd_places.py",),
    ),
]
