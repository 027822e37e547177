"""Faults of f32 tiles that threads split into terms."""

from __future__ import annotations

from fault import Fault

TESTS = ("test/numerics/f32/test_split_tiles.py",)
SPLIT_TILES = [
    Fault(
        "split-tiles: MMAs may read terms before the async proxy sees them",
        '        _write(team, form, tile, terms, which)\n    build.fence("async_shared")\n',
        "        _write(team, form, tile, terms, which)\n",
        TESTS,
    ),
    Fault(
        "split-tiles: the second half of a unit is the first one again",
        "unit_offset(layout, line, unit * halves + half)",
        "unit_offset(layout, line, unit * halves)",
        TESTS,
    ),
    Fault(
        "split-tiles: terms of every step are written to the first slot",
        "return which * self.tile.layout.slot_bytes + self.offsets[term]",
        "return which * 0 + self.offsets[term]",
        TESTS,
    ),
    Fault(
        "split-tiles: the terms of an element lie in each other's places",
        "    for term, packed in enumerate(made):\n",
        "    for term, packed in enumerate(reversed(list(made))):\n",
        TESTS,
    ),
    Fault(
        "split by tcgen05.mma: smaller products are divided by half of what they are to be",
        "**fields, **offsets, shift=SHIFT)",
        "**fields, **offsets, shift=SHIFT - 1)",
        TESTS,
    ),
    Fault(
        "split by wgmma: warpgroups multiply before all terms of a step are written",
        "    fails = team.any(lost.any())\n",
        "    fails = lost.any()\n",
        TESTS,
    ),
    Fault(
        "split by wgmma: what MMAs make of a step counts that threads multiply",
        "    counts = fails ^ build.true()\n",
        "    counts = build.true()\n",
        TESTS,
    ),
    Fault(
        "split by wgmma: A is split into registers that MMAs still read",
        "zip(held.sums, map(_kept, terms_of_a), strict=True)",
        "zip(held.sums, terms_of_a, strict=True)",
        TESTS,
    ),
    Fault(
        "plain-terms: bits that no term holds are not noticed",
        "self.bits = arith.ori(self.bits, llvm.bitcast(build.i32(), each))",
        "self.bits = arith.andi(self.bits, llvm.bitcast(build.i32(), each))",
        TESTS,
    ),
    Fault(
        "plain-products: every 8 columns have those of the first ones",
        "start = start + behind_first // CORE_ROWS * CORE_ROWS * layout.span_bytes",
        "start = start + behind_first // CORE_ROWS * 0 * layout.span_bytes",
        TESTS,
    ),
    Fault(
        "warp-schedule: the ring has no regard for the terms",
        "            free -= terms_bytes(used, tile)\n",
        "",
        TESTS,
    ),
]
