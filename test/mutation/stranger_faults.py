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
    Fault(
        "tables: a GPU is the chip of the package, whatever a user entered",
        "    return replace(found, gpu=gpu.gpu or found.gpu)",
        "    return gpu or replace(found, gpu=found.gpu)",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "tables: a target is entered by any name",
        "TARGETS = Table(OWN_TARGETS, _check_entry)",
        "TARGETS = Table(OWN_TARGETS)",
        ("test/compiler/calls/test_kernel_cache.py",),
    ),
    Fault(
        "inductor: graphs on disk know nothing of chips that a user entered",
        "self.settings.key(), chips]",
        "self.settings.key(), chips[:0]]",
        ("test/inductor/test_region_pass.py",),
    ),
    Fault(
        "inductor: graphs on disk are found whatever a user's passes are",
        "        if PASSES.entered():\n",
        "        if not PASSES:\n",
        ("test/inductor/test_region_pass.py",),
    ),
    Fault(
        "bundles: a size is whatever compares with numbers",
        "    if len(values) != len(names) or any(type(each) is not int for each in values):",
        "    if len(values) != len(names):",
        ("test/runtime/test_bundles_of_several_kernels.py",),
    ),
]
