"""Lanes that share elements are right for every layout and edge, of one product and of two."""

import re
from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

LANES = "mma=fma operands=global"
# A warp a column and several columns a thread; few lanes; columns and steps that divide nothing.
TILES = (
    *("1x4x256 lanes=32", "4x8x512 threads=64 lanes=32", "8x6x48 lanes=8", "2x16x64 lanes=2"),
    *("1x1x256 lanes=64", "5x4x384 threads=224 lanes=96"),  # warps, of which one has no element
)
# Rows of whole vectors of 16 bytes, of 4 and of 2; the last step is cut in each.
SHAPES = ((1, 9, 264), (5, 33, 130), (3, 17, 77))


@pytest.mark.sweep(10)
@pytest.mark.array(
    tile=TILES,
    shape=SHAPES,
    a_major="km",
    b_major="kn",
    dtype=("bf16", "f16", "f32"),
    target=("sm_100a", "sm_90a", "sm_80"),
)
def test_lanes_share_elements_of_any_layout(
    check_matmul, tile, shape, a_major, b_major, dtype, target
):
    spec = replace(MatmulSpec.of_type(*shape, dtype), a_major=a_major, b_major=b_major)
    check_matmul(spec, pipeline=f"tiling{{{LANES} tile={tile}}}", target=target)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("fields", "tile"),
    [
        ({"products": 2}, "1x8x256 lanes=32"),
        ({"products": 2, "m": 5, "lda": 288}, "5x12x512 threads=64 lanes=16"),
        ({"products": 2, "m": 2}, "2x4x512 threads=128 lanes=64"),
        ({"batch": 3, "m": 4, "b_stacked": False}, "2x4x256 lanes=32"),
        ({"batch": 2, "ldb": 280, "stride_b": 3000}, "1x4x256 lanes=32"),
        ({"further": ("f32",)}, "1x4x256 lanes=32"),
        ({"m": 20, "groups": 5}, "4x4x256 lanes=32"),
    ],
)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_lanes_share_elements_of_stacks_groups_and_two_products(check_matmul, fields, tile, target):
    spec = MatmulSpec(**({"m": 1, "n": 10, "k": 264} | fields))
    check_matmul(spec, pipeline=f"tiling{{{LANES} tile={tile}}}", target=target)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_warps_wait_before_they_write_parts_of_the_next_tile(check_matmul, target, seed=0):
    """The emulator stops where a warp writes what another may still read."""
    tiling = f"tiling{{{LANES} tile=2x2x256 threads=128 lanes=64}}"
    pipeline = f"{tiling},persistence{{ctas=2}}"
    check_matmul(MatmulSpec(3, 24, 264), pipeline=pipeline, target=target)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            r' *"tile.add_lanes".*\n',
            "",
            "one tile.add_lanes of 32 must end the sums, got []",
        ),
        (r'("tile.add_lanes".*)lanes = 32', r"\1lanes = 16", "of 32 must end the sums, got [16]"),
        (
            r'( *scf.for(?:.*\n)*? *}\n)( *"tile.add_lanes".*\n)',
            r"\2\1",
            "tile.add_lanes: finish: must stand after the MMAs into its sums",
        ),
        (
            r'( *"tile.add_lanes".*\n)( *"tile.store"(?:.*\n)*?.*-> \(\)\n)',
            r"\2\1",
            "tile.add_lanes: finish: must stand before the sums are read, got it after",
        ),
        ("lanes = 32 : i64}", "lanes = 3 : i64}", "8, 16 or a multiple of 32 up to 1024, got 3"),
        ("depth = 256", "depth = 250", "depth must be a multiple of 32 lanes, got 250"),
    ],
)
def test_sums_of_lanes_are_added_up_once(old, new, message):
    pipeline = f"tiling{{{LANES} tile=1x4x256 lanes=32}}"
    how = {"pipeline": pipeline, "stop_after": "tiling", "until": "mlir"}
    text = compile_matmul(MatmulSpec(1, 8, 512), **how).mlir
    edited = re.sub(old, new, text)
    assert edited != text, text
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "-", "assign-threads")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("old", "new"),
    [("tensor<4x2xf32>", "tensor<3x2xf32>"), ('"k", "linear">', '"mn", "linear">')],
)
def test_warps_that_share_elements_have_room_for_their_parts(old, new):
    pipeline = f"tiling{{{LANES} tile=1x4x512 threads=128 lanes=64}}"
    how = {"pipeline": pipeline, "stop_after": "plan-memory", "until": "mlir"}
    text = compile_matmul(MatmulSpec(1, 8, 512), **how).mlir
    assert old in text, text
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text.replace(old, new), "-", "expand-loops")
    assert "lanes: parts must be 4 rows of 2 sums, K-major and linear" in caught.value.message
