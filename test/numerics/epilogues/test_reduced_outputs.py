"""Outputs that are reductions over neighbours in a row: largest magnitudes and sums of groups."""

import pytest
import torch

from tilewright.compiler.calls.dense.matmul import matmul
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.dialects.errors import CompileError

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SMALL_TILES = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=128x32x32}")
WARPS = "tiling{tile=64x64x32 warps=2x2},copy-insertion,swizzle-selection,pipelining"
PAIRS = "tiling{tile=TILE},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true}"


def product(m, n, group=32, k=40):
    """C, largest magnitudes and sums of groups, all of the sums with a bias by columns."""
    a, b, c = (f"tensor<{x}x{y}xbf16>" for x, y in ((m, k), (n, k), (m, n)))
    d, row = f"tensor<{m}x{-(-n // group)}xf32>", f"tensor<{n}xf32>"
    return LinalgText(
        f"""
func.func @f(%a: {a}, %b: {b}, %bias: {row}) -> ({c}, {d}, {d}) {{
  %c = "tile.matmul"(%a, %b) ({{
  ^bb0(%x: f32):
    %e = "tile.element"(%bias) {{axes = "n"}} : ({row}) -> f32
    %z = arith.addf %x, %e : f32
    %t = arith.truncf %z : f32 to bf16
    "tile.keep_groups"(%z) {{group = {group} : i64, reduce = "amax"}} : (f32) -> ()
    "tile.keep_groups"(%z) {{group = {group} : i64, reduce = "sum"}} : (f32) -> ()
    "tile.yield"(%t) : (bf16) -> ()
  }}) {{a_major = "k", b_major = "k"}} : ({a}, {b}) -> {c}
  %d = "tile.kept"(%c) {{number = 0 : i64}} : ({c}) -> {d}
  %e = "tile.kept"(%c) {{number = 1 : i64}} : ({c}) -> {d}
  return %c, %d, %e : {c}, {d}, {d}
}}
""",
        "f.mlir",
    )


@pytest.mark.sweep(4)
@pytest.mark.array(prefix=PREFIXES, target=("sm_100a", "sm_90a"), n=(64, 51))
def test_every_prefix_reduces_groups(check_matmul, prefix, target, n):
    check_matmul(product(140, n), pipeline=SMALL_TILES, stop_after=prefix, target=target)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("target", "pipeline"),
    [
        ("sm_80", WARPS),
        ("sm_100a", PAIRS.replace("TILE", "64x64x64")),
        ("sm_100a", PAIRS.replace("TILE", "128x64x64") + ",persistence"),
        ("sm_90a", None),
    ],
)
def test_groups_of_16_are_reduced_by_warps_and_pairs(check_matmul, target, pipeline):
    check_matmul(product(140, 72, group=16), target=target, pipeline=pipeline)


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
def test_a_function_may_return_reductions_over_rows_or_all(target):
    torch.manual_seed(5)
    a, b = torch.randn(3, 20, 40).bfloat16(), torch.randn(56, 40).bfloat16()

    def forward(acc, bias):
        z = acc + bias
        return torch.relu(z), z, z.abs().amax(-1), z.sum(-1, keepdim=True), z.abs().max()

    bias = torch.randn(56)
    _, z, largest, total, most = matmul(a, b, epilogue=forward, operands=[bias], target=target)
    assert torch.allclose(z, a.float() @ b.float().T + bias, atol=1e-4)
    assert torch.equal(largest, z.abs().amax(-1))
    assert torch.allclose(total, z.double().sum(-1, keepdim=True).float(), atol=1e-4)
    assert torch.equal(most, z.abs().max())


def test_a_nan_makes_the_largest_magnitude_nan():
    a, b = torch.ones(8, 16).bfloat16(), torch.ones(40, 16).bfloat16()
    b[33] = torch.nan
    _, largest = matmul(a, b, epilogue=lambda acc: (acc, acc.abs().amax(-1)))
    assert largest.isnan().all()


REFUSED = {
    "over columns": (lambda acc: (acc, acc.sum(0)), "over the last dim of acc, or all"),
    "without a magnitude": (lambda acc: (acc, acc.amax(-1)), "elementwise|shape of acc"),
    "of bf16": (lambda acc: (acc, acc.bfloat16().sum(-1)), "must be of f32, got torch.bfloat16"),
    "as C": (lambda acc: acc.sum(-1), "shape of acc"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_reductions_are_refused(name):
    function, message = REFUSED[name]
    with pytest.raises(CompileError, match=message):
        matmul(torch.ones(8, 16).bfloat16(), torch.ones(8, 16).bfloat16(), epilogue=function)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pipeline": "tiling{tile=128x48x64}"}, "whole groups of 32, got 48"),
        ({"pipeline": "tiling{tile=64x96x64}"}, "whole groups of 32 columns, got 16; take a tile"),
        ({"pipeline": "tiling{tile=32x32x16 mma=fma}"}, "threads of fma reduce no groups"),
        ({"pipeline": "tiling{tile=64x64x16},split-k{parts=2}"}, "must be stored once"),
    ],
)
def test_tiles_that_hold_no_whole_groups_are_refused(options, message):
    with pytest.raises(CompileError, match=message):
        compile_matmul(product(64, 64), **options)
