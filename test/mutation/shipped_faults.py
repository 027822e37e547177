"""Planted faults in what the emulator lets pass of libraries, in polls and columns of pixels."""

from __future__ import annotations

from fault import Fault

RACES = "test/emulator/races"
SHIPPED = [
    Fault(
        "descriptor: bits 46 to 48 may be anything",
        "    if not _field(word, 46, 3):\n",
        "    if False:\n",
        ("test/emulator/tensor_core/test_engine_mma.py",),
    ),
    Fault(
        "exits: where libraries ship it, no commit need be waited for",
        "later = commit is not None and seen.get(commit[0], 0) > commit[1]",
        "later = commit is not None",
        (f"{RACES}/test_exits.py",),
    ),
    Fault(
        "im2col: a column of pixels turns one short of the bounding box's end",
        "            if at[axis] <= last[axis]:",
        "            if at[axis] < last[axis]:",
        ("test/emulator/tensor_copies/test_im2col.py",),
    ),
    Fault(
        "tensor-order: what a warp stored last may be read by itself unwaited",
        "return access.who != (warp.cta.rank, warp.index) and self._races.knows(warp, event)",
        "return self._races.knows(warp, event)",
        ("test/emulator/tensor_core/test_unwaited_stores.py",),
    ),
    Fault(
        "polling: what changes between two rounds lets none go on",
        "        if self._changes.any():\n            self._seen",
        "        if False:\n            self._seen",
        ("test/emulator/test_polling.py",),
    ),
    Fault(
        "warp-exchange: lanes outside of their mask may take part in every exchange",
        '        if apart or not self.kind.startswith("shfl."):\n',
        "        if apart:\n",
        ("test/emulator/core/test_warp.py",),
    ),
    Fault(
        "atomic: a vector by a generic address may lie in shared memory",
        "        if not _lies_in_global_memory(space, address):\n            raise Trap(",
        "        if False:\n            raise Trap(",
        ("test/emulator/foreign_instructions/test_vector_reductions.py",),
    ),
    Fault(
        "departures: what libraries ship is a warning at full, too",
        "        if self._strict:",
        "        if False:",
        ("test/emulator/test_register_budget.py",),
    ),
    Fault(
        "verdicts: what cp.async wrote needs no proxy fence where libraries are run",
        "if other.startswith(_COPY) and what.startswith(_PRODUCTS) and self.is_known(KNOWN):",
        "if other.startswith(_COPY) and self.is_known(KNOWN):",
        (f"{RACES}/test_proxy_fences.py",),
    ),
    Fault(
        "scheduler: where libraries are run, a warp may fall behind the others",
        "        if not self._even:\n            return pick",
        "        if True:\n            return pick",
        ("test/emulator/engines/test_gemm.py",),
    ),
]
