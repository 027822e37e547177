"""Scales in f32 of 128 elements of K, and two-level sums: prefixes, odd tiles, tails, stacks."""

import re

import numpy as np
import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import (
    DEFAULT_PIPELINE,
    parse_pipeline,
    run_passes_on_text,
)
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.runtime.judge.blockwise import blockwise_sums

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
FORMS = (("1x128", "128x128"), ("1x128", "1x128"), ("128x128", "1x128"))
TARGET = "sm_90a"
TAIL = ",tma-insertion,swizzle-selection,pipelining"


def spec_of(m, n, k, forms=FORMS[0], **more):
    types = more.pop("types", ("e4m3", "e4m3"))
    return MatmulSpec(m, n, k, *types, "f32", a_scales=forms[0], b_scales=forms[1], **more)


@pytest.mark.sweep(6)
@pytest.mark.array(1, prefix=PREFIXES, forms=FORMS)
def test_every_prefix(check_matmul, prefix, forms):
    """A tile along each axis and a part, K steps and a part."""
    spec = spec_of(72, 40, 272, forms)
    pipeline = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=64x32x128}")
    compiled, report = check_matmul(spec, target=TARGET, pipeline=pipeline, stop_after=prefix)
    assert not report.warnings
    assert "fma.rn.f32" in compiled.ptx


@pytest.mark.sweep(12)
@pytest.mark.array(
    1, tile=("64x24x128", "128x192x64", "192x96x32", "64x128x128"), forms=FORMS, identity=("a", "b")
)
def test_tiles_that_begin_within_128_columns_or_have_several_steps_a_scale(
    check_matmul, tile, forms, identity
):
    m, n, _ = map(int, tile.split("x"))
    spec = spec_of(m + 8, 2 * n + 8, 144, forms)
    check_matmul(spec, target=TARGET, pipeline=f"tiling{{tile={tile}}}{TAIL}", identity=identity)


@pytest.mark.sweep(3)
@pytest.mark.array(
    1, shared=("", "a", "b"), forms=FORMS, types=(("e4m3", "e5m2"), ("bf16", "bf16"))
)
def test_stacks_have_the_scales_of_each_matrix(check_matmul, shared, forms, types):
    stacked = {f"{name}_stacked": False for name in shared}
    check_matmul(spec_of(20, 24, 144, forms, batch=2, types=types, **stacked), target=TARGET)


MORE = {
    "a split K whose last part is shorter": (
        "tiling{tile=64x16x128},tma-insertion,swizzle-selection,split-k{parts=2},pipelining,"
        "warp-specialization",
        (20, 20, 272),
    ),
    "multicast": (
        "tiling{tile=64x16x128},tma-insertion,swizzle-selection,clustering{shape=2x1},"
        "pipelining{stages=2},warp-specialization,persistence",
        (140, 20, 144),
    ),
    "operands that threads copy": ("tiling{tile=64x16x128}" + TAIL, (20, 20, 133)),
}


@pytest.mark.parametrize("what", MORE)
def test_other_ways_to_the_sums(check_matmul, what):
    pipeline, sizes = MORE[what]
    check_matmul(spec_of(*sizes), target=TARGET, pipeline=pipeline)


@pytest.mark.parametrize("types", [("e4m3", "e4m3"), ("bf16", "bf16")])
def test_two_level_sums_add_the_sums_of_tiles(check_matmul, types):
    spec = MatmulSpec(72, 40, 272, *types, "f32", sums="two-level")
    compiled, _ = check_matmul(spec, target=TARGET)
    (loop,) = set(re.findall(r"wgmma.wait_group.sync.aligned \t?0", compiled.ptx))
    assert loop
    assert "add.rn.f32" in compiled.ptx


def test_the_judge_multiplies_by_the_definition():
    """Beside a product of operands that are spread out element by element."""
    rows, k, draw = 130, 272, np.random.default_rng(3)
    a, b = draw.standard_normal((2, rows, k))
    sa, sb = draw.standard_normal((3, rows)), draw.standard_normal((2, 4))
    tensors = [{"name": name, "role": "input", "dtype": "e4m3"} for name in "ab"]
    manifest = {"tensors": tensors, "blockwise": {"a": "1x128", "b": "128x128"}, "target": TARGET}
    values = {"a": a, "b": b, "a_scales": sa, "b_scales": sb}
    found = blockwise_sums(manifest, values, on_gpu=False)
    expected = np.zeros((rows, rows))
    for block in range(3):
        part = slice(128 * block, 128 * (block + 1))
        of_b = sb[np.arange(rows) // 128, block]
        expected += np.outer(sa[block], of_b) * (a[:, part] @ b[:, part].T)
    assert np.allclose(found.middle, expected, rtol=1e-12)
    assert (found.low < expected).all() and (expected < found.high).all()
    wider = blockwise_sums(manifest, values, on_gpu=True)
    assert (wider.high - wider.low > found.high - found.low).all()


@pytest.mark.parametrize(
    ("forms", "pipeline", "target", "message"),
    [
        (FORMS[0], "tiling{tile=64x16x256}", TARGET, "tile K must divide 128"),
        (FORMS[0], "tiling{mma=mma.sync}", TARGET, r"mma must be wgmma.mma_async\+fma"),
        (FORMS[0], "tiling", "sm_100a", "got sm_100a; compile for that"),
        (
            ("1x128", ""),
            "tiling",
            TARGET,
            "one of them 1x128, or both left out, got 1x128 and none",
        ),
        (("128x128", "128x128"), "tiling", TARGET, "one of them 1x128"),
    ],
)
def test_what_has_no_scales_of_128_is_refused(forms, pipeline, target, message):
    with pytest.raises(CompileError, match=message):
        compile_matmul(spec_of(64, 64, 256, forms), target=target, pipeline=pipeline, until="ptx")


def test_steps_of_k_that_leave_some_out_are_refused():
    """Threads ask for the scales of the next step, which must be the next one."""
    how = {"pipeline": "tiling", "stop_after": "tiling", "until": "mlir"}
    text = compile_matmul(spec_of(64, 64, 384), target=TARGET, **how).mlir
    edited = text.replace("constant 1 : index", "constant 2 : index")
    with pytest.raises(CompileError, match="K steps must follow one another, each by one"):
        run_passes_on_text(edited, "edited", "tma-insertion")


def test_a_dynamic_m_has_no_scales_of_128():
    with pytest.raises(CompileError, match="must come with dynamic_m = False"):
        spec_of(64, 64, 256, dynamic_m=True)
