"""Weights of 8 and 4 bits that threads widen: types, prefixes, groups, tails and other ways."""

import random

import ml_dtypes
import numpy as np
import pytest
from weight_products import TYPES, spec_of

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.runtime.launch.devices import open_device
from tilewright.runtime.launch.loading import open_kernel

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
TILED = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=16x32x64}")
RING = "tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization"
COPIES = "copy-insertion,swizzle-selection,pipelining{stages=3}"
WITH_AGENTS = ("sm_90a", "sm_100a")


@pytest.mark.sweep(6)
@pytest.mark.array(1, prefix=PREFIXES, target=WITH_AGENTS, weights=TYPES)
def test_every_prefix(check_matmul, prefix, target, weights):
    """A tile along each axis and a part, K steps and a part."""
    spec = spec_of(20, 72, 160, weights)
    how = {"target": target, "pipeline": TILED, "stop_after": prefix}
    compiled, report = check_matmul(spec, **how)
    assert not report.warnings
    assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" in compiled.ptx


@pytest.mark.sweep(6)
@pytest.mark.array(
    weights=TYPES, a=("bf16", "f16"), group=(0, 32, 64, 192), scales=("bf16", "f16", "f32")
)
def test_types_and_groups(check_matmul, weights, a, group, scales):
    pipeline = f"tiling{{tile=32x32x64 warps=2x2}},{RING}"
    spec = spec_of(40, 72, 192, weights, group, scales, a=a)
    compiled, _ = check_matmul(spec, target="sm_90a", pipeline=pipeline)
    told = compiled.manifest.get("weights")
    assert told == ({"group": group} if group else None)
    assert compiled.manifest["tensors"][1]["dtype"] == weights


@pytest.mark.sweep(4)
@pytest.mark.array(1, a=("bf16", "f16"), group=(32, 128, 256), tile=("16x64x128", "16x32x32"))
def test_zero_points_are_subtracted(check_matmul, a, group, tile):
    spec = spec_of(9, 72, 256, "u4", group, a=a, zero_points=True)
    check_matmul(spec, target="sm_90a", pipeline=f"tiling{{tile={tile}}},{RING}")


WAYS = {
    "a split K whose last part is shorter": (
        "tiling{tile=16x32x64},tma-insertion,swizzle-selection,split-k{parts=3},"
        "pipelining{stages=2},warp-specialization",
        spec_of(20, 72, 320),
    ),
    "parts over the grid": (
        "tiling{tile=16x32x64},tma-insertion,swizzle-selection,split-k{parts=3 over=grid},"
        "pipelining{stages=2},warp-specialization",
        spec_of(20, 72, 320),
    ),
    "multicast": (
        "tiling{tile=16x32x64},tma-insertion,swizzle-selection,clustering{shape=1x2},"
        "pipelining{stages=3},warp-specialization,persistence",
        spec_of(20, 72, 160),
    ),
    "operands that threads copy": (
        f"tiling{{tile=16x32x64}},{RING}",
        spec_of(21, 73, 100, group=100),
    ),
    "rows of an odd number of bytes": (
        f"tiling{{tile=16x32x64}},{RING}",
        spec_of(21, 73, 101, "s8", 101),
    ),
    "groups of which a tile has a part of several": (
        f"tiling{{tile=16x32x96}},{RING}",
        spec_of(16, 40, 384, group=64),
    ),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("what", WAYS)
def test_other_ways_to_the_sums(check_matmul, what):
    pipeline, spec = WAYS[what]
    check_matmul(spec, target="sm_90a", pipeline=pipeline)


def test_one_kernel_takes_any_rows():
    spec = spec_of(20, 72, 160, dynamic_m=True)
    bundle = as_bundle(compile_matmul(spec, target="sm_90a", pipeline=TILED))
    draw = np.random.default_rng(5)
    b, scales = draw.integers(0, 256, (72, 80), np.uint8), np.ones((72, 5), ml_dtypes.bfloat16)
    values = np.stack([b & 15, b >> 4], -1).reshape(72, 160).astype(np.int64)
    values = np.where(values >= 8, values - 16, values)
    for m in (1, 17, 33):
        a = draw.integers(-3, 4, (m, 160))
        c = open_kernel(bundle)(a.astype(ml_dtypes.bfloat16), b, scales)
        assert np.array_equal(c, a @ values.T)


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_120a"])
def test_chips_of_mma_sync(check_matmul, target):
    how = {"target": target, "pipeline": f"tiling{{tile=16x32x64}},{COPIES}"}
    check_matmul(spec_of(20, 40, 160, "s4", a="bf16"), **how)


@pytest.mark.sweep(30)
@pytest.mark.parametrize("seed", range(60))
def test_random_specs_by_the_default_schedule(check_matmul, seed):
    draw = random.Random(seed)
    m, n = (draw.randint(1, draw.choice((20, 150))) for _ in range(2))
    weights, a = draw.choice(TYPES), draw.choice(("bf16", "f16"))
    k = 2 * draw.randint(1, 150)
    group = draw.choice((0, 32, 64, 128, k))
    k = k if group in (0, k) else group * draw.randint(1, 3)
    zeros = {"zero_points": True} if weights == "u4" and group and draw.random() < 0.7 else {}
    target = draw.choice(WITH_AGENTS) if draw.random() < 0.8 else "sm_120a"
    c = draw.choice(("f32", "bf16", "f16", "e4m3"))
    spec = spec_of(m, n, k, weights, group, draw.choice(("bf16", "f32")), a=a, c=c, **zeros)
    check_matmul(spec, target=target, seed=seed)


CODES = np.arange(256, dtype=np.uint8)


def widened(weights):
    """Every value of a type of weights, by its definition: for each code, in float64."""
    if weights == "s8":
        return CODES.view(np.int8).astype(np.float64)
    types = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    return CODES.view(types[weights]).astype(np.float64)


@pytest.mark.parametrize("a_dtype", ["bf16", "f16"])
@pytest.mark.parametrize("weights", ["s8", "e4m3", "e5m2"])
def test_every_code_is_widened_exactly(weights, a_dtype):
    """By an identity: C is the transposed weights, with their infinities and NaN."""
    spec = spec_of(16, 256, 16, weights, 0, a=a_dtype)
    bundle = as_bundle(compile_matmul(spec, target="sm_90a", pipeline="tiling{tile=16x32x16}"))
    b = np.zeros((256, 16), np.uint8)
    b[:, 3] = CODES
    wide = ml_dtypes.bfloat16 if a_dtype == "bf16" else np.float16
    types = {"s8": np.int8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    a, c = np.eye(16).astype(wide), np.full((16, 256), 7, np.float32)
    a[4] = 0
    tensors = {"a": a, "b": b.view(types[weights]), "c": c}
    open_device("emulator").launch(bundle, tensors, 0, check="full")
    wanted = widened(weights)
    assert np.array_equal(c[3], wanted, equal_nan=True)
    finite = np.isfinite(wanted)
    assert (c[4][finite] == 0).all()


@pytest.mark.parametrize("weights", ["s4", "u4"])
def test_nibbles_lie_low_first_along_k(weights):
    """Beside a product of weights that are unpacked and scaled one by one, in float64."""
    m, n, k, group = 5, 16, 64, 32
    draw = np.random.default_rng(7)
    values = draw.integers(-8, 8, (n, k)) if weights == "s4" else draw.integers(0, 16, (n, k))
    packed = np.zeros((n, k // 2), np.uint8)
    for column in range(0, k, 2):
        low, high = values[:, column] & 15, values[:, column + 1] & 15
        packed[:, column // 2] = low + 16 * high
    scales = (2.0 ** draw.integers(-3, 3, (n, k // group))).astype(np.float32)
    zeros = draw.integers(0, 16, (n, k // group)).astype(np.uint8)
    a = draw.integers(-4, 5, (m, k))
    whole = np.zeros((m, n))
    for i, j, at in np.ndindex(m, n, k):
        shift = int(zeros[j, at // group]) if weights == "u4" else 0
        whole[i, j] += a[i, at] * (values[j, at] - shift) * scales[j, at // group]
    more = {"zero_points": True} if weights == "u4" else {}
    spec = spec_of(m, n, k, weights, group, "f32", **more)
    bundle = as_bundle(compile_matmul(spec, target="sm_90a"))
    tensors = {"a": a.astype(ml_dtypes.bfloat16), "b": packed, "scales": scales}
    tensors |= {"zeros": zeros} if more else {}
    tensors["c"] = np.full((m, n), 7, np.float32)
    open_device("emulator").launch(bundle, tensors, 0, check="full")
    assert np.array_equal(tensors["c"], whole)  # of few bits: every order gives the exact sums


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"b_dtype": "s4", "a_dtype": "f32"}, "a_dtype must be bf16 or f16 for s4, got f32"),
        ({"b_dtype": "s4", "k": 161}, "k must be whole bytes of s4, got 161; pad K"),
        ({"group_size": 32}, "group_size must be 0 without scales, got 32; give scale_dtype"),
        (
            {"group_size": 48, "scale_dtype": "bf16"},
            "group_size must be 32, 64, 128 or all 160 of K, got 48",
        ),
        (
            {"group_size": 64, "scale_dtype": "bf16"},
            "group_size must divide K, got 64 and K of 160; pad K",
        ),
        (
            {"group_size": 32, "scale_dtype": "s8"},
            "scale_dtype must be one of bf16, f16, f32, got 's8'",
        ),
        ({"zero_points": True}, "zero_points must come with b_dtype u4 and scales, got s8"),
        (
            {"batch": 2},
            "weights of s8 beside bf16 must come with batch = 0, got 2; lay them out so",
        ),
        ({"b_major": "n"}, "must come with b_major = 'k', got 'n'; lay them out so"),
        ({"sums": "two-level"}, "weights of s8 come without two-level sums; leave it out"),
        (
            {"b_dtype": "bf16", "group_size": 32},
            "group_size must come with b_dtype narrower than a_dtype, got bf16 and bf16",
        ),
    ],
)
def test_what_no_weights_are_is_refused(fields, message):
    with pytest.raises(CompileError) as caught:
        MatmulSpec(**{"m": 16, "n": 32, "k": 160, "b_dtype": "s8", **fields})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "pipeline", "target", "message"),
    [
        (
            spec_of(16, 32, 64),
            "tiling{mma=fma}",
            "sm_90a",
            "mma must be mma.sync or wgmma.mma_async+cvt+fma for weights",
        ),
        (
            spec_of(16, 32, 64),
            "tiling{tile=16x32x48}",
            "sm_90a",
            "tile K must be a multiple of 32 for weights of 4 bits, got 48",
        ),
        (
            spec_of(16, 32, 64, "e4m3"),
            "tiling{tile=16x32x32}",
            "sm_80",
            "weights of e4m3 are for sm_100a, sm_90a, sm_89 or sm_120a, got sm_80; take s8",
        ),
        (
            spec_of(16, 32, 64, "e4m3"),
            None,
            "sm_86",
            "schedule: weights of e4m3 are for sm_100a, sm_90a, sm_89 or sm_120a, got sm_86",
        ),
        (
            spec_of(16, 4096, 4096, group=128),
            "tiling{tile=128x256x1024}",
            "sm_90a",
            "tile 128x256x1024 needs 393216 bytes of shared memory for A and B",
        ),
        (
            spec_of(16, 32, 64),
            "tiling{tile=16x32x32 swap=true}",
            "sm_90a",
            "swap needs wgmma or tcgen05.mma, got mma.sync",
        ),
    ],
)
def test_what_no_kernel_of_weights_does_is_refused(spec, pipeline, target, message):
    with pytest.raises(CompileError) as caught:
        compile_matmul(spec, target=target, pipeline=pipeline, until="ptx")
    assert message in str(caught.value)
