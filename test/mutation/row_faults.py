"""Planted faults in what kernels for any number of rows do."""

from __future__ import annotations

from fault import Fault

DYNAMIC = ("test/numerics/test_dynamic_rows.py",)
SEVERAL = ("test/runtime/test_bundles_of_several_kernels.py",)
ROWS = [
    Fault(
        "launch: boxes have the rows of a tile, however few a launch says",
        'box = [min(m, e["most"]) if isinstance(e, dict) else e for e in declared["box"]]',
        'box = [e["most"] if isinstance(e, dict) else e for e in declared["box"]]',
        DYNAMIC,
    ),
    Fault(
        "clearing: the first row that no box fills is left as it is",
        "        unit = box_rows(load) * in_row + unit\n",
        "        unit = (box_rows(load) + 1) * in_row + unit\n",
        DYNAMIC,
    ),
    Fault(
        "bundles: the most rows of a kernel go to the next one",
        "next((each for each in kernels if m <= most_rows(each.manifest)), kernels[-1])",
        "next((each for each in kernels if m < most_rows(each.manifest)), kernels[-1])",
        SEVERAL,
    ),
]
