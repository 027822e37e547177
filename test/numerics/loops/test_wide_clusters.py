"""Clusters of four and eight that the schedule of Hopper takes: multicast slices, ragged edges."""

import pytest

from tilewright.compiler.schedule.search.candidates import WIDE_CLUSTERS
from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

TEXT = (
    "tiling{tile=64x64x64},tma-insertion,swizzle-selection,epilogue-staging{columns=32 buffers=2},"
    "clustering{shape=SHAPE pair=false},pipelining{stages=2},warp-specialization"
)
SHAPES = [f"{m}x{n}" for (m, n), _ in WIDE_CLUSTERS]


@pytest.mark.sweep(18)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("m", "n"), [(136, 200), (40, 264), (264, 24)])
def test_a_cluster_of_ctas_past_the_edges_is_right(check_matmul, shape, m, n):
    """K of 136 elements: rows of 272 bytes start inside sectors of L2."""
    pipeline = TEXT.replace("SHAPE", shape)
    check_matmul(MatmulSpec(m, n, 136), pipeline=pipeline, target="sm_90a", seed=m)
