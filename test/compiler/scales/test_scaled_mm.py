"""`tilewright.scaled_mm`, torch's signature, against dequantized operands in float64."""

import math

import pytest
import torch
from torch.nn import functional as F

from tilewright import CompileError, scaled_mm, scales
from tilewright.compiler.calls.dense import scaled
from tilewright.compiler.calls.operands.coarse_scales import powers_of_two

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
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


FINE, WIDE = RECIPE.BlockWise1x128, RECIPE.BlockWise128x128


def coarse(rows, form):
    """A matrix [rows, 256] of e4m3, its scales as torch has them, in f32, and its numbers."""
    made = scales.quantize(random(rows, 256) * torch.exp2(torch.arange(rows) % 7)[:, None], form)
    of = made.scales.float()
    if form == "mxfp8_128x128":  # torch's are [K / 128 rounded up to 4, rows / 128]
        of = torch.nn.functional.pad(of.T, (0, 0, 0, 2))
    numbers = scales.dequantize(made.data, made.scales, form)
    return made.data, of.T.contiguous().T, torch.as_tensor(numbers)


def test_powers_of_two_for_128_elements_are_multiplied_by_the_tensor_core():
    a, of_a, left = coarse(M, "mxfp8_1x128")
    b, of_b, right = coarse(136, "mxfp8_128x128")
    codes = [each.to(torch.float8_e8m0fnu) for each in (of_a, of_b)]
    got = scaled_mm(a, b.T, codes[0], FINE, codes[1], WIDE, output_dtype="f32")
    assert torch.allclose(got.double(), left @ right.T, rtol=2**-20, atol=2**-10)
    for one, other in ((codes[0], of_b), (of_a, codes[1])):
        same = scaled_mm(a, b.T, one, FINE, other, WIDE, output_dtype="f32")
        assert torch.equal(same, got)


def test_f32_for_128_elements_are_multiplied_by_threads():
    """Also powers of two that are f32: nobody looks at their values."""
    a, of_a, left = coarse(M, "mxfp8_1x128")
    b, of_b, right = coarse(136, "mxfp8_128x128")
    factors = torch.rand(of_a.T.shape, generator=GENERATOR).T + 0.5
    left = left * factors.double().repeat_interleave(128, 1)
    scale = (of_a * factors).T.contiguous().T
    got = scaled_mm(a, b.T, scale, FINE, of_b, WIDE, output_dtype="f32")
    assert torch.allclose(got.double(), left @ right.T, rtol=2**-17, atol=2**-8)
    along_k, unpadded = scale.contiguous(), of_b[:2].contiguous()
    same = scaled_mm(a, b.T, along_k, FINE, unpadded, WIDE, output_dtype="f32")
    assert torch.equal(same, got)


def test_every_f32_is_a_power_of_two_or_the_scale_nan():
    """By frexp, whose fraction of a power of two is a half."""
    exact = [math.ldexp(1.0, power) for power in range(-127, 128)]
    others = [0.0, -1.0, 3.0, 1e-45, math.ldexp(1.0, -128), math.inf, math.nan, 1.0 + 2**-23]
    values = torch.tensor([exact + others])
    with pytest.raises(CompileError, match=r"scale_a must be powers of two, .* got 0\.0; round"):
        powers_of_two("a", values)
    codes = powers_of_two("a", values, look=False).view(torch.uint8)[0].tolist()
    assert codes == [*range(255), *[0xFF] * len(others)]


MX = scales.quantize(random(M, 128), "mxfp8")
MX_ATOMS = scales.to_blocked(MX.scales)
POWERS = torch.ones(M, 1).to(torch.float8_e8m0fnu)
TENSOR, ROW, BLOCK = RECIPE.TensorWise, RECIPE.RowWise, RECIPE.BlockWise1x32
ONE, ROW_BIAS = torch.tensor(1.0), random(M, 1)
MX_SIDE = (MX_ATOMS, BLOCK)
REFUSED = {
    "a wrong number of scales": ((A, B.t(), random(2), TENSOR, ONE, TENSOR), {}, r"must be \[\]"),
    "another K": (
        (A, B, ONE, TENSOR, ONE, TENSOR),
        {},
        r"mat_a and mat_b must have the same k, got 96 and 56",
    ),
    "columns for rows": ((A, B.t(), random(1, M), ROW, ONE, TENSOR), {}, r"must be \[40, 1\]"),
    "narrow scales": ((A, B.t(), ONE.half(), TENSOR, ONE, TENSOR), {}, "must be float32"),
    "K of 96 for blocks of 128": ((A, B.t(), ONE, FINE, ONE, TENSOR), {}, "multiple of the 128 "),
    "a scale for all of 1x128": (
        (MX.data, MX.data.T, ONE, FINE, POWERS, FINE),
        {},
        r"scale_a must be \[40, 1\] for 40 rows of 128 elements, got \[\]",
    ),
    "a row of scales for 128x128": (
        (MX.data, MX.data.T, POWERS, FINE, torch.ones(M, 1), WIDE),
        {},
        r"scale_b must be \[1, 1\] or \[4, 1\] for 40 rows of 128 elements, got \[40, 1\]",
    ),
    "atoms of 1x128": (
        (MX.data, MX.data.T, torch.ones(M, 1), FINE, POWERS, FINE, ATOMS),
        {},
        "swizzle_a must be NO_SWIZZLE or None for mxfp8_1x128",
    ),
    "scales of 128 that are no powers of two": (
        (MX.data, MX.data.T, torch.full((M, 1), 0.3), FINE, POWERS, FINE),
        {},
        "scale_a must be powers of two, which the tensor core multiplies, got 0.3",
    ),
    "a second recipe of blocks": (
        (MX.data, MX.data.T, [MX_ATOMS, ONE], [BLOCK, FINE], *MX_SIDE, [ATOMS, None], ATOMS),
        {},
        "must be TensorWise, RowWise or BlockWise1x16, 1x32, 1x128 or 128x128, each once, got",
    ),
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


@pytest.mark.parametrize("asked", [{"pipeline": "tiling"}, {"preset": "h1"}])
def test_passes_reach_the_product(asked, monkeypatch):
    seen = {}
    monkeypatch.setattr(scaled, "matmul", lambda *_, **options: seen.update(options))
    recipe, (of_a, of_b) = RECIPE.RowWise, SCALES["RowWise"]
    how = {"target": "sm_90a", "use_fast_accum": True, **asked}
    scaled_mm(A, B.t(), of_a, recipe, of_b, recipe, **how)
    assert seen["target"] == "sm_90a"
    assert {name: seen[name] for name in ("pipeline", "preset") if seen[name]} == asked
