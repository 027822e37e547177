"""Operands of products and of groups that a hand has written: types and views that are refused."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.layout import TileLayout
from tilewright.dialects.verify import gather_refusal

A, B = "tensor<64x128xbf16>", "tensor<64x128xf16>"
LANES = "tiling{tile=4x4x256 mma=fma operands=global threads=128 lanes=8}"
KERNELS = {
    "product": (MatmulSpec(64, 64, 128), None, "normalize"),
    "lanes": (MatmulSpec(64, 64, 128), LANES, "tiling"),
    "groups": (MatmulSpec(256, 64, 128, groups=4), "tiling", "tiling"),
}
CHANGES = {
    "types that no MMA multiplies": (
        "product",
        ((f"%arg1: {A}", f"%arg1: {B}"), (f"({A}, {A})", f"({A}, {B})")),
        "tile.matmul: a and b must be one type, got bf16 and f16; convert one of them",
    ),
    "b in the place of a": (
        "lanes",
        (('"(%acc, %a, %b,', '"(%acc, %b, %a,'),),
        "tile.lane_mma: views: must read a and b, got others; swap them",
    ),
    "offsets of 64 bits": (
        "groups",
        (("memref<4xi32, 1>", "memref<4xi64, 1>"),),
        "tile.group: offsets must be a vector of i32, got memref<4xi64, 1>",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_other_operands_are_refused(what):
    name, changes, rule = CHANGES[what]
    source, pipeline, last = KERNELS[name]
    how = {"pipeline": pipeline, "stop_after": last, "until": "mlir"}
    text = compile_matmul(source, target="sm_90a", **how).mlir
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    following = "tiling" if name == "product" else "pipelining"
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "k.mlir", following)
    assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("layout", "got"),
    [
        (TileLayout(64, 64, 2, "k", "128B"), None),
        (TileLayout(66, 64, 2, "k", "128B"), "K-major, of rows by 4, got 66 of 'k'"),
        (TileLayout(64, 64, 2, "mn", "128B"), "K-major, of rows by 4, got 64 of 'mn'"),
        (TileLayout(64, 64, 2, "k"), "4 rows must be a multiple of 128 bytes, got 64"),
    ],
)
def test_rows_are_gathered_into_tiles_that_fours_of_them_fill(layout, got):
    refusal = gather_refusal(layout)
    assert refusal == got if got is None else got in refusal
