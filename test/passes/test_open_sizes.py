"""Sizes of new tensors that only a call says: those of a tensor, or refused."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.dialects.errors import CompileError

OPEN = """func.func @f(%a: tensor<?x?x32xbf16>, %b: tensor<?x32x48xbf16>, %n: index,
    %c: tensor<48xf32>) -> tensor<?x?x48xf32> {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %first = tensor.dim %a, %c0 : tensor<?x?x32xbf16>
  %rows = tensor.dim %a, %c1 : tensor<?x?x32xbf16>
  {line}
  %e = tensor.empty({sizes}) : tensor<?x?x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x48xf32>) -> tensor<?x?x48xf32>
  %sum = linalg.batch_matmul ins(%a, %b : tensor<?x?x32xbf16>, tensor<?x32x48xbf16>)
    outs(%i : tensor<?x?x48xf32>) -> tensor<?x?x48xf32>
  return %sum : tensor<?x?x48xf32>
}}
"""


@pytest.mark.parametrize(
    ("line", "sizes", "axis", "got"),
    [
        ("", "%first, %n", 1, "an argument"),
        ("", "%first, %c7", 1, "%c7 = arith.constant 7 : index"),
        ("", "%rows, %rows", 0, "%dim_0 = tensor.dim %arg0, %c1 : tensor<?x?x32xbf16>"),
        ("", "%first, %first", 1, "%dim = tensor.dim %arg0, %c0 : tensor<?x?x32xbf16>"),
        (
            "%x = arith.addi %rows, %rows : index",
            "%first, %x",
            1,
            "%0 = arith.addi %dim_0, %dim_0 : index",
        ),
        (
            "%x = tensor.dim %a, %c7 : tensor<?x?x32xbf16>",
            "%first, %x",
            1,
            "%dim_1 = tensor.dim %arg0, %c7 : tensor<?x?x32xbf16>",
        ),
        (
            "%x = tensor.dim %c, %c0 : tensor<48xf32>",
            "%first, %x",
            1,
            "%dim_1 = tensor.dim %arg3, %c0 : tensor<48xf32>",
        ),
    ],
)
def test_sizes_that_a_call_says_are_those_of_a_tensor(tmp_path, line, sizes, axis, got):
    path = tmp_path / "m.mlir"
    path.write_text(OPEN.format(line=line, sizes=sizes))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, until="mlir", stop_after="normalize")
    rule = f"size {axis} must be a tensor.dim of such a size of a tensor"
    cure = "ask a tensor that has it"
    assert str(refused.value) == f"{path}:10:8: error: tensor.empty: {rule}, got {got}; {cure}"
    path.write_text(OPEN.format(line="", sizes="%first, %rows"))
    compile_matmul(path, until="mlir", stop_after="normalize")
