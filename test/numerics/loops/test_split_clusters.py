"""Clusters that share both operands and the parts of a split K."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

TEXT = (
    "tiling{tile=64x64x64},tma-insertion,swizzle-selection,split-k{parts=PARTS},"
    "clustering{shape=SHAPE pair=false}"
)
ENDS = ("", ",pipelining{stages=3}", ",pipelining{stages=3},warp-specialization")


def text(shape, parts, end=ENDS[-1]):
    return TEXT.replace("SHAPE", shape).replace("PARTS", str(parts)) + end


@pytest.mark.sweep(12)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("shape", "parts"), [("1x2", 2), ("2x1", 3), ("2x2", 2), ("1x4", 2), ("1x2", 4), ("4x1", 2)]
)
@pytest.mark.parametrize("k", [456, 320])
def test_the_parts_of_several_tiles_are_added_up(check_matmul, target, shape, parts, k):
    """Ragged M and N; 456 of K are 8 steps, which 3 parts don't divide, 320 are 5."""
    extents = [int(size) for size in shape.split("x")]
    tiles_m, tiles_n = (max(2, extent) for extent in extents)  # whole clusters, some of them two
    spec = MatmulSpec(64 * tiles_m - 56, 64 * tiles_n - 24, k)
    compiled, _ = check_matmul(spec, pipeline=text(shape, parts), target=target, seed=k)
    assert compiled.manifest["cluster"] == [*extents, parts]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("end", ENDS[:2])
def test_every_prefix_is_right(check_matmul, end):
    spec = MatmulSpec(120, 128, 456)
    check_matmul(spec, pipeline=text("2x1", 2, end), target="sm_90a", seed=3)
