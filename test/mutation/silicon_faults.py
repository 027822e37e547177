"""Faults of what a GPU, or kernels that ship, have shown to be otherwise."""

from __future__ import annotations

from fault import Fault

SILICON = [
    Fault(
        "undefined: what a held access gives is not defined",
        "        if signal in (None, SWITCH) or isinstance(signal, Yield):\n",
        "        if signal is None or isinstance(signal, Yield):\n",
        ("test/emulator/test_delays.py",),
    ),
    Fault(
        "undefined: a wait that is told no has not written its answer",
        "        if signal in (None, SWITCH) or isinstance(signal, Yield):\n",
        "        if signal in (None, SWITCH):\n",
        ("test/emulator/test_undefined_registers.py",),
    ),
    Fault(
        "atomic: sums of f32 in global memory keep subnormal numbers",
        "        if flushing and _lies_in_global_memory(space, at[0]):\n",
        "        if flushing and not warp:\n",
        ("test/emulator/core/test_atomics.py",),
    ),
    Fault(
        "im2col: stores may reach outside of the tensor",
        "        if min(self.lower) >= 0 and max(self.upper) <= 0:",
        "        if max(self.lower) >= 0:",
        ("test/emulator/tensor_copies/test_im2col.py",),
    ),
    Fault(
        "spaces: a parameter is read at a generic address",
        "        if self._own and any_of(addresses & self._window):",
        "        if False and any_of(addresses & self._window):",
        ("test/emulator/core/test_memory.py",),
    ),
]
