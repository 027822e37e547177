"""Torch modules with products of scaled operands as kernels, against torch's numbers in float64."""

import pytest
import torch
from torch.nn import functional as F

from tilewright import CompileError, DeviceError, compile_module

GENERATOR = torch.Generator().manual_seed(7)
M, N, K = 48, 32, 96
RECIPE, ATOMS = F.ScalingType, F.SwizzleType.SWIZZLE_32_4_4


def random(*shape):
    return torch.randn(shape, generator=GENERATOR)


A, B = (random(rows, K).to(torch.float8_e4m3fn) for rows in (M, N))
HALF, THREE, BIAS = torch.tensor(0.5), torch.tensor([3.0]), random(N).to(torch.bfloat16)
ROWS, COLUMNS = random(M, 1).abs(), random(1, N).abs()


class Module(torch.nn.Module):
    def __init__(self, function, *arguments, **options):
        super().__init__()
        self.function, self.arguments, self.options = function, arguments, options

    def forward(self, a, b, scale_a, scale_b, bias=None):
        values = {"a": a, "b": b.t(), "scale_a": scale_a, "scale_b": scale_b}
        given = [values.get(each, each) for each in self.arguments]
        return self.function(*given, bias=bias, **self.options)


def of_recipes(recipe_a, recipe_b, *swizzles, **options):
    arguments = "a", "b", "scale_a", recipe_a, "scale_b", recipe_b, *swizzles
    return Module(F.scaled_mm, *arguments, **options)


def of_scales(**options):
    return Module(torch._scaled_mm, "a", "b", "scale_a", "scale_b", **options)


@pytest.mark.parametrize(
    ("module", "of_a", "of_b"),
    [
        (of_recipes(RECIPE.TensorWise, RECIPE.TensorWise), HALF, THREE),
        (of_scales(out_dtype=torch.bfloat16), ROWS, COLUMNS),
    ],
    ids=["scaled_mm", "_scaled_mm"],
)
def test_scales_of_tensors_and_rows_are_factors_in_the_epilogue(module, of_a, of_b):
    kernel = compile_module(module, A, B, of_a, of_b, BIAS)
    types = {each["name"]: each["dtype"] for each in kernel.compiled.manifest["tensors"]}
    assert (types["a"], types["b"]) == ("e4m3", "e4m3")
    expected = (A.double() * of_a) @ (B.t().double() * of_b) + BIAS.double()
    got = kernel(A, B, of_a, of_b, BIAS)
    assert torch.allclose(got.double(), expected, rtol=2**-8, atol=2**-12)
    with pytest.raises(DeviceError, match="shape must be"):
        kernel(A, B, of_a.reshape(1, 1, -1), of_b, BIAS)


REFUSED = {
    "scales of blocks": (
        of_recipes(RECIPE.BlockWise1x32, RECIPE.BlockWise1x32, ATOMS, ATOMS),
        (torch.ones(128, 128).to(torch.float8_e4m3fn),) * 2
        + (torch.ones(512).to(torch.float8_e8m0fnu),) * 2,
        {},
        "must be TensorWise or RowWise, got BlockWise1x32; call tilewright.scaled_mm",
    ),
    "exact sums on Hopper": (
        of_recipes(RECIPE.TensorWise, RECIPE.TensorWise),
        (A, B, HALF, THREE),
        {"target": "sm_90a"},
        "use_fast_accum must be True on sm_90a",
    ),
    "a scale of the result": (
        of_scales(out_dtype=torch.bfloat16, scale_result=THREE.clone()),
        (A, B, HALF, THREE),
        {},
        "scale_result must be None",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_kernel_of_a_module_does_not_have_is_refused(name):
    module, inputs, options, rule = REFUSED[name]
    with pytest.raises(CompileError, match=rule):
        compile_module(module, *inputs, **options)
