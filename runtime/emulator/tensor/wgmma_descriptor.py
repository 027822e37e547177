"""The 64-bit shared-memory matrix descriptor of wgmma (PTX ISA §9.7.15.5.1, "Matrix Descriptor").

It lacks the constant bits of the tcgen05 one and has its swizzle in bits 62-63.
"""

from __future__ import annotations

from functools import lru_cache

from ..errors import Trap
from ..machine import swizzle
from .descriptor import SharedDescriptor

SWIZZLES = (swizzle.NONE, swizzle.B128, swizzle.B64, swizzle.B32)
"""By the value of bits 62-63."""

_ZERO_FIELDS = ((14, 2), (30, 2), (46, 3), (52, 10))


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & (1 << bits) - 1


@lru_cache(maxsize=4096)
def decode_shared(word: int) -> SharedDescriptor:
    """Decode and validate a descriptor; a bad field is a ``Trap`` of category ``descriptor``."""
    where = f"shared-memory descriptor 0x{word:016x} of wgmma"
    for low, bits in _ZERO_FIELDS:
        value = _field(word, low, bits)
        if value:
            raise Trap("descriptor", f"{where}: bits {low}-{low + bits - 1} must be zero, got "
                                     f"0x{value:x}")  # fmt: skip
    mode = SWIZZLES[_field(word, 62, 2)]
    base_offset = _field(word, 49, 3) % mode.rows
    leading, stride = _field(word, 16, 14) << 4, _field(word, 32, 14) << 4
    return SharedDescriptor(_field(word, 0, 14) << 4, leading, stride, base_offset, mode)
