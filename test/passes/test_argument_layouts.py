"""How a function says that its tensors lie in memory, and what is no such word."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.tools.oracle.interpreter import Source
from tilewright.tools.oracle.layouts import check_layouts

TEXT = """func.func @f(%a: tensor<4x16xf16> {A}, %b: tensor<8x16xf16>) -> (tensor<4x8xf32> {C}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<4x16xf16>, tensor<8x16xf16>)
    outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}
"""


def compiled(tmp_path, a="{}", c="{}"):
    path = tmp_path / "f.mlir"
    path.write_text(TEXT.replace("{A}", a).replace("{C}", c))
    return compile_matmul(path, target="sm_90a", stop_after="normalize", until="mlir")


def layout(text):
    return f"{{bufferization.buffer_layout = {text}}}"


@pytest.mark.parametrize(
    ("a", "got"),
    [
        (layout("strided<[15, 1]>"), r"got strided<\[15, 1\]> of tensor<4x16xf16>"),
        (layout("strided<[1, 4]>"), r"got strided<\[1, 4\]>"),
        (layout("strided<[24, 1], offset: 8>"), "offset: 8"),
        (layout("strided<[?, 1]>"), r"got strided<\[\?, 1\]>"),
        (layout("strided<[1]>"), r"got strided<\[1\]>"),
        (layout("affine_map<(i, j) -> (j, i)>"), "got affine_map"),
        (
            '{llvm.name = "a"}',
            'attributes must be bufferization.buffer_layout, got llvm.name = "a"',
        ),
    ],
)
def test_what_no_kernel_reads_is_refused_with_its_place(tmp_path, a, got):
    for where in ({"a": a}, {"c": a}) if "4x16" not in got else ({"a": a},):
        with pytest.raises(CompileError, match=got) as refused:
            compiled(tmp_path, **where)
        assert str(refused.value).startswith(f"{tmp_path / 'f.mlir'}:1:1: error: func.func: ")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"lda": 15}, "lda must be 0, or at least the 16 elements of a row, got 15"),
        ({"ldb": -24, "b_major": "n"}, "ldb must be 0, or at least the 8 elements of a row"),
        ({"ldc": 8.0}, "ldc must be 0, or at least the 8 elements of a row, got 8.0"),
        ({"stride_a": 64}, "stride_a must be 0, or keep 4x16 matrices apart, got 64"),
        ({"stride_c": 31, "batch": 2}, "stride_c must be 0, or keep 4x8 matrices apart, got 31"),
        ({"stride_b": 99, "batch": 2, "b_stacked": False}, "stride_b must be 0"),
        ({"lda": 2**60}, "a must have at most"),
        (
            {"lda": 48, "k": 32, "a_dtype": "mxfp8", "b_dtype": "mxfp8"},
            "lda and stride_a must be 0 for operands",
        ),
    ],
)
def test_a_spec_keeps_elements_apart(fields, rule):
    with pytest.raises(CompileError, match=rule):
        MatmulSpec(**{"m": 4, "n": 8, "k": 16} | fields)


TWO = """func.func @f(%a: tensor<4x16xf16>, %b: tensor<16x8xf16>) -> ({R}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>)
    outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = arith.negf %c : tensor<4x8xf32>
  return %c, %d : tensor<4x8xf32>, tensor<4x8xf32>
}
"""
GAPS = layout("strided<[12, 1]>")


def test_gaps_in_a_further_output_are_refused_not_forgotten(tmp_path):
    path = tmp_path / "two.mlir"
    path.write_text(TWO.replace("{R}", f"tensor<4x8xf32>, tensor<4x8xf32> {GAPS}"))
    with pytest.raises(CompileError, match="result 1: outputs beside the first must be dense"):
        compile_matmul(path, target="sm_90a", stop_after="normalize", until="mlir")


def test_the_reference_reads_how_each_of_several_results_lies():
    source = Source(TWO.replace("{R}", f"tensor<4x8xf32> {GAPS}, tensor<4x8xf32>"), "two.mlir")
    assert source.result_strides == [[12, 1], None]
    out = {"name": "c", "role": "output", "shape": [4, 8], "strides": [12, 1]}
    check_layouts({"tensors": [out, {**out, "strides": [8, 1]}]}, source)
    with pytest.raises(CompileError, match=r"strides must be \[12, 1\], as its source says"):
        check_layouts({"tensors": [{**out, "strides": [8, 1]}, out]}, source)


DUAL = """func.func @f(%a: tensor<{M}x{K}xf16> {A},
    %b: tensor<{N}x{K}xf16>, %b2: tensor<{N}x{K}xf16> {B}) -> tensor<{M}x{N}xf32> {
  %c = "tile.dual_matmul"(%a, %b, %b2) ({
  ^bb0(%x: f32, %y: f32):
    %d = arith.subf %x, %y : f32
    "tile.yield"(%d) : (f32) -> ()
  }) {a_major = "k", b_major = "k", b2_major = "k"}
    : (tensor<{M}x{K}xf16>, tensor<{N}x{K}xf16>, tensor<{N}x{K}xf16>) -> tensor<{M}x{N}xf32>
  return %c : tensor<{M}x{N}xf32>
}
"""


def dual(m, n, k, a, b2):
    found = {"M": m, "N": n, "K": k, "A": layout(f"strided<[{a}, 1]>")}
    text = DUAL
    for name, value in (found | {"B": layout(f"strided<[{b2}, 1]>")}).items():
        text = text.replace(f"{{{name}}}", str(value))
    return LinalgText(text, "dual.mlir", is_file=True)


def test_the_second_b_may_lie_otherwise_than_the_first():
    compiled = compile_matmul(dual(4, 8, 16, 24, 40), target="sm_90a", until="ptx")
    strides = [each["strides"] for each in compiled.manifest["tensors"]]
    assert strides == [[24, 1], [16, 1], [40, 1], [8, 1]]


def test_the_chosen_schedule_takes_a_second_b_that_tma_can_not_address():
    """Threads copy it: no cluster shares what TMA loads, but a pair halves what a CTA copies."""
    source = dual(2048, 2048, 1024, 1024, 1025)
    compiled = compile_matmul(source, target="sm_100a", until="mlir")
    assert "clustering{shape=2x1 pair=true}" in compiled.pipeline


@pytest.mark.parametrize(("sizes", "strides"), [
    ({"dynamic_m": True}, "[40, 1]"),
    ({"dynamic_m": True, "batch": 2, "dynamic_batch": True}, "[?, 40, 1]"),
])  # fmt: skip
def test_the_step_between_matrices_alone_is_open_with_the_rows(sizes, strides):
    spec = MatmulSpec(8, 16, 32, lda=40, **sizes)
    assert f"buffer_layout = strided<{strides}>}}, %b" in spec.mlir_text()
