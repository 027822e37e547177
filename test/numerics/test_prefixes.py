"""Every prefix of the pipeline is a correct kernel, for every layout, tile and kind of edge."""

import itertools
from pathlib import Path

import pytest

from tilewright.compiler.spec import MatmulSpec

PREFIXES = ("tiling", "tma-insertion", "swizzle-selection")
LAYOUTS = tuple(itertools.product("km", "kn"))
TILES = ("128x128x64", "64x64x64", "128x256x32", "64x48x128", "256x64x16")


def pipeline(tile, box="2d", force="widest"):
    return f"tiling{{tile={tile}}},tma-insertion{{box={box}}},swizzle-selection{{force={force}}}"


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("a_major", "b_major"), LAYOUTS)
@pytest.mark.parametrize("tile", TILES)
def test_prefix_is_right_for_every_layout_and_tile(check_matmul, prefix, a_major, b_major, tile):
    spec = MatmulSpec(136, 200, 160, a_major=a_major, b_major=b_major, c_dtype="f32")
    check_matmul(spec, pipeline=pipeline(tile), stop_after=prefix)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("k_tiles", [1, 2, 3, 7])
def test_k_tile_counts_are_right(check_matmul, prefix, k_tiles):
    spec = MatmulSpec(72, 80, 64 * k_tiles, c_dtype="f16", a_dtype="f16", b_dtype="f16")
    check_matmul(spec, pipeline=pipeline("64x80x64"), stop_after=prefix)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (300, 520, 136), (77, 33, 51), (128, 128, 8), (8, 256, 72), (129, 130, 65)],
)
def test_ragged_edges_are_filled_and_masked(check_matmul, prefix, shape):
    check_matmul(MatmulSpec(*shape), stop_after=prefix)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("a_major", "b_major"), LAYOUTS)
@pytest.mark.parametrize("identity", ["a", "b"])
def test_each_operand_alone_against_an_identity(check_matmul, prefix, a_major, b_major, identity):
    spec = MatmulSpec(136, 152, 144, a_major=a_major, b_major=b_major, c_dtype="bf16")
    check_matmul(spec, pipeline=pipeline("128x64x64"), stop_after=prefix, identity=identity)


@pytest.mark.parametrize("force", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize(("a_major", "b_major"), LAYOUTS)
@pytest.mark.parametrize("box", ["2d", "3d"])
def test_every_swizzle_in_both_box_ranks(check_matmul, force, a_major, b_major, box):
    spec = MatmulSpec(192, 256, 256, a_major=a_major, b_major=b_major)
    check_matmul(spec, pipeline=pipeline("64x128x128", box, force))


@pytest.mark.parametrize("force", ["32B", "64B", "128B"])
def test_thread_copies_can_be_swizzled_too(check_matmul, force):
    text = f"tiling{{tile=64x64x64}},swizzle-selection{{force={force}}}"
    check_matmul(MatmulSpec(100, 70, 90, a_major="m"), pipeline=text)


@pytest.mark.parametrize("c_dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("n", [64, 68, 33])
def test_every_dtype_at_every_store_width(check_matmul, dtype, c_dtype, n):
    check_matmul(MatmulSpec(70, n, 40, a_dtype=dtype, b_dtype=dtype, c_dtype=c_dtype))


def test_a_row_that_tma_cannot_address_is_copied_by_threads(check_matmul):
    compiled, _ = check_matmul(MatmulSpec(150, 64, 100, a_major="k", b_major="n"))
    assert compiled.remarks == [
        "remark: tma-insertion: a is copied by threads: "
        "its row pitch must be a multiple of 16 bytes, got 200"
    ]
    kinds = [parameter["kind"] for parameter in compiled.manifest["parameters"]]
    assert kinds == ["pointer", "tensor_map", "pointer"]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["scale_bias_residual_swish", "bias_relu"])
def test_epilogues_of_mlir_files_are_right(check_matmul, prefix, name):
    source = Path(__file__).parent / "inputs" / f"{name}.mlir"
    check_matmul(source, stop_after=prefix)
