"""What edge-boxes does not take, and what a hand may not write of loads of fewer rows."""

from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

KERNEL = (Path(__file__).parent / "edge_boxes" / "hanging.mlir").read_text()
STAGED = "tma-insertion,swizzle-selection"
LAST = "pipelining{stages=2},warp-specialization"
ROLES = f"{STAGED},{LAST}"
NONE_HANGS = "K-major tiles of known rows must hang over a, b or both, got none that do"
REFUSED = {
    f"{STAGED},pipelining{{stages=2}},edge-boxes": "edge-boxes: needs a load role, got none",
    f"{ROLES},edge-boxes,edge-boxes": NONE_HANGS,
}
OTHERS = {
    "whole tiles": (MatmulSpec(128, 128, 320), "tiling{tile=64x64x64}", "sm_90a"),
    "rows that a launch says": (
        MatmulSpec(120, 128, 320, dynamic_m=True),
        "tiling{tile=64x64x64}",
        "sm_90a",
    ),
    "stacks of whole tiles": (
        MatmulSpec(128, 128, 320, batch=2),
        "tiling{tile=64x64x64}",
        "sm_90a",
    ),
    "columns": (MatmulSpec(120, 128, 320, a_major="m"), "tiling{tile=64x64x64}", "sm_90a"),
}
BY_HAND = {
    "rows of another tile": (
        ('"tile.edge_rows"(%i,', '"tile.edge_rows"(%j,'),
        "edges: count must be a tile.edge_rows of the tile that is loaded, of extent, rows, unit "
        "120, 64, 1, got another value",
    ),
    "another number": (
        ("%i, %k, %edge_rows, ", "%i, %k, %k, "),
        "of extent, rows, unit 120, 64, 1, got another value",
    ),
    "fewer rows than there are": (
        ("extent = 120", "extent = 112"),
        "got extent, rows and unit of 112, 64, 1",
    ),
    "a multiple": (("unit = 1 ", "unit = 8 "), "got extent, rows and unit of 120, 64, 8"),
    "no multiple": (
        ("unit = 1 ", "unit = 12 "),
        "tile.edge_rows: unit must divide 64 rows, got 12",
    ),
    "another box": (("[64, 56]", "[64, 48]"), "a box of end must have the 56 rows of the"),
    "a box of more": (("[64, 56]", "[64, 72]"), "boxes of end must have 1 to 64 rows, got 72"),
    "no whole boxes": (("first = 2", "first = 1"), "whole boxes must fill all 2 slots first"),
    "none at all": (("first = 2", "first = 0"), "first must be 1 to 2147483647, got 0"),
    "another step": (
        ('"tile.edge_rows"(%i, %k)', '"tile.edge_rows"(%i, %j)'),
        "edges: step must be the counter of the loop around",
    ),
    "the map of another operand": (
        ("%edge_rows, %a_map_0) : (!a_map, !tile, index, index, index, !a_map2)",
         "%edge_rows, %b_map) : (!a_map, !tile, index, index, index, !b_map)"),
        "edges: map and end must be maps of one view",
    ),
}  # fmt: skip


def run(text, passes):
    return run_passes_on_text(text, "kernel.mlir", passes, target="sm_90a")


@pytest.mark.parametrize("passes", REFUSED)
def test_other_kernels_are_refused(passes):
    with pytest.raises(CompileError) as error:
        run(KERNEL, passes)
    assert REFUSED[passes] in str(error.value)


@pytest.mark.parametrize("what", OTHERS)
def test_where_no_tile_hangs_over_the_pass_is_left_out(what):
    spec, tiling, target = OTHERS[what]
    with pytest.raises(CompileError, match=NONE_HANGS):
        compile_matmul(spec, target=target, pipeline=f"{tiling},{ROLES},edge-boxes", until="mlir")


def test_pairs_load_for_each_other():
    pairs = f"tiling{{tile=128x64x64}},{STAGED},clustering{{shape=2x1 pair=true}},{LAST},edge-boxes"
    with pytest.raises(CompileError, match="edge-boxes: a CTA must load for its own MMAs"):
        compile_matmul(MatmulSpec(200, 128, 320), target="sm_100a", pipeline=pairs, until="mlir")


@pytest.mark.parametrize("what", BY_HAND)
def test_loads_by_hand_must_bring_all_rows(what):
    (old, new), rule = BY_HAND[what]
    text = run(KERNEL, f"{ROLES},edge-boxes")
    assert old in text
    with pytest.raises(CompileError) as error:
        run(text.replace(old, new), "assign-threads")
    assert rule in str(error.value)


@pytest.mark.parametrize(("columns", "unit"), [(64, 8), (80, 40), (128, 16)])
def test_a_part_of_a_tile_has_few_boxes(columns, unit):
    """Of a half of B's rows four at most, by multiples of 8."""
    cluster = f"tiling{{tile=64x{columns}x64}},{STAGED},clustering{{shape=2x1 pair=false}},{LAST}"
    pipeline, spec = f"{cluster},edge-boxes", MatmulSpec(128, 136, 320)
    text = compile_matmul(
        spec, target="sm_90a", pipeline=pipeline, stop_after="edge-boxes", until="mlir"
    ).mlir
    assert f"rows = {columns} : i64, unit = {unit} : i64" in text


def test_a_cta_of_a_cluster_behind_the_last_tile_counts():
    """Three whole tiles along M, in clusters of two."""
    cluster = f"tiling{{tile=64x64x64}},{STAGED},clustering{{shape=2x1 pair=false}},{LAST}"
    pipeline, spec = f"{cluster},edge-boxes", MatmulSpec(192, 64, 320)
    assert (
        "tile.edge_load"
        in compile_matmul(
            spec, target="sm_90a", pipeline=pipeline, stop_after="edge-boxes", until="mlir"
        ).mlir
    )
