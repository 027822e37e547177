"""What kernels are called in profiles."""

import re
from dataclasses import replace

import pytest
import torch

import tilewright
from tilewright.compiler.calls.dense.module import compile_module
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.compiler.spec.epilogue import Epilogue
from tilewright.compiler.spec.kernel_name import LENGTH_MAX, kernel_name
from tilewright.dialects.entry_names import name_refusal

PLAIN = MatmulSpec(256, 512, 128)
GELU = ["arith.extf", "arith.mulf", "arith.addf", "arith.mulf", "math.tanh", "arith.cmpf"]
GELU += ["arith.truncf", "tile.yield"]
NAMES = {
    "matmul_bf16_256x512x128": (PLAIN, ()),
    "matmul_bf16_256x512x128_mul_add_tanh_cmp": (PLAIN, GELU),
    "matmul_bf16_to_f32_256x512x128_erf": (replace(PLAIN, c_dtype="f32"), ["math.erf"]),
    "matmul_e4m3_by_e5m2_64x64x64": (
        replace(MatmulSpec.of_type(64, 64, 64, "e4m3"), b_dtype="e5m2"),
        (),
    ),
    "matmul_bf16_65to128x512x128": (
        MatmulSpec(100, 512, 128, dynamic_m=True, least_m=65, most_m=128),
        (),
    ),
    "matmul_bf16_65upx512x128": (
        MatmulSpec(100, 512, 128, dynamic_m=True, least_m=65, most_m=ROWS_MOST),
        (),
    ),
    "batch_matmul_bf16_anyxanyx512x128": (
        replace(PLAIN, dynamic_m=True, batch=3, dynamic_batch=True),
        (),
    ),
    "grouped_dual_matmul_bf16_8x256x512x128": (replace(PLAIN, groups=8, products=2), ()),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_tells_the_product_and_what_follows(name):
    spec, ops = NAMES[name]
    assert kernel_name(spec, ops) == name
    assert name_refusal(name) is None


def test_a_long_epilogue_is_cut_at_a_word_and_says_so():
    ops = [f"math.function{number}" for number in range(30)]
    name = kernel_name(PLAIN, ops)
    assert len(name) <= LENGTH_MAX
    assert re.fullmatch(r"matmul_bf16_256x512x128(_function\d+)+_more", name)


def test_ptx_and_manifest_have_the_name_and_a_file_its_own():
    spec = MatmulSpec(40, 16, 32)
    made = Epilogue(
        "%x", (), ("%y = math.tanh %x : f32", "%c = arith.truncf %y : f32 to bf16"), "%c"
    )
    text = spec.mlir_text(made)
    compiled = compile_matmul(LinalgText(text, "call"), until="cubin")
    assert compiled.manifest["entry"] == "matmul_bf16_40x16x32_tanh"
    assert re.findall(r"\.entry (\w+)", compiled.ptx) == ["matmul_bf16_40x16x32_tanh"]
    own = LinalgText(text.replace("@matmul_bf16_40x16x32_tanh", "@mine"), "mine.mlir", is_file=True)
    assert compile_matmul(own, until="ptx").entry == "mine"


def test_modules_of_two_classes_that_compute_the_same_share_a_name():
    class Mine(torch.nn.Linear):
        pass

    x = torch.randn(40, 32).bfloat16()
    made = [
        compile_module(kind(32, 16, dtype=torch.bfloat16), x) for kind in (torch.nn.Linear, Mine)
    ]
    assert {each.compiled.entry for each in made} == {"matmul_bf16_40x16x32_add"}
    assert tilewright.compile(MatmulSpec(40, 16, 32)).entry == "matmul_bf16_40x16x32"
