"""A product with block scales, and the types that require one."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....dialects.dtypes import SCALED_FORMATS


class QuantizedProduct(NamedTuple):
    """A product in a block-scaled format, as the next product takes it.

    data: [..., m, n] elements, of fewer than 8 bits packed as bytes, float4_e2m1fn_x2 in torch.
    scales: blocked, [m / 128, blocks / 4, 32, 4, 4], of all rows as one matrix; of stacks one each.
        What pads them is zero.
    """

    data: Any
    scales: Any


def is_format(out_dtype: Any) -> bool:
    """Whether a type that is asked for is the name of a block-scaled format."""
    return isinstance(out_dtype, str) and out_dtype in SCALED_FORMATS
