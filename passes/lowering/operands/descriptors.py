"""Matrix and instruction descriptors of MMAs, as integers (no MLIR here).

PTX ISA, tcgen05: shared memory descriptor, instruction descriptor. The matrix descriptor of wgmma
is the former with zero for its version; the swizzle codes without an atom size are the same bits.
"""

from __future__ import annotations

from ....dialects.dtypes import DType, ScaledMma

SWIZZLE_CODE = {"none": 0, "128B": 2, "64B": 4, "32B": 6}
ADDRESS_BITS = 0x3FFFF
ACCUMULATOR_CODE = {"f32": 1, "s32": 2}


def encode_bytes(value: int) -> int:
    """A byte address or offset as the 14-bit fields hold it: in units of 16 bytes."""
    return (value & ADDRESS_BITS) >> 4


def shared_descriptor(
    lbo: int, sbo: int, swizzle: str, version: int, base_offset: int = 0, address: int = 0
) -> int:
    """The 64-bit matrix descriptor with those fields; offsets and address are in bytes."""
    return (
        encode_bytes(address)
        | encode_bytes(lbo) << 16
        | encode_bytes(sbo) << 32
        | version << 46
        | base_offset << 49
        | SWIZZLE_CODE[swizzle] << 61
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


def scaled_instruction_descriptor(
    m: int,
    n: int,
    mma: ScaledMma,
    dtypes: tuple[DType, DType],
    majors: tuple[str, str],
    ids: tuple[int, int],
) -> int:
    """The instruction descriptor of an MMA with block scales; `ids` are the first bytes of the
    scales of A and B in their words."""
    a, b = (mma.operand_code(dtype) for dtype in dtypes)
    return (
        ids[1] << 4
        | a << 7
        | b << 10
        | (majors[0] == "mn") << 15
        | (majors[1] == "mn") << 16
        | (n >> 3) << 17
        | mma.scale_code << 23
        | (m >> 7) << 27
        | ids[0] << 29
    )
