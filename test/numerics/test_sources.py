"""Hand-written .mlir files against formulas written beside them, not against what was compiled.

The reference of `tilewright run` reads the same text; here nobody reads it but the compiler.
"""

import numpy as np
import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.launch.devices import open_device

FILL = """
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
"""
MATMUL = """
  %sum = linalg.matmul ins(%x, %y : tensor<{m}x{k}x{t}>, tensor<{k}x{n}x{t}>)
    outs(%init : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
"""
MN = "affine_map<(i, j) -> (i, j)>"
NM = "affine_map<(i, j) -> (j, i)>"
PARALLEL = 'iterator_types = ["parallel", "parallel"]'


def function(arguments, body, result="%sum", **shape):
    text = f"func.func @f({arguments}) -> tensor<{{m}}x{{n}}xf32> {{{{\n{FILL}{body}\n"
    text += f"  return {result} : tensor<{{m}}x{{n}}xf32>\n}}}}\n"
    return text.format(**shape)


SQUARE = {"m": 64, "n": 64, "k": 64, "t": "f16"}
ODD = {"m": 72, "n": 40, "k": 88, "t": "f16"}
IDENTITY_TRANSPOSE = """
  %e = tensor.empty() : tensor<64x64xf16>
  %x = linalg.transpose ins(%p : tensor<64x64xf16>) outs(%e : tensor<64x64xf16>)
    permutation = [0, 1]
"""
TRANSPOSE = """
  %e = tensor.empty() : tensor<72x88xf16>
  %x = linalg.transpose ins(%p : tensor<88x72xf16>) outs(%e : tensor<72x88xf16>)
    permutation = [1, 0]
"""
EXTENDING_TRANSPOSE = f"""
  %e = tensor.empty() : tensor<72x88xf32>
  %x = linalg.generic {{{{indexing_maps = [{NM}, {MN}], {PARALLEL}}}}}
    ins(%p : tensor<88x72xf16>) outs(%e : tensor<72x88xf32>) {{{{
  ^bb0(%u: f16, %v: f32):
    %w = arith.extf %u : f16 to f32
    linalg.yield %w : f32
  }}}} -> tensor<72x88xf32>
  %y = arith.extf %q : tensor<88x40xf16> to tensor<88x40xf32>
"""
SCALED = f"""
  %r = linalg.generic {{{{indexing_maps = [{MN}, affine_map<(i, j) -> (i)>,
    affine_map<(i, j) -> (j)>, {MN}], {PARALLEL}}}}}
    ins(%sum, %s, %b : tensor<{{m}}x{{n}}xf32>, tensor<{{m}}xf32>, tensor<{{n}}xf16>)
    outs(%empty : tensor<{{m}}x{{n}}xf32>) {{{{
  ^bb0(%u: f32, %v: f32, %w: f16, %o: f32):
    %wide = arith.extf %w : f16 to f32
    %product = arith.mulf %u, %v : f32
    %d = arith.subf %wide, %product : f32
    linalg.yield %d : f32
  }}}} -> tensor<{{m}}x{{n}}xf32>
"""
EXTENDED = MATMUL.replace("{t}", "f32")


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        (
            function(
                "%p: tensor<64x64xf16>, %y: tensor<64x64xf16>",
                IDENTITY_TRANSPOSE + MATMUL,
                **SQUARE,
            ),
            lambda p, y: p @ y,
        ),
        (
            function("%p: tensor<88x72xf16>, %y: tensor<88x40xf16>", TRANSPOSE + MATMUL, **ODD),
            lambda p, y: p.T @ y,
        ),
        (
            function("%y: tensor<88x40xf16>, %x: tensor<72x88xf16>", MATMUL, **ODD),
            lambda y, x: x @ y,
        ),
        (
            function(
                "%q: tensor<88x40xf16>, %p: tensor<88x72xf16>",
                EXTENDING_TRANSPOSE + EXTENDED,
                **ODD,
            ),
            lambda q, p: p.T @ q,
        ),
        (
            function(
                "%x: tensor<72x88xf16>, %y: tensor<88x40xf16>, %s: tensor<72xf32>,"
                " %b: tensor<40xf16>",
                MATMUL + SCALED,
                result="%r",
                **ODD,
            ),
            lambda x, y, s, b: b[None, :] - (x @ y) * s[:, None],
        ),
    ],
    ids=["identity-transpose", "transpose", "b-before-a", "generic-transpose", "scale-and-bias"],
)
def test_a_source_computes_what_it_says(tmp_path, text, formula):
    path = tmp_path / "f.mlir"
    path.write_text(text)
    compiled = compile_matmul(path, pipeline="tiling{tile=64x64x64},tma-insertion")
    arguments = source_arguments(text)
    actual = run_on(compiled, arguments)
    expected = formula(*(value.astype(np.float64) for value in arguments))
    assert np.abs(actual - expected).max() < 1e-3 * np.abs(expected).max()


def source_arguments(text):
    """Small integers for every function argument, exact in every type and order of summation."""
    generator = np.random.default_rng(3)
    signature = text[: text.index("->")]
    tensors = [part.split(">")[0] for part in signature.split("tensor<")[1:]]
    shapes = [([int(extent) for extent in t.split("x")[:-1]], t.split("x")[-1]) for t in tensors]
    dtypes = {"f16": np.float16, "f32": np.float32}
    return [generator.integers(-4, 5, shape).astype(dtypes[name]) for shape, name in shapes]


def run_on(compiled, arguments):
    """Bind the source's arguments to the manifest's tensors by shape and type, and run."""
    cubin = compiled.assembled.cubin
    bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
    tensors, left = {}, list(arguments)
    for tensor in compiled.manifest["tensors"]:
        if tensor["role"] == "output":
            tensors[tensor["name"]] = np.full(tensor["shape"], np.nan, np.float32)
            continue
        value = next(v for v in left if sorted(v.shape) == sorted(tensor["shape"]))
        left = [v for v in left if v is not value]
        row_major = tensor["strides"][-1] == 1
        tensors[tensor["name"]] = value if row_major else value.T
    open_device("emulator").launch(bundle, tensors, 0)
    return tensors["c"].astype(np.float64)
