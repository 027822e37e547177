"""Planted faults of loads of tiles that hang over a view."""

from __future__ import annotations

from fault import Fault

NUMERICS, RULES = "test/numerics/loops/test_edge_boxes.py", "test/passes/test_edge_rules.py"
CHOICE = "test/compiler/schedule/test_edges.py"

EDGES = [
    Fault(
        "edges: no slot has whole boxes first, whose zeros would stay",
        "    early = build.less(build.as_i32(op.step), op.first.value)\n",
        "    early = build.less(build.as_i32(op.step), 0)\n",
        (NUMERICS,),
    ),
    Fault(
        "edges: a part behind the last row of a view gets no box",
        "        end = arith.maxui(build.as_i32(op.count), build.as_value(before + 1))\n",
        "        end = build.as_i32(op.count)\n",
        (NUMERICS,),
    ),
    Fault(
        "edges: a barrier expects no box of a part that has no rows",
        "    return build.as_value(rows + empty * op.unit.value)\n",
        "    return rows\n",
        (NUMERICS,),
    ),
    Fault(
        "edge-boxes: CTAs of a cluster behind the last tile do not count",
        "    return rest > 0 or tiles % integers_of(kernel.cluster)[axis] > 0\n",
        "    return rest > 0\n",
        (RULES,),
    ),
    Fault(
        "edges: the rows of another tile may be loaded",
        "    if isinstance(rows, EdgeRowsOp) and rows.i == load.i:\n",
        "    if isinstance(rows, EdgeRowsOp):\n",
        (RULES,),
    ),
    Fault(
        "edges: fewer slots than a ring has may have whole boxes first",
        "    if rows.first.value < slots:\n",
        "    if False:\n",
        (RULES,),
    ),
    Fault(
        "edges: a box of the last tile may have fewer rows than it",
        "    if not several and extent % tile not in (0, box):\n",
        "    if False:\n",
        (RULES,),
    ),
    Fault(
        "edges: boxes may be of another view than whole ones",
        "    if any(each is None for each in views) or views[0] != views[1]:\n",
        "    if any(each is None for each in views):\n",
        (RULES,),
    ),
    Fault(
        "edge-boxes: matrices of stacks, which schedules name, are refused",
        "    by_itself = isinstance(load.map.owner.opview, TensorMapOp) or is_matrix\n",
        "    by_itself = isinstance(load.map.owner.opview, TensorMapOp)\n",
        (NUMERICS, CHOICE),
    ),
    Fault(
        "k-rotation: boxes of the rows that there are count steps from where a tile begins",
        "        if use.owner != step.owner and not isinstance(use.owner.opview, EdgeRowsOp):\n",
        "        if use.owner != step.owner:\n",
        (NUMERICS,),
    ),
]
