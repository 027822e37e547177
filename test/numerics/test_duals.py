"""Two products of one A in one kernel: every prefix, layout and MMA, and what is refused."""

import pytest
import torch

from tilewright.compiler.calls.dense.matmul import matmul
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

BOTH = ["sm_90a", "sm_100a"]
LADDER = (
    "tiling{tile=64x32x64}",
    "tma-insertion",
    "swizzle-selection",
    "epilogue-staging",
    "clustering{shape=2x1}",
    "pipelining{stages=2}",
    "warp-specialization",
    "persistence{ctas=4}",
)
TEXT = """
func.func @dual(%a: tensor<{a}xbf16>, %b: tensor<{b}xbf16>, %b2: tensor<{b2}xbf16>,
                %bias: tensor<{n}xf32>) -> tensor<{m}x{n}x{c}> {{
  %c = "tile.dual_matmul"(%a, %b, %b2) ({{
  ^bb0(%x: f32, %y: f32):
    %e = "tile.element"(%bias) {{axes = "n"}} : (tensor<{n}xf32>) -> f32
    %z = arith.addf %x, %e : f32
    %d = arith.subf %z, %y : f32
    {stored}
  }}) {{a_major = "{majors[0]}", b_major = "{majors[1]}", b2_major = "{majors[2]}"}}
    : (tensor<{a}xbf16>, tensor<{b}xbf16>, tensor<{b2}xbf16>) -> tensor<{m}x{n}x{c}>
  return %c : tensor<{m}x{n}x{c}>
}}
"""
OF_F32 = '"tile.yield"(%d) : (f32) -> ()'
OF_BF16 = '%r = arith.truncf %d : f32 to bf16 "tile.yield"(%r) : (bf16) -> ()'


def dual(m, n, k, majors="kkk", c="f32"):
    """A kernel of a·bᵀ + bias - a·b2ᵀ, in which no product can stand for the other."""
    order = [(m, k), (n, k), (n, k)]
    shapes = [
        f"{rows}x{depth}" if major == "k" else f"{depth}x{rows}"
        for (rows, depth), major in zip(order, majors, strict=True)
    ]
    names = ["k" if major == "k" else "mn" for major in majors]
    stored = OF_F32 if c == "f32" else OF_BF16
    sizes = dict(zip(("a", "b", "b2"), shapes, strict=True))
    text = TEXT.format(m=m, n=n, c=c, majors=names, stored=stored, **sizes)
    return LinalgText(text, "dual.mlir", is_file=True)


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 2, 4, 5, 7, 8], target=BOTH)
def test_every_prefix_adds_up_both_products(check_matmul, passes, target):
    """A tile of 32 columns has 16 of each product, of which the last of C hangs over its edge."""
    text = ",".join(LADDER[:passes])
    compiled, _ = check_matmul(dual(136, 24, 72), pipeline=text, target=target)
    tiles = [4 if passes >= 5 else 3, 2, 1]
    assert compiled.manifest["grid"] == (tiles if passes < 8 else [4, 1, 1])


@pytest.mark.array(1, majors=["kkn", "mnk", "knn"], target=BOTH)
def test_the_second_b_may_lie_otherwise(check_matmul, majors, target):
    text = "tiling{tile=64x64x32},tma-insertion,swizzle-selection,epilogue-staging,pipelining"
    check_matmul(dual(64, 40, 40, majors, "bf16"), pipeline=text, target=target)


@pytest.mark.parametrize("n", [8, 24, 72])
def test_the_default_schedule_has_whole_units_of_each_n_major_b(check_matmul, n):
    """Of 8 bits 16 columns are a unit, and each B has half of a tile's columns."""
    spec = MatmulSpec(40, n, 64, "e4m3", "e5m2", products=2, b_major="n")
    check_matmul(spec, target="sm_100a")


@pytest.mark.parametrize(("target", "n"), [("sm_80", 40), ("sm_120a", 24)])
def test_the_default_schedule_of_warps_has_columns_of_both_products(check_matmul, target, n):
    """Each warp has whole MMAs of each."""
    check_matmul(MatmulSpec(72, n, 64, products=2), target=target)


@pytest.mark.parametrize("target", BOTH)
def test_operands_and_c_may_have_gaps_between_rows(check_matmul, target):
    """As slices of a wide A, and alternating rows of one weight."""
    check_matmul(MatmulSpec(72, 24, 40, products=2, lda=64, ldb=80, ldc=32), target=target)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("sm_100a", "tiling{tile=128x128x64},tma-insertion,clustering,warp-specialization"),
        (
            "sm_100a",
            "tiling{tile=128x64x64},tma-insertion,swizzle-selection,epilogue-staging,"
            "clustering,pipelining,warp-specialization,persistence{ctas=2 scheduler=static}",
        ),
        ("sm_100a", "tiling{tile=64x64x64},tma-insertion,split-k{parts=2},pipelining"),
        ("sm_100a", "tiling{tile=64x64x64},expand-loops{reads=matrices}"),
        ("sm_90a", "tiling{tile=64x64x64},tma-insertion,split-k{parts=2},pipelining"),
        (
            "sm_90a",
            "tiling{tile=64x64x64},tma-insertion,swizzle-selection,epilogue-staging,pipelining,"
            "warp-specialization,persistence{ctas=2},ping-pong",
        ),
        ("sm_80", "tiling{tile=64x64x32},copy-insertion,swizzle-selection,pipelining{stages=2}"),
        ("sm_90a", "tiling{tile=64x64x32 mma=mma.sync warps=2x2},tma-insertion,epilogue-staging"),
    ],
)
def test_every_way_to_sum_and_store_is_right(check_matmul, target, text):
    check_matmul(dual(72, 72, 136, c="bf16"), pipeline=text, target=target)


@pytest.mark.parametrize(
    ("target", "text", "message"),
    [
        ("sm_100a", "tiling{mma=fma}", "fma adds up one product, got two; take lanes=32"),
        ("sm_90a", "tiling{tile=64x24x64}", "N must be a multiple of 16 for two products, half"),
        (
            "sm_80",
            "tiling{tile=64x16x64 warps=1x2}",
            "each of up to 16 warps must have whole 16x8",
        ),
        (
            "sm_100a",
            "tiling{tile=64x64x64},tma-insertion,clustering{pair=true shape=2x1}",
            "two products of a pair need 128 rows a CTA, got 64",
        ),
        (
            "sm_90a",
            "tiling{tile=64x64x32 mma=mma.sync},tma-insertion,split-k{parts=2}",
            "two products of mma.sync are summed by one CTA, got a split K; drop it",
        ),
    ],
)
def test_what_has_no_code_for_two_products_is_refused(target, text, message):
    source = dual(136, 48, 72)
    if "mma=fma" in text:
        source = LinalgText(source.text.replace("bf16", "f32"), "dual.mlir", is_file=True)
    with pytest.raises(CompileError, match=message):
        compile_matmul(source, pipeline=text, target=target, until="ptx")


@pytest.mark.parametrize("target", BOTH)
def test_a_function_of_both_sums_gives_several_tensors(target):
    """What training keeps of SwiGLU: both sums before the activation. A has gaps between rows."""
    torch.manual_seed(5)
    a = torch.randn(40, 96)[:, :64].bfloat16()
    gate, up = (torch.randn(24, 64).bfloat16() for _ in range(2))
    bias = torch.randn(24)

    def forward(x, y, e):
        return torch.nn.functional.silu(x + e) * y, (x + e).bfloat16(), y

    options = {"epilogue": forward, "operands": [bias], "out_dtype": "f32", "target": target}
    made = matmul(a, (gate, up), **options)
    x, y = (a.double() @ each.double().T for each in (gate, up))
    wanted = torch.nn.functional.silu(x + bias) * y, x + bias, y
    assert [each.dtype for each in made] == [torch.float32, torch.bfloat16, torch.float32]
    for found, each, error in zip(made, wanted, (1e-3, 2**-7 * 40, 1e-4), strict=True):
        assert torch.allclose(found.double(), each, rtol=1e-5, atol=error)
    out = tuple(torch.full_like(each, torch.nan) for each in made)
    assert matmul(a, (gate, up), out=out, **options) is out
    assert all(torch.equal(*pair) for pair in zip(out, made, strict=True))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_what_is_made_of_both_sums_is_reduced_over_rows(target):
    """The largest magnitude scales the result to 8 bits, the sum of squares norms it."""
    torch.manual_seed(6)
    a, g, u = (torch.randn(n, 64).bfloat16() for n in (40, 72, 72))

    def forward(x, y):
        c = torch.nn.functional.silu(x) * y
        return c, c.abs().amax(-1), (c * c).sum(-1)

    c, largest, squares = matmul(a, (g, u), epilogue=forward, out_dtype="f32", target=target)
    x, y = (a.double() @ each.double().T for each in (g, u))
    wanted = torch.nn.functional.silu(x) * y
    assert torch.allclose(c.double(), wanted, rtol=1e-5, atol=1e-3)
    assert torch.allclose(largest.double(), wanted.abs().amax(-1), rtol=1e-5, atol=1e-3)
    assert torch.allclose(squares.double(), (wanted * wanted).sum(-1), rtol=1e-4)
