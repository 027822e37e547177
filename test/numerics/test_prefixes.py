"""Every prefix of the pipeline is a correct kernel, for every layout, tile and kind of edge."""

from pathlib import Path

import pytest
from shapes import a_few_tiles

from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SEQUENTIAL = ("tiling", "tma-insertion", "swizzle-selection")
TILES = ("64x64x64", "128x256x32")
OTHER_TILES = ("64x48x128", "256x64x16")  # beside the default
# One element; whole clusters and parts of one; odd rows, which threads copy; fewer rows than a
# tile's, and K of less than a step.
EDGES = [(1, 1, 1), (264, 136, 136), (129, 130, 65), (8, 256, 8)]


def pipeline(tile, box="2d", force="widest"):
    """The default pipeline with options for the passes that place operands."""
    rest = DEFAULT_PIPELINE.partition("swizzle-selection")[2]
    head = f"tiling{{tile={tile}}},tma-insertion{{box={box}}},swizzle-selection{{force={force}}}"
    return head + rest


def test_the_prefixes_are_those_of_the_default_pipeline():
    assert PREFIXES[:3] == SEQUENTIAL
    assert {"pipelining", "clustering", "warp-specialization", "persistence"} < set(PREFIXES)


@pytest.mark.sweep(2)
@pytest.mark.array(prefix=PREFIXES, tile=TILES, a_major="km", b_major="kn", identity=("a", "b"))
def test_prefix_is_right_for_every_layout_and_tile(
    check_matmul, prefix, a_major, b_major, tile, identity
):
    """Each operand alone, against an identity."""
    spec = MatmulSpec(*a_few_tiles(tile), a_major=a_major, b_major=b_major, c_dtype="f32")
    check_matmul(spec, pipeline=pipeline(tile), stop_after=prefix, identity=identity)


@pytest.mark.sweep(4)
@pytest.mark.array(1, prefix=PREFIXES, tile=OTHER_TILES, majors=("kk", "mn", "mk", "kn"))
def test_other_tiles_are_right(check_matmul, prefix, majors, tile):
    spec = MatmulSpec(*a_few_tiles(tile), a_major=majors[0], b_major=majors[1], c_dtype="f32")
    check_matmul(spec, pipeline=pipeline(tile), stop_after=prefix)


@pytest.mark.sweep(12)
@pytest.mark.array(
    prefix=PREFIXES,
    shape=EDGES,
    a_major="km",
    b_major="kn",
    dtype=("bf16", "f16"),
    c_dtype=("bf16", "f16", "f32"),
)
def test_default_options_are_right_for_every_layout_and_edge(
    check_matmul, prefix, shape, a_major, b_major, dtype, c_dtype
):
    spec = MatmulSpec(*shape, dtype, dtype, c_dtype, a_major=a_major, b_major=b_major)
    check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix, seed=3)


@pytest.mark.sweep
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("k_tiles", [1, 2, 3, 7])
def test_k_tile_counts_are_right(check_matmul, prefix, k_tiles):
    spec = MatmulSpec(72, 96, 64 * k_tiles, c_dtype="f16", a_dtype="f16", b_dtype="f16")
    check_matmul(spec, pipeline=pipeline("64x96x64"), stop_after=prefix)


@pytest.mark.sweep(8)
@pytest.mark.array(
    force=("none", "32B", "64B", "128B"),
    a_major="km",
    b_major="kn",
    box=("2d", "3d"),
    last=("swizzle-selection", "persistence"),
)
def test_every_swizzle_in_both_box_ranks(check_matmul, force, a_major, b_major, box, last):
    spec = MatmulSpec(72, 136, 144, a_major=a_major, b_major=b_major)
    check_matmul(spec, pipeline=pipeline("64x128x128", box, force), stop_after=last)


@pytest.mark.parametrize("force", ["32B", "64B", "128B"])
def test_thread_copies_can_be_swizzled_too(check_matmul, force):
    text = f"tiling{{tile=64x64x64}},swizzle-selection{{force={force}}}"
    check_matmul(MatmulSpec(100, 70, 90, a_major="m"), pipeline=text)


@pytest.mark.sweep(6)
@pytest.mark.array(
    n=(64, 68, 33),
    c_dtype=("bf16", "f16", "f32"),
    dtype=("bf16", "f16"),
    prefix=("swizzle-selection", "persistence"),
)
def test_every_dtype_at_every_store_width(check_matmul, dtype, c_dtype, n, prefix):
    spec = MatmulSpec(70, n, 40, a_dtype=dtype, b_dtype=dtype, c_dtype=c_dtype)
    check_matmul(spec, pipeline=DEFAULT_PIPELINE, stop_after=prefix)


def test_a_row_that_tma_cannot_address_is_copied_by_threads(check_matmul):
    spec = MatmulSpec(150, 64, 100, a_major="k", b_major="n")
    compiled, _ = check_matmul(spec, pipeline="tiling,tma-insertion,swizzle-selection")
    assert compiled.remarks == [
        "remark: tma-insertion: a is copied by threads: "
        "its row pitch must be a multiple of 16 bytes, got 200"
    ]
    kinds = [parameter["kind"] for parameter in compiled.manifest["parameters"]]
    assert kinds == ["pointer", "tensor_map", "pointer"]


@pytest.mark.sweep(16)
@pytest.mark.array(1, prefix=PREFIXES, name=["scale_bias_residual_swish", "bias_relu"])
def test_epilogues_of_mlir_files_are_right(check_matmul, prefix, name):
    source = Path(__file__).parent / "inputs" / f"{name}.mlir"
    check_matmul(source, pipeline=DEFAULT_PIPELINE, stop_after=prefix)


@pytest.mark.array(1, scheduler=["static", "clc"], name=["bias_relu", "scale_bias_residual_swish"])
def test_epilogues_without_staging_are_right_too(check_matmul, name, scheduler):
    source = Path(__file__).parent / "inputs" / f"{name}.mlir"
    direct = DEFAULT_PIPELINE.replace("epilogue-staging,", "")
    compiled, _ = check_matmul(source, pipeline=f"{direct}{{scheduler={scheduler}}}", seed=5)
    c = next(each for each in compiled.manifest["parameters"] if each["tensor"] == "c")
    assert c["kind"] == "pointer"
