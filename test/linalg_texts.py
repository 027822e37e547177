"""A product in linalg with what a test puts around it, and what normalize makes of a text."""

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

TENSOR = "tensor<64x64xf32>"
MAP = "affine_map<(i, j) -> (i, j)>"
PRODUCT = (
    "linalg.matmul ins(%a, %b : tensor<64x32xbf16>, tensor<32x64xbf16>)"
    f" outs(%init : {TENSOR}) -> {TENSOR}"
)
FILL = f"linalg.fill ins(%zero : f32) outs(%empty : {TENSOR}) -> {TENSOR}"
HEAD = f"""func.func @f(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %x: {TENSOR}) -> {TENSOR} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {TENSOR}
  %init = {FILL}
  %sum = {PRODUCT}
"""


def returned(name, ops=""):
    return f"{HEAD}{ops}  return {name} : {TENSOR}\n}}\n"


def normalized(text):
    return run_passes_on_text(text, "-", "normalize")


def refusal(text):
    with pytest.raises(CompileError) as caught:
        normalized(text)
    return str(caught.value)
