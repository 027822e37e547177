"""Every way in which an epilogue may read tensors beside the sum, in one square kernel, where a
transposed map would go unnoticed by shapes, against numpy."""

import numpy as np
import torch

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.runtime.bundles.bundle import Bundle, seal
from tilewright.runtime.launch.devices import open_device

WHOLE = "tensor<64x64xf32>"
PARALLEL = 'iterator_types = ["parallel", "parallel"]'
TEXT = f"""
#mn = affine_map<(i, j) -> (i, j)>
#nm = affine_map<(i, j) -> (j, i)>
#m = affine_map<(i, j) -> (i)>
#scalar = affine_map<(i, j) -> ()>
func.func @f(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %r: {WHOLE}, %p: tensor<64xf32>,
             %q: tensor<64xf32>) -> {WHOLE} {{
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %three = arith.constant dense<3.0> : tensor<f32>
  %empty = tensor.empty() : {WHOLE}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {WHOLE}) -> {WHOLE}
  %sum = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x64xf16>)
    outs(%init : {WHOLE}) -> {WHOLE}
  %rows = linalg.broadcast ins(%p : tensor<64xf32>) outs(%empty : {WHOLE}) dimensions = [1]
  %columns = linalg.transpose ins(%rows : {WHOLE}) outs(%empty : {WHOLE}) permutation = [1, 0]
  %threes = linalg.broadcast ins(%three : tensor<f32>) outs(%empty : {WHOLE}) dimensions = [0, 1]
  %turned = linalg.generic {{indexing_maps = [#nm, #mn], {PARALLEL}}}
    ins(%sum : {WHOLE}) outs(%empty : {WHOLE}) {{
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  }} -> {WHOLE}
  %back = linalg.generic {{indexing_maps = [#mn, #m, #scalar, #nm], {PARALLEL}}}
    ins(%turned, %q, %two : {WHOLE}, tensor<64xf32>, f32) outs(%empty : {WHOLE}) {{
  ^bb0(%x: f32, %y: f32, %z: f32, %o: f32):
    %s = arith.mulf %x, %y : f32
    %t = arith.subf %s, %z : f32
    linalg.yield %t : f32
  }} -> {WHOLE}
  %0 = arith.addf %back, %columns : {WHOLE}
  %1 = arith.mulf %rows, %threes : {WHOLE}
  %2 = arith.subf %0, %1 : {WHOLE}
  %3 = arith.mulf %2, %r : {WHOLE}
  return %3 : {WHOLE}
}}
"""


def test_side_operands_are_read_as_their_maps_say():
    generator = np.random.default_rng(5)
    a, b, r, p, q = (
        generator.integers(-3, 4, shape).astype(dtype)
        for shape, dtype in (
            ((64, 32), np.float16),
            ((32, 64), np.float16),
            ((64, 64), np.float32),
            (64, np.float32),
            (64, np.float32),
        )
    )
    compiled = compile_matmul(LinalgText(TEXT, "f"), pipeline="tiling{tile=64x64x64}")
    cubin = compiled.assembled.cubin
    bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
    c = np.full((64, 64), np.nan, np.float32)
    arrays = {"a": a, "b": b.T, "e0": r, "e1": p, "e2": q, "c": c}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    open_device("emulator").launch(bundle, tensors, 0)
    total = a.astype(np.float64) @ b.astype(np.float64)
    expected = (total * q[None, :] - 2 + p[None, :] - 3 * p[:, None]) * r
    assert np.array_equal(c, expected)
