"""Matrices to block-scaled formats and back.

How a scale is chosen from the largest magnitude of its block (`amax`), by the name of `rounding`:

    for ue8m0, a power of two (the names are torchao's, `ScaleCalculationMode`):
      floor     2^(⌊log2 amax⌋ − e), e the exponent of the element's largest number; amax may be
                cut to that number. OCP Microscaling Formats 1.0 §6.3; the default
      ceil      2^(⌈log2 amax⌉ − e)
      even      floor of amax rounded to as many fraction bits as the element has, halves up
      rceil     the smallest power that cuts nothing: 2^⌈log2(amax / largest)⌉. cuBLAS for MXFP8,
                and what torch's own tests use
    for ue4m3:
      nearest   amax / largest, to the nearest scale, ties to even. cuBLAS for NVFP4; the default
      normal    the same, but not less than 2^-6, the smallest normal number. torchao for NVFP4

Elements are then rounded to nearest, ties to even, and cut to the largest number. A block of zeros
has the scale 0 of ue4m3, or 2^-127 (code 0). A block with a NaN or an infinity has the scale NaN,
since no element stands for them in all formats.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..element_types import SCALE_ROUNDINGS, ScaledFormat, is_torch
from .blocked import check_linear
from .codes import decode, encode, pack, unpack
from .formats import ELEMENTS, Element, ScaleError, find_format

ROUNDINGS = SCALE_ROUNDINGS
POWERS = ROUNDINGS["ue8m0"]
BIAS, SMALLEST_NORMAL = 127, 2.0**-6


class Quantized(NamedTuple):
    """A matrix in a block-scaled format.

    data            [..., rows, bytes]: e4m3 and e5m2 as their own dtypes, the others packed into
                    uint8; of torch, e2m1 as float4_e2m1fn_x2
    scales          [..., rows, K / block], linear, as float8_e8m0fnu, of nvfp4 as float8_e4m3fn;
                    of mxfp8_128x128 [..., rows / 128, K / 128], rounded up
    tensor_scale    the f32 that multiplies all numbers, 1.0 where there is none
    """

    data: Any
    scales: Any
    tensor_scale: float = 1.0


def quantize(
    values: Any, form: str, rounding: str = "", tensor_scale: float | str = 1.0
) -> Quantized:
    """Numbers [..., rows, K] in the format that `form` names, of `FORMATS`; their scales linear.

    `values` is an array of numpy or torch, of floating point; the result is of the same library and
    on the same device, though computed by numpy. K must be a multiple of the format's block.
    `rounding` is one of `ROUNDINGS`. `tensor_scale` is for nvfp4: a positive number, or `amax` for
    the one by which the largest number of all gets the largest scale. Raises ScaleError for others.
    """
    which = find_format(form)
    element, scale = ELEMENTS[which.element], ELEMENTS[which.scale]
    numbers = _numbers(values)
    _check_k(numbers.shape, which)
    *rows, depth = numbers.shape
    blocks = numbers.reshape(*rows, depth // which.depth, which.depth)
    amax = _of_rows(np.abs(blocks).max(-1, initial=0), which.rows)
    whole = _tensor_scale(amax, which, tensor_scale)
    scales = scale_codes(amax / whole, which, rounding)
    factors = decode(scales, scale) * whole
    divisors = np.where(factors == 0, np.inf, factors)
    divisors = _for_rows(divisors, which.rows, numbers.shape[-2])[..., None]
    scaled = np.where(np.isnan(divisors), np.nan, blocks) / divisors
    codes = encode(scaled, element).reshape(numbers.shape)
    data = _typed(pack(codes, element.bits), element, values)
    return Quantized(data, _typed(scales, scale, values), whole)


def dequantize(data: Any, scales: Any, form: str, tensor_scale: float = 1.0) -> Any:
    """float64 numbers [..., rows, K] of a matrix in the format that `form` names, each exact.

    `data`, `scales` and `tensor_scale` are as `quantize` gives them, or `data` and `scales` uint8
    codes; scales are linear. Raises ScaleError for an unknown format or other shapes.
    """
    which = find_format(form)
    element, scale = ELEMENTS[which.element], ELEMENTS[which.scale]
    codes = unpack(_codes(data, element, "data"), element.bits)
    raw = _codes(scales, scale, "scales")
    _check_k(codes.shape, which)
    *stack, rows, depth = codes.shape
    check_linear(raw.shape, (*stack, -(-rows // which.rows), depth // which.depth))
    factors = decode(raw, scale) * np.float32(tensor_scale)
    factors = _for_rows(factors, which.rows, rows)
    values = decode(codes, element) * np.repeat(factors, which.depth, axis=-1)
    return _like(values, data)


def _of_rows(amax: np.ndarray, rows: int) -> np.ndarray:
    """The largest of each so many rows, [..., rows / so many, blocks]."""
    if rows == 1:
        return amax
    *stack, count, blocks = amax.shape
    padded = np.zeros((*stack, -(-count // rows) * rows, blocks))
    padded[..., :count, :] = amax
    return padded.reshape(*stack, -(-count // rows), rows, blocks).max(-2)


def _for_rows(factors: np.ndarray, each: int, rows: int) -> np.ndarray:
    """The factors of each row, if `each` rows share one."""
    return factors if each == 1 else np.repeat(factors, each, axis=-2)[..., :rows, :]


def scale_codes(amax: np.ndarray, form: ScaledFormat, rounding: str = "") -> np.ndarray:
    """uint8 codes of the scales for blocks whose largest magnitudes are `amax`, of any shape."""
    choices = ROUNDINGS[form.scale]
    way = rounding or choices[0]
    if way not in choices:
        raise ScaleError(
            f"scales: rounding of {form.name} must be {' or '.join(choices)}, got {rounding!r}"
        )
    finite = np.where(np.isfinite(amax), amax, 0)
    codes = (
        _powers(finite, ELEMENTS[form.element], way)
        if way in POWERS
        else _nearest(finite, form, way)
    )
    nan = np.uint8(ELEMENTS[form.scale].nan or 0)
    return np.where(np.isfinite(amax), codes, nan).astype(np.uint8)


def _powers(amax: np.ndarray, element: Element, way: str) -> np.ndarray:
    """Codes of ue8m0: biased exponents."""
    fraction, exponent = np.frexp(amax.astype(np.float64))
    fraction, exponent = 2 * fraction, exponent - 1
    up = {
        "floor": np.zeros(amax.shape, bool),
        "ceil": fraction > 1,
        "even": fraction >= 2 - 0.5 ** (element.mantissa + 1),
        "rceil": fraction > element.largest / 2.0**element.exponent,
    }[way]
    power = np.clip(exponent + up - element.exponent, -BIAS, BIAS)
    return np.where(amax == 0, 0, power + BIAS)


def _nearest(amax: np.ndarray, form: ScaledFormat, way: str) -> np.ndarray:
    """Codes of ue4m3."""
    wanted = amax / ELEMENTS[form.element].largest
    least = SMALLEST_NORMAL if way == "normal" else 0
    return encode(np.maximum(wanted, least), ELEMENTS[form.scale])


def _tensor_scale(amax: np.ndarray, form: ScaledFormat, wanted: float | str) -> float:
    if not isinstance(wanted, str) and wanted == 1.0:
        return 1.0
    if form.scale != "ue4m3":
        raise ScaleError(f"scales: tensor_scale is for nvfp4 only, got {wanted!r} for {form.name}")
    if wanted == "amax":
        largest = np.max(amax, where=np.isfinite(amax), initial=0)
        return (
            float(
                np.float32(largest / ELEMENTS[form.scale].largest / ELEMENTS[form.element].largest)
            )
            or 1.0
        )
    if not isinstance(wanted, (int, float)) or not 0 < np.float32(wanted) < np.inf:
        raise ScaleError(f"scales: tensor_scale must be a positive f32 or 'amax', got {wanted!r}")
    return float(np.float32(wanted))


def _check_k(shape: tuple[int, ...], form: ScaledFormat) -> None:
    if len(shape) < 2:
        raise ScaleError(f"scales: a matrix must be [rows, K], got shape {list(shape)}; reshape it")
    k = shape[-1]
    if not k or k % form.depth:
        padded = max(-(-k // form.depth), 1) * form.depth
        raise ScaleError(
            f"scales: K of {form.name} must be a multiple of {form.depth}, got {k}; pad K to "
            f"{padded} with zeros"
        )


def _numbers(values: Any) -> np.ndarray:
    if is_torch(values):
        import torch  # already imported by whoever made `values`

        if not values.is_floating_point():
            raise ScaleError(f"scales: values must be floating-point, got {values.dtype}")
        return values.detach().to("cpu", torch.float64).numpy()
    array = np.asarray(values)
    if "float" not in array.dtype.name:
        raise ScaleError(f"scales: values must be floating-point, got {array.dtype}")
    return array.astype(np.float64)


def _codes(array: Any, element: Element, what: str) -> np.ndarray:
    """uint8 codes, packed as they are, of an array of the element's own dtype or of bytes."""
    packed = element.bits < 8
    legal = {"uint8"} if packed else {"uint8", element.dtype.name}
    if is_torch(array):
        import torch  # already imported by whoever made `array`

        legal = {"torch.uint8", f"torch.{element.torch}"}
        _check_dtype(str(array.dtype), legal, element, what)
        return array.detach().cpu().contiguous().view(torch.uint8).numpy()
    found = np.ascontiguousarray(array)
    _check_dtype(found.dtype.name, legal, element, what)
    return found.view(np.uint8)


def _check_dtype(got: str, legal: set[str], element: Element, what: str) -> None:
    if got not in legal:
        raise ScaleError(
            f"{what}: codes of {element.name} must be {' or '.join(sorted(legal))}, got {got}"
        )


def _typed(raw: np.ndarray, element: Element, like: Any) -> Any:
    """Bytes as the dtype of an element, of the library and on the device of `like`."""
    if is_torch(like):
        import torch  # already imported by whoever made `like`

        return torch.from_numpy(raw).view(getattr(torch, element.torch)).to(like.device)
    return raw.view(element.dtype) if element.bits == 8 else raw


def _like(values: np.ndarray, like: Any) -> Any:
    if is_torch(like):
        import torch  # already imported by whoever made `like`

        return torch.from_numpy(values).to(like.device)
    return values
