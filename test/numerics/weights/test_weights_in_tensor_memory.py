"""Weights that threads widen into tensor memory, A of tcgen05.mma: A and B are exchanged."""

import re

import ml_dtypes
import numpy as np
import pytest
from weight_products import TYPES, spec_of, turned_tiling

from tilewright.compiler.bundle_writer import as_bundle
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline, run_passes_on_text
from tilewright.dialects.errors import CompileError
from tilewright.runtime.launch.loading import open_kernel

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SUMS, ADDED = "tcgen05.mma+cvt", "tcgen05.mma+cvt+fma"
RING = "tma-insertion,swizzle-selection"
TAIL = "pipelining{stages=3},warp-specialization"
STAGED = f"{RING},epilogue-staging"


def tiling(spec, tile):
    return turned_tiling(spec, tile, (SUMS, ADDED))


@pytest.mark.sweep(5)
@pytest.mark.array(
    1, prefix=PREFIXES, group=(0, 32, 160), weights=TYPES, tile=("64x16x64", "128x16x32")
)
def test_every_prefix(check_matmul, prefix, group, weights, tile):
    """Two tiles or more along each axis, the last hanging over, K steps and a part."""
    spec = spec_of(20, 136, 160, weights, group)
    pipeline = DEFAULT_PIPELINE.replace("tiling", tiling(spec, tile))
    compiled, report = check_matmul(spec, target="sm_100a", pipeline=pipeline, stop_after=prefix)
    assert not report.warnings
    shape = "32x32b" if tile.startswith("128") else "16x32bx2"
    assert f"tcgen05.st.sync.aligned.{shape}" in compiled.ptx
    assert re.search(
        r"tcgen05\.mma\.cta_group::1\.kind::f16\.collector::a::discard \[%r\d+\], \[%r\d+\],",
        compiled.ptx,
    )


@pytest.mark.sweep(16)
@pytest.mark.array(
    weights=TYPES,
    a=("bf16", "f16"),
    group=(0, 32, 64, 192),
    scales=("bf16", "f16", "f32"),
    tile=("64x24x64", "128x32x64", "128x16x96", "64x8x32"),
)
def test_types_and_groups(check_matmul, weights, a, group, scales, tile):
    spec = spec_of(24, 200, 192, weights, group, scales, a=a)
    compiled, _ = check_matmul(
        spec, target="sm_100a", pipeline=f"{tiling(spec, tile)},{RING},{TAIL}"
    )
    assert compiled.manifest.get("weights") == ({"group": group} if group else None)
    assert compiled.manifest["tensors"][1]["dtype"] == weights
    assert compiled.manifest["schedule"]["swapped"]


@pytest.mark.sweep(4)
@pytest.mark.array(
    1, a=("bf16", "f16"), group=(32, 128, 256), tile=("64x16x128", "128x16x64", "128x16x32")
)
def test_zero_points_are_subtracted(check_matmul, a, group, tile):
    spec = spec_of(9, 136, 256, "u4", group, a=a, zero_points=True)
    check_matmul(spec, target="sm_100a", pipeline=f"{tiling(spec, tile)},{RING},{TAIL}")


GROUPS, ALL = spec_of(40, 200, 320, "s4", 64, c="bf16"), spec_of(40, 200, 320, "s8", 320, c="bf16")
WAYS = {
    "staged stores": f"{STAGED},{TAIL}",
    "parts over the grid": f"{RING},split-k{{parts=3 over=grid}},{TAIL}",
    "parts over a cluster": f"{RING},split-k{{parts=2}},{TAIL}",
    "multicast along N": f"{RING},clustering{{shape=2x1}},{TAIL}",
    "multicast along M": f"{STAGED},clustering{{shape=1x2}},{TAIL},persistence{{ctas=4}}",
    "tiles one after the other": f"{STAGED},{TAIL},persistence{{ctas=2}}",
    "tiles on demand": f"{STAGED},{TAIL},persistence{{scheduler=clc}}",
    "copies of threads": f"copy-insertion,swizzle-selection,{TAIL}",
}


@pytest.mark.sweep(32)
@pytest.mark.parametrize("tile", ["64x32x64", "128x32x64"])
@pytest.mark.parametrize("spec", [GROUPS, ALL], ids=["groups", "all"])
@pytest.mark.parametrize("way", WAYS)
def test_other_ways_to_the_sums(check_matmul, way, spec, tile):
    check_matmul(spec, target="sm_100a", pipeline=f"{tiling(spec, tile)},{WAYS[way]}")


@pytest.mark.parametrize(
    "spec",
    [spec_of(21, 73, 101, "s8", 101), spec_of(5, 33, 96, "u4", 32, "f32", zero_points=True)],
    ids=str,
)
def test_rows_that_tma_does_not_address(check_matmul, spec):
    """Threads copy both tiles; rows of scales have one, and an odd number of elements."""
    check_matmul(spec, target="sm_100a", pipeline=f"{tiling(spec, '64x32x64')},{RING},{TAIL}")


@pytest.mark.parametrize(
    ("bounds", "rows", "c"), [((1, 32), (1, 17, 32), "f32"), (None, (7, 65), "f16")]
)
def test_a_kernel_of_a_dynamic_m_takes_any_of_them(bounds, rows, c):
    """Within one tile, and in as many tiles as a launch needs, with a staged store."""
    more = {"least_m": bounds[0], "most_m": bounds[1]} if bounds else {}
    spec = spec_of(32, 72, 128, "s4", 64, dynamic_m=True, c=c, **more)
    staged = "" if c == "f32" else "epilogue-staging{columns=16},"
    pipeline = f"{tiling(spec, '64x32x64')},{RING},{staged}{TAIL}"
    bundle = as_bundle(compile_matmul(spec, target="sm_100a", pipeline=pipeline))
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
        (ALL, "mma=tcgen05.mma swap=true", f"mma must be mma.sync or {SUMS} for weights"),
        (ALL, f"mma={SUMS}", f"{SUMS} takes weights for its A, got those of B; exchange them"),
        (
            GROUPS,
            f"mma={ADDED} swap=true tile=256x64x64",
            "tile 256x64 needs more than the accumulator registers of a thread",
        ),
        (
            GROUPS,
            f"mma={ADDED} swap=true tile=128x256x64",
            "tile N 256 and K 64 need 576 tensor-memory columns, got 512; make the tile smaller",
        ),
    ],
)
def test_what_no_kernel_of_such_weights_does_is_refused(spec, options, message):
    with pytest.raises(CompileError) as caught:
        compile_matmul(spec, target="sm_100a", pipeline=f"tiling{{{options}}}", until="ptx")
    assert message in str(caught.value)


@pytest.fixture(scope="module")
def texts():
    """A kernel of groups and one without, behind the passes that rules speak of."""
    how = {"target": "sm_100a", "until": "mlir"}
    kernels = [("groups", GROUPS, "plan-memory"), ("all", ALL, "plan-memory")]
    kernels += [("all", ALL, "expand-loops")]
    return {
        (name, after): compile_matmul(
            spec, pipeline=f"{tiling(spec, '64x32x64')},{RING},{TAIL}", stop_after=after, **how
        ).mlir
        for name, spec, after in kernels
    }


@pytest.mark.parametrize(
    ("kernel", "old", "new", "message"),
    [
        (
            "all",
            r'( *"sm.product_columns".*each = 32.*)slots = 1',
            r"\1slots = 2",
            "products: threads add or read 1 in turns here, got 2; run plan-memory",
        ),
        (
            "groups",
            r'( *"sm.product_columns".*each = 32.*)slots = 2',
            r"\1slots = 1",
            "products: threads add or read 2 in turns here, got 1; run plan-memory",
        ),
        (
            "all",
            r' *"sm.weight_columns".*\n',
            "",
            "products: weights that threads widen have 32 columns each time, got 0",
        ),
        (
            "all",
            r'("sm.weight_columns".*)each = 32',
            r"\1each = 16",
            "products: weights that threads widen have 32 columns each time, got [16]",
        ),
        (
            "all",
            r'("sm.weight_columns".*)first = 32',
            r"\1first = 16",
            "apart: columns below 32 are taken, got column 16; move it",
        ),
        (
            "all",
            r'("sm.weight_columns".*)first = 32',
            r"\1first = 96",
            "sm.weight_columns: must lie in the 128 columns, got 96 to 160",
        ),
        (
            "all",
            r"tcgen05.mma\+cvt",
            "tcgen05.mma+fma",
            "weights: B must be those of mma.sync, and A those of tcgen05.mma+cvt, got",
        ),
    ],
)
def test_plans_that_are_edited_are_held_to_rules(texts, kernel, old, new, message):
    text = texts[kernel, "plan-memory"]
    edited = re.sub(old, new, text)
    assert edited != text, text
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "-", "expand-loops")
    assert message in caught.value.message


def test_sums_that_nothing_ends_are_refused(texts):
    edited = re.sub(r' *"tile.finish_sums".*\n', "", texts["all", "expand-loops"])
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(edited, "-", "pipes-to-barriers,select-instructions")
    message = "finish: sums in tensor memory must end with tile.finish_sums, got none"
    assert message in caught.value.message
