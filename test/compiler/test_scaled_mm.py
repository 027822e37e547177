"""`tilewright.scaled_mm`, torch's signature, against dequantized operands in float64."""

import pytest
import torch
from torch.nn import functional as F

from tilewright import CompileError, scaled_mm, scales

pytestmark = pytest.mark.usefixtures("fresh_cache")
GENERATOR = torch.Generator().manual_seed(5)
M, N, K = 40, 56, 96
RECIPE, ATOMS = F.ScalingType, F.SwizzleType.SWIZZLE_32_4_4


def random(*shape):
    return torch.randn(shape, generator=GENERATOR)


A, B = (random(rows, K).to(torch.float8_e4m3fn) for rows in (M, N))
BIAS = random(N).to(torch.bfloat16)
SCALES = {
    "TensorWise": (torch.tensor(0.5), torch.tensor([3.0])),
    "RowWise": (random(M, 1).abs(), random(1, N).abs()),
}


@pytest.mark.parametrize("kind", SCALES)
def test_scales_of_tensors_and_rows_are_factors_of_their_operands(kind):
    recipe, (of_a, of_b) = getattr(RECIPE, kind), SCALES[kind]
    got = scaled_mm(A, B.t(), of_a, recipe, of_b, recipe, bias=BIAS, output_dtype=torch.float32)
    expected = (A.double() * of_a) @ (B.t().double() * of_b) + BIAS.double()
    assert torch.allclose(got.double(), expected, rtol=2**-18, atol=2**-14)


@pytest.mark.parametrize(("format_", "factor"), [("mxfp8", None), ("nvfp4", 0.25)])
def test_scales_of_blocks_are_multiplied_by_the_tensor_core(format_, factor):
    kind = RECIPE.BlockWise1x16 if format_ == "nvfp4" else RECIPE.BlockWise1x32
    a, b = (scales.quantize(random(rows, 128), format_) for rows in (M, N))
    of_a, recipe = scales.to_blocked(a.scales), kind
    if factor:
        of_a, recipe = [of_a, torch.tensor(factor)], [kind, RECIPE.TensorWise]
    of_b, swizzles = scales.to_blocked(b.scales).flatten(), (ATOMS, ATOMS)
    got = scaled_mm(
        a.data, b.data.T, of_a, recipe, of_b, kind, *swizzles, bias=BIAS, output_dtype="f32"
    )
    wide = [torch.as_tensor(scales.dequantize(q.data, q.scales, format_)) for q in (a, b)]
    expected = wide[0] @ wide[1].T * (factor or 1) + BIAS.double()
    assert torch.allclose(got.double(), expected, rtol=0, atol=1e-4)


def test_scales_without_a_swizzle_are_linear():
    kind, (a, b) = RECIPE.BlockWise1x16, (scales.quantize(random(r, 96), "nvfp4") for r in (M, N))
    got = scaled_mm(a.data, b.data.T, a.scales, kind, b.scales, kind, output_dtype="f32")
    wide = [torch.as_tensor(scales.dequantize(q.data, q.scales, "nvfp4")) for q in (a, b)]
    assert torch.allclose(got.double(), wide[0] @ wide[1].T, rtol=0, atol=1e-4)


MX = scales.quantize(random(M, 128), "mxfp8")
MX_ATOMS = scales.to_blocked(MX.scales)
TENSOR, ROW, BLOCK = RECIPE.TensorWise, RECIPE.RowWise, RECIPE.BlockWise1x32
ONE, ROW_BIAS = torch.tensor(1.0), random(M, 1)
MX_SIDE = (MX_ATOMS, BLOCK)
REFUSED = {
    "a wrong number of scales": ((A, B.t(), random(2), TENSOR, ONE, TENSOR), {}, r"must be \[\]"),
    "columns for rows": ((A, B.t(), random(1, M), ROW, ONE, TENSOR), {}, r"must be \[40, 1\]"),
    "narrow scales": ((A, B.t(), ONE.half(), TENSOR, ONE, TENSOR), {}, "must be float32"),
    "a recipe of 128": ((A, B.t(), ONE, RECIPE.BlockWise1x128, ONE, TENSOR), {}, "BlockWise1x128"),
    "one side of blocks": ((MX.data, MX.data.T, *MX_SIDE, ONE, TENSOR, ATOMS), {}, "both or none"),
    "linear scales": (
        (MX.data, MX.data.T, MX.scales, BLOCK, *MX_SIDE, ATOMS, ATOMS),
        {},
        "must be 512 elements, blocked, by swizzle_a, for 40 rows of 4 blocks, got linear ones",
    ),
    "a swizzle of one scale": (
        (A, B.t(), ONE, TENSOR, ONE, TENSOR, ATOMS),
        {},
        "swizzle_a must be NO_SWIZZLE or None for TensorWise, got SWIZZLE_32_4_4",
    ),
    "more swizzles than scales": (
        (MX.data, MX.data.T, *MX_SIDE, *MX_SIDE, [ATOMS, ATOMS], ATOMS),
        {},
        "must be one for each scale, got 2 for 1",
    ),
    "a bias of rows": (
        (A, B.t(), ONE, TENSOR, ONE, TENSOR),
        {"bias": ROW_BIAS},
        r"bias must be \[56\]",
    ),
    "a gradient of the bias": (
        (MX.data, MX.data.T, *MX_SIDE, *MX_SIDE, ATOMS, ATOMS),
        {"bias": random(M).requires_grad_()},
        "neither gradients",
    ),
    "no swizzle": (
        (MX.data, MX.data.T, *MX_SIDE, *MX_SIDE),
        {},
        r"must be \[40, 4\], linear, by swizzle_a, for 40 rows of 4 blocks, got blocked ones",
    ),
    "two layouts": (
        (MX.data, MX.data.T, *MX_SIDE, MX.scales, BLOCK, ATOMS, F.SwizzleType.NO_SWIZZLE),
        {},
        "swizzle_a and swizzle_b must be alike",
    ),
    "scales of another format": (
        (A, B.t(), MX_ATOMS.view(torch.float8_e4m3fn), BLOCK, *MX_SIDE, ATOMS, ATOMS),
        {},
        "of a format with blocks of 32, got float8_e4m3fn and float8_e4m3fn",
    ),
    "an output of bytes": (
        (A, B.t(), ONE, TENSOR, ONE, TENSOR),
        {"output_dtype": torch.int8},
        "out_dtype must be one of",
    ),
    "contracted dims": ((A, B.t(), ONE, TENSOR, ONE, TENSOR), {"contraction_dim": [1]}, r"be \(\)"),
    "exact sums on Ada": (
        (A, B.t(), ONE, TENSOR, ONE, TENSOR),
        {"target": "sm_89"},
        "use_fast_accum must be True on sm_89",
    ),
    "blocks on Hopper": (
        (MX.data, MX.data.T, *MX_SIDE, *MX_SIDE, ATOMS, ATOMS),
        {"target": "sm_90a", "use_fast_accum": True},
        "block scales",
    ),
}


def test_an_output_may_have_8_bits():
    wide, c = (
        scaled_mm(A, B.t(), ONE, TENSOR, ONE, TENSOR, output_dtype=dtype)
        for dtype in (torch.float32, torch.float8_e4m3fn)
    )
    assert torch.equal(c.float(), wide.clamp(-448, 448).to(torch.float8_e4m3fn).float())


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_recipe_does_not_have_is_refused(name):
    arguments, options, message = REFUSED[name]
    with pytest.raises(CompileError, match=message):
        scaled_mm(*arguments, **options)
