"""Rings of S slots with fewer, as many and more K tiles than slots, in every kind of program."""

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

HEAD = "tiling{tile=64x64x32},tma-insertion,swizzle-selection"
PAIR_HEAD = "tiling{tile=128x64x32},tma-insertion,swizzle-selection"
KINDS = {
    "sequential": f"{HEAD},pipelining{{stages=DEPTH}}",
    "specialised": f"{HEAD},pipelining{{stages=DEPTH}},warp-specialization",
    "multicast": f"{HEAD},clustering{{shape=2x2 pair=false}},pipelining{{stages=DEPTH}}",
    "pair": f"{PAIR_HEAD},clustering{{shape=2x1 pair=true}},pipelining{{stages=DEPTH}}",
    "clustered": (
        f"{PAIR_HEAD},epilogue-staging,clustering{{shape=2x2 pair=true}},"
        "pipelining{stages=DEPTH},warp-specialization"
    ),
    "persistent": (
        f"{HEAD},pipelining{{stages=DEPTH}},warp-specialization,persistence{{ctas=4 order=m}}"
    ),
    "persistent-clc": (
        f"{PAIR_HEAD},clustering{{shape=2x1 pair=true}},pipelining{{stages=DEPTH}},"
        "warp-specialization,persistence{scheduler=clc}"
    ),
    "persistent-sequential": f"{HEAD},pipelining{{stages=DEPTH}},persistence{{ctas=3}}",
}
COUNTS = {"1": 1, "S-1": 2, "S": 3, "S+1": 4, "2S": 6, "2S+1": 7}


@pytest.mark.sweep(24)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("ragged", [0, 8])
def test_k_tile_counts_around_the_depth_of_the_ring(check_matmul, kind, count, ragged):
    spec = MatmulSpec(136, 72, 32 * COUNTS[count] - ragged, c_dtype="f32", b_major="n")
    compiled, _ = check_matmul(spec, pipeline=KINDS[kind].replace("DEPTH", "3"), seed=ragged)
    assert compiled.manifest["schedule"]["stages"] == 3


@pytest.mark.sweep(24)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stages", [1, 2, 5, 8])
def test_other_depths(check_matmul, kind, stages):
    spec = MatmulSpec(136, 72, 32 * 5, a_major="m")
    compiled, _ = check_matmul(
        spec, pipeline=KINDS[kind].replace("DEPTH", str(stages)), seed=stages
    )
    assert compiled.manifest["schedule"]["stages"] == stages


@pytest.mark.sweep(24)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_any_order_of_asynchronous_completion(check_matmul, kind, seed):
    spec = MatmulSpec(136, 72, 32 * 7)
    check_matmul(spec, pipeline=KINDS[kind].replace("DEPTH", "2"), seed=100 + seed)


COPYING = ("sequential", "specialised", "persistent")


@pytest.mark.sweep(36)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("kind", COPYING)
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("k", [32 * 1 - 2, 32 * 2 - 2, 32 * 7 - 4])
def test_copies_that_are_under_way_together(check_matmul, target, kind, stages, k):
    spec = MatmulSpec(130, 72, k, b_major="n")
    text = KINDS[kind].replace("DEPTH", str(stages))
    compiled, _ = check_matmul(spec, target=target, pipeline=text, seed=stages)
    assert "cp.async.ca.shared.global" in compiled.ptx
    assert len(compiled.remarks) == 1


def test_copies_by_threads_go_through_a_deep_ring_too(check_matmul):
    text = KINDS["specialised"].replace("DEPTH", "4")
    compiled, _ = check_matmul(MatmulSpec(130, 70, 201), pipeline=text)
    assert len(compiled.remarks) == 2


@pytest.mark.parametrize(("columns", "copies"), [(104, 8 + 8 + 2), (112, 8 + 7)])
def test_parts_that_nothing_near_eight_divides_are_copied_by_eights_and_the_rest(
    check_matmul, columns, copies, seed=1
):
    """Threads copy 26 parts of 8 bytes each of a tile of 104 rows, and 28 of one of 112."""
    text = (
        f"tiling{{tile=128x{columns}x128}},tma-insertion,swizzle-selection,pipelining{{stages=2}},"
        "warp-specialization"
    )
    compiled, _ = check_matmul(
        MatmulSpec(130, columns, 140), target="sm_90a", pipeline=text, seed=seed
    )
    assert compiled.ptx.count("cp.async.ca") == copies
