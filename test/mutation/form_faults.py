"""Planted faults in what a function of the sums reads, and in how torch's operators are read."""

from __future__ import annotations

from fault import Fault

EPILOGUES = "test/compiler/calls/test_matmul_epilogues.py"

FORMS = [
    Fault(
        "epilogue-function: an operand that is spread keeps its order, not that of the dims",
        "order = tuple(dims[axis] for axis in axes if axis in dims)",
        "order = tuple(sorted(dims[axis] for axis in axes if axis in dims))",
        (EPILOGUES,),
    ),
    Fault(
        "conditions: an exclusive or is an or",
        "    return torch.where(a, _not(b), b)\n",
        "    return torch.where(a, torch.ones_like(b), b)\n",
        (EPILOGUES,),
    ),
    Fault(
        "tiling: rows of two products of groups are not gathered",
        "    if isinstance(matmul, GATHERED):\n        a = gathered_at",
        "    if type(matmul) is GATHERED[0]:\n        a = gathered_at",
        ("test/compiler/groups/test_gathered_rows.py",),
    ),
    Fault(
        "grouped-fused: a function that was traced at one row serves all numbers of rows",
        "        if rows < 2:\n            return of_function, rows",
        "        if rows < 1:\n            return of_function, rows",
        ("test/compiler/groups/test_groups_of_any_size.py",),
    ),
]
