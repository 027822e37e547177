"""Tensor maps as programs pass them: what is kept of a call of cuTensorMapEncodeTiled, or the
hardware's own format, in which host programs of the CuTe DSL encode them, too."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

MAP_BYTES = 128
WORD, IM2COL_WORD = b"TWM\0", b"TWI\0"
_CALL = struct.Struct("<4s6B5Bx5H6x5Q4QQ")
_IM2COL = struct.Struct("<4s4B5Bx2H3h3h2x5Q4QQ")
TYPES = (
    "uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
    "bfloat16", "float32_ftz", "tfloat32", "tfloat32_ftz", "16u4_align8b", "16u4_align16b",
    "16u6_align16b",
)  # fmt: skip
"""CUtensorMapDataType."""
SWIZZLES = ("none", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
FILLS = ("zero", "nan")
HARDWARE_TILED, HARDWARE_IM2COL = 2, 3
MAX_RANK = 5
HARDWARE_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 13, 14, 15, 11, 12)
"""By the hardware's number of a type, that of CUtensorMapDataType."""


def kept_map(
    address: int,
    kind: int,
    dims: Sequence[int],
    strides_bytes: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    fill: int,
) -> bytes:
    """What is kept of a call, as `cute_dsl/stand_in.c` does; numbers are the driver's."""
    rank = len(dims)
    fives = [[*numbers, *[0] * (5 - len(numbers))] for numbers in ([1] * rank, box, dims)]
    steps, boxes, extents = fives
    strides = [*strides_bytes, *[0] * (4 - len(strides_bytes))]
    numbers = (kind, rank, 0, swizzle, 0, fill, *steps, *boxes, *extents, *strides, address)
    return _CALL.pack(WORD, *numbers).ljust(MAP_BYTES, b"\0")


def kept_im2col_map(
    address: int,
    kind: int,
    dims: Sequence[int],
    strides_bytes: Sequence[int],
    corners: tuple[Sequence[int], Sequence[int]],
    column: tuple[int, int],
    steps: Sequence[int],
    swizzle: int,
    fill: int,
) -> bytes:
    """The same of cuTensorMapEncodeIm2col. corners: the lower one and the upper one, along W, H and
    D; column: channels of a pixel, and pixels."""
    rank, missing = len(dims), 5 - len(dims)
    at = [[*corner, *[0] * (3 - len(corner))] for corner in corners]
    strides = [*strides_bytes, *[0] * (4 - len(strides_bytes))]
    numbers = (*steps, *[0] * missing, *column, *at[0], *at[1], *dims, *[0] * missing, *strides)
    packed = _IM2COL.pack(IM2COL_WORD, kind, rank, swizzle, fill, *numbers, address)
    return packed.ljust(MAP_BYTES, b"\0")


def read_map(raw: bytes) -> dict[str, Any] | None:
    """The fields of a launch file's tensor map, and its address; None of other bytes."""
    if len(raw) < MAP_BYTES:
        return None
    read = {WORD: _of_call, IM2COL_WORD: _of_im2col_call}.get(raw[:4], _of_hardware)
    return read(raw)


def _of_call(raw: bytes) -> dict[str, Any]:
    _, kind, rank, _, swizzle, _, fill, *numbers = _CALL.unpack_from(raw)
    steps, box, dims, strides = numbers[:5], numbers[5:10], numbers[10:15], numbers[15:19]
    return {
        "address": numbers[19],
        "dtype": TYPES[kind],
        "dims": dims[:rank],
        "strides_bytes": strides[: rank - 1],
        "box": box[:rank],
        "element_strides": steps[:rank],
        "swizzle": SWIZZLES[swizzle],
        "oob_fill": FILLS[fill],
    }


def _of_im2col_call(raw: bytes) -> dict[str, Any]:
    _, kind, rank, swizzle, fill, *numbers = _IM2COL.unpack_from(raw)
    steps, (channels, pixels), corners = numbers[:5], numbers[5:7], numbers[7:13]
    dims, strides = numbers[13:18], numbers[18:22]
    return {
        "address": numbers[22],
        "dtype": TYPES[kind],
        "dims": dims[:rank],
        "strides_bytes": strides[: rank - 1],
        "im2col": {
            "lower": corners[: rank - 2],
            "upper": corners[3 : rank + 1],
            "channels": channels,
            "pixels": pixels,
        },
        "element_strides": steps[:rank],
        "swizzle": SWIZZLES[swizzle],
        "oob_fill": FILLS[fill],
    }


def _of_hardware(raw: bytes) -> dict[str, Any] | None:
    """Of the 128 bytes that the hardware reads: the address; a word with mode, rank, type and
    swizzle; strides in units of 16 bytes; and extents, steps and boxes, each less by one."""
    word = _number(raw, 8, 4)
    rank, kind, swizzle = (word >> 4 & 7) + 1, word >> 7 & 15, word >> 13 & 3
    fields = {HARDWARE_TILED: _hardware_box, HARDWARE_IM2COL: _hardware_columns}.get(word & 15)
    part = fields(raw, rank) if fields and rank <= MAX_RANK else None
    if part is None:
        return None
    return {
        "address": _number(raw, 0, 8),
        "dtype": TYPES[HARDWARE_TYPES[kind]],
        "dims": [_number(raw, 32 + 4 * dim, 4) + 1 for dim in range(rank)],
        "strides_bytes": [_number(raw, 12 + 4 * dim, 4) << 4 for dim in range(rank - 1)],
        **part,
        "element_strides": [(_number(raw, 52, 2) >> 3 * dim & 7) + 1 for dim in range(rank)],
        "swizzle": SWIZZLES[swizzle],
    }


def _hardware_box(raw: bytes, rank: int) -> dict[str, Any]:
    return {"box": [raw[55 + dim] + 1 for dim in range(rank)]}


def _hardware_columns(raw: bytes, rank: int) -> dict[str, Any] | None:
    """In im2col mode: channels and pixels, each less by one, and between them the corners, which
    share 16 bits each."""
    if rank < 3 or raw[54] or any(raw[62:64]):
        return None
    return {
        "im2col": {
            "lower": _corner(_number(raw, 56, 2), rank - 2),
            "upper": _corner(_number(raw, 58, 2), rank - 2),
            "channels": raw[55] + 1,
            "pixels": _number(raw, 60, 2) + 1,
        }
    }


def _corner(bits: int, count: int) -> list[int]:
    """Numbers of 16 / count bits each, with signs."""
    width = 16 // count
    parts = [bits >> width * dim & (1 << width) - 1 for dim in range(count)]
    return [part - (part >> width - 1 << width) for part in parts]


def _number(raw: bytes, at: int, size: int) -> int:
    return int.from_bytes(raw[at : at + size], "little")
