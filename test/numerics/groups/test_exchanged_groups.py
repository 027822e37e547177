"""Groups of rows with A and B exchanged: rows of groups are the MMA's columns."""

import pytest

from tilewright.compiler.spec import MatmulSpec

TARGETS = ("sm_90a", "sm_100a")
HEAD = "tiling{{tile={tile} swap=true}},tma-insertion,swizzle-selection"
RING = "pipelining{stages=3},warp-specialization"
STAGED = "epilogue-staging{columns=8 buffers=2}"
ENDS = {
    "threads": "",
    "staged": f",{STAGED}",
    "roles": f",{STAGED},{RING}",
    "2x1": f",{STAGED},clustering{{shape=2x1 pair=false}},{RING}",
    "1x2": f",{STAGED},clustering{{shape=1x2 pair=false}},{RING}",
    "2x2": f",clustering{{shape=2x2 pair=false}},{RING},persistence{{ctas=8}}",
    "persistent": f",{STAGED},{RING},persistence{{order=grouped group=2 ctas=3}}",
    "along m": f",{STAGED},{RING},persistence{{order=m ctas=3}}",
    "curve": f",{STAGED},{RING},persistence{{order=hilbert ctas=3}}",
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("tile", ["128x16x64", "64x24x64"])
def test_every_pass_takes_exchanged_groups(check_matmul, target, end, tile):
    spec = MatmulSpec(130, 264, 136, groups=5)
    check_matmul(spec, pipeline=HEAD.format(tile=tile) + ENDS[end], target=target)
