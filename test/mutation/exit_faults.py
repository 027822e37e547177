"""Faults of what exits tell, of late waits, and of values that nobody has written."""

from __future__ import annotations

from fault import Fault

EXITS = [
    Fault(
        "meetings: what threads have written that have exited can be seen",
        "            message = self._clocks[warp].release_narrow(None)\n",
        "            message = self._clocks[warp].release(None)\n",
        ("test/emulator/clusters/test_pairs_of_libraries.py",),
    ),
    Fault(
        "mbarrier: a phase ends behind one that nobody has waited for",
        "            if self._observed < self.phase - 2:\n",
        "            if False:\n",
        ("test/emulator/engines/test_mbarrier.py",),
    ),
    Fault(
        "mbarrier: another warp may initialise one again whatever has come of it",
        "    elif live.maker is not warp and live.is_as_made_with(count):\n",
        "    elif live.maker is not warp:\n",
        ("test/emulator/engines/test_mbarrier_instructions.py",),
    ),
    Fault(
        "races: who uses an mbarrier must come after the last warp alone that has initialised it",
        "BarrierClock(*known)).made += (made,)\n",
        "BarrierClock(*known)).made = (made,)\n",
        ("test/emulator/engines/test_mbarrier_instructions.py",),
    ),
    Fault(
        "mbarrier: bytes that are expected and never come are an error at the exit",
        "        if barrier.tx < 0:\n            raise Trap(\n",
        "        if barrier.tx:\n            raise Trap(\n",
        ("test/emulator/engines/test_mbarrier_instructions.py",),
    ),
    Fault(
        "races: a commit of a thread that has issued nothing passes on nothing",
        "        elif op.commits:  # of a thread that has issued nothing\n",
        "        elif False:\n",
        ("test/emulator/races/test_early_mbarrier_arrivals.py",),
    ),
    Fault(
        "scheduler: clusters come in any order where libraries count on the grid's",
        "        self._waiting = clusters[::-1] if even else clusters\n        if not even:\n",
        "        self._waiting = clusters\n        if True:\n",
        ("test/emulator/clusters/test_clc_tiles.py",),
    ),
    Fault(
        "tensor-memory: of a load those lanes may not be read that were written",
        "        raise self._unwritten(lane + int(at[0]), column + int(at[1]), what, ~block)\n",
        "        raise self._unwritten(lane + int(at[0]), column + int(at[1]), what, block)\n",
        ("test/emulator/test_undefined_registers.py",),
    ),
]
