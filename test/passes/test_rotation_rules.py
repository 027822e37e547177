"""What k-rotation does not take, and what a hand may not write of steps that begin elsewhere."""

from pathlib import Path

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

KERNEL = (Path(__file__).parent / "k_rotation" / "few_rows.mlir").read_text()
STAGED = "tma-insertion,swizzle-selection"
LAST = "pipelining{stages=2},warp-specialization"
ROLES = f"{STAGED},{LAST}"
CLUSTER = f"{STAGED},clustering{{shape=1x2 pair=false}},{LAST}"
REFUSED = {
    f"{STAGED},k-rotation": "k-rotation: needs a load role, got none; run warp-specialization",
    f"{ROLES},k-rotation,k-rotation": "rotation: k must be the counter of the loop around",
    f"{CLUSTER},k-rotation{{together=3}}": (
        "rotation: the 2 CTAs of a cluster along n must begin alike, got together 3"
    ),
}
BY_HAND = {
    "another count": (
        ("steps = 5", "steps = 4"),
        "rotation: k must be the counter of the loop around, from 0 by 1 to steps",
    ),
    "no place": (
        ('"(%k, %j)', '"(%k, %c1)'),
        "rotation: place must be that of a tile along M or N, got another index",
    ),
    "a load in order": (
        ("%i, %step)", "%i, %k)"),
        "rotation: all ops of the loop must take the step in the place of its counter",
    ),
    "no groups": (("together = 4", "together = 0"), "together must be at least 1, got 0"),
}


def run(text, passes):
    return run_passes_on_text(text, "kernel.mlir", passes, target="sm_90a")


@pytest.mark.parametrize("passes", REFUSED)
def test_other_kernels_are_refused(passes):
    with pytest.raises(CompileError) as error:
        run(KERNEL, passes)
    assert REFUSED[passes] in str(error.value)


@pytest.mark.parametrize("what", BY_HAND)
def test_steps_by_hand_must_make_up_k(what):
    (old, new), rule = BY_HAND[what]
    text = run(KERNEL, f"{ROLES},k-rotation")
    assert old in text
    with pytest.raises(CompileError) as error:
        run(text.replace(old, new), "assign-threads")
    assert rule in str(error.value)


def test_zeros_are_not_skipped_in_a_step_that_is_not_the_last():
    ragged = KERNEL.replace("x320xbf16", "x264xbf16")
    cases = {
        "k-rotation,skip-zeros": "skip-zeros: the step that comes last must be that with the end",
        "skip-zeros,k-rotation": "k-rotation: MMAs must be tile.mma or tile.pair_mma",
    }
    for passes, rule in cases.items():
        with pytest.raises(CompileError, match=rule):
            run(ragged, f"{ROLES},{passes}")
