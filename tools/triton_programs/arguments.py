"""Arguments of a Triton kernel, as its parameters hold them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..programs.tensor_maps import kept_im2col_map, kept_map

FORMATS = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B", "u16": "H",
    "u32": "I", "u64": "Q", "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d",
}  # fmt: skip
"""Types of a kernel's signature, as `struct` packs them."""
DESCRIPTOR = "tensordesc"
OF_DRIVER = {8: 10, 9: 8, 10: 9}
"""Types of elements in tensor maps, by Triton's number: the driver's numbers where they differ."""
TF32 = 11
ROUND = "round_f32_to_tf32"
"""Descriptors of Triton 3.6 say nothing of it."""


def parameters(
    signature: Sequence[Any], arguments: Sequence[Any], descriptors: Sequence[Any] | None
) -> list[bytes]:
    """The bytes of each. descriptors: how Triton has laid out the tensor descriptors among the
    arguments, in their order; None where kernels take them apart."""
    rest = iter(descriptors or ())
    return list(_each(signature, arguments, lambda: next(rest, None)))


def _each(
    signature: Sequence[Any], arguments: Sequence[Any], layout: Callable[[], Any]
) -> Iterator[bytes]:
    for kind, value in zip(signature, arguments, strict=True):
        if isinstance(kind, tuple):
            yield from _each(kind, value, layout)
        elif kind.startswith(DESCRIPTOR):
            yield from _descriptor(value, layout())
        elif kind != "constexpr":
            yield as_bytes(kind, value)


def as_bytes(kind: str, value: Any) -> bytes:
    """A pointer or a number."""
    if kind.startswith("*"):
        return struct.pack("<Q", address_of(value))
    if kind == "bf16":
        return struct.pack("<f", value)[2:]
    return struct.pack(f"<{FORMATS[kind]}", value)


def address_of(value: Any) -> int:
    """The address of a tensor, 0 for None, and an integer as it is."""
    if value is None:
        return 0
    return value.data_ptr() if hasattr(value, "data_ptr") else int(value)


def _descriptor(value: Any, layout: Any) -> Iterator[bytes]:
    if layout is None:
        yield as_bytes("*", value.base)
        for number in (*value.shape, *value.strides):
            yield as_bytes("i64", number)
        yield as_bytes("i1", value.padding == "nan")
        if hasattr(value, ROUND):
            yield as_bytes("i1", value.round_f32_to_tf32)
    else:
        yield _map(value, layout)
    for extent in value.shape:
        yield as_bytes("i32", extent)
    for step in value.strides:
        yield as_bytes("i64", step)


def _map(value: Any, layout: Any) -> bytes:
    """The tensor map, whose dims come in the reverse order."""
    dims, size = list(value.shape), layout["elem_size"]
    if layout["fp4_padded"]:
        dims[-1] *= 2
    kind: int = layout["elem_type"]
    kind = TF32 if getattr(value, ROUND, False) else OF_DRIVER.get(kind, kind)
    strides = [step * size for step in reversed(value.strides[:-1])]
    place = address_of(value.base), kind, dims[::-1], strides
    rest = layout["swizzle"], int(value.padding == "nan")
    pixels, *channels = layout["block_size"]
    if layout.get("is_im2col"):
        corners = value.pixel_box_lower_corner, value.pixel_box_upper_corner
        lower, upper = (list(corner)[::-1] for corner in corners)
        steps = value.element_strides or [1] * len(dims)
        return kept_im2col_map(*place, (lower, upper), (*channels, pixels), steps[::-1], *rest)
    return kept_map(*place, layout["block_size"][::-1], *rest)
