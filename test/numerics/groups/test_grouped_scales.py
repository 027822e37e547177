"""Groups of rows whose products have scales, or of which there are two: prefixes, layouts, pairs.

Offsets fall anywhere, some groups are empty, and what pads the atoms of each group's scales is NaN.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tilewright.compiler.driver import choose_pipeline, compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline, run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.runtime.judge.groups import rows_in_atoms
from tilewright.runtime.scales.blocked import to_blocked
from tilewright.tools.runs.scaled_inputs import rows_in_atoms as rows_of_atoms

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SCALED = MatmulSpec(300, 40, 192, "mxfp8", "mxfp8", groups=5)
BLOCKWISE = MatmulSpec(
    203, 72, 272, "e4m3", "e4m3", "f32", groups=5, a_scales="1x128", b_scales="128x128"
)
DUAL = MatmulSpec(200, 40, 72, groups=5, products=2)
HALVES = (
    "tiling{tile=64x64x128},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true},"
    "pipelining,warp-specialization,persistence{ctas=4}"
)
SHARED = DEFAULT_PIPELINE.replace("clustering", "clustering{shape=2x2 pair=true}")


@pytest.mark.sweep(12)
@pytest.mark.array(
    1, prefix=PREFIXES, format_=("mxfp8", "mxfp4", "nvfp4", "mxfp6"), layout=("blocked", "linear")
)
def test_every_prefix_takes_the_scales_of_each_group(check_matmul, prefix, format_, layout):
    spec = replace(SCALED, a_dtype=format_, b_dtype=format_, scale_layout=layout)
    check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("layout", ["blocked", "linear"])
@pytest.mark.parametrize("pipeline", [HALVES, SHARED])
def test_pairs_and_peers_have_the_scales_of_one_group(check_matmul, layout, pipeline):
    """With 64 rows a CTA threads copy words of atoms; CTAs along N share those of A."""
    spec = replace(SCALED, m=500, n=200, scale_layout=layout)
    _, report = check_matmul(spec, pipeline=pipeline)
    assert not report.warnings


def test_more_groups_than_are_counted_in_a_pass(check_matmul):
    pipeline = "tiling{tile=128x32x128},tma-insertion,swizzle-selection"
    check_matmul(replace(SCALED, m=150, n=16, k=128, groups=11), pipeline=pipeline)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "formats",
    [("mxfp6", "mxfp4"), ("mxfp8_1x128", "mxfp8_128x128"), ("mxfp4_1x16", "mxfp4_1x16")],
)
def test_formats_that_threads_spread_or_repeat(check_matmul, formats):
    a, b = formats
    check_matmul(replace(SCALED, k=128, a_dtype=a, b_dtype=b), pipeline=DEFAULT_PIPELINE)


def test_sixteen_warps_take_groups_with_scales(check_matmul):
    check_matmul(replace(SCALED, m=130, k=128), target="sm_120a")


@pytest.mark.sweep(6)
@pytest.mark.array(1, prefix=PREFIXES, b_scales=("128x128", "1x128"))
def test_every_prefix_adds_products_times_the_scales_of_each_group(check_matmul, prefix, b_scales):
    pipeline = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=64x32x128}")
    spec = replace(BLOCKWISE, b_scales=b_scales)
    check_matmul(spec, target="sm_90a", pipeline=pipeline, stop_after=prefix)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "pipeline",
    [
        "tiling{tile=64x72x64},tma-insertion,swizzle-selection,pipelining",
        "tiling{tile=128x64x128},tma-insertion,swizzle-selection,pipelining,warp-specialization,"
        "persistence{ctas=2}",
        "tiling{tile=64x64x128},tma-insertion,swizzle-selection,clustering{shape=2x1},pipelining,"
        "warp-specialization,persistence,ping-pong",
        None,
    ],
)
def test_scales_of_128_by_other_tiles(check_matmul, pipeline):
    check_matmul(BLOCKWISE, target="sm_90a", pipeline=pipeline)


@pytest.mark.sweep(4)
@pytest.mark.array(1, prefix=PREFIXES, target=("sm_90a", "sm_100a"))
def test_every_prefix_multiplies_groups_by_two_stacks(check_matmul, prefix, target):
    pipeline = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=64x64x64}")
    check_matmul(DUAL, target=target, pipeline=pipeline, stop_after=prefix)


def test_a_stack_with_scales_by_pairs_of_64_rows(check_matmul):
    """Threads of both CTAs copy the scales of the tile's matrix."""
    spec = replace(SCALED, groups=0, batch=2, m=200)
    check_matmul(spec, pipeline=HALVES)


def test_groups_of_a_few_rows_are_tiles_of_lone_ctas():
    """A pair has 256 rows, of which 128 groups of three would fill 1 in 85."""
    spec = replace(SCALED, m=384, n=1536, k=2048, groups=128)
    assert "pair=true" not in choose_pipeline(spec, "sm_100a")
    assert "pair=true" in choose_pipeline(replace(spec, m=65536), "sm_100a")


def test_the_judge_finds_the_scales_where_each_group_is_blocked_by_itself():
    """Beside the definition: the blocked arrays of all groups, one after the other."""
    ends = torch.tensor([0, 130, 130, 131, 300], dtype=torch.int32)
    scales = torch.randint(0, 255, (310, 4), dtype=torch.uint8)
    parts = [
        to_blocked(scales[first:last].view(torch.float8_e8m0fnu)).view(torch.uint8)
        for first, last in zip([0, *ends.tolist()], ends.tolist(), strict=False)
        if first < last
    ]
    whole = torch.cat(parts).numpy()
    at = rows_in_atoms(ends.numpy(), 310)[:300]
    number = np.arange(4)
    found = whole[
        at[:, None] // 128, number // 4, at[:, None] % 32, at[:, None] // 32 % 4, number % 4
    ]
    assert (found == scales[:300].numpy()).all()
    assert (rows_of_atoms(ends, 310).numpy() == at).all()


@pytest.mark.parametrize(
    ("spec", "more", "message"),
    [
        (SCALED, {"gathered": 20}, "that follow one another, got gathered rows; copy the rows"),
        (SCALED, {"a_dtype": "mxfp8_128x128"}, "must have scales of single rows where rows are"),
        (
            DUAL,
            {"a_major": "m", "b_major": "n", "group_axis": "k"},
            "two products must be of groups of rows that follow one another, got groups of K",
        ),
        (
            BLOCKWISE,
            {"a_scales": "128x128", "b_scales": "1x128"},
            "a_scales must be 1x128, since groups begin at any row, got 128x128; repeat them",
        ),
    ],
)
def test_a_spec_of_other_groups_is_refused(spec, more, message):
    with pytest.raises(OptionError, match=message):
        replace(spec, **more)


def text_of(spec, target):
    how = {"pipeline": "tiling", "stop_after": "tiling", "until": "mlir"}
    return compile_matmul(spec, target=target, **how).mlir


TAKEN = "groups: must load what the tile's group has of a and of its scales, got all of it"
EDITS = {
    "all rows of a": (SCALED, TAKEN, 'load"(%group_rows, %g', 'load"(%a, %g'),
    "all scales of a": (SCALED, TAKEN, 'load"(%group_scales', 'load"(%a_scales'),
    "all scales of 128": (BLOCKWISE, TAKEN, "%adds, %group_scales", "%adds, %a_scales"),
    "rows for atoms": (
        SCALED,
        "groups: must take the scales of a tile.group, got others; take its results",
        "(%a_scales, %group_atoms",
        "(%a_scales, %group#2",
    ),
    "other offsets": (
        SCALED,
        "groups: must take the scales of a tile.group, got others; take its results",
        "{extent = 300 : i64} :",
        "{extent = 299 : i64} :",
    ),
    "another form": (
        BLOCKWISE,
        "groups: lines of memref<3x203xf32, 1> must be 'columns', got 'rows'; say that",
        'form = "columns"',
        'form = "rows"',
    ),
    "no form": (
        SCALED,
        "form must be one of .'rows', 'columns', 'atoms'., got 'lines'",
        'form = "atoms"',
        'form = "lines"',
    ),
    "atoms by rows": (
        SCALED,
        "form must be 'atoms' of views of atoms, and of no other, got 'rows' of memref<7x2x32x4x4",
        'form = "atoms"',
        'form = "rows"',
    ),
    "too few atoms": (
        SCALED,
        "groups: a_scales must have 7 rows of atoms, enough for any 5 groups of 300, got 3",
        "memref<7x2x32x4x4",
        "memref<3x2x32x4x4",
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_scales_that_are_not_those_of_the_group_are_refused(what):
    spec, message, before, after = EDITS[what]
    text = text_of(spec, "sm_90a" if spec is BLOCKWISE else "sm_100a")
    assert before in text
    with pytest.raises(CompileError, match=message):
        run_passes_on_text(text.replace(before, after), "edited", "tma-insertion")


MODULE = """
func.func @f(%a: tensor<300x192xf8E4M3FN>, %b: tensor<5x40x192xf8E4M3FN>,
             %s: tensor<SCALES>, %t: tensor<5x40x6xf8E8M0FNU>, %ends: tensor<ENDSxi32>)
    -> tensor<300x40xf32> {
  %c = "tile.grouped_scaled_matmul"(%a, %b, %s, %t, %ends) ({
  ^bb0(%x: f32):
    "tile.yield"(%x) : (f32) -> ()
  }) {a_major = "k", b_major = "k", block = 32 : i64}
    : (tensor<300x192xf8E4M3FN>, tensor<5x40x192xf8E4M3FN>, tensor<SCALES>,
       tensor<5x40x6xf8E8M0FNU>, tensor<ENDSxi32>) -> tensor<300x40xf32>
  return %c : tensor<300x40xf32>
}
"""


@pytest.mark.parametrize(
    ("scales", "ends", "message"),
    [
        ("3x2x32x4x4xf8E8M0FNU", "5", "must be blocked, .7, 2, 32, 4, 4., or linear, .896, 6."),
        ("3x6xf8E8M0FNU", "5", "a_scales must be those of single rows, since groups begin at any"),
        ("300x6xf8E8M0FNU", "4", "offsets must be tensor<5xi32>, got tensor<4xi32>"),
    ],
)
def test_a_product_of_groups_with_other_scales_is_refused(scales, ends, message):
    text = MODULE.replace("SCALES", scales).replace("ENDS", ends)
    with pytest.raises(CompileError, match=message):
        run_passes_on_text(text, "module", "normalize")


def test_a_module_may_say_a_product_of_groups(check_matmul):
    text = MODULE.replace("SCALES", "300x6xf8E8M0FNU").replace("ENDS", "5")
    check_matmul(LinalgText(text, "module"))
