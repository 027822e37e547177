"""Planted faults in kernels of any K, and in convolutions that are products."""

from __future__ import annotations

from fault import Fault

SPLIT_TESTS = ("test/numerics/sizes/test_split_depth.py",)
CONVOLUTION_TESTS = ("test/inductor/test_convolutions.py",)
DEPTHS = [
    Fault(
        "launch: where K is 0 no epilogue is computed",
        "        if 0 in sizes and self._names == (DEPTH,):",
        "        if 0 in sizes and self._names == ():",
        ("test/numerics/sizes/test_any_depth.py",),
    ),
    Fault(
        "convolutions: those with a stride are products of all pixels, too",
        "set(stride) == {1} and set(padding)",
        "set(padding)",
        CONVOLUTION_TESTS,
    ),
    Fault(
        "convolutions: one that is left beside one that is taken stays a product",
        "        each.value.replace_all_uses_with(view)",
        "        view.replace_all_uses_with(each.value)",
        CONVOLUTION_TESTS,
    ),
    Fault(
        "split-k: parts of a K that a launch says are apart by one step more than they take",
        "        return SplitStartOp(rank=rank, steps=each, first=index).first",
        "        each = arith.addi(each, index_constant(1))\n"
        "        return SplitStartOp(rank=rank, steps=each, first=index).first",
        SPLIT_TESTS,
    ),
    Fault(
        "pipelining: parts of a K that a launch says may begin within what loops run ahead",
        '        start.steps.owner.attributes["least"] = integer(least)',
        '        start.steps.owner.attributes["least"] = integer(min(least, 1))',
        SPLIT_TESTS,
    ),
    Fault(
        "gathered-store: CTAs that fill up a cluster add up what nobody has written",
        "with when(both(team.any(last), partials.any_inside())):",
        "with when(team.any(last)):",
        ("test/numerics/loops/test_split_grid.py",),
    ),
]
