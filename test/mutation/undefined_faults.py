"""Faults of what is undefined, or might have come early: registers, answers, arrivals, buffers."""

from __future__ import annotations

from fault import Fault

UNDEFINED = [
    Fault(
        "meetings: an arrival at a named barrier may come before the phase that it counts for",
        "            if happened[event[0]] < event[1]:",
        "            if happened[event[0]] < 0:",
        ("test/emulator/races/test_early_arrivals.py",),
    ),
    Fault(
        "exits: a relaxed arrival says that accesses are over",
        "    note(cta, ACCESS, event, line, OVER)",
        "    note(cta, ACCESS, event, line)",
        ("test/emulator/races/test_exits.py",),
    ),
    Fault(
        "collector: a buffer may hold another operand",
        "    if not held.is_same(before):",
        "    if held.form != before.form:",
        ("test/emulator/tensor_core/test_collector_buffers.py",),
    ),
    Fault(
        "undefined: selp passes on what it doesn't select",
        "            return chosen | np.where(regs[flow.sources[2][0]], one, two)",
        "            return chosen | one | two",
        ("test/emulator/test_undefined_registers.py",),
    ),
    Fault(
        "undefined: a guard may be so",
        "        if guard in self._lanes and any_of(self._lanes[guard] & mask):",
        "        if guard in self._lanes and not any_of(mask):",
        ("test/emulator/test_undefined_registers.py",),
    ),
    Fault(
        "unchecked-waits: an answer that is overwritten is looked at later",
        "        after = held | set(flow.results) if reads else held - set(flow.results)",
        "        after = held | set(flow.results) if reads else held",
        ("test/emulator/test_unchecked_waits.py",),
    ),
    Fault(
        "undefined: of a loaded vector the first part alone may be unwritten",
        "                found[slot][mask] = parts[:, number]\n",
        "                found[slot][mask] = parts[:, 0]\n",
        ("test/emulator/test_undefined_registers.py",),
    ),
]
