"""Planted faults in what the emulator tells of products that are repeated and of what a launch has
not reached, and in which forms of `set` it takes."""

from __future__ import annotations

from fault import Fault

TOLD = [
    Fault(
        "boxes: nobody counts which copy has filled a place",
        "        self._filled += 1\n",
        "",
        ("test/bugs/test_repeated_products.py",),
    ),
    Fault(
        "report: what one process has not reached counts as not reached",
        "for line, text in known.items() if line in lines}",
        "for line, text in {**known, **lines}.items()}",
        ("test/emulator/test_unreached.py",),
    ),
    Fault(
        "compare: set of f32 has results of 16 bits",
        '    return ("u32", "s32", "f32", "f16", "bf16")\n',
        '    return ("u32", "s32", "f32", "f16", "bf16", "u16", "s16")\n',
        ("test/fuzz/test_ptx_forms.py",),
    ),
]
