"""What `tile.quantize` refuses: whole messages."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.schedule.quantized_costs import scale_bytes
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import SCALED_FORMATS
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import find_target

SM_100A = find_target("sm_100a")
TILING = "tiling{tile=128x64x64}"
POWERS = "floor or ceil or even or rceil"


def module(
    value="%x",
    element="f8E4M3FN",
    scale="f8E8M0FNU",
    block=32,
    way="floor",
    kept="1x1x32x4x4",
    n=64,
):
    a, b, c = "tensor<70x96xbf16>", f"tensor<{n}x96xbf16>", f"tensor<70x{n}x{element}>"
    return f"""
func.func @f(%a: {a}, %b: {b}) -> ({c}, tensor<{kept}x{scale}>) {{
  %c = "tile.matmul"(%a, %b) ({{
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    %q = "tile.quantize"({value}) {{block = {block} : i64, rounding = "{way}", scale = {scale}}}
      : ({"bf16" if value == "%y" else "f32"}) -> {element}
    "tile.yield"(%q) : ({element}) -> ()
  }}) {{a_major = "k", b_major = "k"}} : ({a}, {b}) -> {c}
  %s = "tile.kept"(%c) {{number = 0 : i64}} : ({c}) -> tensor<{kept}x{scale}>
  return %c, %s : {c}, tensor<{kept}x{scale}>
}}
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value": "%y"}, "tile.quantize: value must be f32, got bf16"),
        ({"element": "f16"}, "tile.quantize: no format has f16 with f8E8M0FNU by 32"),
        ({"block": 16}, "tile.quantize: no format has f8E4M3FN with f8E8M0FNU by 16"),
        ({"way": "up"}, f"tile.quantize: rounding of mxfp8 must be {POWERS}, got 'up'"),
        (
            {"kept": "2x1x32x4x4"},
            "tile.kept: must give tensor<1x1x32x4x4xf8E8M0FNU>, got tensor<2x1x32x4x4xf8E8M0FNU>",
        ),
        (
            {"n": 72},
            "tile.store_quantized: N must be a multiple of the 32 elements that share a scale in "
            "mxfp8, got 72; pad N",
        ),
    ],
)
def test_what_is_no_format_is_refused(options, message):
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(module(**options), "m.mlir", TILING)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("c_dtype", "options", "message"),
    [
        (
            "mxfp4",
            {"target": "sm_90a"},
            "sm_90a converts nothing to e2m1, sm_100a or sm_120a does; store mxfp8, or compile for "
            "that",
        ),
        ("mxfp6", {"target": "sm_120a"}, "have pairs of a row, and no whole bytes of e2m3"),
        ("mxfp8", {"target": "sm_80"}, "sm_80 converts nothing to 8-bit floats"),
        ("mxfp8", {"pipeline": "tiling{mma=fma}"}, "threads of fma reduce no groups"),
        (
            "mxfp8",
            {"pipeline": "tiling{tile=64x64x16},split-k{parts=2}"},
            "C with scales of blocks must be stored by one CTA, got the sums of several; drop",
        ),
        (
            "mxfp8",
            {"pipeline": "tiling{tile=64x64x64},expand-loops{reads=matrices}"},
            "reads=matrices must come with tile.store, got tile.store_quantized; leave reads out",
        ),
        ("mxfp8", {"pipeline": "tiling{tile=64x96x64}"}, "groups of 32 columns, got 16; take"),
    ],
)
def test_kernels_that_cannot_quantise_are_refused(c_dtype, options, message):
    with pytest.raises(CompileError) as caught:
        compile_matmul(MatmulSpec(64, 64, 64, c_dtype=c_dtype), until="ptx", **options)
    assert message in str(caught.value)


def test_the_schedule_splits_no_k_and_stages_four_blocks():
    found = choose_schedule(MatmulSpec(4096, 4096, 4096, c_dtype="nvfp4"), SM_100A)
    assert found.staging == (64, 2) and found.tile[1] % 64 == 0
    assert choose_schedule(MatmulSpec(128, 128, 16384, c_dtype="mxfp8"), SM_100A).split_k == 1


def test_the_estimate_counts_bytes_of_elements_and_words_of_scales():
    """A word of four blocks is stored where four bytes are else, each at 16 bytes of a sector"""
    form = SCALED_FORMATS["mxfp4"]
    assert scale_bytes(128, 256, 128, form) == 128 * 2 * 16
    assert scale_bytes(128, 256, 32, form) == 128 * 8 * 16


def test_a_file_may_quantise_by_hand():
    compiled = compile_matmul(LinalgText(module(), "f.mlir"), until="mlir")
    assert '"tile.store_quantized"' not in compiled.mlir and "e4m3x2" in compiled.mlir
