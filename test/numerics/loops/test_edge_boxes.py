"""Tiles that hang over A or B, whose loads leave out rows that there are not."""

import pytest

from tilewright.compiler.spec import MatmulSpec

TMA = "tma-insertion,swizzle-selection"
ROLES = "pipelining{stages=3},warp-specialization"
EDGES = {
    "alone": f"tiling{{tile=64x48x64}},{TMA},{ROLES},edge-boxes",
    "exchanged": f"tiling{{tile=64x48x64 swap=true}},{TMA},{ROLES},edge-boxes",
    "two chunks in a box": (
        "tiling{tile=64x48x128},tma-insertion{box=3d},swizzle-selection,pipelining{stages=2},"
        "warp-specialization,edge-boxes"
    ),
    "a CTA behind the last": (
        f"tiling{{tile=64x48x64}},{TMA},clustering{{shape=2x1 pair=false}},{ROLES},edge-boxes"
    ),
    "a part of the tile behind the last": (
        f"tiling{{tile=64x32x64}},{TMA},clustering{{shape=2x2 pair=false}},{ROLES},edge-boxes"
    ),
    "parts of K": f"tiling{{tile=64x48x64}},{TMA},split-k{{parts=2}},{ROLES},edge-boxes",
    "several tiles": f"tiling{{tile=64x48x64}},{TMA},{ROLES},persistence{{ctas=4}},edge-boxes",
    "begun with another step": (
        f"tiling{{tile=64x48x64}},{TMA},{ROLES},k-rotation{{together=1 by=2}},edge-boxes"
    ),
}
OF_BLACKWELL = ("alone", "a part of the tile behind the last", "several tiles")


STACKS = {
    "of one, rotated behind it": ({"batch": 1}, f"{EDGES['alone']},k-rotation{{together=1}}"),
    "of one": ({"batch": 1}, EDGES["alone"]),
    "of A": ({"batch": 2, "b_stacked": False}, EDGES["a part of the tile behind the last"]),
}


@pytest.mark.parametrize("what", STACKS)
def test_matrices_of_a_stack_have_rows_of_their_own(check_matmul, what):
    fields, text = STACKS[what]
    check_matmul(MatmulSpec(77, 51, 264, **fields), target="sm_90a", pipeline=text)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("target", "what"),
    [("sm_90a", what) for what in EDGES]
    + [("sm_100a", what) for what in OF_BLACKWELL],
)  # fmt: skip
def test_all_rows_come_and_zeros_behind_them(check_matmul, target, what, seed=1):
    """Three tiles of 64 rows, the last of 13, and two of 48, the last of 3; seven steps along K."""
    text = EDGES[what]
    if target == "sm_100a":
        text = text.replace("tile=64x", "tile=128x")
    m = 269 if target == "sm_100a" else 141
    check_matmul(MatmulSpec(m, 51, 424), target=target, pipeline=text, seed=seed)
