"""tcgen05.fence between warps (PTX ISA §9.7.16.6.4 canonical synchronisation patterns)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap

BEFORE, AFTER = "tcgen05.fence::before_thread_sync;\n", "tcgen05.fence::after_thread_sync;\n"


def turn(tc, *, before=BEFORE, after=AFTER, first_after=AFTER) -> str:
    """mma, all warps load D, mma again into the same columns, all warps load again."""
    wait = tc.WAIT.replace(AFTER.strip(), "")
    load = tc.dump("32x32b.x8", 8, 4, 8)
    second = (
        wait.replace("W:", "W2:")
        .replace("bra W", "bra W2")
        .replace("%p7, [%r1], 0", "%p7, [%r1], 1")
    )
    return (
        tc.FALSE + tc.mma("f16") + tc.COMMIT + wait + first_after + load + before + "bar.sync 0;\n"
        + after + tc.mma("f16") + tc.COMMIT + second + AFTER + load
    )  # fmt: skip


def case(tc):
    _, _, image, *words = tc.accumulating_case()
    return image, np.zeros(4 * 8 * 128, np.uint32), words


@pytest.mark.parametrize("seed", range(4))
def test_fences_on_both_sides_order_a_load_before_the_next_mma(tc, seed):
    image, out, words = case(tc)
    tc.run(turn(tc), image, out, *words, seed=seed)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("missing", "side", "message"),
    [
        (
            "before",
            "before",
            "tcgen05.mma of tensor memory columns 0..31 follows the tcgen05.ld of",
        ),
        (
            "first_after",
            "after",
            "tcgen05.ld of tensor memory columns 0..7 follows the tcgen05.mma",
        ),
    ],
)
def test_a_missing_fence_is_found_under_every_seed(tc, missing, side, message, seed):
    image, _, words = case(tc)
    trap = tc.refused(turn(tc, **{missing: ""}), image, words, seed)
    assert trap.category == "missing-fence"
    assert trap.message.startswith(message)
    assert f"without tcgen05.fence::{side}_thread_sync" in trap.message


def test_an_older_fence_does_not_do_for_a_later_load(tc):
    """Found where the issuing warp has fenced before the others' loads were published"""
    found = set()
    for seed in range(12):
        image, out, words = case(tc)
        try:
            tc.run(turn(tc, after=""), image, out, *words, seed=seed)
        except Trap as trap:
            found.add(trap.category)
    assert found == {"missing-fence"}
