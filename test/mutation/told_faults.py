"""Planted faults in what the emulator tells of products that are repeated and of what a launch has
not reached, in which forms of `set` it takes, and in maps whose type a kernel replaces."""

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
        ("test/emulator/core/test_compare.py",),
    ),
    Fault(
        "tensor maps: one of tf32 that is made one of f32 does not round",
        "    return _OF_ROUNDED.get(new, new)\n",
        "    return new\n",
        ("test/emulator/tensor_copies/test_device_tensor_maps.py",),
    ),
    Fault(
        "wgmma: sums that begin anew with zeros go on",
        "_announce(warp, product, adds and _goes_on(warp, slots, old))",
        "_announce(warp, product, adds)",
        ("test/bugs/test_repeated_products.py",),
    ),
    Fault(
        "wgmma: the sums of a warpgroup are those of the warp that comes last",
        "    sums = warp.index // _GROUP, product.slots\n",
        "    sums = warp.index, product.slots\n",
        ("test/bugs/test_repeated_products.py",),
    ),
    Fault(
        "boxes: sums that threads store go on",
        "                if isinstance(sums, Span) and sums.meets(claim.span):",
        "                if False:",
        ("test/bugs/test_repeated_products.py",),
    ),
]
