"""Linalg that multiplies by scales of blocks becomes a kernel of block-scaled MMAs, or is refused.

The text is judged by its own evaluation, which reads indices and bodies and knows no formats.
"""

import pytest
from fuzz_linalg import judge_problem
from random_linalg import Problem
from scaled_linalg import FORMS, scaled_text

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.dialects.errors import CompileError

PRODUCTS = (
    ("mxfp8", "mxfp8_e5m2"),
    ("mxfp6", "mxfp6_e3m2"),
    ("mxfp4", "mxfp4"),
    ("nvfp4", "nvfp4"),
    ("mxfp4", "mxfp8"),
)


@pytest.mark.array(1, product=PRODUCTS, form=FORMS, k=(96, 160))
def test_linalg_with_scales_of_blocks_is_right(product, form, k):
    """NaN is in the padding of every atom, which the text does not read."""
    text = scaled_text(140, 40, k, *product, form=form, c="bf16")
    outcome = judge_problem(Problem(text, "sm_100a"), seed=k + len(form) | 1)
    assert outcome.kind == "right", outcome


def test_linalg_with_scales_of_128_elements_is_right():
    """Of each row of A, of 128 rows of B."""
    text = scaled_text(140, 136, 256, "1x128", "128x128", layout="linear", form="products")
    outcome = judge_problem(Problem(text, "sm_100a"), seed=5)
    assert outcome.kind == "right", outcome


def test_elements_of_bytes_may_lie_along_m_and_n():
    text = scaled_text(64, 48, 96, form="products", a_major="m", b_major="n")
    assert judge_problem(Problem(text, "sm_100a"), seed=3).kind == "right"


@pytest.mark.parametrize("layout", ["blocked", "linear"])
def test_stacks_have_one_more_loop_and_a_stack_of_scales(layout):
    text = scaled_text(40, 24, 96, "mxfp8", "mxfp4", layout=layout)
    text = text.replace("affine_map<(m, n, k) -> (", "affine_map<(z, m, n, k) -> (z, ")
    text = text.replace('["parallel", ', '["parallel", "parallel", ')
    text = text.replace("tensor<", "tensor<3x")
    assert judge_problem(Problem(text, "sm_100a"), seed=1).kind == "right"


def viewed(name, rows, scales):
    """Elements [rows, 96] times scales of blocks as a framework writes it: by views of both."""
    linear = f"""
  %e{name} = tensor.empty() : tensor<1x4x32x1x4xf8E8M0FNU>
  %turned{name} = linalg.transpose ins(%s{name} : tensor<1x1x32x4x4xf8E8M0FNU>)
    outs(%e{name} : tensor<1x4x32x1x4xf8E8M0FNU>) permutation = [0, 3, 2, 1, 4]
  %rows{name} = tensor.collapse_shape %turned{name} [[0, 1, 2], [3, 4]]
    : tensor<1x4x32x1x4xf8E8M0FNU> into tensor<128x4xf8E8M0FNU>
  %own{name} = tensor.extract_slice %rows{name}[0, 0] [{rows}, 3] [1, 1]
    : tensor<128x4xf8E8M0FNU> to tensor<{rows}x3xf8E8M0FNU>"""
    own = f"%own{name}" if scales == "atoms" else f"%s{name}"
    return f"""{linear if scales == "atoms" else ""}
  %blocks{name} = tensor.expand_shape %{name} [[0], [1, 2]] output_shape [{rows}, 3, 32]
    : tensor<{rows}x96xf8E4M3FN> into tensor<{rows}x3x32xf8E4M3FN>
  %f{name} = tensor.empty() : tensor<{rows}x3x32xf32>
  %p{name} = linalg.generic {{indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
      affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
    ins(%blocks{name}, {own} : tensor<{rows}x3x32xf8E4M3FN>, tensor<{rows}x3xf8E8M0FNU>)
    outs(%f{name} : tensor<{rows}x3x32xf32>) {{
  ^bb0(%x: f8E4M3FN, %u: f8E8M0FNU, %o: f32):
    %y = arith.extf %x : f8E4M3FN to f32
    %v = arith.extf %u : f8E8M0FNU to f32
    %z = arith.mulf %y, %v : f32
    linalg.yield %z : f32
  }} -> tensor<{rows}x3x32xf32>
  %w{name} = tensor.collapse_shape %p{name} [[0], [1, 2]]
    : tensor<{rows}x3x32xf32> into tensor<{rows}x96xf32>"""


def of_views(scales):
    shapes = ["1x1x32x4x4"] * 2 if scales == "atoms" else ["40x3", "24x3"]
    return f"""
func.func @f(%a: tensor<40x96xf8E4M3FN>, %b: tensor<24x96xf8E4M3FN>,
    %sa: tensor<{shapes[0]}xf8E8M0FNU>, %sb: tensor<{shapes[1]}xf8E8M0FNU>) -> tensor<40x24xf32> {{
  %zero = arith.constant 0.0 : f32{viewed("a", 40, scales)}{viewed("b", 24, scales)}
  %ec = tensor.empty() : tensor<40x24xf32>
  %init = linalg.fill ins(%zero : f32) outs(%ec : tensor<40x24xf32>) -> tensor<40x24xf32>
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%wa, %wb : tensor<40x96xf32>, tensor<24x96xf32>)
    outs(%init : tensor<40x24xf32>) -> tensor<40x24xf32>
  return %c : tensor<40x24xf32>
}}
"""


@pytest.mark.parametrize("scales", ["atoms", "linear"])
def test_views_may_stand_between_scales_and_elements(scales):
    """Blocks of elements times their scales, and atoms that are turned and cut to rows."""
    assert judge_problem(Problem(of_views(scales), "sm_100a"), seed=1).kind == "right"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "permutation = [0, 3, 2, 1, 4]",
            "permutation = [0, 2, 3, 1, 4]",
            "scales of A must be indexed",
        ),
        (
            "[0, 0] [40, 3] [1, 1]",
            "[40, 0] [40, 3] [1, 1]",
            "scales of A must be indexed",
        ),
        (
            "%a: tensor<40x96xf8E4M3FN>",
            "%a0: tensor<80x96xf8E4M3FN>",
            "A must be read whole, got [40, 96] of [80, 96] elements; copy the slice before",
        ),
    ],
)
def test_views_that_read_other_places_are_refused(old, new, message):
    text = of_views("atoms")
    assert old in text
    text = text.replace(old, new)
    if "permutation" in new:
        text = text.replace("1x4x32x1x4", "1x32x4x1x4")
    cut = "%a = tensor.extract_slice %a0[0, 0] [40, 96] [1, 1]"
    cut += " : tensor<80x96xf8E4M3FN> to tensor<40x96xf8E4M3FN>"
    if "%a0" in new:
        text = text.replace("  %zero", f"  {cut}\n  %zero", 1)
    with pytest.raises(CompileError) as caught:
        normalized(text)
    assert message in str(caught.value)


def normalized(text):
    source = LinalgText(text, "f.mlir", is_file=True)
    return compile_matmul(source, pipeline="normalize", stop_after="normalize", until="mlir")


def test_other_ways_to_write_an_index_are_the_same():
    """What counts is the place that an index names, not how it is written."""
    text, other = scaled_text(140, 40, 96), "(m mod 128) floordiv 32"
    assert text.count("(m floordiv 32) mod 4") == 1
    rewritten = text.replace("(m floordiv 32) mod 4", other)
    rewritten = rewritten.replace("k floordiv 128", "(k floordiv 32) floordiv 4")
    assert normalized(rewritten).mlir == normalized(text).mlir


def test_the_reader_is_told_that_nobody_reads_the_sign_of_a_scale():
    text = scaled_text(140, 40, 96, "nvfp4")
    assert not normalized(text).remarks
    signed = text.replace("%a_u = math.absf %a_v : f32", "").replace("%a_v", "%a_u")
    (remark,) = normalized(signed).remarks
    assert "scales of f8E4M3FN are read without their sign, as by math.absf" in remark


ATOMS = (
    "(d0, d2 floordiv 32), or as atoms (d0 floordiv 128, d2 floordiv 128, d0 mod 32, "
    "(d0 floordiv 32) mod 4, (d2 floordiv 32) mod 4)"
)
NEAR_MISSES = {
    "blocks of 64": (
        {},
        ("(k floordiv 32) mod 4)>", "(k floordiv 64) mod 4)>"),
        f"scales of A must be indexed {ATOMS}, got (d0 floordiv 128, d2 floordiv 128, d0 mod 32, "
        "(d0 floordiv 32) mod 4, (d2 floordiv 64) mod 4); index them so",
    ),
    "atoms along M first": (
        {"k": 256},
        ("(m floordiv 128, k floordiv 128,", "(k floordiv 128, m floordiv 128,"),
        f"scales of A must be indexed {ATOMS}, got (d2 floordiv 128, d0 floordiv 128, d0 mod 32, "
        "(d0 floordiv 32) mod 4, (d2 floordiv 32) mod 4); index them so",
    ),
    "more atoms than rows": (
        {},
        ("tensor<2x1x32x4x4xf8E8M0FNU>", "tensor<3x1x32x4x4xf8E8M0FNU>"),
        "blocked scales of A must be [2, 1, 32, 4, 4], got [3, 1, 32, 4, 4] for 140 rows of 3 "
        "blocks",
    ),
    "padded linear scales": (
        {"layout": "linear"},
        ("tensor<140x3xf8E8M0FNU>", "tensor<140x4xf8E8M0FNU>"),
        "linear scales of A must be [140, 3], got [140, 4] for 140 rows of 3 blocks",
    ),
    "scales of A by the column": (
        {"layout": "linear", "n": 140},
        ("(m, k floordiv 32)", "(n, k floordiv 32)"),
        "A must be elements times scales, two factors indexed by its d0, as B, got "
        "tensor<140x96xf8E4M3FN> at (d0, d2); give both operands scales",
    ),
    "a scale for each element": (
        {"layout": "linear"},
        ("(m, k floordiv 32)", "(m, k)", "tensor<140x3x", "tensor<140x96x"),
        "A must be elements, one at each d0 and d2, times scales of blocks, got factors at "
        "(d0, d2), (d0, d2); index scales by blocks",
    ),
    "a scale for each row": (
        {"layout": "linear"},
        ("(m, k floordiv 32)", "(m, 0)", "tensor<140x3x", "tensor<140x1x"),
        "scales of A must be indexed (d0, d2 floordiv 32), or as atoms (d0 floordiv 128, "
        "d2 floordiv 128, d0 mod 32, (d0 floordiv 32) mod 4, (d2 floordiv 32) mod 4), got "
        "(d0, 0); index them so",
    ),
    "a scale for all": (
        {"layout": "linear"},
        ("(m, k floordiv 32)", "(0, 0)", "tensor<140x3x", "tensor<1x1x"),
        "a factor of a product must be indexed by its row or column and by K, got "
        "tensor<1x1xf8E8M0FNU> at (0, 0); multiply the result by one of a whole tensor",
    ),
    "K of half a block": (
        {"k": 80},
        (),
        "K must be a multiple of the 32 elements of a block, got 80; pad K",
    ),
    "scales of f32": (
        {},
        ("%a_u = arith.extf %s : f8E8M0FNU to f32", "", "%a_x, %a_u", "%a_x, %s",
         "tensor<2x1x32x4x4xf8E8M0FNU>", "tensor<2x1x32x4x4xf32>", "%s: f8E8M0FNU", "%s: f32"),
        "scales of f32 of A must be [1, 140] at (d2 floordiv 128, d0) or [2, 4] at (d0 floordiv "
        "128, d2 floordiv 128), got [2, 1, 32, 4, 4] at (d0 floordiv 128, d2 floordiv 128, d0 mod "
        "32, (d0 floordiv 32) mod 4, (d2 floordiv 32) mod 4); lay them out so",
    ),
    "elements that are added": (
        {},
        ("%a_u = arith.extf %s : f8E8M0FNU to f32", "%a_u = arith.addf %a_x, %a_x : f32"),
        "an operand must be elements, or elements times scales of their blocks, through "
        "transposes, broadcasts, views, extf and mulf, got arith.addf; compute anything else "
        "before the kernel",
    ),
    "a product in f16": (
        {"form": "products"},
        ("%a_x = arith.extf %x : f8E4M3FN to f32", "%a_h = arith.extf %x : f8E4M3FN to f16",
         "%a_u = arith.extf %s : f8E8M0FNU to f32", "%a_g = arith.extf %s : f8E8M0FNU to f16",
         "%a_p = arith.mulf %a_x, %a_u : f32",
         "%a_q = arith.mulf %a_h, %a_g : f16\n %a_p = arith.extf %a_q : f16 to f32"),
        "elements times scales must be f32 or bf16, which hold them exactly, got f16; extend "
        "them to f32",
    ),
    "scales of two powers in f16": (
        {"form": "products"},
        ("%a_u = arith.extf %s : f8E8M0FNU to f32",
         "%a_g = arith.extf %s : f8E8M0FNU to f16\n %a_u = arith.extf %a_g : f16 to f32"),
        "scales of f8E8M0FNU must be extended to f32 or bf16, which hold them, got f16; extend "
        "them to f32",
    ),
    "products of both sides in bf16": (
        {"a": "nvfp4"},
        ("to f32", "to bf16", "_v : f32", "_v : bf16", "_u : f32", "_u : bf16",
         "%p = arith.mulf %a_p, %b_p : f32",
         "%p0 = arith.mulf %a_p, %b_p : bf16\n %p = arith.extf %p0 : bf16 to f32"),
        "what a sum along K multiplies must be f32, which rounds no product, got bf16; extend "
        "the factors to f32",
    ),
    "products of both sides rounded to bf16": (
        {"a": "nvfp4"},
        ("%p = arith.mulf %a_p, %b_p : f32", "%p0 = arith.mulf %a_p, %b_p : f32\n"
         "%p1 = arith.truncf %p0 : f32 to bf16\n %p = arith.extf %p1 : bf16 to f32"),
        "what a sum along K multiplies must be f32, which rounds no product, got bf16; extend "
        "the factors to f32",
    ),
    "e4m3 by 16": (
        {"a": "nvfp4"},
        ("f4E2M1FN", "f8E4M3FN"),
        "A and B must be formats that an MMA takes together (docs/block-scales.md), got f8E4M3FN "
        "by f8E4M3FN, f8E4M3FN by f8E4M3FN; convert one of them",
    ),
}  # fmt: skip


TOUCHED = {
    "rounded": ("%a_v = arith.truncf %s : f32 to bf16\n %a_u = arith.extf %a_v : bf16 to f32",
                "%a_x, %a_u", "arith.truncf, arith.extf"),
    "without sign": ("%a_u = math.absf %s : f32", "%a_x, %a_u", "math.absf"),
    "products rounded": ("", "%a_x, %s", "arith.truncf, arith.extf"),
}  # fmt: skip


@pytest.mark.parametrize("case", TOUCHED)
def test_scales_of_f32_are_multiplied_as_they_are(case):
    """A kernel multiplies by all of their bits, and by their sign."""
    line, factors, steps = TOUCHED[case]
    text = scaled_text(140, 136, 256, "1x128", "128x128", layout="linear", form="products")
    edits = (
        ("%sa: tensor<140x2xf8E8M0FNU>", "%sa: tensor<2x140xf32>"),
        ("(m, k floordiv 128)", "(k floordiv 128, m)"),
        ("tensor<140x2xf8E8M0FNU>) outs", "tensor<2x140xf32>) outs"),
        ("%s: f8E8M0FNU", "%s: f32"),
        ("%a_u = arith.extf %s : f8E8M0FNU to f32", line),
        ("%a_x, %a_u", factors),
    )
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    if case == "products rounded":
        text = text.replace(
            "linalg.yield %a_p : f32",
            "%a_t = arith.truncf %a_p : f32 to bf16\n %a_w = arith.extf %a_t : bf16 to f32\n"
            " linalg.yield %a_w : f32",
        )
    with pytest.raises(CompileError) as caught:
        normalized(text)
    assert caught.value.message == (
        "linalg.generic: scales of f32 of A must be multiplied as they are, and products kept in "
        f"f32, got {steps}; compute them before the kernel"
    )


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_what_is_no_product_of_elements_and_scales_of_blocks_is_refused(case):
    fields, edits, message = NEAR_MISSES[case]
    text = scaled_text(**{"m": 140, "n": 40, "k": 96, **fields})
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(CompileError) as caught:
        normalized(text)
    assert str(caught.value).partition(": error: ")[2].partition(": ")[2] == message
    assert caught.value.location  # of the op that breaks the rule
