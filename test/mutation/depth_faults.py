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
        "    with when(partials.any_inside()), loop(first, end, 1) as share:\n",
        "    with loop(first, end, 1) as share:\n",
        ("test/numerics/loops/test_split_grid.py",),
    ),
    Fault(
        "claim-parts: nobody has the shares that others gave up",
        "        scf.YieldOp([claimed, arith.select(is_last, all_parts, own)])\n",
        "        scf.YieldOp([claimed, own])\n",
        ("test/numerics/loops/test_split_grid.py",),
    ),
    Fault(
        "claim-parts: who has not seen all parts acquires none that came meanwhile",
        "        before = _add_to(op.word, claim)\n"
        "        llvm.fence(llvm.ACQUIRE_RELEASE, DEVICE)\n",
        "        before = _add_to(op.word, claim)\n",
        ("test/numerics/loops/test_split_grid.py",),
    ),
    Fault(
        "claim-parts: parts are not released",
        "    llvm.fence(llvm.ACQUIRE_RELEASE, DEVICE)\n"
        "    return llvm.atomicrmw(llvm.ADD, word, value, llvm.MONOTONIC, DEVICE)\n",
        "    return llvm.atomicrmw(llvm.ADD, word, value, llvm.MONOTONIC, DEVICE)\n",
        ("test/numerics/loops/test_split_grid.py",),
    ),
    Fault(
        "claim-parts: the last one has what is left only if it saw all parts",
        "arith.select(is_last, all_parts, own)])\n",
        "arith.select(arith.andi(is_last, all_there), all_parts, own)])\n",
        ("test/numerics/loops/test_split_grid.py",),
    ),
    Fault(
        "claim-parts: who gave up counts as if it had claimed",
        "        own = claimed + arith.select(all_there, build.constant(1), build.constant(0))\n",
        "        own = claimed + build.constant(1)\n",
        ("test/numerics/loops/test_split_grid.py",),
    ),
    Fault(
        "gathered-store: CTAs wait in a grid that is larger than the GPU",
        "    return known and math.prod(grid) <= room\n",
        "    return known\n",
        ("test/numerics/loops/test_split_grid.py",),
    ),
]
