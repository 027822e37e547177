"""torch's scales of 128 elements of K for block-scaled MMAs with power-of-two scales."""

from __future__ import annotations

from typing import Any

from ....dialects.dtypes import (
    BLOCKWISE,
    BLOCKWISE_FORMS,
    COARSE_FORMATS,
    ScaledFormat,
    blockwise_scale_shape,
)
from ....dialects.errors import OptionError

COARSE = {
    "BlockWise1x128": COARSE_FORMATS["mxfp8_1x128"],
    "BlockWise128x128": COARSE_FORMATS["mxfp8_128x128"],
}
ROUNDED = 4  # torch rounds the blocks of BlockWise128x128 up to so many
FRACTION, SIGN, EXPONENT = 23, -(2**31), 0xFF
SMALLEST = 1 << (FRACTION - 1)  # the bits of 2^-127, the scale of code 0
NAN = 0xFF


def coarse_scales(name: str, rows: Any, scale: Any, form: ScaledFormat, plain: bool) -> Any:
    """Scales e8m0 [rows, K / 128] or [rows / 128, K / 128] of an operand [rows, K] of e4m3.

    A scale f32 that is no power of two is refused where its value can be seen; on a GPU it becomes
    NaN. Raises OptionError for what the recipe does not have.
    """
    if not plain:
        raise OptionError(f"scaled_mm: swizzle_{name} must be NO_SWIZZLE or None for {form.name}")
    types = [str(each.dtype).removeprefix("torch.") for each in (rows, scale)]
    if types[0] != "float8_e4m3fn" or types[1] not in ("float32", "float8_e8m0fnu"):
        rule = f"mat_{name} and scale_{name} must be float8_e4m3fn and float32 or float8_e8m0fnu"
        raise OptionError(
            f"scaled_mm: {rule} for blocks of {form.depth}, got {' and '.join(types)}"
        )
    count, k = rows.shape
    if k % form.depth:
        rule = f"K must be a multiple of the {form.depth} elements that share a scale"
        raise OptionError(f"scaled_mm: {rule}, got {k}; pad K")
    along, blocks = -(-count // form.rows), k // form.depth
    transposed = form.rows > 1
    wanted = [[along, blocks]] if not transposed else _transposed(along, blocks)
    if list(scale.shape) not in wanted:
        shown = " or ".join(map(str, wanted))
        rule = f"scale_{name} must be {shown} for {count} rows of {k} elements"
        raise OptionError(f"scaled_mm: {rule}, got {list(scale.shape)}")
    own = scale[:blocks].T if transposed else scale
    return (
        own if types[1] != "float32" else powers_of_two(name, own, not own.is_cuda)
    ).contiguous()


def laid_out(scale: Any, form: str, rows: int, k: int) -> Any:
    """Scales in f32 of an operand [rows, k] as threads read them: a copy where they lie otherwise,
    and zeros after the blocks of K where torch has some. Others are as they were."""
    import torch

    lies = list(blockwise_scale_shape(form, rows, k))
    blocks = -(-k // BLOCKWISE)
    if form != BLOCKWISE_FORMS[0] and list(scale.shape) == [blocks, lies[0]]:
        scale = torch.nn.functional.pad(scale, (0, 0, 0, lies[1] - blocks))
    return scale.T.contiguous().T if list(scale.shape) == lies[::-1] else scale


def _transposed(along: int, blocks: int) -> list[list[int]]:
    rounded = -(-blocks // ROUNDED) * ROUNDED
    return [[each, along] for each in sorted({blocks, rounded})]


def powers_of_two(name: str, scale: Any, look: bool = True) -> Any:
    """f32 powers of two as e8m0, NaN for what is none; `look` refuses that instead."""
    import torch

    bits = scale.view(torch.int32)
    exponents = bits >> FRACTION & EXPONENT
    normal = (bits & (SIGN | (1 << FRACTION) - 1) == 0) & (exponents > 0) & (exponents < NAN)
    known = normal | (bits == SMALLEST)
    if look and not bool(known.all()):
        got = scale[~known][0].item()
        rule = f"scale_{name} must be powers of two, which the tensor core multiplies, got {got}"
        cure = "round them up before quantizing, as tilewright.scales.quantize does"
        raise OptionError(f"scaled_mm: {rule}; {cure}")
    codes = torch.where(known, exponents, NAN).to(torch.uint8)
    return codes.contiguous().view(torch.float8_e8m0fnu)
