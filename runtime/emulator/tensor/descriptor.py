"""The two descriptors of tcgen05.mma: shared-memory matrix (64 bit) and instruction (32 bit).

Decoding validates every field; ``Trap`` (category ``descriptor``) says which one is wrong.
Source: PTX ISA, tcgen05 sections "Shared memory descriptor" and "Instruction descriptor".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..errors import Trap
from ..machine import swizzle
from ..machine.events import Listener
from ..machine.swizzle import Swizzle

SWIZZLE_CODES: dict[int, Swizzle] = {
    0: swizzle.NONE,
    1: swizzle.B128_ATOM_32B,
    2: swizzle.B128,
    4: swizzle.B64,
    6: swizzle.B32,
}
"""Descriptor bits 61-63; the codes 3, 5 and 7 are invalid."""


def _refuse(message: str) -> Trap:
    return Trap("descriptor", message)


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & (1 << bits) - 1


@dataclass(frozen=True)
class SharedDescriptor:
    """Where an operand lies: byte address, leading and stride byte offsets, swizzle.

    ``start`` is the offset in the CTA's shared window, without cluster-rank bits.
    """

    start: int
    leading: int
    stride: int
    base_offset: int
    swizzle: Swizzle


_VERSION = "bits 46-48 must be 0b001, got 0b"


def shared_operand(word: int, events: Listener) -> SharedDescriptor:
    """The same as `decode_shared`, as a thread gives it. JAX's Mosaic leaves bit 46 out, with which
    GPUs multiply as well."""
    descriptor = decode_shared(word)
    if not _field(word, 46, 3):
        text = f"shared-memory descriptor 0x{word:016x}: {_VERSION}000"
        events.departed("descriptor", "descriptor-version", text)
    return descriptor


@lru_cache(maxsize=4096)
def decode_shared(word: int) -> SharedDescriptor:
    """Decode and validate a 64-bit shared-memory matrix descriptor.

    Libraries write the base offset as address bits 7 to 9 in every mode (PTX ISA, "Matrix base
    offset"); those above the mode's pattern mean nothing.
    """
    where = f"shared-memory descriptor 0x{word:016x}"
    _check_shared_constants(word, where)
    code = _field(word, 61, 3)
    if code not in SWIZZLE_CODES:
        raise _refuse(f"{where}: swizzle code (bits 61-63) must be 0, 1, 2, 4 or 6, got {code}")
    mode = SWIZZLE_CODES[code]
    base_offset = _field(word, 49, 3) % mode.rows
    leading, stride = _field(word, 16, 14) << 4, _field(word, 32, 14) << 4
    return SharedDescriptor(_field(word, 0, 14) << 4, leading, stride, base_offset, mode)


def _check_shared_constants(word: int, where: str) -> None:
    if _field(word, 46, 3) > 1:
        raise _refuse(f"{where}: {_VERSION}{_field(word, 46, 3):03b}")
    for low, bits in ((14, 2), (30, 2), (53, 8)):
        if _field(word, low, bits):
            span = f"{low}-{low + bits - 1}"
            raise _refuse(f"{where}: bits {span} must be zero, got 0x{_field(word, low, bits):x}")
    if _field(word, 52, 1):
        raise _refuse(f"{where}: absolute leading-dimension mode (bit 52) needs sm_103a")


@dataclass(frozen=True)
class OperandType:
    """Element type of A or B: name and bits in memory."""

    name: str
    bits: int


@dataclass(frozen=True)
class Kind:
    """What a ``.kind`` of tcgen05.mma allows: operand and accumulator codes, K per instruction."""

    name: str
    operands: dict[int, OperandType]
    accumulators: dict[int, str]
    k: int


FLOAT8_6_4 = {
    0: OperandType("e4m3", 8),
    1: OperandType("e5m2", 8),
    3: OperandType("e2m3", 8),
    4: OperandType("e3m2", 8),
    5: OperandType("e2m1", 8),
}
"""Operand codes of kinds f8f6f4 and mxf8f6f4; in shared memory, 16 elements take 16 bytes."""

KINDS: dict[str, Kind] = {
    "f16": Kind(
        "f16",
        {0: OperandType("f16", 16), 1: OperandType("bf16", 16)},
        {0: "f16", 1: "f32"},
        16,
    ),
    "tf32": Kind("tf32", {2: OperandType("tf32", 32)}, {1: "f32"}, 8),
    "f8f6f4": Kind("f8f6f4", FLOAT8_6_4, {0: "f16", 1: "f32"}, 32),
    "i8": Kind("i8", {0: OperandType("u8", 8), 1: OperandType("s8", 8)}, {2: "s32"}, 32),
}
"""The modelled kinds (dense, no block scaling); K is the elements one instruction consumes."""


ONE_BYTE_KINDS = ("f8f6f4", "i8")
"""The kinds whose elements take a byte each."""
SATURATING = " saturating"
"""Suffix of the accumulator type of an integer operation that clamps its sums."""
_SHIFTS = (0, 8, 16, 32)
"""The largest shift of B's columns, by bits 30 and 31 of a `.ws` operation."""
_STATIONARY_ROWS, _STATIONARY_COLUMNS = (32, 64, 128), (64, 128, 256)
_SMALL = ("e2m3", "e3m2", "e2m1")


@dataclass(frozen=True)
class InstructionDescriptor:
    """Shape, types and flags of one tcgen05.mma.

    ``m`` and ``n`` are those of the whole operation (both CTAs of a pair for cta_group::2);
    ``a_transposed``/``b_transposed`` mean M-major/N-major operands in shared memory. Of a
    sparse operation, ``selector`` says which columns of its metadata count; of one with ``.ws``,
    ``most_shift`` by how many columns B may be shifted.
    """

    kind: str
    a: OperandType
    b: OperandType
    accumulator: str
    negate_a: bool
    negate_b: bool
    a_transposed: bool
    b_transposed: bool
    m: int
    n: int
    k: int
    stationary: bool = False
    sparse: bool = False
    selector: int = 0
    most_shift: int = 0

    @property
    def stored_k(self) -> int:
        """Elements along K that a row of A holds in memory."""
        return self.k // 2 if self.sparse else self.k


@lru_cache(maxsize=256)
def decode_instruction(
    word: int, kind_name: str, cta_group: int, stationary: bool = False, sparse: bool = False
) -> InstructionDescriptor:
    """Decode and validate a 32-bit instruction descriptor of a kind in `KINDS`.

    ``stationary``: of tcgen05.mma.ws, which has shapes of its own; ``sparse``: of tcgen05.mma.sp,
    which covers twice as many elements along K.
    """
    kind = KINDS[kind_name]
    which = ".ws" if stationary else f"cta_group::{cta_group}"
    where = f"instruction descriptor 0x{word:08x} (kind::{kind_name}, {which})"
    _check_instruction_constants(word, kind_name, stationary, where)
    _check_sparsity(word, kind_name, sparse, where)
    descriptor = InstructionDescriptor(
        kind=kind_name,
        a=_operand(kind, word, 7, "A", where),
        b=_operand(kind, word, 10, "B", where),
        accumulator=_accumulator(kind, word, where),
        negate_a=bool(_field(word, 13, 1)),
        negate_b=bool(_field(word, 14, 1)),
        a_transposed=bool(_field(word, 15, 1)),
        b_transposed=bool(_field(word, 16, 1)),
        m=_field(word, 24, 5) << 4,
        n=_field(word, 17, 6) << 3,
        k=2 * kind.k if sparse else kind.k,
        stationary=stationary,
        sparse=sparse,
        selector=_field(word, 0, 2),
        most_shift=_SHIFTS[_field(word, 30, 2)],
    )
    _check_types(descriptor, where)
    _check_shape(descriptor, cta_group, where)
    return descriptor


def _check_instruction_constants(word: int, kind_name: str, stationary: bool, where: str) -> None:
    fields = ((6, 1, "reserved"), (23, 1, "reserved"), (29, 1, "reserved"))
    if not stationary:
        fields += ((30, 2, "B-reuse shift (.ws only)"),)
    integer = ((13, 2, "negation of an integer operand"),)
    floating = ((3, 1, "saturate (integer only)"),)
    for low, bits, name in fields + (integer if kind_name == "i8" else floating):
        if _field(word, low, bits):
            raise _refuse(f"{where}: {name} at bit {low} must be 0, got {_field(word, low, bits)}")


def _check_sparsity(word: int, kind_name: str, sparse: bool, where: str) -> None:
    """Bit 2 and the selector, which the kinds of one-byte elements do not have."""
    flag, selector = _field(word, 2, 1), _field(word, 0, 2)
    if flag != sparse:
        form = "a sparse" if sparse else "a dense"
        raise _refuse(f"{where}: sparsity (bit 2) must be {int(sparse)} for {form} operation, "
                      f"got {flag}")  # fmt: skip
    if selector and (not sparse or kind_name in ONE_BYTE_KINDS):
        form = f"kind::{kind_name}" if sparse else "a dense operation"
        raise _refuse(f"{where}: sparsity selector of {form} must be 0, got {selector}")
    if selector > 1:
        raise Trap("unmodelled", f"{where}: sparsity selector {selector} (PTX ISA section "
                                 f"9.7.16.10.8.4)")  # fmt: skip


def _operand(kind: Kind, word: int, low: int, name: str, where: str) -> OperandType:
    code = _field(word, low, 3)
    if code in kind.operands:
        return kind.operands[code]
    legal = ", ".join(f"{code} ({op.name})" for code, op in kind.operands.items())
    raise _refuse(f"{where}: type of {name} (bit {low}) must be {legal}, got {code}")


def _accumulator(kind: Kind, word: int, where: str) -> str:
    code = _field(word, 4, 2)
    if code in kind.accumulators:
        return kind.accumulators[code] + (SATURATING if _field(word, 3, 1) else "")
    legal = ", ".join(f"{code} ({name})" for code, name in kind.accumulators.items())
    raise _refuse(f"{where}: type of D (bit 4) must be {legal}, got {code}")


def _check_types(descriptor: InstructionDescriptor, where: str) -> None:
    names = {descriptor.a.name, descriptor.b.name}
    check_small_major(descriptor, where)
    if descriptor.kind == "f16" and descriptor.accumulator == "f16" and names != {"f16"}:
        raise _refuse(f"{where}: D of type f16 needs A and B of type f16, got {sorted(names)}")


def _check_shape(descriptor: InstructionDescriptor, cta_group: int, where: str) -> None:
    if descriptor.stationary:
        _check_stationary_shape(descriptor, where)
        return
    rows = (64, 128) if cta_group == 1 else (128, 256)
    step = 8 if cta_group == 1 else 16
    if descriptor.sparse and descriptor.m == rows[0] != 128 * cta_group:
        raise Trap("unmodelled", f"{where}: a sparse operand A with M={descriptor.m} (PTX ISA "
                                 f"section 9.7.16.10.8.4)")  # fmt: skip
    if descriptor.m not in rows:
        raise _refuse(f"{where}: M must be {rows[0]} or {rows[1]}, got {descriptor.m}")
    if descriptor.kind == "i8":
        step = _integer_step(descriptor.n, cta_group)
    if descriptor.b.bits == 8 and descriptor.b_transposed:
        step = max(step, 16 * cta_group)
    if descriptor.n % step or not step <= descriptor.n <= 256:
        raise _refuse(f"{where}: N must be a multiple of {step} in {step}..256, got {descriptor.n}")


def _check_stationary_shape(descriptor: InstructionDescriptor, where: str) -> None:
    """Shapes of tcgen05.mma.ws, PTX ISA §9.7.16.2.1."""
    if descriptor.m not in _STATIONARY_ROWS:
        raise _refuse(f"{where}: M must be 32, 64 or 128, got {descriptor.m}")
    columns = _STATIONARY_COLUMNS[:2] if descriptor.sparse else _STATIONARY_COLUMNS
    if descriptor.n not in columns:
        legal = f"{', '.join(map(str, columns[:-1]))} or {columns[-1]}"
        raise _refuse(f"{where}: N must be {legal}, got {descriptor.n}")
    if descriptor.sparse and descriptor.m != _STATIONARY_ROWS[-1]:
        raise Trap("unmodelled", f"{where}: a sparse operand A with M={descriptor.m} (PTX ISA "
                                 f"section 9.7.16.10.8.4)")  # fmt: skip


def _integer_step(n: int, cta_group: int) -> int:
    if cta_group == 2:
        return 32
    return 8 if n <= 32 else 16


def check_small_major(descriptor: InstructionDescriptor, where: str) -> None:
    """Trap if an operand of fewer than eight bits is transposed."""
    operands = (("A", descriptor.a, descriptor.a_transposed),
                ("B", descriptor.b, descriptor.b_transposed))  # fmt: skip
    for name, type_, transposed in operands:
        if transposed and type_.name in _SMALL:
            raise _refuse(f"{where}: operand {name} of type {type_.name} must be K-major")


def check_major(mode: Swizzle, bits: int, transposed: bool, name: str) -> None:
    """Table of legal (element size, major, swizzle): raise ``Trap`` for the others.

    K-major takes every swizzle. MN-major 16-bit takes all but the 128B swizzle with 32B atoms;
    MN-major 32-bit takes only that one (PTX ISA, "Shared memory layout and swizzling").
    """
    if not transposed:
        return
    atom_32b = mode is swizzle.B128_ATOM_32B
    if bits == 32 and not atom_32b:
        raise _refuse(
            f"operand {name}: a transposed 32-bit matrix must use swizzle 128B_ATOM_32B, "
            f"got {mode.name}"
        )
    if bits < 32 and atom_32b:
        raise _refuse(
            f"operand {name}: a transposed {bits}-bit matrix cannot use swizzle 128B_ATOM_32B"
        )
