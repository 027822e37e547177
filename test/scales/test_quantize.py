"""Numbers to block-scaled formats and back, and the ways to round a scale."""

import math

import ml_dtypes
import numpy as np
import pytest
import torch

from tilewright import scales
from tilewright.runtime.scales.formats import ELEMENTS
from tilewright.scales import ScaleError

EXPONENT = {"mxfp8": 8, "mxfp8_e5m2": 15, "mxfp6": 2, "mxfp6_e3m2": 4, "mxfp4": 2}
LARGEST = {"mxfp8": 448, "mxfp8_e5m2": 57344, "mxfp6": 7.5, "mxfp6_e3m2": 28, "mxfp4": 6}
MANTISSA = {"mxfp8": 3, "mxfp8_e5m2": 2, "mxfp6": 3, "mxfp6_e3m2": 2, "mxfp4": 1}


def wide_numbers(rows, k, seed=1):
    """Of many magnitudes, those of bf16."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, k)) * 2.0 ** rng.integers(-20, 20, (rows, k))
    return values.astype(ml_dtypes.bfloat16)


def powers(amax, form, rounding):
    """Exponents of the scales, by logarithms."""
    if rounding == "rceil":
        return np.ceil(np.log2(amax / LARGEST[form]))
    if rounding == "ceil":
        return np.ceil(np.log2(amax)) - EXPONENT[form]
    if rounding == "even":
        ulp = 2.0 ** (np.floor(np.log2(amax)) - MANTISSA[form])
        amax = np.floor(amax / ulp + 0.5) * ulp
    return np.floor(np.log2(amax)) - EXPONENT[form]


@pytest.mark.parametrize("form", EXPONENT)
@pytest.mark.parametrize("rounding", ["floor", "ceil", "even", "rceil"])
def test_scales_are_the_powers_that_the_rounding_says(form, rounding):
    values = wide_numbers(16, 96)
    values[1, :2] = (
        448 * 2.0**30,
        -(2.0**30),
    )  # an exact multiple of every largest number with 1.75 in it
    quantized = scales.quantize(values, form, rounding)
    amax = np.abs(values.astype(np.float64)).reshape(16, 3, 32).max(-1)
    assert quantized.scales.dtype == ml_dtypes.float8_e8m0fnu
    found = quantized.scales.astype(np.float64)
    np.testing.assert_array_equal(np.log2(found), powers(amax, form, rounding))


@pytest.mark.parametrize("form", scales.FORMATS)
def test_numbers_of_a_format_come_back_exactly(form):
    which, element = scales.FORMATS[form], ELEMENTS[scales.FORMATS[form].element]
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 1 << element.bits, (8, 128), np.uint8)
    finite = codes.view(element.dtype).astype(np.float64)
    finite = np.where(np.isfinite(finite), finite, 1)
    finite[:, :: which.depth] = element.largest  # so that the scale is found again
    rows = 1 if which.rows > 8 else 8
    factors = 2.0 ** rng.integers(-6, 8, (rows, 128 // which.depth))
    values = finite * np.repeat(np.repeat(factors, which.depth, axis=1), 8 // rows, axis=0)
    quantized = scales.quantize(values, form)
    np.testing.assert_array_equal(scales.dequantize(*quantized[:2], form), values)
    assert quantized.data.shape == (8, 128 * element.bits // 8)
    assert quantized.scales.shape == factors.shape


@pytest.mark.parametrize("form", ["mxfp8", "mxfp4"])
def test_torch_quantizes_alike(form, of_torch):
    values = torch.from_numpy(wide_numbers(8, 128).view(np.int16)).view(torch.bfloat16)
    ours = scales.quantize(values, form, "rceil")
    their_scales, theirs = of_torch.to_mxfp(values, format=form)
    assert ours.data.dtype == theirs.dtype and ours.scales.dtype == their_scales.dtype
    assert torch.equal(ours.scales.view(torch.uint8), their_scales.view(torch.uint8))
    assert torch.equal(ours.data.view(torch.uint8), theirs.view(torch.uint8))
    numbers = scales.dequantize(ours.data, ours.scales, form)
    same = scales.quantize(values.float().numpy(), form, "rceil")
    np.testing.assert_array_equal(numbers.numpy(), scales.dequantize(*same[:2], form))


def test_nvfp4_rounds_its_scales_to_nearest_and_divides_by_what_they_became():
    values = np.random.default_rng(4).standard_normal((6, 64)) * 3
    quantized = scales.quantize(values, "nvfp4")
    amax = np.abs(values).reshape(6, 4, 16).max(-1)
    wanted = torch.from_numpy(amax / 6).to(torch.float8_e4m3fn).to(torch.float64).numpy()
    np.testing.assert_array_equal(quantized.scales.astype(np.float64), wanted)
    grid = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    ratio = (values.reshape(6, 4, 16) / wanted[..., None])[..., None]
    nearest = grid[np.abs(np.abs(ratio) - grid).argmin(-1)] * np.sign(ratio[..., 0])
    found = scales.dequantize(*quantized[:2], "nvfp4").reshape(6, 4, 16)
    np.testing.assert_array_equal(found, nearest * wanted[..., None])


def test_the_scale_of_a_tensor_takes_its_largest_number_to_the_largest_scale():
    values = np.random.default_rng(5).standard_normal((4, 32)).astype(np.float32) * 1e-4
    quantized = scales.quantize(values, "nvfp4", tensor_scale="amax")
    assert quantized.tensor_scale == np.float32(np.abs(values).max().astype(np.float64) / 448 / 6)
    assert quantized.scales.astype(np.float32).max() == 448
    found = scales.dequantize(*quantized[:2], "nvfp4", quantized.tensor_scale)
    assert np.abs(found - values).max() < np.abs(values).max() / 8
    assert not scales.dequantize(*scales.quantize(values, "nvfp4")[:2], "nvfp4").any()


def test_small_blocks_of_nvfp4_keep_a_normal_scale_where_asked():
    values = np.full((1, 16), 2.0**-7)
    assert scales.quantize(values, "nvfp4").scales.astype(float) == 2.0**-9
    normal = scales.quantize(values, "nvfp4", "normal")
    assert normal.scales.astype(float) == 2.0**-6
    assert (scales.dequantize(*normal[:2], "nvfp4") == 2.0**-7).all()


@pytest.mark.parametrize("form", scales.FORMATS)
def test_zeros_stay_and_one_nan_or_infinity_spoils_its_block_alone(form):
    block = scales.FORMATS[form].depth
    values = np.zeros((1, 4 * block))
    values[0, block], values[0, 2 * block], values[0, 3 * block] = math.nan, math.inf, 6
    quantized = scales.quantize(values, form)
    nan = 0x7F if form == "nvfp4" else 0xFF
    assert quantized.scales.view(np.uint8)[0, :3].tolist() == [0, nan, nan]
    found = scales.dequantize(*quantized[:2], form).reshape(4, block)
    assert not found[0].any() and np.isnan(found[1:3]).all()
    assert found[3, 0] == 6 and not found[3, 1:].any()


def test_scales_stop_at_the_ends_of_their_type():
    values = np.array([[1e300] * 32, [1e-300] * 32, [2.0**-127] * 32])
    codes = scales.quantize(values, "mxfp8").scales.view(np.uint8)
    assert codes.tolist() == [[254], [0], [0]]
    quantized = scales.quantize(values[:, :16], "nvfp4")
    assert quantized.scales.view(np.uint8).tolist() == [[0x7E], [0], [0]]
    assert (scales.dequantize(*quantized[:2], "nvfp4")[0] == 448 * 6).all()


REFUSED = [
    (lambda: scales.quantize(np.zeros((2, 40)), "mxfp8"),
     "scales: K of mxfp8 must be a multiple of 32, got 40; pad K to 64 with zeros"),
    (lambda: scales.quantize(np.zeros(32), "mxfp8"),
     "scales: a matrix must be [rows, K], got shape [32]; reshape it"),
    (lambda: scales.quantize(np.zeros((2, 32), np.int32), "mxfp8"),
     "scales: values must be floating-point, got int32"),
    (lambda: scales.quantize(np.zeros((2, 32)), "mxfp5"),
     "scales: format must be mxfp8 or mxfp8_e5m2 or mxfp6 or mxfp6_e3m2 or mxfp4 or nvfp4 or "
     "mxfp8_1x128 or mxfp8_128x128 or mxfp4_1x16, got 'mxfp5'"),
    (lambda: scales.quantize(np.zeros((2, 160)), "mxfp8_1x128"),
     "scales: K of mxfp8_1x128 must be a multiple of 128, got 160; pad K to 256 with zeros"),
    (lambda: scales.quantize(np.zeros((2, 32)), "mxfp8", "nearest"),
     "scales: rounding of mxfp8 must be floor or ceil or even or rceil, got 'nearest'"),
    (lambda: scales.quantize(np.zeros((2, 32)), "mxfp4", tensor_scale=2.0),
     "scales: tensor_scale is for nvfp4 only, got 2.0 for mxfp4"),
    (lambda: scales.quantize(np.zeros((2, 32)), "nvfp4", tensor_scale=-1),
     "scales: tensor_scale must be a positive f32 or 'amax', got -1"),
    (lambda: scales.dequantize(np.zeros((2, 64), np.uint8), np.zeros(512, np.uint8), "mxfp8"),
     "scales: linear scales must be [2, 2], one for each row and block, got shape [512], which is "
     "blocked; pass it through from_blocked"),
    (lambda: scales.dequantize(np.zeros((2, 64), np.uint8), np.zeros((128, 4), np.uint8), "mxfp8"),
     "scales: linear scales must be [2, 2], one for each row and block, got shape [128, 4], which "
     "is padded; cut the padding off, or pass it through from_blocked if its bytes are blocked"),
    (lambda: scales.dequantize(np.zeros((2, 64), np.int8), np.zeros((2, 2), np.uint8), "mxfp8"),
     "data: codes of e4m3 must be float8_e4m3fn or uint8, got int8"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_a_format_cannot_take_is_refused(call, message):
    with pytest.raises(ScaleError) as caught:
        call()
    assert str(caught.value) == message
