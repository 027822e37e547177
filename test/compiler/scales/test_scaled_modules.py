"""Torch modules with products of scaled operands as kernels, against torch's numbers in float64."""

import pytest
import torch
from torch.nn import functional as F

from tilewright import CompileError, DeviceError, compile_module
from tilewright.scales import dequantize, quantize, to_blocked

pytestmark = pytest.mark.usefixtures("ptxas_for_a_share")
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


MX, NV = RECIPE.BlockWise1x32, RECIPE.BlockWise1x16
BY_BLOCKS = {
    "atoms": ("mxfp8", of_recipes(MX, MX, ATOMS, ATOMS), to_blocked),
    "linear": ("mxfp4", of_recipes(MX, MX), lambda each: each),
}


@pytest.mark.parametrize("name", BY_BLOCKS)
def test_scales_of_blocks_are_multiplied_by_the_tensor_core(name):
    """Bytes hold two elements of four bits."""
    format_, module, laid_out = BY_BLOCKS[name]
    a, b = (quantize(random(rows, K), format_) for rows in (M, N))
    inputs = a.data, b.data, laid_out(a.scales), laid_out(b.scales), BIAS
    kernel = compile_module(module, *inputs)
    types = {each["name"]: each["dtype"] for each in kernel.compiled.manifest["tensors"]}
    assert types["a_scales"] == "ue8m0"
    wide = [torch.as_tensor(dequantize(each.data, each.scales, format_)) for each in (a, b)]
    expected = wide[0] @ wide[1].t() + BIAS.double()
    assert torch.allclose(kernel(*inputs).double(), expected, rtol=2**-8, atol=2**-12)


class OfTwoLevels(torch.nn.Module):
    def forward(self, a, b, scale_a, scale_b, of_a):
        levels, swizzles = [NV, RECIPE.TensorWise], [ATOMS, F.SwizzleType.NO_SWIZZLE]
        return F.scaled_mm(a, b.t(), [scale_a, of_a], levels, scale_b, NV, swizzles, ATOMS)


def test_a_scale_of_the_tensor_beside_those_of_blocks_is_a_factor():
    """The latter may have any shape of as many elements."""
    a, b = (quantize(random(rows, 64), "nvfp4") for rows in (M, N))
    atoms = [to_blocked(each.scales) for each in (a, b)]
    inputs = a.data, b.data, atoms[0].flatten(), atoms[1].reshape(32, -1), HALF
    wide = [torch.as_tensor(dequantize(each.data, each.scales, "nvfp4")) for each in (a, b)]
    got = compile_module(OfTwoLevels(), *inputs)(*inputs)
    assert torch.allclose(got.double(), wide[0] @ wide[1].t() / 2, rtol=2**-8, atol=2**-12)


ONES = torch.ones(128, 128).to(torch.float8_e4m3fn)
OF_BLOCKS = torch.ones(512).to(torch.float8_e8m0fnu)
REFUSED = {
    "recipes of 128": (
        of_recipes(RECIPE.BlockWise1x128, RECIPE.BlockWise1x128),
        (ONES, ONES, torch.ones(1, 128).t(), torch.ones(1, 128).t()),
        {},
        "must be TensorWise, RowWise, or one of blocks of 16 or 32 .*, got BlockWise1x128",
    ),
    "scales of blocks on Hopper": (
        of_recipes(MX, MX, ATOMS, ATOMS, use_fast_accum=True),
        (ONES, ONES, OF_BLOCKS, OF_BLOCKS),
        {"target": "sm_90a"},
        "takes no block scales, sm_100a or sm_120a does",
    ),
    "as many scales as there are": (
        of_recipes(MX, MX, ATOMS, ATOMS),
        (ONES, ONES, OF_BLOCKS.reshape(128, 4)[:, :3].contiguous(), OF_BLOCKS),
        {},
        r"scale_a must be 512 elements, blocked, by swizzle_a, for 128 rows of 4 blocks, got "
        r"others, \[128, 3\]; use tilewright.scales.to_blocked",
    ),
    "one side of blocks": (
        of_recipes(MX, RECIPE.TensorWise, ATOMS),
        (ONES, ONES, OF_BLOCKS, HALF),
        {},
        "both or none must have scales of blocks",
    ),
    "blocks of 16 of bytes": (
        of_recipes(NV, NV, ATOMS, ATOMS),
        (ONES, ONES, OF_BLOCKS, OF_BLOCKS),
        {},
        "of a format with blocks of 16, got torch.float8_e4m3fn and torch.float8_e8m0fnu",
    ),
    "exact sums on Ada": (
        of_recipes(RECIPE.TensorWise, RECIPE.TensorWise),
        (A, B, HALF, THREE),
        {"target": "sm_89"},
        "use_fast_accum must be True on sm_89",
    ),
    "a scale of the result": (
        of_scales(out_dtype=torch.bfloat16, scale_result=THREE.clone()),
        (A, B, HALF, THREE),
        {},
        "scale_result must be None",
    ),
}


def test_exact_sums_have_two_levels_on_hopper():
    module = of_recipes(RECIPE.TensorWise, RECIPE.TensorWise, output_dtype=torch.bfloat16)
    kernel = compile_module(module, A, B, HALF, THREE, target="sm_90a")
    assert "add.rn.f32" in kernel.compiled.ptx
    expected = (A.double() * HALF) @ (B.t().double() * THREE)
    assert torch.allclose(kernel(A, B, HALF, THREE).double(), expected, rtol=2**-8, atol=2**-12)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_kernel_of_a_module_does_not_have_is_refused(name):
    module, inputs, options, rule = REFUSED[name]
    with pytest.raises(CompileError, match=rule):
        compile_module(module, *inputs, **options)
