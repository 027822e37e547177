"""Weights that are A of wgmma: a warpgroup widens them in registers, A and B are exchanged."""

import ml_dtypes
import numpy as np
import pytest
from weight_products import TYPES, spec_of, turned_tiling

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.dialects.errors import CompileError
from tilewright.runtime.launch.loading import open_kernel

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SUMS, ADDED = "wgmma.mma_async+cvt", "wgmma.mma_async+cvt+fma"
RING = "tma-insertion,swizzle-selection"
TAIL = "pipelining{stages=3},warp-specialization"
COPIES = f"copy-insertion,swizzle-selection,{TAIL}"


def tiling(spec, tile):
    return turned_tiling(spec, tile, (SUMS, ADDED))


@pytest.mark.sweep(12)
@pytest.mark.array(1, prefix=PREFIXES, group=(0, 32, 160), weights=TYPES)
def test_every_prefix(check_matmul, prefix, group, weights):
    """Two tiles along each axis, the last hanging over, K steps and a part."""
    spec = spec_of(20, 72, 160, weights, group)
    pipeline = DEFAULT_PIPELINE.replace("tiling", tiling(spec, "64x16x64"))
    compiled, report = check_matmul(spec, target="sm_90a", pipeline=pipeline, stop_after=prefix)
    assert not report.warnings
    assert "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" in compiled.ptx
    assert "mma.sync." not in compiled.ptx.replace("wgmma.mma_async.sync", "")


@pytest.mark.sweep(10)
@pytest.mark.array(
    weights=TYPES, a=("bf16", "f16"), group=(0, 32, 64, 192), scales=("bf16", "f16", "f32")
)
def test_types_and_groups(check_matmul, weights, a, group, scales):
    """Also two warpgroups and two MMAs along the rows of each."""
    spec = spec_of(24, 200, 192, weights, group, scales, a=a)
    pipeline = f"{tiling(spec, '256x24x64')},{RING},{TAIL}"
    compiled, _ = check_matmul(spec, target="sm_90a", pipeline=pipeline)
    assert compiled.manifest.get("weights") == ({"group": group} if group else None)
    assert compiled.manifest["tensors"][1]["dtype"] == weights
    assert compiled.manifest["schedule"]["tile"] == [256, 24, 64]
    assert compiled.manifest["schedule"]["swapped"]


@pytest.mark.sweep(4)
@pytest.mark.array(
    1, a=("bf16", "f16"), group=(32, 128, 256), tile=("64x16x128", "128x8x64", "192x16x32")
)
def test_zero_points_are_subtracted(check_matmul, a, group, tile):
    spec = spec_of(9, 136, 256, "u4", group, a=a, zero_points=True)
    check_matmul(spec, target="sm_90a", pipeline=f"{tiling(spec, tile)},{RING},{TAIL}")


STAGED = f"{RING},epilogue-staging"
GROUPS, ALL = spec_of(40, 200, 320, "s4", 64, c="bf16"), spec_of(40, 200, 320, "s8", 320, c="bf16")
WAYS = {
    "staged stores": f"{STAGED},{TAIL}",
    "parts over the grid": f"{RING},split-k{{parts=3 over=grid}},{TAIL}",
    "parts over a cluster": f"{RING},split-k{{parts=2}},{TAIL}",
    "multicast along N": f"{RING},clustering{{shape=2x1}},{TAIL}",
    "multicast along M": f"{STAGED},clustering{{shape=1x2}},{TAIL},persistence{{ctas=4}}",
    "two consumers": f"{STAGED},{TAIL},persistence{{ctas=2}},ping-pong",
    "copies of threads": COPIES,
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("spec", [GROUPS, ALL], ids=["groups", "all"])
@pytest.mark.parametrize("way", WAYS)
def test_other_ways_to_the_sums(check_matmul, way, spec):
    check_matmul(spec, target="sm_90a", pipeline=f"{tiling(spec, '64x32x64')},{WAYS[way]}")


@pytest.mark.parametrize(
    "spec",
    [
        spec_of(21, 73, 100, group=100),
        spec_of(21, 73, 101, "s8", 101),
        spec_of(5, 33, 96, "u4", 32, "f32", zero_points=True),
    ],
    ids=str,
)
def test_rows_that_tma_does_not_address(check_matmul, spec):
    """Threads copy both tiles; rows of scales have one, and an odd number of elements."""
    check_matmul(spec, target="sm_90a", pipeline=f"{tiling(spec, '64x32x64')},{RING},{TAIL}")


@pytest.mark.parametrize(
    ("bounds", "rows", "c"),
    [((1, 32), (1, 17, 32), "f32"), (None, (1, 32, 33, 100), "f32"), (None, (7, 65), "f16")],
)
def test_a_kernel_of_a_dynamic_m_takes_any_of_them(bounds, rows, c):
    """Within one tile, and in as many tiles as a launch needs, also with a staged store."""
    more = {"least_m": bounds[0], "most_m": bounds[1]} if bounds else {}
    spec = spec_of(32, 72, 128, "s4", 64, dynamic_m=True, c=c, **more)
    staged = "" if c == "f32" else "epilogue-staging{columns=16},"
    pipeline = f"{tiling(spec, '64x32x64')},{RING},{staged}{TAIL}"
    bundle = as_bundle(compile_matmul(spec, target="sm_90a", pipeline=pipeline))
    draw = np.random.default_rng(3)
    b, scales = draw.integers(0, 256, (72, 64), np.uint8), np.ones((72, 2), ml_dtypes.bfloat16)
    scales[:, 1] = 2
    values = np.stack([b & 15, b >> 4], -1).reshape(72, 128).astype(np.int64)
    values = np.where(values >= 8, values - 16, values) * np.repeat([1, 2], 64)
    for m in rows:
        a = draw.integers(-3, 4, (m, 128))
        c = open_kernel(bundle)(a.astype(ml_dtypes.bfloat16), b, scales)
        assert np.array_equal(c, a @ values.T)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (GROUPS, f"mma={SUMS} swap=true", f"mma must be mma.sync or {ADDED} for weights"),
        (ALL, f"mma={ADDED} swap=true", f"mma must be mma.sync or {SUMS} for weights"),
        (ALL, f"mma={SUMS}", f"{SUMS} takes weights for its A, got those of B; exchange them"),
        (ALL, "swap=true", "swap needs wgmma or tcgen05.mma, got mma.sync"),
        (
            ALL,
            f"mma={SUMS} swap=true tile=64x32x24",
            "tile K must be a multiple of 16 for weights of 8 bits, got 24",
        ),
        (
            GROUPS,
            f"mma={ADDED} swap=true tile=128x256x64",
            "tile 128x256 needs more than the accumulator registers of a thread",
        ),
        (
            ALL,
            f"mma={SUMS} swap=true tile=64x256x512",
            "tile 256x64x512 needs 294912 bytes of shared memory for A and B",
        ),
    ],
)
def test_what_no_kernel_of_turned_weights_does_is_refused(spec, options, message):
    with pytest.raises(CompileError) as caught:
        compile_matmul(spec, target="sm_90a", pipeline=f"tiling{{{options}}}", until="ptx")
    assert message in str(caught.value)
