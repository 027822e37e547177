"""wgmma.fence, commit_group and wait_group (PTX ISA §9.7.15.7)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...interface import Warp
from ...ptx.decode import Decoded
from ...ptx.registry import Blocked, Step, instruction
from ..threads.convergence import take_aligned
from .wgmma import products_of


@instruction("wgmma.fence", section="9.7.15.7.1")
def build_fence(ins: Decoded) -> Step:
    """wgmma.fence.sync.aligned."""
    return _simple(ins, lambda warp: products_of(warp).fence(warp.regs))


@instruction("wgmma.commit_group", section="9.7.15.7.2")
def build_commit_group(ins: Decoded) -> Step:
    """wgmma.commit_group.sync.aligned."""
    return _simple(ins, lambda warp: products_of(warp).commit())


def _simple(ins: Decoded, perform: Callable[[Warp], None]) -> Step:
    converged = take_aligned(ins)
    ins.finish_modifiers()
    ins.expect_operands(0)

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        perform(warp)
        return None

    return step


@instruction("wgmma.wait_group", section="9.7.15.7.3")
def build_wait_group(ins: Decoded) -> Step:
    """wgmma.wait_group.sync.aligned n: at most the n newest groups stay under way.

    A group is the warpgroup's: it is complete when the parts of all four warps are (§9.7.15.1).
    """
    converged = take_aligned(ins)
    ins.finish_modifiers()
    ins.expect_operands(1)
    newest = ins.natural(0)
    waiting = Blocked("wgmma", lambda: f"waits until {newest} groups of the warpgroup are left")

    def step(warp: Warp, mask: np.ndarray) -> Blocked | None:
        if blocked := converged(warp, mask):
            return blocked
        products = products_of(warp)
        waited = products.older(newest)
        if not all(product.done for product in waited):
            return waiting
        warp.launch.events.operations_awaited(
            warp, [op for product in waited for op in product.warpgroup]
        )
        products.release(newest, warp.regs)
        return None

    return step
