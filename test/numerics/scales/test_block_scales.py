"""Operands with block scales: every prefix, presets, odd tiles and tails, scales of any size.

What pads the atoms of scales is NaN in every test, so that a scale that is read by mistake shows.
"""

import numpy as np
import pytest
import torch

from tilewright.compiler.backend import assemble
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.element_types import SCALED_FORMATS
from tilewright.runtime.judge.block_scales import decoded, scale_of_each
from tilewright.runtime.judge.reference import to_float64
from tilewright.runtime.judge.sums import accumulator_interval
from tilewright.runtime.launch.kernel import Kernel
from tilewright.runtime.scales.blocked import to_blocked
from tilewright.runtime.scales.quantize import dequantize, quantize

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
FORMATS = ("mxfp8", "mxfp4", "nvfp4")
PAIRS = DEFAULT_PIPELINE.replace("clustering", "clustering{shape=2x1 pair=true}").replace(
    "epilogue-staging,", ""
)
INSTRUCTIONS = {
    "mxfp8": "kind::mxf8f6f4.block_scale.block32",
    "mxfp4": "kind::mxf4.block_scale.block32",
    "nvfp4": "kind::mxf4nvf4.block_scale.block16",
}


def spec_of(format_, m, n, k, **more):
    return MatmulSpec(m, n, k, format_, format_, **more)


def with_tile(tile, text=DEFAULT_PIPELINE):
    return text.replace("tiling", f"tiling{{tile={tile}}}", 1)


@pytest.mark.sweep(8)
@pytest.mark.array(1, prefix=PREFIXES, format_=FORMATS)
def test_every_prefix(check_matmul, prefix, format_):
    """Two CTAs along M and a part, K steps and a part."""
    spec = spec_of(format_, 140, 40, 320)
    compiled, report = check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix, seed=2)
    assert not report.warnings
    assert INSTRUCTIONS[format_] in compiled.ptx
    assert "tcgen05.cp" in compiled.ptx


@pytest.mark.sweep(8)
@pytest.mark.array(1, prefix=PREFIXES, format_=("mxfp6", *FORMATS), k=(96, 256))
def test_linear_scales_become_atoms_as_threads_copy_them(check_matmul, prefix, format_, k):
    """Rows of scales are aligned to a byte, to two or to four."""
    spec = spec_of(format_, 140, 40, k, scale_layout="linear")
    compiled, _ = check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix)
    assert any("scales are linear" in each for each in compiled.remarks) == (prefix != "tiling")


@pytest.mark.parametrize("preset", ["", "v6"])
def test_linear_scales_have_a_default_schedule_and_pairs(check_matmul, preset):
    spec = spec_of("mxfp8", 140, 72, 128, scale_layout="linear")
    compiled, report = check_matmul(spec, preset=preset or None)
    assert bool(compiled.chosen) == (not preset)
    assert "tcgen05.cp.cta_group::2" in compiled.ptx or not preset
    assert not report.warnings


@pytest.mark.sweep(12)
@pytest.mark.array(
    1,
    prefix=PREFIXES,
    format_=("mxfp6", *FORMATS),
    shared=("", "a", "b"),
    layout=("blocked", "linear"),
)
def test_stacks_have_the_scales_of_each_matrix(check_matmul, prefix, format_, shared, layout):
    stacked = {f"{name}_stacked": False for name in shared}
    spec = spec_of(format_, 140, 40, 128, batch=2, scale_layout=layout, **stacked)
    check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("preset", ["v4", "v6", "kernel8", None])
def test_stacks_by_presets_and_the_default(check_matmul, preset):
    check_matmul(spec_of("mxfp8", 140, 40, 128, batch=2), preset=preset)


COARSE = (("mxfp8_1x128", "mxfp8_128x128"), ("mxfp8_128x128", "mxfp8"), ("mxfp4", "mxfp8_1x128"))


@pytest.mark.sweep(12)
@pytest.mark.array(
    1,
    last=(("tiling", 128), ("tma-insertion", 128), ("clustering", 64), ("persistence", 64)),
    pair=COARSE,
    batch=(0, 2),
)
def test_a_scale_for_128_elements_is_that_of_four_blocks(check_matmul, last, pair, batch):
    """Of a row, or of 128 rows, one of which both tiles of A and of B begin within."""
    spec, (prefix, rows) = MatmulSpec(140, 136, 256, *pair, batch=batch), last
    check_matmul(spec, pipeline=with_tile(f"{rows}x96x128", PAIRS), stop_after=prefix)


@pytest.mark.sweep(4)
@pytest.mark.array(1, k=(48, 176), last=("tiling", "clustering", "persistence"))
def test_powers_of_two_may_scale_blocks_of_16(check_matmul, k, last):
    """kind::mxf4nvf4 with four scales of ue8m0 (PTX ISA, tcgen05.mma, block scaling)."""
    spec = MatmulSpec(140, 72, k, "mxfp4_1x16", "mxfp4_1x16")
    pipeline = with_tile("128x32x256", PAIRS)
    compiled, _ = check_matmul(spec, pipeline=pipeline, stop_after=last)
    assert "mxf4nvf4.block_scale.block16" in compiled.ptx


def test_scales_of_128_elements_by_warps(check_matmul):
    check_matmul(MatmulSpec(40, 136, 256, *COARSE[0]), target="sm_120a")


def test_a_stack_is_what_its_matrices_are_one_by_one():
    """Each matrix beside a product in float64, which no manifest describes."""
    compiled = compile_matmul(spec_of("nvfp4", 130, 24, 96, batch=2, c_dtype="f32"))
    kernel = Kernel(Bundle(seal(compiled.manifest, compiled.ptx, b""), compiled.ptx, b""))
    draw = np.random.default_rng(8)
    pairs = [[draw.standard_normal((rows, 96), np.float32) for rows in (130, 24)] for _ in "ab"]
    made = [[quantize(matrix, "nvfp4") for matrix in pair] for pair in pairs]
    data = [np.stack([pair[side].data for pair in made]) for side in (0, 1)]
    scales = [np.stack([to_blocked(pair[side].scales) for pair in made]) for side in (0, 1)]
    c = np.asarray(kernel(*data, *scales), np.float64)
    for got, pair in zip(c, made, strict=True):
        a, b = (np.asarray(dequantize(e.data, e.scales, "nvfp4")) for e in pair)
        bounds = accumulator_interval(a, b)
        assert ((got >= bounds.low) & (got <= bounds.high)).all()


@pytest.mark.sweep(6)
@pytest.mark.array(1, preset=["v4", "v6", "kernel8"], format_=FORMATS)
def test_presets(check_matmul, preset, format_):
    compiled, report = check_matmul(spec_of(format_, 136, 136, 192), preset=preset)
    assert not report.warnings
    rounded = [remark for remark in compiled.remarks if "whole atoms" in remark]
    assert len(rounded) == (format_ != "nvfp4")


@pytest.mark.sweep(6)
@pytest.mark.array(
    1,
    n=[32, 64, 96, 160, 192, 224],
    format_=FORMATS,
    last=["swizzle-selection", "persistence"],
)
def test_tiles_whose_scales_begin_within_an_atom(check_matmul, n, format_, last):
    spec = spec_of(format_, 130, 2 * n + 40, 128, c_dtype="f32")
    pipeline = with_tile(f"128x{n}x128")
    check_matmul(spec, pipeline=pipeline, stop_after=last, identity="a")


@pytest.mark.sweep(6)
@pytest.mark.array(
    1,
    n=[32, 96, 64, 160, 128, 192, 224, 256],
    rows=[64, 128],
    format_=FORMATS,
    last=["clustering", "pipelining", "persistence"],
)
def test_pairs_of_128_and_of_256_rows(check_matmul, n, rows, format_, last):
    """Halves of N begin at any 16th column, tiles at any 32nd; K ends within an atom of scales."""
    spec = spec_of(format_, 150, n + n // 2, 352, c_dtype="f32")
    pipeline = with_tile(f"{rows}x{n}x128", PAIRS)
    compiled, report = check_matmul(spec, pipeline=pipeline, stop_after=last)
    copy = "64x128b.warpx2::01_23" if rows == 64 else "32x128b.warpx4"
    assert f"tcgen05.cp.cta_group::2.{copy}" in compiled.ptx
    assert not report.warnings


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("format_", "tile", "cluster", "boxes"),
    [  # of a whole tile's scales: [256 bytes, halves of atoms along K, atoms along MN]
        ("mxfp8", "128x64x128", "shape=4x2 pair=true", ([256, 1, 1], [256, 1, 1])),
        ("nvfp4", "128x256x256", "shape=2x2 pair=false", ([256, 4, 1], [256, 8, 1])),
        ("mxfp8", "128x96x128", "shape=1x4", ([256, 2, 1], [256, 2, 2])),
    ],
)
def test_scales_are_multicast_to_the_ctas_that_share_them(
    check_matmul, format_, tile, cluster, boxes
):
    """Rows of atoms go to as many CTAs, or else halves of atoms; less is not cut."""
    pipeline = with_tile(tile).replace("clustering", f"clustering{{{cluster}}}")
    compiled, report = check_matmul(spec_of(format_, 140, 72, 256), pipeline=pipeline)
    maps = {each["tensor"]: each for each in compiled.manifest["parameters"] if "box" in each}
    assert tuple(maps[name]["box"] for name in ("a_scales", "b_scales")) == boxes
    whole = [each for each in compiled.remarks if "every CTA loads all of a_scales" in each]
    assert len(whole) == (cluster == "shape=1x4")
    assert not report.warnings


SMALL = ("mxfp8", "mxfp8_e5m2", "mxfp6", "mxfp6_e3m2", "mxfp4")


@pytest.mark.parametrize(("a", "b"), list(zip(SMALL, SMALL[1:] + SMALL[:1], strict=True)))
def test_each_type_goes_beside_another_one(check_matmul, a, b):
    """What the tensor core makes of all pairs is a test of the emulator."""
    pipeline = "tiling{tile=128x32x128},tma-insertion,swizzle-selection"
    check_matmul(MatmulSpec(20, 24, 96, a, b), pipeline=pipeline)


@pytest.mark.sweep(12)
@pytest.mark.array(
    1,
    a=SMALL,
    b=SMALL,
    k=(256, 160),
    prefix=("tiling", "tma-insertion", "swizzle-selection", "persistence"),
)
def test_elements_of_other_widths_in_one_product(check_matmul, a, b, k, prefix):
    """Packed elements get gaps: by TMA where rows are whole boxes, else by threads."""
    spec = MatmulSpec(140, 40, k, a, b)
    check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix, seed=1)


@pytest.mark.array(
    1,
    kind=("mxf4", "mxf4nvf4", "mxf8f6f4"),
    pipeline=(f"{{tile=64x32x128}},{PAIRS.partition(',')[2]}", "{tile=128x32x128}", ""),
)
def test_of_several_kinds_that_take_the_operands_one_may_be_named(check_matmul, kind, pipeline):
    """mxfp4 by the MMA of nvfp4, with scales of 32, and by that of 8 bits, with gaps."""
    options = pipeline.replace("tile=", f"kind={kind} tile=") or f"{{kind={kind}}}"
    spec = spec_of("mxfp4", 72, 40, 96)
    compiled, _ = check_matmul(spec, pipeline=f"tiling{options}")
    assert f"kind::{kind}.block_scale.block32" in compiled.ptx


@pytest.mark.sweep(12)
@pytest.mark.parametrize("k", [32, 96, 160, 288])
@pytest.mark.parametrize("prefix", ["tiling", "pipelining", "persistence"])
def test_the_end_of_k_reads_no_padding_of_scales(check_matmul, k, prefix):
    spec = MatmulSpec(64, 40, k, "mxfp8", "mxfp8_e5m2")
    check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix, identity="b")


@pytest.mark.sweep(8)
@pytest.mark.parametrize("format_", ["mxfp4", "nvfp4"])
@pytest.mark.parametrize("k", [32, 96, 352])
@pytest.mark.parametrize("prefix", ["tiling", "tma-insertion", "persistence"])
def test_an_mma_that_reads_padding_of_scales_finds_zeros(check_matmul, format_, k, prefix):
    spec = spec_of(format_, 140, 40, k)
    compiled, _ = check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix)
    assert any("a_scales is copied by threads" in each for each in compiled.remarks) == (
        prefix != "tiling"
    )


def test_parts_of_k_know_where_k_ends(check_matmul):
    """The second part has the end of K, behind which scales are NaN."""
    pipeline = "tiling{tile=128x64x128},tma-insertion,swizzle-selection,split-k{parts=2}"
    check_matmul(spec_of("mxfp8", 72, 40, 416), pipeline=pipeline)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("majors", ["mn", "mk"])
def test_bytes_may_lie_along_m_and_n(check_matmul, majors):
    spec = spec_of("mxfp8", 144, 80, 128, a_major=majors[0], b_major=majors[1])
    check_matmul(spec, pipeline=DEFAULT_PIPELINE)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("format_", FORMATS)
def test_the_default_schedule_is_right(check_matmul, format_):
    compiled, report = check_matmul(spec_of(format_, 140, 72, 256))
    assert compiled.chosen
    assert not report.warnings


@pytest.mark.sweep(6)
@pytest.mark.parametrize("format_", ["mxfp8", "mxfp6", "nvfp4"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_kernel_takes_what_the_host_quantizes(format_, library):
    compiled = compile_matmul(spec_of(format_, 140, 72, 192, c_dtype="f32"))
    kernel = Kernel(Bundle(seal(compiled.manifest, compiled.ptx, b""), compiled.ptx, b""))
    draw = np.random.default_rng(4)
    matrices = [draw.standard_normal((rows, 192), np.float32) for rows in (140, 72)]
    if library == "torch":
        matrices = [torch.from_numpy(matrix) for matrix in matrices]
    a, b = (quantize(matrix, format_) for matrix in matrices)
    c = kernel(a.data, b.data, to_blocked(a.scales), to_blocked(b.scales))
    wide = [np.asarray(dequantize(each.data, each.scales, format_)) for each in (a, b)]
    bounds, values = accumulator_interval(*wide), np.asarray(c, np.float64)
    assert ((values >= bounds.low) & (values <= bounds.high)).all()


@pytest.mark.parametrize("format_", SCALED_FORMATS)
def test_the_judge_reads_what_the_host_quantizes(format_):
    """Two readings of elements, scales and atoms that share nothing."""
    values = np.random.default_rng(1).normal(size=(140, 192)) * 30
    data, factors, _ = quantize(values, format_)
    found = SCALED_FORMATS[format_]
    atoms = np.ascontiguousarray(to_blocked(factors)).view(np.uint8).reshape(2, -1, 32, 4, 4)
    scale = scale_of_each(decoded(atoms, found.scale), values.shape, found.block)
    elements = to_float64(data, found.element)
    assert np.array_equal(elements * scale, dequantize(data, factors, format_))


WITH_FACTOR_AND_BIAS = """
func.func @f(%a: tensor<40x96xf4E2M1FN>, %b: tensor<72x96xf4E2M1FN>,
             %s: tensor<1x2x32x4x4xf8E4M3FN>, %t: tensor<1x2x32x4x4xf8E4M3FN>,
             %factor: tensor<f32>, %bias: tensor<72xf32>) -> tensor<40x72xf32> {
  %c = "tile.scaled_matmul"(%a, %b, %s, %t) ({
  ^bb0(%sum: f32):
    %f = "tile.element"(%factor) {axes = ""} : (tensor<f32>) -> f32
    %g = "tile.element"(%bias) {axes = "n"} : (tensor<72xf32>) -> f32
    %y = arith.mulf %sum, %f : f32
    %z = arith.addf %y, %g : f32
    "tile.yield"(%z) : (f32) -> ()
  }) {a_major = "k", b_major = "k", block = 16 : i64}
    : (tensor<40x96xf4E2M1FN>, tensor<72x96xf4E2M1FN>, tensor<1x2x32x4x4xf8E4M3FN>,
       tensor<1x2x32x4x4xf8E4M3FN>) -> tensor<40x72xf32>
  return %c : tensor<40x72xf32>
}
"""


@pytest.mark.parametrize("target", ["sm_100a", "sm_120a"])
def test_a_factor_of_the_whole_tensor_and_a_bias_stand_in_the_epilogue(tmp_path, target):
    """Both operands have a factor, as nvfp4 has; the kernel takes their product."""
    path = tmp_path / "f.mlir"
    path.write_text(WITH_FACTOR_AND_BIAS)
    compiled = compile_matmul(path, target=target)
    kernel = Kernel(Bundle(seal(compiled.manifest, compiled.ptx, b""), compiled.ptx, b""))
    draw = np.random.default_rng(6)
    matrices = [draw.standard_normal((rows, 96), np.float32) * 900 for rows in (40, 72)]
    a, b = (quantize(matrix, "nvfp4", tensor_scale="amax") for matrix in matrices)
    factor = np.asarray(a.tensor_scale * b.tensor_scale, np.float32)
    bias = draw.standard_normal(72, np.float32) * 1e7
    c = kernel(a.data, b.data, to_blocked(a.scales), to_blocked(b.scales), factor, bias)
    wide = [np.asarray(dequantize(e.data, e.scales, "nvfp4", e.tensor_scale)) for e in (a, b)]
    expected = wide[0] @ wide[1].T + bias
    magnitudes = np.abs(wide[0]) @ np.abs(wide[1].T) + np.abs(bias)
    assert (np.abs(c - expected) <= 1e-5 * magnitudes).all()


@pytest.mark.sweep(4)
@pytest.mark.array(
    1,
    preset=["v4", "v6", "kernel8", ""],
    dtypes=[("mxfp8", "mxfp8"), ("mxfp6", "mxfp4"), ("mxfp4", "mxfp4"), ("nvfp4", "nvfp4")],
    shape=[(137, 264, 384), (300, 200, 128), (512, 768, 1024)],
)
def test_kernels_assemble_without_spills(preset, dtypes, shape):
    compiled = compile_matmul(MatmulSpec(*shape, *dtypes), preset=preset or None)
    assembled = assemble(compiled.ptx, chip="sm_100a", allow_spills=True)
    assert assembled.spill_store_bytes == assembled.spill_load_bytes == 0


def test_the_second_half_of_a_tile_of_256_rows_has_columns_of_its_own(check_matmul):
    spec = MatmulSpec(250, 64, 128, a_dtype="mxfp8", b_dtype="mxfp8", c_dtype="f32")
    check_matmul(spec, pipeline="tiling{tile=256x64x128},tma-insertion,swizzle-selection")
