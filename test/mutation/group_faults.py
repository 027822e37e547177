"""Planted faults in products of groups."""

from __future__ import annotations

from fault import Fault

EPILOGUES = "test/compiler/test_grouped_epilogues.py"

GROUPS = [
    Fault(
        "tiled-places: an epilogue reads the part of the group whose number is the tile's",
        "            view = matrix_at(view, group.group)\n",
        "            view = matrix_at(view, group.row)\n",
        (EPILOGUES,),
    ),
    Fault(
        "grouped: the second step takes a row that begins a group for one of the group before",
        "    group = torch.searchsorted(ends, numbers, right=True)",
        "    group = torch.searchsorted(ends, numbers, right=False)",
        (EPILOGUES,),
    ),
    Fault(
        "scaled-grouped: the factors of groups of K are those of one row for all groups",
        "        shape = [groups] * by_group + ",
        "        shape = [1] * by_group + ",
        ("test/compiler/test_scaled_grouped_mm.py",),
    ),
]
