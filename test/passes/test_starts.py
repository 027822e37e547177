"""What a kernel does before its threads touch global memory: only what they need each other for."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec

MEETINGS = ("bar.sync", "barrier.cluster", "mbarrier")


def start_of(spec: MatmulSpec, pipeline: str) -> str:
    """The PTX before all threads wait for the grids before."""
    ptx = compile_matmul(spec, pipeline=pipeline, target="sm_90a", until="ptx").ptx
    assert ptx is not None
    assert "griddepcontrol.wait" in ptx
    return ptx.rpartition("griddepcontrol.wait")[0]


@pytest.mark.parametrize("lanes", [32, 64])
def test_lanes_that_share_sums_alone_begin_at_once(lanes):
    tiling = f"tiling{{tile=3x4x512 mma=fma operands=global threads=128 lanes={lanes}}}"
    start = start_of(MatmulSpec(3, 50, 1176), tiling)
    assert not any(each in start for each in MEETINGS)


@pytest.mark.parametrize("k", [136, 133])
def test_threads_that_wait_for_barriers_meet_behind_them(k):
    """Tiles come by TMA, or by copies of threads where rows have an odd number of elements."""
    tiles = (
        "tiling{tile=128x64x64},copy-insertion" if k % 8 else "tiling{tile=128x64x64},tma-insertion"
    )
    pipeline = f"{tiles},pipelining{{stages=2}},warp-specialization"
    start = start_of(MatmulSpec(200, 97, k), pipeline)
    initialised, _, met = start.rpartition("mbarrier.init")
    assert initialised and "bar.sync" in met
