"""Clusters whose threads copy what TMA cannot address: each CTA into its own slots."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

CLUSTERS = (
    "shape=2x1 pair=true",
    "shape=4x1 pair=true",
    "shape=2x2 pair=true",
    "shape=2x2 pair=false",
    "shape=1x2",
)
ENDS = (
    "",
    ",pipelining{stages=3},warp-specialization",
    ",pipelining{stages=4},warp-specialization,persistence{ctas=4}",
    ",pipelining{stages=3},warp-specialization,persistence{scheduler=clc}",
)
BESIDE_TMA = {"both": {}, "a": {"b_major": "n"}, "b": {"a_major": "m"}}
"""The operands that threads copy: rows along K, which is no multiple of what TMA wants."""
MIXED = (("mxfp6", "mxfp6"), ("mxfp6", "mxfp4"), ("mxfp4", "mxfp8"), ("mxfp4", "mxfp4"))


def pipeline_of(tile, cluster, end):
    tiling = f"tiling{{tile={tile}}},tma-insertion,swizzle-selection"
    return f"{tiling},clustering{{{cluster}}}{end}"


@pytest.mark.sweep(30)
@pytest.mark.array(2, cluster=CLUSTERS, end=ENDS, copied=tuple(BESIDE_TMA), k=(90, 93))
def test_threads_of_each_cta_fill_its_slots(check_matmul, cluster, end, copied, k):
    """K of 90 elements goes by cp.async, of 93 by loads that are shifted."""
    spec = MatmulSpec(136, 136, k, **BESIDE_TMA[copied])
    check_matmul(spec, pipeline=pipeline_of("64x64x32", cluster, end), seed=k)


@pytest.mark.sweep(30)
@pytest.mark.array(2, cluster=("shape=2x1", "shape=2x2", "shape=1x2"), end=ENDS[:3], k=(90, 93))
def test_wgmma_reads_beside_multicast_what_threads_copied(check_matmul, cluster, end, k):
    spec = MatmulSpec(136, 136, k, b_major="n")
    check_matmul(spec, pipeline=pipeline_of("64x64x32", cluster, end), seed=k, target="sm_90a")


@pytest.mark.sweep(30)
@pytest.mark.array(2, cluster=CLUSTERS[:4], dtypes=MIXED, end=ENDS[1:], k=(96, 160))
def test_packed_elements_with_any_whole_blocks_of_k_go_to_clusters(
    check_matmul, cluster, dtypes, end, k
):
    """TMA takes rows of elements with gaps where K is a multiple of 128."""
    depth = 256 if dtypes == ("mxfp4", "mxfp4") else 128
    pipeline = pipeline_of(f"128x32x{depth}", cluster, end)
    check_matmul(MatmulSpec(140, 72, k, *dtypes), pipeline=pipeline, seed=k)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtypes", [("bf16", "bf16"), ("mxfp6", "mxfp8")])
@pytest.mark.parametrize("preset", ["v6", "kernel8"])
def test_presets_of_pairs_take_any_k(check_matmul, preset, dtypes):
    k = 45 if dtypes[0] == "bf16" else 96
    check_matmul(MatmulSpec(140, 40, k, *dtypes), preset=preset, seed=k)
