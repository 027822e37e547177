"""Planted faults where what comes in is passed over instead of being refused."""

from __future__ import annotations

from fault import Fault

INPUTS = [
    Fault(
        "trace-scales: scales of f32 may be rounded, or lose their sign, before a product",
        "    if scale.steps:\n        got = ",
        "    if not scale.steps and name in ():\n        got = ",
        ("test/numerics/scales/test_scales_of_linalg.py",),
    ),
    Fault(
        "checks: nobody holds places and rings beside roles to their attributes",
        "            self._op(op, (), top=True)\n",
        "            del op\n",
        ("test/passes/test_kernel_rules.py",),
    ),
    Fault(
        "expanded: loads of an expanded kernel are not held to the views that they name",
        "        else:\n            check_load(kernel, op, target)\n"
        "    for op in walk(kernel, MMAS):\n",
        "    for op in walk(kernel, MMAS):\n",
        ("test/passes/test_expanded_loops.py",),
    ),
    Fault(
        "torch-effects: tensors that a module changes in place become results of its kernel",
        "if now != versions[name]]",
        "if now < versions[name]]",
        ("test/compiler/calls/test_module_effects.py",),
    ),
    Fault(
        "tune-candidates: what an earlier compiler made counts as made",
        'any(index[name].get("sources") != source_digest() for name in names):\n',
        "source_digest() is None:\n",
        ("test/tools/test_stopped_tunes.py",),
    ),
]
