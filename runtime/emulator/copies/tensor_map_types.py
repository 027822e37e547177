"""Element types of tensor maps (CUtensorMapDataType) and how packed ones lie in shared memory.

Source: CUDA driver API, cuTensorMapEncodeTiled; PTX ISA §5.5.1 (tensor types).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import LaunchError


@dataclass(frozen=True)
class ElementType:
    """One data type: ``number`` is the driver's enumerator.

    ``unit`` elements are moved together; they take ``bytes`` in global and ``shared_bytes`` in
    shared memory, where the rest of ``shared_bytes`` is a gap.
    """

    name: str
    number: int
    bytes: int
    floating: bool = False
    unit: int = 1
    shared_bytes: int = 0

    @property
    def pitch(self) -> int:
        """Bytes from unit to unit in shared memory."""
        return self.shared_bytes or self.bytes

    @property
    def padded(self) -> bool:
        """Whether shared memory has gaps between units."""
        return self.pitch != self.bytes

    def span(self, elements: int) -> int:
        """Bytes of so many elements in global memory."""
        return -(-elements * self.bytes // self.unit)


_TYPES = (
    ElementType("uint8", 0, 1),
    ElementType("uint16", 1, 2),
    ElementType("uint32", 2, 4),
    ElementType("int32", 3, 4),
    ElementType("uint64", 4, 8),
    ElementType("int64", 5, 8),
    ElementType("float16", 6, 2, True),
    ElementType("float32", 7, 4, True),
    ElementType("float64", 8, 8, True),
    ElementType("bfloat16", 9, 2, True),
    ElementType("float32_ftz", 10, 4, True),
    ElementType("tfloat32", 11, 4, True),
    ElementType("tfloat32_ftz", 12, 4, True),
    ElementType("16u4_align8b", 13, 1, unit=2),
    ElementType("16u4_align16b", 14, 8, unit=16, shared_bytes=16),
    ElementType("16u6_align16b", 15, 12, unit=16, shared_bytes=16),
)
_ALIASES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "s32": "int32", "u64": "uint64",
    "s64": "int64", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16",
    "tf32": "tfloat32", "e4m3": "uint8", "e5m2": "uint8", "s8": "uint8",
    "ue8m0": "uint8", "ue4m3": "uint8", "e2m1": "16u4_align8b",
    "b4x16_p64": "16u4_align16b", "b6x16_p32": "16u6_align16b",
}  # fmt: skip
_BY_PTX_NUMBER = (0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15)
"""Enumerators of the driver by those of tensormap.replace (PTX ISA §9.7.9.26)."""


def element_type(value: str | int) -> ElementType:
    """A type by its name, a PTX name, or the driver's number; LaunchError if there is none."""
    name = _ALIASES.get(str(value).lower(), str(value).lower())
    for kind in _TYPES:
        if kind.name == name or kind.number == value:
            return kind
    names = ", ".join(kind.name for kind in _TYPES)
    raise LaunchError(f"tensor map: tensorDataType must be one of {names}, got {value!r}")


def by_ptx_number(number: int) -> int | None:
    """The driver's enumerator of a tensormap.replace elemtype; None if there is none."""
    return _BY_PTX_NUMBER[number] if number < len(_BY_PTX_NUMBER) else None
