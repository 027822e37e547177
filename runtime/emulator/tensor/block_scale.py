"""Block-scaled kinds of tcgen05.mma: their instruction descriptor and where scale factors lie.

The scale factor of row m (of A; column n of B) and block b lies in tensor memory at lane m % 32
of each 32-lane quarter, column m / 32 from the address, byte `id + b` of the word. It multiplies
K / blocks consecutive elements of the row. Where two halves of the lanes compute two halves of D's
columns (a pair with M=128), the quarters 0 and 1 hold the factors of the first half of B's columns,
2 and 3 those of the second half.
Source: PTX ISA §9.7.16.4.2 (instruction descriptor), §9.7.16.10.7 (block scaling).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import Trap
from .descriptor import FLOAT8_6_4, InstructionDescriptor, OperandType, check_small_major
from .element_formats import decode
from .tensor_memory import LANES, QUARTER, TensorMemory, by_row


@dataclass(frozen=True)
class ScaledKind:
    """What a kind allows: operand codes, K, scale vectors (first is the default) and, by vector
    size, the scale types of descriptor bit 23."""

    operands: dict[int, OperandType]
    k: int
    vectors: dict[str, dict[int, str]]
    has_default: bool


_PACKED = {1: OperandType("e2m1x2", 4)}
KINDS: dict[str, ScaledKind] = {
    "mxf8f6f4": ScaledKind(FLOAT8_6_4, 32, {"1X": {1: "ue8m0"}}, True),
    "mxf4": ScaledKind(_PACKED, 64, {"2X": {1: "ue8m0"}}, True),
    "mxf4nvf4": ScaledKind(
        _PACKED, 64, {"2X": {1: "ue8m0"}, "4X": {0: "ue4m3", 1: "ue8m0"}}, False
    ),
}
ALIASES = {"mxf8f6f4": {"block32": "1X"}, "mxf4": {"block32": "2X"},
           "mxf4nvf4": {"block16": "4X", "block32": "2X"}}  # fmt: skip
"""Vector sizes by the names of newer PTX versions."""
_IDS = {"1X": (0, 1, 2, 3), "2X": (0, 2), "4X": (0,)}


@dataclass(frozen=True)
class Scaling:
    """How one operation scales: blocks a row, type of the factors, byte of the first ones."""

    blocks: int
    type: str
    a_id: int
    b_id: int


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & (1 << bits) - 1


@lru_cache(maxsize=256)
def decode_scaled(
    word: int, kind_name: str, vector: str, cta_group: int, sparse: bool = False
) -> tuple[InstructionDescriptor, Scaling]:
    """Decode and validate the 32-bit instruction descriptor of a block-scaled kind.

    ``sparse``: of tcgen05.mma.sp, which covers twice as many elements along K. Bit 12 of the 4-bit
    kinds is a version of sparse matrices, which NVIDIA's own builder sets and which is not read
    (CuTe DSL, `experimental/primitives/descriptors.py`).
    """
    kind = KINDS[kind_name]
    where = f"instruction descriptor 0x{word:08x} (kind::{kind_name}, cta_group::{cta_group})"
    _check_constants(word, kind_name, sparse, where)
    small = kind_name == "mxf8f6f4"
    descriptor = InstructionDescriptor(
        kind=kind_name,
        a=_operand(kind, word, 7, 3, "A", where),
        b=_operand(kind, word, 10, 3 if small else 2, "B", where),
        accumulator="f32",
        negate_a=bool(_field(word, 13, 1)),
        negate_b=bool(_field(word, 14, 1)),
        a_transposed=bool(_field(word, 15, 1)),
        b_transposed=bool(_field(word, 16, 1)),
        m=_field(word, 27, 2) << 7,
        n=_field(word, 17, 6) << 3,
        k=2 * kind.k if sparse else kind.k,
        sparse=sparse,
    )
    check_small_major(descriptor, where)
    _check_shape(descriptor, cta_group, where)
    return descriptor, _scaling(word, kind, vector, where)


def _check_constants(word: int, kind_name: str, sparse: bool, where: str) -> None:
    if _field(word, 2, 1) != sparse:
        form = "a sparse" if sparse else "a dense"
        raise Trap("descriptor", f"{where}: sparsity (bit 2) must be {int(sparse)} for {form} "
                                 f"operation, got {_field(word, 2, 1)}")  # fmt: skip
    if kind_name != "mxf8f6f4" and _field(word, 31, 1):
        raise Trap("descriptor", f"{where}: K = 96 (bit 31) needs sm_103a")
    if kind_name != "mxf8f6f4" and _field(word, 3, 1):
        raise Trap("descriptor", f"{where}: the upper bit of the K size (bit 3) must be 0 on this"
                                 " chip, whose K is 64")  # fmt: skip
    reserved = [(0, 2), (3, 1), (6, 1), (24, 3), (31, 1)]
    if kind_name != "mxf8f6f4":
        reserved += [(15, 2)]
    for low, bits in reserved:
        if _field(word, low, bits):
            raise Trap("descriptor", f"{where}: the field at bit {low} must be 0, got "
                                     f"{_field(word, low, bits)}")  # fmt: skip


def _operand(
    kind: ScaledKind, word: int, low: int, bits: int, name: str, where: str
) -> OperandType:
    code = _field(word, low, bits)
    if code in kind.operands:
        return kind.operands[code]
    legal = ", ".join(f"{code} ({type_.name})" for code, type_ in kind.operands.items())
    raise Trap("descriptor", f"{where}: type of {name} (bit {low}) must be {legal}, got {code}")


def _check_shape(descriptor: InstructionDescriptor, cta_group: int, where: str) -> None:
    rows, step = ((128,), 8) if cta_group == 1 else ((128, 256), 16)
    if descriptor.sparse and cta_group == 2:
        rows = (256,)
    if descriptor.m not in rows:
        legal = " or ".join(map(str, rows))
        raise Trap("descriptor", f"{where}: M must be {legal}, got {descriptor.m}")
    if descriptor.b.bits == 8 and descriptor.b_transposed:
        step = 16 * cta_group
    if descriptor.n % step or not step <= descriptor.n <= 256:
        raise Trap("descriptor", f"{where}: N must be a multiple of {step} in {step}..256, got "
                                 f"{descriptor.n}")  # fmt: skip


def _scaling(word: int, kind: ScaledKind, vector: str, where: str) -> Scaling:
    types = kind.vectors[vector]
    code = _field(word, 23, 1)
    if code not in types:
        legal = ", ".join(f"{code} ({name})" for code, name in types.items())
        raise Trap("descriptor", f"{where}: scale type (bit 23) must be {legal}, got {code}")
    ids = _field(word, 29, 2), _field(word, 4, 2)
    legal_ids = _IDS[vector]
    for value, name in zip(ids, ("A", "B"), strict=True):
        if value not in legal_ids:
            raise Trap(
                "descriptor",
                f"{where}: scale factor id of {name} must be one of {legal_ids} for "
                f".scale_vec::{vector}, got {value}",
            )
    return Scaling(int(vector[0]), types[code], *ids)


def factor_columns(rows: int) -> int:
    """Columns that the scale factors of so many rows take."""
    return -(-rows // QUARTER)


def scale_factors(
    memory: TensorMemory,
    column: int,
    rows: int,
    scaling: Scaling,
    first: int,
    what: str,
    groups: int = 1,
) -> np.ndarray:
    """float32[rows, blocks] read from tensor memory; ``first`` is the byte of block 0.

    ``groups`` of quarters hold equal parts of the rows. The quarters of a group must hold the same
    bytes there: each part of the data path reads its own.
    """
    count = rows // groups
    columns = slice(column, column + factor_columns(count))
    memory.require_factors(columns, (count, first, scaling.blocks), what)
    words = memory.part(slice(0, LANES), columns)
    parts = by_row(words, count)[..., first : first + scaling.blocks]
    copies = parts.reshape(groups, -1, count, scaling.blocks)
    if (copies != copies[:, :1]).any():
        which = "all four" if groups == 1 else "the first two and in the last two"
        raise Trap("tmem", f"{what} at column {column} must be the same in {which} 32-lane "
                           f"quarters of tensor memory")  # fmt: skip
    return decode(np.ascontiguousarray(copies[:, 0]), scaling.type).reshape(rows, -1)
