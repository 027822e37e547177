"""tcgen05.mma leaves out the zeros behind the end of K: every prefix, pairs, every loop."""

from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec

LADDER = (
    "tiling{tile=128x64x64}",
    "tma-insertion{box=3d}",
    "swizzle-selection",
    "epilogue-staging",
    "clustering{shape=2x1 pair=true}",
    "pipelining{stages=2}",
    "warp-specialization",
    "persistence{ctas=4}",
)
SPEC = MatmulSpec(200, 72, 152)
ROLES = ",".join(LADDER[1:4] + LADDER[5:7])
PAIRED = ",".join(LADDER[1:7])


def skipping(*passes):
    return ",".join((*passes, "skip-zeros"))


@pytest.mark.sweep(3)
@pytest.mark.array(1, passes=range(1, 9), k=[72, 152])
def test_every_prefix_leaves_zeros_out(check_matmul, passes, k):
    spec = replace(SPEC, k=k)
    check_matmul(spec, pipeline=skipping(*LADDER[:passes]), target="sm_100a")


HOW = {
    "one step": (replace(SPEC, k=24), f"{LADDER[0]},{ROLES}"),
    "long steps": (SPEC, f"tiling{{tile=128x32x128}},{ROLES}"),
    "64 rows": (SPEC, f"tiling{{tile=64x32x64}},{ROLES}"),
    "several atoms": (replace(SPEC, m=300), f"tiling{{tile=256x32x64}},{ROLES}"),
    "a pair of 64 rows": (
        SPEC,
        f"tiling{{tile=64x64x64}},{PAIRED}".replace("epilogue-staging,", ""),
    ),
    "a pair of several atoms": (replace(SPEC, m=600), f"tiling{{tile=256x64x64}},{PAIRED}"),
    "multicast": (
        SPEC,
        f"{LADDER[0]},{PAIRED}".replace("2x1 pair=true", "2x2 pair=true"),
    ),
    "tiles by launch control": (
        replace(SPEC, m=700),
        f"{LADDER[0]},{ROLES},persistence{{scheduler=clc}}",
    ),
    "exchanged": (SPEC, f"tiling{{tile=128x32x64 swap=true}},{ROLES}"),
    "other majors": (replace(SPEC, a_major="m", b_major="n"), f"{LADDER[0]},{PAIRED}"),
    "tf32": (replace(SPEC, a_dtype="tf32", b_dtype="tf32", k=76), f"{LADDER[0]},{ROLES}"),
    "e4m3": (
        MatmulSpec(200, 72, 272, "e4m3", "e5m2", "f32"),
        f"tiling{{tile=128x32x128}},{PAIRED}",
    ),
    "integers": (
        MatmulSpec(200, 72, 272, "s8", "s8", "s32", "s32"),
        f"tiling{{tile=128x32x128}},{ROLES}",
    ),
    "stores by threads": (SPEC, f"{LADDER[0]},{PAIRED}".replace("epilogue-staging,", "")),
    "copies by threads": (
        replace(SPEC, k=149),
        f"{LADDER[0]},{ROLES}".replace("tma-insertion{box=3d}", "copy-insertion"),
    ),
    "a stack": (replace(SPEC, batch=3), f"{LADDER[0]},{ROLES}"),
    "groups of rows": (replace(SPEC, groups=3), f"{LADDER[0]},{ROLES},{LADDER[7]}"),
    "two products": (replace(SPEC, products=2), f"{LADDER[0]},{ROLES}"),
    "two products of a pair": (replace(SPEC, products=2), f"{LADDER[0]},{PAIRED},{LADDER[7]}"),
    "further outputs": (replace(SPEC, further=("f16",)), f"{LADDER[0]},{ROLES}"),
}


@pytest.mark.sweep(5)
@pytest.mark.array(1, how=HOW, seed=[0, 1])
def test_every_kind_of_loop_leaves_zeros_out(check_matmul, how, seed):
    spec, text = HOW[how]
    check_matmul(spec, pipeline=skipping(text), target="sm_100a", seed=seed)


@pytest.mark.parametrize(("k", "left"), [(152, 2), (136, 1), (24, 2), (176, 3)])
def test_the_last_step_has_as_many_instructions_as_elements_need(k, left):
    """Those in front of the branch stand once for each step that is written down."""
    pipeline = skipping("tiling{tile=128x32x64}", ROLES)
    spec = MatmulSpec(128, 32, k)
    ptx = compile_matmul(spec, target="sm_100a", pipeline=pipeline, until="ptx").ptx
    blocks = [part.count("tcgen05.mma.") for part in ptx.split("@%p")]
    found = [count for count in blocks if count]
    assert left in found
    assert set(found) <= {left, 4 - left, 4}
