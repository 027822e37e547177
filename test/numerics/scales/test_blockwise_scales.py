"""Scales in f32 of 128 elements of K, and two-level sums, on both chips: prefixes, tiles, tails,
stacks. What is so with tensor memory alone is in test_products_in_tensor_memory.py."""

import random

import numpy as np
import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
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
HOPPER, BLACKWELL = "sm_90a", "sm_100a"
TARGETS = (HOPPER, BLACKWELL)
TAILS = {
    HOPPER: ",tma-insertion,swizzle-selection,pipelining",
    BLACKWELL: ",tma-insertion,swizzle-selection,pipelining{stages=3},warp-specialization",
}
READS = {HOPPER: "wgmma.wait_group.sync.aligned", BLACKWELL: "tcgen05.ld"}
"""How threads get the sums of a step."""


def spec_of(m, n, k, forms=FORMS[0], **more):
    types = more.pop("types", ("e4m3", "e4m3"))
    return MatmulSpec(m, n, k, *types, "f32", a_scales=forms[0], b_scales=forms[1], **more)


@pytest.mark.sweep(4)
@pytest.mark.array(1, target=TARGETS, prefix=PREFIXES, forms=FORMS)
def test_every_prefix(check_matmul, target, prefix, forms):
    """A tile along each axis and a part; three K steps, the last one a part."""
    m, tile = {HOPPER: (72, "64x32x128"), BLACKWELL: (136, "128x32x128")}[target]
    pipeline = DEFAULT_PIPELINE.replace("tiling", f"tiling{{tile={tile}}}")
    spec = spec_of(m, 40, 272, forms)
    compiled, report = check_matmul(spec, target=target, pipeline=pipeline, stop_after=prefix)
    assert not report.warnings
    assert READS[target] in compiled.ptx
    assert "fma.rn.f32" in compiled.ptx


@pytest.mark.sweep(4)
@pytest.mark.array(
    1,
    target=TARGETS,
    tile=("64x24x128", "128x144x64", "128x80x32", "64x128x128"),
    forms=FORMS,
    identity=("a", "b"),
)
def test_tiles_that_begin_within_128_columns_or_have_several_steps_a_scale(
    check_matmul, target, tile, forms, identity
):
    m, n, _ = map(int, tile.split("x"))
    pipeline = f"tiling{{tile={tile}}}{TAILS[target]}"
    spec = spec_of(m + 8, 2 * n + 8, 144, forms)
    check_matmul(spec, target=target, pipeline=pipeline, identity=identity)


def test_three_warpgroups_have_a_product_of_several_steps_a_scale(check_matmul):
    pipeline = f"tiling{{tile=192x80x32}}{TAILS[HOPPER]}"
    check_matmul(spec_of(200, 168, 144, FORMS[1]), target=HOPPER, pipeline=pipeline, identity="b")


def test_three_warpgroups_share_192_rows_of_128_columns(check_matmul):
    pipeline = f"tiling{{tile=192x128x128}}{TAILS[HOPPER]},warp-specialization"
    compiled, _ = check_matmul(spec_of(188, 124, 144), target=HOPPER, pipeline=pipeline)
    assert compiled.manifest["block"] == [512, 1, 1]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("forms", "depth"), [(FORMS[0], 128), (FORMS[2], 128), (FORMS[0], 64)])
def test_a_warpgroup_has_several_64_rows_of_a_product_and_more_steps_than_scales_asked_for(
    check_matmul, forms, depth
):
    """256 rows of one warpgroup; 6 steps, the last one a part; tiles of M and N hang over."""
    pipeline = f"tiling{{tile=256x16x{depth}}}{TAILS[HOPPER]},warp-specialization,persistence"
    check_matmul(spec_of(200, 20, 656, forms), target=HOPPER, pipeline=pipeline)


@pytest.mark.parametrize("staging", ["", ",epilogue-staging{columns=8 buffers=2}"])
def test_warpgroups_take_turns_from_tile_to_tile(check_matmul, staging):
    """Two of them, and one CTA for all tiles."""
    rings = "pipelining{stages=2},warp-specialization,persistence{ctas=1}"
    pipeline = f"tiling{{tile=128x136x128}},tma-insertion,swizzle-selection{staging},{rings}"
    spec = spec_of(136, 136, 256, FORMS[1])
    compiled, _ = check_matmul(spec, target=HOPPER, pipeline=pipeline)
    assert "bar.arrive" in compiled.ptx or "barrier.cta.arrive" in compiled.ptx


def test_scales_of_columns_for_which_threads_have_no_registers_are_read_behind_mmas(check_matmul):
    """Two steps, the last one a part."""
    pipeline = f"tiling{{tile=128x168x128}}{TAILS[HOPPER]},warp-specialization"
    compiled, _ = check_matmul(spec_of(124, 168, 144, FORMS[1]), target=HOPPER, pipeline=pipeline)
    last = compiled.ptx.rpartition("wgmma.mma_async")[2]
    while_it_runs, _, behind = last.partition("wgmma.wait_group.sync.aligned \t0")
    assert "ld.shared.v2" not in while_it_runs
    assert "ld.shared.v2" in behind


def test_two_warpgroups_of_128_rows_multiply_by_scales_of_rows_and_then_of_columns(check_matmul):
    """A thread then holds sums of two atoms, a product and 32 scales of columns, and no factors:
    ptxas spills nothing. Three steps, the last one a part; tiles hang over."""
    rings = "pipelining{stages=4},warp-specialization,persistence{ctas=1}"
    pipeline = f"tiling{{tile=256x128x128}},tma-insertion{{box=2d}},swizzle-selection,{rings}"
    spec = spec_of(316, 124, 272, FORMS[1])
    compiled, _ = check_matmul(spec, target=HOPPER, pipeline=pipeline)
    assert compiled.assembled.spill_store_bytes == 0
    first, last = "wgmma.fence", "wgmma.wait_group"
    step = compiled.ptx.rpartition(first)[0].rpartition("mbarrier.try_wait")[2]
    assert step.partition(first)[0].count("ld.shared.v2") == 16
    assert step.partition(last)[2].count("ld.shared") == 0


@pytest.mark.array(
    1,
    target=TARGETS,
    shared=("", "a", "b"),
    forms=FORMS,
    types=(("e4m3", "e5m2"), ("bf16", "bf16")),
)
def test_stacks_have_the_scales_of_each_matrix(check_matmul, target, shared, forms, types):
    stacked = {f"{name}_stacked": False for name in shared}
    check_matmul(spec_of(20, 24, 144, forms, batch=2, types=types, **stacked), target=target)


MORE = {
    "one CTA for all tiles, whose products go on in turns": (
        "tiling{tile=128x32x128},tma-insertion,swizzle-selection,pipelining{stages=3},"
        "warp-specialization,persistence{ctas=1}",
        (140, 70, 300),
    ),
    "a staged epilogue": (
        "tiling{tile=128x64x128},tma-insertion,swizzle-selection,epilogue-staging{columns=16},"
        "pipelining{stages=2},warp-specialization,persistence{ctas=2}",
        (140, 72, 272),
    ),
    "a split K whose last part is shorter": (
        "tiling{tile=64x16x128},tma-insertion,swizzle-selection,split-k{parts=2},pipelining,"
        "warp-specialization",
        (20, 20, 272),
    ),
    "parts of K that a grid has": (
        "tiling{tile=64x16x128},tma-insertion,swizzle-selection,split-k{parts=3 over=grid},"
        "pipelining,warp-specialization",
        (20, 24, 700),
    ),
    "multicast": (
        "tiling{tile=64x16x128},tma-insertion,swizzle-selection,clustering{shape=2x1},"
        "pipelining{stages=2},warp-specialization,persistence",
        (140, 20, 144),
    ),
    "operands that threads copy": ("tiling{tile=64x16x128}", (20, 20, 133)),
    "one step along K": ("tiling{tile=128x16x128}", (130, 20, 100)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("what", MORE)
def test_other_ways_to_the_sums(check_matmul, what, target):
    pipeline, sizes = MORE[what]
    pipeline += TAILS[target] if "," not in pipeline else ""
    forms = FORMS[TARGETS.index(target)]
    check_matmul(spec_of(*sizes, forms), target=target, pipeline=pipeline)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("over", ["cluster", "grid"])
@pytest.mark.parametrize("target", TARGETS)
def test_steps_behind_k_are_zeros_whatever_the_number_of_columns(check_matmul, target, over):
    """Five steps in parts of two: scales of single columns lie by steps, and are loaded by them."""
    pipeline = (
        f"tiling{{tile=64x16x128}},tma-insertion,swizzle-selection,split-k{{parts=3 over={over}}},"
        "pipelining{stages=2},warp-specialization"
    )
    for forms in FORMS[1:]:
        check_matmul(spec_of(20, 120, 600, forms), target=target, pipeline=pipeline)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("target", "types", "more"),
    [
        (HOPPER, ("e4m3", "e4m3"), {}),
        (HOPPER, ("bf16", "bf16"), {}),
        (BLACKWELL, ("e4m3", "e4m3"), {}),
        (BLACKWELL, ("bf16", "bf16"), {"products": 2}),
        (BLACKWELL, ("e5m2", "e5m2"), {"groups": 3}),
    ],
)
def test_two_level_sums_add_the_sums_of_tiles(check_matmul, target, types, more):
    spec = MatmulSpec(136, 48, 272, *types, "f32", sums="two-level", **more)
    compiled, _ = check_matmul(spec, target=target)
    assert READS[target] in compiled.ptx
    assert "add.rn.f32" in compiled.ptx


def test_scales_of_128_columns_are_asked_for_while_mmas_run(check_matmul):
    """Those of the next step, behind the start of MMAs; tiles begin within 128 columns."""
    pipeline = f"tiling{{tile=128x96x128}}{TAILS[HOPPER]},warp-specialization,persistence{{ctas=2}}"
    spec = spec_of(132, 300, 656)
    compiled, _ = check_matmul(spec, target=HOPPER, pipeline=pipeline)
    last = compiled.ptx.rpartition("wgmma.mma_async")[0].rpartition("wgmma.wait_group")[2]
    assert "ld.global.b32" not in last.partition("wgmma.fence")[0]
    running = [part.partition("wgmma.wait_group")[0] for part in compiled.ptx.split("wgmma.commit")]
    assert any("ld.global.b32" in part for part in running[1:])


@pytest.mark.parametrize(("stages", "k"), [(2, 656), (4, 272)])
def test_wide_tiles_without_scales_leave_24_registers_to_loads(check_matmul, stages, k):
    """128x224, whose slots are released in their own step, from tile to tile."""
    rings = f"pipelining{{stages={stages}}},warp-specialization,persistence{{ctas=1}}"
    pipeline = f"tiling{{tile=128x224x128}},tma-insertion,swizzle-selection,{rings}"
    spec = MatmulSpec(136, 228, k, "e5m2", "e4m3", "bf16", sums="two-level")
    compiled, _ = check_matmul(spec, target=HOPPER, pipeline=pipeline)
    assert "setmaxnreg.dec.sync.aligned.u32 \t24" in compiled.ptx


@pytest.mark.sweep(60)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(60))
def test_random_specs_by_the_default_schedule(check_matmul, seed, target):
    draw = random.Random(seed)
    m, n, k = (draw.randint(1, draw.choice((20, 150, 300))) for _ in range(3))
    a, b = draw.choice((*FORMS, ("", "")))
    types = draw.choice((("e4m3", "e4m3"), ("e5m2", "e4m3"), ("bf16", "bf16"), ("f16", "f16")))
    more = {"a_scales": a, "b_scales": b} if a else {"sums": "two-level"}
    more |= {"batch": 2} if draw.random() < 0.2 and m * n < 5000 else {}
    if target == BLACKWELL:  # Hopper's tensor core reads bytes along K alone
        more |= {"a_major": draw.choice("km"), "b_major": draw.choice("kn")}
    c = draw.choice(("f32", "bf16", "e4m3"))
    check_matmul(MatmulSpec(m, n, k, *types, c, **more), target=target, seed=seed)


def test_the_judge_multiplies_by_the_definition():
    """Beside a product of operands that are spread out element by element."""
    rows, k, draw = 130, 272, np.random.default_rng(3)
    a, b = draw.standard_normal((2, rows, k))
    sa, sb = draw.standard_normal((3, rows)), draw.standard_normal((2, 4))
    tensors = [{"name": name, "role": "input", "dtype": "e4m3"} for name in "ab"]
    manifest = {"tensors": tensors, "blockwise": {"a": "1x128", "b": "128x128"}, "target": HOPPER}
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
        (FORMS[0], "tiling{tile=64x16x256}", HOPPER, "tile K must divide 128"),
        (FORMS[0], "tiling{mma=mma.sync}", HOPPER, r"mma must be wgmma.mma_async\+fma"),
        (
            FORMS[0],
            "tiling",
            "sm_120a",
            "on sm_100a or sm_90a, got sm_120a; compile for one of them",
        ),
        (
            ("1x128", ""),
            "tiling",
            HOPPER,
            "one of them 1x128, or both left out, got 1x128 and none",
        ),
        (("128x128", "128x128"), "tiling", HOPPER, "one of them 1x128"),
    ],
)
def test_what_has_no_scales_of_128_is_refused(forms, pipeline, target, message):
    with pytest.raises(CompileError, match=message):
        compile_matmul(spec_of(64, 64, 256, forms), target=target, pipeline=pipeline, until="ptx")


def test_steps_of_k_that_leave_some_out_are_refused():
    """Threads ask for the scales of the next step, which must be the next one."""
    how = {"pipeline": "tiling", "stop_after": "tiling", "until": "mlir"}
    text = compile_matmul(spec_of(64, 64, 384), target=HOPPER, **how).mlir
    edited = text.replace("constant 1 : index", "constant 2 : index")
    with pytest.raises(CompileError, match="K steps must follow one another, each by one"):
        run_passes_on_text(edited, "edited", "tma-insertion")


LINALG = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#sa = affine_map<(m, n, k) -> (k floordiv 128, m)>
#sb = affine_map<(m, n, k) -> (n floordiv 128, k floordiv 128)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%a: tensor<20x272xf8E4M3FN>, %s: tensor<3x20xf32>, %b: tensor<136x272xf8E4M3FN>,
             %t: tensor<2x4xf32>) -> tensor<20x136xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<20x136xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<20x136xf32>) -> tensor<20x136xf32>
  %c = linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #c],
                       iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %s, %b, %t : tensor<20x272xf8E4M3FN>, tensor<3x20xf32>, tensor<136x272xf8E4M3FN>,
        tensor<2x4xf32>) outs(%init : tensor<20x136xf32>) {
  ^bb0(%x: f8E4M3FN, %u: f32, %y: f8E4M3FN, %v: f32, %sum: f32):
    %xf = arith.extf %x : f8E4M3FN to f32
    %yf = arith.extf %y : f8E4M3FN to f32
    %xs = arith.mulf %xf, %u : f32
    %ys = arith.mulf %yf, %v : f32
    %p = arith.mulf %xs, %ys : f32
    %r = arith.addf %sum, %p : f32
    linalg.yield %r : f32
  } -> tensor<20x136xf32>
  return %c : tensor<20x136xf32>
}
"""


def test_linalg_names_elements_times_scales_of_128(check_matmul):
    compiled, _ = check_matmul(LinalgText(LINALG, "linalg"), target=HOPPER)
    assert compiled.manifest["blockwise"] == {"a": "1x128", "b": "128x128"}


def test_scales_of_f32_that_lie_otherwise_are_refused():
    other = LINALG.replace("(k floordiv 128, m)", "(k floordiv 64, m)").replace("3x20", "5x20")
    message = r"scales of f32 of A must be \[3, 20\] at \(d2 floordiv 128, d0\) or \[1, 4\] at"
    with pytest.raises(CompileError, match=message):
        compile_matmul(LinalgText(other, "linalg"), target=HOPPER, until="mlir")


def test_a_dynamic_m_has_no_scales_of_128():
    with pytest.raises(CompileError, match="must come with dynamic_m = False"):
        spec_of(64, 64, 256, dynamic_m=True)
