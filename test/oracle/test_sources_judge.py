"""The source's own evaluation passes what the source says and nothing else, whoever compiled it.

No kernel is compiled here: outputs are formulas of numpy, the right ones and known misreadings.
"""

import ml_dtypes
import numpy as np
import pytest

from tilewright.dialects.errors import CompileError
from tilewright.runtime.judge.reference import compare
from tilewright.tools.oracle.interpreter import Source

ID, PERMUTED = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (j, i)>"
MATMUL_MAPS = "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>"
HEAD = """
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
"""
PRODUCT = """
  %sum = linalg.matmul {maps} ins(%x, %y : tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>)
    outs(%init : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
"""


def floats(
    m=8, n=8, k=16, maps="", rest="return %sum : tensor<{m}x{n}xf32>", result="f32", more=""
):
    """A product of f16 [m, k] · [k, n], and what is done with it."""
    arguments = f"%x: tensor<{m}x{k}xf16>, %y: tensor<{k}x{n}xf16>{more}"
    body = "".join((HEAD, PRODUCT, "  ", rest)).format(m=m, n=n, k=k, maps=maps)
    return f"func.func @f({arguments}) -> tensor<{m}x{n}x{result}> {{{body}\n}}"


def inputs(*shapes, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float16).astype(float) for shape in shapes]


def judged(text, arguments, actual, dtype="f32"):
    return compare(Source(text, "f.mlir").evaluate(arguments), actual, dtype)


def narrowed(values, mode):
    """bf16 of float32 bits, without ml_dtypes where it has no such mode."""
    single = np.asarray(values, np.float32)
    if mode == "nearest":
        return single.astype(ml_dtypes.bfloat16).astype(float)
    return (single.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(float)


def test_a_product_stored_transposed_is_told_from_one_that_is_not():
    maps = f"indexing_maps = [{MATMUL_MAPS}, affine_map<(i, j, k) -> (j, i)>]"
    x, y = inputs((8, 16), (16, 8))
    assert judged(floats(maps=maps), [x, y], (x @ y).T).passed
    assert judged(floats(maps=maps), [x, y], x @ y).mismatches > 50
    assert judged(floats(), [x, y], x @ y).passed
    assert judged(floats(), [x, y], (x @ y).T).mismatches > 50


def test_an_epilogue_that_stores_transposed_is_told_from_one_that_does_not():
    rest = f"""%r = linalg.generic {{{{indexing_maps = [{ID}, {PERMUTED}],
      iterator_types = ["parallel", "parallel"]}}}}
      ins(%sum : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {{{{
    ^bb0(%u: f32, %v: f32):
      %w = arith.negf %u : f32
      linalg.yield %w : f32
    }}}} -> tensor<8x8xf32>
    return %r : tensor<8x8xf32>"""
    x, y = inputs((8, 16), (16, 8))
    assert judged(floats(rest=rest), [x, y], -(x @ y).T).passed
    assert judged(floats(rest=rest), [x, y], -(x @ y)).mismatches > 50


@pytest.mark.parametrize(("mode", "text"), [("nearest", ""), ("zero", "toward_zero")])
def test_each_rounding_mode_of_truncf_is_told_from_the_other(mode, text):
    rest = f"""%c = arith.truncf %sum {text} : tensor<32x32xf32> to tensor<32x32xbf16>
    return %c : tensor<32x32xbf16>"""
    source = floats(32, 32, rest=rest, result="bf16")
    x, y = inputs((32, 16), (16, 32))
    other = "zero" if mode == "nearest" else "nearest"
    right, wrong = (narrowed(x @ y, each) for each in (mode, other))
    assert judged(source, [x, y], right, "bf16").passed
    assert judged(source, [x, y], wrong, "bf16").mismatches > 300


EXTENSIONS = {
    ("extsi", "extsi"): lambda x: x,
    ("extui", "extui"): lambda x: x % 256,
    ("extui", "extsi"): lambda x: x % 256,
    ("extsi", "extui"): lambda x: x % 65536,
}


@pytest.mark.parametrize("casts", EXTENSIONS, ids="-".join)
def test_chains_of_extensions_are_read_one_by_one(casts):
    text = f"""func.func @f(%x: tensor<4x8xi8>, %y: tensor<8x4xi8>) -> tensor<4x4xi32> {{
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<4x4xi32>
      %i = linalg.fill ins(%zero : i32) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
      %h = arith.{casts[0]} %x : tensor<4x8xi8> to tensor<4x8xi16>
      %w = arith.{casts[1]} %h : tensor<4x8xi16> to tensor<4x8xi32>
      %v = arith.extsi %y : tensor<8x4xi8> to tensor<8x4xi32>
      %s = linalg.matmul ins(%w, %v : tensor<4x8xi32>, tensor<8x4xi32>)
        outs(%i : tensor<4x4xi32>) -> tensor<4x4xi32>
      return %s : tensor<4x4xi32> }}"""
    generator = np.random.default_rng(1)
    x, y = generator.integers(-128, 128, (4, 8)), generator.integers(-128, 128, (8, 4))
    formulas = {name: (read(x) @ y).astype(float) for name, read in EXTENSIONS.items()}
    for name, actual in formulas.items():
        same = np.array_equal(actual, formulas[casts])
        assert judged(text, [x, y], actual, "s32").passed == same, name


@pytest.mark.parametrize(("cast", "modulus"), [("cast_signed", None), ("cast_unsigned", 256)])
def test_the_cast_of_a_matmul_is_read(cast, modulus):
    text = f"""func.func @f(%x: tensor<4x8xi8>, %y: tensor<8x4xi8>) -> tensor<4x4xi32> {{
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<4x4xi32>
      %i = linalg.fill ins(%zero : i32) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
      %s = linalg.matmul {{cast = #linalg.type_fn<{cast}>}}
        ins(%x, %y : tensor<4x8xi8>, tensor<8x4xi8>)
        outs(%i : tensor<4x4xi32>) -> tensor<4x4xi32>
      return %s : tensor<4x4xi32> }}"""
    generator = np.random.default_rng(1)
    x, y = generator.integers(-128, 128, (4, 8)), generator.integers(-128, 128, (8, 4))
    right = (x % modulus) @ (y % modulus) if modulus else x @ y
    assert judged(text, [x, y], right.astype(float), "s32").passed
    wrong = x @ y if modulus else (x % 256) @ (y % 256)
    assert not judged(text, [x, y], wrong.astype(float), "s32").passed


def test_sums_of_integers_wrap_at_32_bits():
    text = """func.func @f(%x: tensor<2x3xi32>, %y: tensor<3x2xi32>) -> tensor<2x2xi32> {
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<2x2xi32>
      %i = linalg.fill ins(%zero : i32) outs(%e : tensor<2x2xi32>) -> tensor<2x2xi32>
      %s = linalg.matmul ins(%x, %y : tensor<2x3xi32>, tensor<3x2xi32>)
        outs(%i : tensor<2x2xi32>) -> tensor<2x2xi32>
      return %s : tensor<2x2xi32> }"""
    generator = np.random.default_rng(2)
    x, y = (generator.integers(-(2**31), 2**31, shape) for shape in ((2, 3), (3, 2)))
    exact = [
        [sum(int(u) * int(v) for u, v in zip(row, column, strict=True)) for column in y.T]
        for row in x
    ]
    wrapped = np.array([[(value + 2**31) % 2**32 - 2**31 for value in row] for row in exact], float)
    assert judged(text, [x, y], wrapped, "s32").passed


def test_what_is_added_before_the_product_counts():
    text = floats().replace("arith.constant 0.0", "arith.constant 2.0")
    x, y = inputs((8, 16), (16, 8))
    assert judged(text, [x, y], x @ y + 2).passed
    assert not judged(text, [x, y], x @ y).passed


def test_f32_operands_are_those_that_tensor_cores_read():
    text = floats().replace("xf16>", "xf32>")
    generator = np.random.default_rng(3)
    x, y = (generator.standard_normal(shape).astype(np.float32) for shape in ((8, 16), (16, 8)))
    cut = [
        (each.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(float)
        for each in (x, y)
    ]
    exact = [x.astype(float), y.astype(float)]
    assert judged(text, exact, cut[0] @ cut[1]).passed
    assert not judged(text, exact, exact[0] @ exact[1]).passed


def test_threads_read_f32_operands_with_all_their_digits():
    """Which tensor cores a result is of says nothing of these."""
    source = Source(floats().replace("xf16>", "xf32>"), "f.mlir")
    x, y = np.zeros((8, 16)), np.zeros((16, 8))
    x[:, 0], y[0] = 1 + 2.0**-8 + 2.0**-12, 1.0
    (of_threads,) = source.evaluate_all([x, y], hopper_gpu=False, by_fma=True)
    (of_tensor_cores,) = source.evaluate_all([x, y], hopper_gpu=True, by_fma=False)
    between = 1 + 2.0**-8 + 2.0**-13
    assert (of_threads.low > between).all()
    assert (of_tensor_cores.high < between).all()


def test_infinities_and_nan_of_inputs_reach_the_same_elements():
    x, y = inputs((8, 16), (16, 8))
    x[2, 3], x[4, 5], y[7, 1] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        right = x @ y
    assert judged(floats(), [x, y], right).passed
    lost = np.where(np.isnan(right), 0.0, right)
    assert judged(floats(), [x, y], lost).mismatches == np.isnan(right).sum()


REFUSED = {
    "math.atan": (
        "%r = math.atan %sum : tensor<8x8xf32>",
        "math.atan: the reference evaluates no such op",
    ),
    "rounding mode": (
        "%r = arith.addf %sum, %sum {{roundingmode = 1 : i32}} : tensor<8x8xf32>",
        "arith.addf: the reference evaluates no rounding mode but to nearest even",
    ),
    "empty": (
        "%r = arith.addf %sum, %empty : tensor<8x8xf32>",
        "arith.addf: the reference evaluates no value of a tensor.empty, which has none",
    ),
    "reduction": (
        """%r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "reduction"]}}
          ins(%sum, %sum : tensor<8x8xf32>, tensor<8x8xf32>) outs(%init : tensor<8x8xf32>) {{
        ^bb0(%u: f32, %v: f32, %w: f32):
          %a = arith.mulf %u, %v : f32
          %b = arith.mulf %w, %a : f32
          linalg.yield %b : f32
        }} -> tensor<8x8xf32>""",
        "linalg.generic: the reference evaluates no reduction but sums of products",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_evaluated_is_an_error_with_its_line(name):
    op, message = REFUSED[name]
    text = floats(rest=f"{op}\n  return %r : tensor<8x8xf32>")
    with pytest.raises(CompileError) as caught:
        Source(text, "f.mlir").evaluate(inputs((8, 16), (16, 8)))
    assert caught.value.message.startswith(message)
    assert caught.value.location.startswith("f.mlir:")


def test_stacks_are_multiplied_matrix_by_matrix():
    text = """
func.func @f(%a: tensor<3x2x5xbf16>, %b: tensor<4x5xbf16>) -> tensor<3x2x4xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x4xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  %be = tensor.empty() : tensor<3x4x5xbf16>
  %bs = linalg.broadcast ins(%b : tensor<4x5xbf16>) outs(%be : tensor<3x4x5xbf16>) dimensions = [0]
  %r = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
                     affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %bs : tensor<3x2x5xbf16>, tensor<3x4x5xbf16>)
    outs(%i : tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}"""
    generator = np.random.default_rng(5)
    a, b = (generator.integers(-4, 5, shape).astype(float) for shape in ((3, 2, 5), (4, 5)))
    assert np.array_equal(Source(text, "f.mlir").evaluate([a, b]).middle, a @ b.T)


def test_what_a_pass_left_is_no_source():
    text = (
        'func.func @f(%x: tensor<8x8xf32>) { "tile.matmul"(%x) : (tensor<8x8xf32>) -> () return }'
    )
    with pytest.raises(CompileError, match=r"f\.mlir: a source must be linalg on tensors, and not"):
        Source(text, "f.mlir")
