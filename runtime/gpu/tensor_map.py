"""The arguments of cuTensorMapEncodeTiled, from a manifest's parameter."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

ENUMS = {
    "dtype": (
        "CUtensorMapDataType",
        {
            "bf16": "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
            "f16": "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
            "f32": "CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
            "tf32": "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32",
            "s32": "CU_TENSOR_MAP_DATA_TYPE_INT32",
            **dict.fromkeys(("e4m3", "e5m2", "s8", "u8"), "CU_TENSOR_MAP_DATA_TYPE_UINT8"),
            "b4x16_p64": "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B",
            "b6x16_p32": "CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B",
            **dict.fromkeys(("ue8m0", "ue4m3"), "CU_TENSOR_MAP_DATA_TYPE_UINT8"),
        },
    ),
    "interleave": ("CUtensorMapInterleave", {"none": "CU_TENSOR_MAP_INTERLEAVE_NONE"}),
    "swizzle": (
        "CUtensorMapSwizzle",
        {
            "none": "CU_TENSOR_MAP_SWIZZLE_NONE",
            "32B": "CU_TENSOR_MAP_SWIZZLE_32B",
            "64B": "CU_TENSOR_MAP_SWIZZLE_64B",
            "128B": "CU_TENSOR_MAP_SWIZZLE_128B",
        },
    ),
    "l2_promotion": (
        "CUtensorMapL2promotion",
        {
            "none": "CU_TENSOR_MAP_L2_PROMOTION_NONE",
            "64B": "CU_TENSOR_MAP_L2_PROMOTION_L2_64B",
            "128B": "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
            "256B": "CU_TENSOR_MAP_L2_PROMOTION_L2_256B",
        },
    ),
    "oob_fill": (
        "CUtensorMapFloatOOBfill",
        {
            "zero": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
            "nan": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA",
        },
    ),
}

POINTER = 2
"""The place of the tensor's address among the arguments, which alone differs from call to call."""


def encode_arguments(api: Any, declared: Mapping[str, Any], pointer: int) -> tuple[Any, ...]:
    """All arguments but the map itself, in the order of the driver API; sizes as declared.

    `api` has the driver's enumerations, `declared` is a tensor_map of a manifest
    (docs/manifest.md), `pointer` the tensor's address.
    """
    return (
        _enum(api, declared, "dtype"),
        len(declared["dims"]),
        pointer,
        _array(ctypes.c_uint64, declared["dims"]),
        _array(ctypes.c_uint64, declared["strides_bytes"]),
        _array(ctypes.c_uint32, declared["box"]),
        _array(ctypes.c_uint32, declared["element_strides"]),
        *(_enum(api, declared, name) for name in ("interleave", "swizzle", "l2_promotion")),
        _enum(api, declared, "oob_fill"),
    )


def _enum(api: Any, declared: Mapping[str, Any], name: str) -> int:
    enumeration, members = ENUMS[name]
    return int(getattr(getattr(api, enumeration), members[declared[name]]))


def _array(element: Any, values: Sequence[int]) -> Any:
    return (element * len(values))(*values)
