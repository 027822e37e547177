"""C as elements with block scales, which the kernel makes of its sums."""

import pytest

from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
FORMATS = ("mxfp8_e5m2", "mxfp6_e3m2", "nvfp4")
"""The others: test/compiler/scales/test_matmul_quantized.py."""
PAIRS = "tiling{tile=64x64x64},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true}"


def quantized(c_dtype, m=140, n=96, k=72, **more):
    return MatmulSpec(m, n, k, c_dtype=c_dtype, **more)


@pytest.mark.sweep(8)
@pytest.mark.array(prefix=PREFIXES, target=("sm_100a", "sm_90a"))
def test_every_prefix_quantises(check_matmul, prefix, target):
    check_matmul(quantized("mxfp8"), pipeline=DEFAULT_PIPELINE, stop_after=prefix, target=target)


@pytest.mark.sweep(16)
@pytest.mark.array(prefix=PREFIXES, operands=("bf16", "nvfp4", "mxfp8"), form=("nvfp4", "mxfp6"))
def test_every_prefix_quantises_products_of_block_scales(check_matmul, prefix, operands, form):
    spec = MatmulSpec(140, 96, 160, operands, operands, form)
    check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_stored(check_matmul, form):
    check_matmul(quantized(form, 40), pipeline="tiling{tile=128x64x64}")


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "options",
    [
        {"preset": "v4"},
        {"preset": "v6"},
        {"target": "sm_90a"},
        {"target": "sm_89"},
        {"target": "sm_120a"},
        {"preset": "kernel8"},
        {"pipeline": PAIRS},
    ],
    ids=str,
)
def test_presets_and_chips_quantise(check_matmul, options):
    check_matmul(quantized("mxfp8_e5m2", n=192), **options)


@pytest.mark.parametrize(("m", "n", "tile"), [(60, 96, "64x64x64"), (300, 160, "128x128x64")])
def test_what_pads_the_atoms_becomes_zero(check_matmul, m, n, tile):
    check_matmul(quantized("mxfp8", m, n), pipeline=f"tiling{{tile={tile}}}")


STAGED = "tma-insertion,epilogue-staging"
LOOP = f"{STAGED},pipelining{{stages=2}},warp-specialization,persistence{{ctas=2}}"


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("form", "shape", "passes", "scales"),
    [
        ("mxfp8", (140, 256), f"tiling{{tile=128x128x64}},{STAGED}", 4),
        ("mxfp4", (150, 160), f"tiling{{tile=64x128x64}},{LOOP}", 1),
        ("nvfp4", (300, 288), f"tiling{{tile=128x64x64}},{LOOP}", 4),
    ],
)
def test_tma_stores_pieces_of_elements(check_matmul, form, shape, passes, scales):
    """Scales go as the bytes of one word where a thread has so many"""
    compiled, _ = check_matmul(quantized(form, *shape), pipeline=passes)
    *_, c, of_c = compiled.manifest["parameters"]
    assert (c["tensor"], c["kind"]) == ("c", "tensor_map")
    assert (of_c["tensor"], of_c["alignment_bytes"]) == ("c_scales", scales)


def test_two_products_are_quantised_in_several_pieces(check_matmul):
    spec, pieces = quantized("mxfp4", 70, 128, 40, products=2), "{columns=64}"
    compiled, _ = check_matmul(spec, pipeline=f"tiling{{tile=128x256x64}},{STAGED}{pieces}")
    assert compiled.manifest["parameters"][-2]["kind"] == "tensor_map"


EPILOGUE = """
func.func @f(%a: tensor<70x64xbf16>, %b: tensor<128x64xbf16>, %r: tensor<70x128xbf16>)
    -> (tensor<70x128xf4E2M1FN>, tensor<70x128xbf16>, tensor<70x4xf32>,
        tensor<1x2x32x4x4xf8E4M3FN>) {
  %c = "tile.matmul"(%a, %b) ({
  ^bb0(%x: f32):
    %e = "tile.element"(%r) {axes = "mn"} : (tensor<70x128xbf16>) -> bf16
    %w = arith.extf %e : bf16 to f32
    %t = arith.addf %x, %w : f32
    %y = arith.truncf %t : f32 to bf16
    "tile.keep"(%y) : (bf16) -> ()
    "tile.keep_groups"(%t) {group = 32 : i64, reduce = "amax"} : (f32) -> ()
    %q = "tile.quantize"(%t) {block = 16 : i64, rounding = "nearest", scale = f8E4M3FN}
      : (f32) -> f4E2M1FN
    "tile.yield"(%q) : (f4E2M1FN) -> ()
  }) {a_major = "k", b_major = "k"}
    : (tensor<70x64xbf16>, tensor<128x64xbf16>) -> tensor<70x128xf4E2M1FN>
  %d = "tile.kept"(%c) {number = 0 : i64} : (tensor<70x128xf4E2M1FN>) -> tensor<70x128xbf16>
  %g = "tile.kept"(%c) {number = 1 : i64} : (tensor<70x128xf4E2M1FN>) -> tensor<70x4xf32>
  %s = "tile.kept"(%c) {number = 2 : i64}
    : (tensor<70x128xf4E2M1FN>) -> tensor<1x2x32x4x4xf8E4M3FN>
  return %c, %d, %g, %s : tensor<70x128xf4E2M1FN>, tensor<70x128xbf16>, tensor<70x4xf32>,
    tensor<1x2x32x4x4xf8E4M3FN>
}
"""


def test_other_operands_and_outputs_go_with_pieces_of_elements(check_matmul):
    source = LinalgText(EPILOGUE, "epilogue.mlir")
    compiled, _ = check_matmul(source, pipeline=f"tiling{{tile=128x128x64}},{STAGED}")
    assert compiled.ptx.count("cp.async.bulk.tensor.2d.global") == 2  # elements, and what is kept


def test_stacks_have_scales_for_each_matrix(check_matmul):
    spec = quantized("mxfp4", 70, 96, 40, batch=3, b_stacked=False)
    compiled, _ = check_matmul(spec)
    shapes = [each["shape"] for each in compiled.manifest["tensors"][-2:]]
    assert shapes == [[3, 70, 48], [3, 1, 1, 32, 4, 4]]


@pytest.mark.parametrize("seed", [0])
def test_warps_meet_again_before_the_next_tile(check_matmul, seed):
    """One lane of four writes scales, and the next tile's copies are those of whole warps."""
    ring = "copy-insertion,swizzle-selection,pipelining{stages=3},persistence{ctas=1}"
    tiles = "tiling{tile=128x32x32 mma=mma.sync warps=4x1}"
    spec = quantized("mxfp8", 260, 32, 96)
    check_matmul(spec, target="sm_90a", pipeline=f"{tiles},{ring}", seed=seed)
