"""The words that an MMA is told its operands and shape with (no MLIR here).

PTX ISA, tcgen05: shared memory descriptor, instruction descriptor. The matrix descriptor of wgmma
is the former with zero for its version; the swizzle codes without an atom size are the same bits.
"""

from __future__ import annotations

from ...dialects.dtypes import DType
from ...dialects.layout import TileLayout

SWIZZLE_CODE = {"none": 0, "128B": 2, "64B": 4, "32B": 6}
ADDRESS_BITS = 0x3FFFF
ACCUMULATOR_CODE = {"f32": 1, "s32": 2}


def encode_bytes(value: int) -> int:
    """A byte address or offset as the 14-bit fields hold it: in units of 16 bytes."""
    return (value & ADDRESS_BITS) >> 4


def shared_descriptor(layout: TileLayout, version: int, address: int = 0) -> int:
    """The 64-bit matrix descriptor of a tile that starts at shared-memory byte `address`.

    The version is the target's `descriptor_version`.
    """
    leading, stride = layout.descriptor_strides()
    return (
        encode_bytes(address)
        | encode_bytes(leading) << 16
        | encode_bytes(stride) << 32
        | version << 46
        | SWIZZLE_CODE[layout.swizzle] << 61
    )


def instruction_descriptor(
    m: int, n: int, dtypes: tuple[DType, DType], majors: tuple[str, str]
) -> int:
    """The 32-bit instruction descriptor of an MMA of A and B, dense, without negation."""
    a, b = dtypes
    return (
        ACCUMULATOR_CODE[a.accumulator] << 4
        | a.operand_code << 7
        | b.operand_code << 10
        | (majors[0] == "mn") << 15
        | (majors[1] == "mn") << 16
        | (n >> 3) << 17
        | (m >> 4) << 24
    )
