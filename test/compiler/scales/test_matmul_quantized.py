"""`matmul` and `scaled_mm` with results in block-scaled formats."""

import pytest
import torch
from torch.nn import functional as F

from tilewright import scales
from tilewright.compiler.calls.dense.matmul import matmul
from tilewright.compiler.calls.dense.scaled import scaled_mm
from tilewright.dialects.errors import OptionError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(7)
M, N, K = 70, 96, 40
BLOCKS = {"mxfp8": F.ScalingType.BlockWise1x32, "nvfp4": F.ScalingType.BlockWise1x16}
ATOMS = F.SwizzleType.SWIZZLE_32_4_4


def integers(*shape):
    return torch.randint(-9, 10, shape, generator=GENERATOR).bfloat16()


A, B = integers(M, K), integers(N, K)
SUMS = A.double() @ B.double().T  # integers, so exact in f32


def codes(tensor):
    return tensor.contiguous().view(torch.uint8)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("form", "rounding"),
    [("mxfp8", "rceil"), ("mxfp6", ""), ("mxfp4", "even"), ("nvfp4", "normal")],
)
def test_a_result_is_what_quantize_makes_of_the_sums(form, rounding):
    got = matmul(A, B, out_dtype=form, scale_rounding=rounding)
    wanted = scales.quantize(SUMS, form, rounding)
    assert got.data.dtype == wanted.data.dtype
    assert torch.equal(codes(got.data), codes(wanted.data))
    assert torch.equal(codes(got.scales), codes(scales.to_blocked(wanted.scales)))


@pytest.mark.parametrize("form", BLOCKS)
def test_one_product_feeds_the_next(form):
    weight = scales.quantize(torch.randn(48, N, generator=GENERATOR), form)
    factor = torch.tensor(0.25 if form == "nvfp4" else 1.0)

    def activated(acc, factor):
        return torch.relu(acc) * 0.01 / factor

    apart = torch.cat([A, A], 1)[:, :K]  # rows with gaps, which are read in place
    first = matmul(apart, B, out_dtype=form, epilogue=activated, operands=[factor])
    of_weight, of_first = scales.to_blocked(weight.scales), [first.scales, factor]
    recipes = [BLOCKS[form], F.ScalingType.TensorWise], of_weight, BLOCKS[form], ATOMS, ATOMS
    got = scaled_mm(first.data, weight.data.T, of_first, *recipes, output_dtype="f32")
    linear = scales.from_blocked(first.scales, M, N // (16 if form == "nvfp4" else 32))
    between = torch.as_tensor(scales.dequantize(first.data, linear, form)) * factor.double()
    exact = SUMS.clamp(min=0) * 0.01
    assert (between - exact).abs().max() <= exact.abs().max() / (4 if form == "nvfp4" else 8)
    wide = torch.as_tensor(scales.dequantize(weight.data, weight.scales, form))
    assert torch.allclose(got.double(), between @ wide.T, rtol=0, atol=1e-4)


def test_a_product_with_scales_gives_one_with_scales():
    a, b = (scales.quantize(each[:, :32].float(), "mxfp8") for each in (A, B))
    recipe, of_b = BLOCKS["mxfp8"], scales.to_blocked(b.scales)
    recipes = recipe, of_b, recipe, ATOMS, ATOMS
    of_a = scales.to_blocked(a.scales)
    got = scaled_mm(a.data, b.data.T, of_a, *recipes, output_dtype="mxfp4")
    wanted = scales.quantize(A[:, :32].double() @ B[:, :32].double().T, "mxfp4")
    assert torch.equal(codes(got.data), codes(wanted.data))
    assert torch.equal(codes(got.scales), codes(scales.to_blocked(wanted.scales)))


def test_two_products_and_leading_dims_are_quantised_with_what_else_is_returned():
    def gated(gate, up):
        return gate * up, gate

    a = A.reshape(7, 10, K)
    got, gate = matmul(a, (B, B.flip(0)), out_dtype="mxfp8", epilogue=gated, target="sm_90a")
    exact = SUMS * (A.double() @ B.flip(0).double().T)
    wanted = scales.quantize(exact, "mxfp8")
    assert torch.equal(codes(got.data), codes(wanted.data).reshape(7, 10, N))
    assert torch.equal(codes(got.scales), codes(scales.to_blocked(wanted.scales)))
    assert torch.equal(gate.double(), SUMS.reshape(7, 10, N))


REFUSED = {
    "out": ({"out": torch.empty(M, N)}, "out must be None for a result of mxfp8"),
    "m": ({"m": "dynamic"}, "m must be None for a result of mxfp8"),
    "rounding": ({"scale_rounding": "up"}, "rounding of mxfp8 must be floor or ceil or even or"),
    "type": (
        {"out_dtype": "bf16", "scale_rounding": "floor"},
        "scale_rounding must come with an out_dtype of mxfp8,",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_scales_is_refused(name):
    options, message = REFUSED[name]
    with pytest.raises(OptionError, match=message):
        matmul(A, B, **{"out_dtype": "mxfp8", **options})


def test_gradients_and_rows_of_no_whole_blocks_are_refused():
    with pytest.raises(OptionError, match="no gradient and no operator of torch"):
        matmul(A.clone().requires_grad_(), B, out_dtype="mxfp8")
    with pytest.raises(OptionError, match=r"N must be a multiple of the 32 elements .* got 90"):
        matmul(A, B[:90], out_dtype="mxfp8")
