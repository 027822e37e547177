"""MMAs leave out the zeros behind the end of K: every prefix, every kind of operand and loop."""

from dataclasses import replace

import pytest

from tilewright.compiler.spec import MatmulSpec

LADDER = (
    "tiling{tile=128x32x64}",
    "tma-insertion{box=3d}",
    "swizzle-selection",
    "epilogue-staging",
    "clustering{shape=2x1 pair=false}",
    "pipelining{stages=2}",
    "warp-specialization",
    "persistence{ctas=4}",
)
SPEC = MatmulSpec(200, 72, 152)
ROLES = ",".join(LADDER[1:4] + LADDER[5:7])
E4M3 = MatmulSpec(200, 72, 272, "e4m3", "e4m3", "f32")


def skipping(*passes):
    return ",".join((*passes, "skip-zeros"))


@pytest.mark.sweep(3)
@pytest.mark.array(1, passes=range(1, 9), k=[72, 152])
def test_every_prefix_leaves_zeros_out(check_matmul, passes, k):
    spec = replace(SPEC, k=k)
    check_matmul(spec, pipeline=skipping(*LADDER[:passes]), target="sm_90a")


HOW = {
    "one step": (replace(SPEC, k=24), f"{LADDER[0]},{ROLES}"),
    "long steps": (SPEC, f"tiling{{tile=128x32x128}},{ROLES}"),
    "two warpgroups": (replace(SPEC, n=300), f"tiling{{tile=128x256x64}},{ROLES}"),
    "three warpgroups": (SPEC, f"tiling{{tile=192x128x64}},{ROLES}"),
    "several atoms": (SPEC, f"tiling{{tile=256x16x64}},{ROLES}"),
    "in turns": (replace(SPEC, m=700), f"{LADDER[0]},{ROLES},{LADDER[7]},ping-pong"),
    "exchanged": (SPEC, f"tiling{{tile=64x32x64 swap=true}},{ROLES}"),
    "other majors": (replace(SPEC, a_major="m", b_major="n"), f"{LADDER[0]},{ROLES}"),
    "few rows of other majors": (
        replace(SPEC, m=30, n=28, a_major="m", b_major="n"),
        f"{LADDER[0]},{ROLES}",
    ),
    "tf32": (replace(SPEC, a_dtype="tf32", b_dtype="tf32", k=76), f"{LADDER[0]},{ROLES}"),
    "e4m3": (E4M3, f"tiling{{tile=128x32x128}},{ROLES}"),
    "stores by threads": (SPEC, f"{LADDER[0]},{ROLES}".replace("epilogue-staging,", "")),
    "copies by threads": (
        replace(SPEC, k=149),
        f"{LADDER[0]},{ROLES}".replace("tma-insertion{box=3d}", "copy-insertion"),
    ),
    "a stack": (replace(SPEC, batch=3), f"{LADDER[0]},{ROLES}"),
    "groups of rows": (replace(SPEC, groups=3), f"{LADDER[0]},{ROLES},{LADDER[7]}"),
    "two products": (replace(SPEC, products=2), f"{LADDER[0]},{ROLES}"),
    "further outputs": (replace(SPEC, further=("f16",)), f"{LADDER[0]},{ROLES}"),
}


@pytest.mark.sweep(5)
@pytest.mark.array(1, how=HOW, seed=[0, 1])
def test_every_kind_of_loop_leaves_zeros_out(check_matmul, how, seed):
    spec, text = HOW[how]
    check_matmul(spec, pipeline=skipping(text), target="sm_90a", seed=seed)
