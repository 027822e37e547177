"""What k-rotation does not take, and what a hand may not write of steps that begin elsewhere."""

from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
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
    f"{ROLES},k-rotation{{together=4294967296}}": (
        "tile.rotated_step: together must be 1 to 2147483647, got 4294967296"
    ),
    f"{ROLES},k-rotation{{by={2**63}}}": (
        "k-rotation: option by must be a number of steps along K, got '9223372036854775808'"
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
    "tiles further than is counted": (
        (
            '"tile.tma_load"(%a_map, %a_tile, %i, %step)',
            "%many = arith.constant 20000000 : index\n%far = arith.muli %step, %many : index\n"
            '"tile.tma_load"(%a_map, %a_tile, %i, %far)',
        ),
        "indices: tiles of 64 must end at 2147483648 or before, got 0 to 80000000, of which one "
        "ends at 5120000064; multiply in parts, or shorten the loop",
    ),
    "no groups": (("together = 4", "together = 0"), "together must be 1 to 2147483647, got 0"),
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


def test_steps_by_hand_do_not_beat_mmas_that_know_the_last_one():
    """A step that names itself, taken by hand where the MMA of the last step multiplies less."""
    text = run(KERNEL.replace("x320xbf16", "x264xbf16"), f"{ROLES},skip-zeros")
    role = text.index('"pipe.acquire"')
    loads = text[role:].replace(", %k)", ", %step)")
    line = '%step = "tile.rotated_step"(%k, %j) {by = 1 : i64, steps = 5 : i64, together = 1 : i64}'
    start = text.rindex("%slot", 0, role)
    by_hand = f"{text[:start]}{line} : (index, index) -> index\n{text[start:role]}{loads}"
    with pytest.raises(CompileError, match=r"MMAs must be tile\.mma or tile\.pair_mma"):
        run(by_hand, "assign-threads")


@pytest.mark.parametrize(("along", "place"), [("m", "%i"), ("n", "%j")])
def test_the_place_is_that_along_the_axis_that_is_named(along, place):
    text = run(KERNEL, f"{ROLES},k-rotation{{along={along}}}")
    assert f'"tile.rotated_step"(%k, {place})' in text


def test_groups_of_k_have_steps_that_are_not_counted():
    spec = MatmulSpec(64, 64, 320, a_major="m", b_major="n", groups=3, group_axis="k")
    text = f"tiling{{tile=64x64x64}},{ROLES},k-rotation"
    with pytest.raises(CompileError, match="k-rotation: steps along K must be counted from 0"):
        compile_matmul(spec, target="sm_90a", pipeline=text, until="mlir")


def test_zeros_are_not_skipped_in_a_step_that_is_not_the_last():
    ragged = KERNEL.replace("x320xbf16", "x264xbf16")
    cases = {
        "k-rotation,skip-zeros": "skip-zeros: the step that comes last must be that with the end",
        "skip-zeros,k-rotation": "k-rotation: MMAs must be tile.mma or tile.pair_mma",
    }
    for passes, rule in cases.items():
        with pytest.raises(CompileError, match=rule):
            run(ragged, f"{ROLES},{passes}")
