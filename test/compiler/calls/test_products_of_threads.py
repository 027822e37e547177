"""`matmul` of what threads multiply: f64 by itself, f32 as it is where the pipeline says so."""

import numpy as np
import pytest

import tilewright

RANDOM = np.random.default_rng(7)


def test_doubles_are_multiplied_as_they_are():
    a, b = RANDOM.standard_normal((9, 7)), RANDOM.standard_normal((5, 7))
    c = tilewright.matmul(a, b, preset="puzzle-tiled")
    assert c.dtype == np.float64
    wanted = a.astype(np.longdouble) @ b.astype(np.longdouble).T
    assert np.abs(c - wanted).max() < 1e-13


@pytest.mark.parametrize(
    ("pipeline", "digits"),
    [("tiling{tile=3x3x3 mma=fma}", 24), ("tiling{tile=64x8x8}", 11), (None, 24)],
)
def test_single_precision_is_tf32_only_where_passes_say_so(pipeline, digits):
    a = np.full((1, 8), 1 + 2.0**-20, np.float32)
    c = tilewright.matmul(a, np.eye(8, dtype=np.float32), pipeline=pipeline)
    assert (c == a).all() == (digits == 24)


SOURCE = """
func.func @f(%a: tensor<9x7xTYPE>, %b: tensor<5x7xTYPE>) -> tensor<9x5xTYPE> {
  %zero = arith.constant 0.0 : TYPE
  %empty = tensor.empty() : tensor<9x5xTYPE>
  %init = linalg.fill ins(%zero : TYPE) outs(%empty : tensor<9x5xTYPE>) -> tensor<9x5xTYPE>
  %sum = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<9x7xTYPE>, tensor<5x7xTYPE>)
    outs(%init : tensor<9x5xTYPE>) -> tensor<9x5xTYPE>
  return %sum : tensor<9x5xTYPE>
}
"""
BY_FMA = 'module attributes {tile.mma_unit = "fma"} {'


@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        (SOURCE.replace("TYPE", "f64"), "f64"),
        (SOURCE.replace("TYPE", "f32"), "tf32"),
        (BY_FMA + SOURCE.replace("TYPE", "f32") + "}", "f32"),
    ],
)
def test_a_module_is_held_to_what_its_mma_reads(tmp_path, capsys, source, dtype):
    from tilewright.tools.main import main

    path, bundle = tmp_path / "f.mlir", tmp_path / "f.zip"
    path.write_text(source)
    assert main(["run", str(path), "-o", str(bundle)]) == 0
    assert "PASS" in capsys.readouterr().out
    tensors = tilewright.load(bundle).manifest["tensors"]
    assert [each["dtype"] for each in tensors][:2] == [dtype, dtype]


@pytest.mark.parametrize(
    ("dtype", "rows", "k", "a_major", "tile"),
    [
        ("f32", 300, 24, "m", "32x32x16"),
        ("f32", 2000, 16, "k", "128x64x8"),
        ("f64", 300, 16, "k", "32x32x8"),
        ("f64", 300, 17, "k", "32x32x16"),
    ],
)
def test_one_step_along_k_leaves_registers_for_its_operands(dtype, rows, k, a_major, tile):
    types = {"a_dtype": dtype, "b_dtype": dtype, "c_dtype": dtype, "acc_dtype": dtype}
    spec = tilewright.MatmulSpec(rows, rows, k, **types, a_major=a_major)
    compiled = tilewright.compile(spec, target="sm_90a")  # which refuses spills
    assert f"tile={tile}" in compiled.pipeline


@pytest.mark.sweep(2)
@pytest.mark.parametrize("k", [1, 16, 24, 33])
def test_short_products_of_threads_have_every_digit(k):
    a, b = (RANDOM.standard_normal((rows, k), np.float32) for rows in (33, 41))
    c = tilewright.matmul(a, b, precision="ieee", out_dtype="f32")
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    bound = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64).T
    assert (np.abs(c - wanted) <= k * 2.0**-23 * bound).all()
