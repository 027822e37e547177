"""Planted faults in what strange calls, tensors and tables meet."""

from __future__ import annotations

from fault import Fault

STRANGERS = [
    Fault(
        "module: graphs that hold a kernel never look at its module",
        "        self._check()\n        return self._kernel(*inputs)\n",
        "        return self._kernel(*inputs)\n",
        ("test/compiler/calls/test_changed_modules.py",),
    ),
    Fault(
        "kernel: graphs convert a result to any output",
        "            self._check_given(given, results)\n",
        "            id(results)\n",
        ("test/runtime/test_called_kernels.py",),
    ),
    Fault(
        "passes: an interrupt in a walk is an error of MLIR",
        "[2].startswith(KeyboardInterrupt.__name__):",
        '[2].startswith("Interrupt"):',
        ("test/passes/test_interrupted_walks.py",),
    ),
]
