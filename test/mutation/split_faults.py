"""Faults of f32 tiles that threads split into terms."""

from __future__ import annotations

from fault import Fault

TESTS = ("test/numerics/test_split_tiles.py",)
SPLIT_TILES = [
    Fault(
        "split-tiles: MMAs may read terms before the async proxy sees them",
        '        _write(team, tile, terms, which)\n    build.fence("async_shared")\n',
        "        _write(team, tile, terms, which)\n",
        TESTS,
    ),
    Fault(
        "split-tiles: the second half of a unit is the first one again",
        "unit_offset(layout, line, unit * 2 + half)",
        "unit_offset(layout, line, unit * 2)",
        TESTS,
    ),
    Fault(
        "split-tiles: terms of every step are written to the first slot",
        "return which * self.tile.layout.slot_bytes + self.offsets[term]",
        "return which * 0 + self.offsets[term]",
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
        "    write_terms(scope, op, which)\n    Team.of(op).meet()\n",
        "    write_terms(scope, op, which)\n",
        TESTS,
    ),
    Fault(
        "split by wgmma: smaller products are added as they are",
        "            if power:\n                made = _smaller(made, self.struct)\n",
        "            if False:\n                made = _smaller(made, self.struct)\n",
        TESTS,
    ),
    Fault(
        "warp-schedule: the ring has no regard for the terms",
        "            free -= terms_bytes(target.using(one.mma), tile)\n",
        "",
        TESTS,
    ),
]
