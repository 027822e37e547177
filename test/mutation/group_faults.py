"""Planted faults in products of groups."""

from __future__ import annotations

from fault import Fault

EPILOGUES = "test/compiler/groups/test_grouped_epilogues.py"

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
        "groups: the number of a gathered row is read at its place in the group",
        "    return row + lowered_parts(value)[-2] if is_of_group(value) else row",
        "    return row + 0 * lowered_parts(value)[-2] if is_of_group(value) else row",
        ("test/numerics/groups/test_groups.py",),
    ),
    Fault(
        "groups: a number of a row beyond the last counts as one behind it",
        "    return arith.minsi(arith.maxsi(number, build.constant(0)), rows - 1)",
        "    return arith.minsi(arith.maxsi(number, build.constant(0)), rows)",
        ("test/compiler/groups/test_gathered_rows.py",),
    ),
    Fault(
        "operands: TMA gathers the first of four rows four times",
        "placed_row(op.map, first + (row + each)) for each",
        "placed_row(op.map, first + row) for each",
        ("test/compiler/groups/test_gathered_rows.py",),
    ),
    Fault(
        "tiles: the matrix whose turn it is is that of its place",
        "    known = arith.minui(number, build.constant(op.count.value - 1))",
        "    known = arith.minui(place // tiles, build.constant(op.count.value - 1))",
        ("test/numerics/groups/test_groups.py",),
    ),
    Fault(
        "ping-pong: a consumer of groups of K skips as many slots as its own tile has steps",
        "        mapping = dict(zip(body.arguments, (other.i, other.j), strict=True))",
        "        mapping = {}",
        ("test/numerics/groups/test_groups_in_turns.py",),
    ),
    Fault(
        "expand-tiles: the other agent's tile is one on, not one for each cluster",
        "constant(op.ahead.value * clusters))",
        "constant(op.ahead.value))",
        ("test/numerics/groups/test_groups_in_turns.py",),
    ),
    Fault(
        "groups: the atoms of a group begin where those of its rows would, without whole ones each",
        "            atoms = (end - begin + (SCALE_ATOM_ROWS - 1)) // SCALE_ATOM_ROWS",
        "            atoms = (end - begin) // SCALE_ATOM_ROWS",
        ("test/numerics/groups/test_grouped_scales.py",),
    ),
    Fault(
        "groups: linear scales are those of the first rows of all",
        "        offset = build.widen(row_of_whole(op.view, row)) * blocks + build.widen(at)",
        "        offset = build.widen(row) * blocks + build.widen(at)",
        ("test/numerics/groups/test_grouped_scales.py",),
    ),
    Fault(
        "groups: a thread reads scales of 128 elements from the first row of all on",
        "    row = column_of_whole(op.a_scales, row)\n",
        "",
        ("test/numerics/groups/test_grouped_scales.py",),
    ),
    Fault(
        "scaled-grouped: scales that are too few for any offsets are filled up with those in front",
        "        lines = torch.nn.functional.pad(lines, (0, along * each - given))",
        "        lines = torch.nn.functional.pad(lines, (along * each - given, 0))",
        ("test/compiler/groups/test_grouped_blocks.py",),
    ),
    Fault(
        "scaled-grouped: the factors of groups of K are those of one row for all groups",
        "        shape = [groups] * by_group + ",
        "        shape = [1] * by_group + ",
        ("test/compiler/groups/test_scaled_grouped_mm.py",),
    ),
]

OF_ANY_ROWS = [
    Fault(
        "groups: a launch has CTAs for tiles of all rows, and none for what groups leave in part",
        "    return (op.offsets.type.shape[0] - 1) * (op.tile.value * op.together.value - 1)",
        "    return 0 * op.tile.value",
        ("test/numerics/groups/test_groups_of_any_rows.py",),
    ),
]

LEVEL = [
    Fault(
        "unswitch: tiles of more rows than a width take MMAs of that width",
        "    fits = build.less(count, widths[half - 1] + 1)",
        "    fits = build.less(count, widths[half] + 1)",
        ("test/numerics/groups/test_exchanged_groups.py",),
    ),
    Fault(
        "level: MMAs may have as many columns as any number of the group of the tile says",
        "    if not isinstance(group, GroupOp) or op.count != group.count:",
        "    if not isinstance(group, GroupOp):",
        ("test/passes/test_level_rules.py",),
    ),
    Fault(
        "level: a second group may reach the tile of another one",
        "    if any(each != group and each.operation.block in around for each in groups):",
        "    if False and around and groups:",
        ("test/passes/test_level_rules.py",),
    ),
    Fault(
        "level: sums may be read where the group of their MMAs does not reach",
        "        if not any(mma.count == each.count for each in groups if each",
        "        if not groups and not any(mma.count == each.count for each in groups if each",
        ("test/passes/test_level_rules.py",),
    ),
]
