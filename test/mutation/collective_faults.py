"""Planted faults in graphs with collectives, and in products that Inductor takes apart."""

from __future__ import annotations

from fault import Fault

COLLECTIVES_TESTS = ("test/inductor/test_collectives.py",)
RECOMPOSED_TESTS = ("test/inductor/test_recomposed.py",)

COLLECTIVES = [
    Fault(
        "collectives: a region may wait for more than its product waits for",
        "        return bool(self._known.get(node, 0) & ~self._known.get(product, 0))",
        "        return False",
        COLLECTIVES_TESTS,
    ),
    Fault(
        "collectives: they may start in any order",
        "        needs[other].add(one)",
        "        needs[other].discard(one)",
        COLLECTIVES_TESTS,
    ),
    Fault(
        "recomposed: products of several rows and columns are one, too",
        "    return (a, b) if 1 in (m, n) and (*stack, k) == (*others, depth) else None",
        "    return (a, b) if (*stack, k) == (*others, depth) else None",
        RECOMPOSED_TESTS,
    ),
    Fault(
        "recomposed: what read sums before they were rounded goes on to read them",
        "    total.replace_all_uses_with(wide, lambda user: user not in rounded)",
        "    total.replace_all_uses_with(wide, lambda user: False)",
        RECOMPOSED_TESTS,
    ),
    Fault(
        "recomposed: a product that no kernel takes stays",
        "            for each in rounded[:1]:",
        "            for each in rounded[1:]:",
        RECOMPOSED_TESTS,
    ),
]
