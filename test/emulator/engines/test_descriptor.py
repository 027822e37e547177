"""Shared-memory and instruction descriptors of tcgen05.mma (PTX ISA, tcgen05 descriptors)."""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator.errors import Trap
from tilewright.runtime.emulator.machine import swizzle
from tilewright.runtime.emulator.tensor.descriptor import decode_instruction, decode_shared


@pytest.mark.parametrize(
    ("word", "start", "leading", "stride", "mode"),
    [
        (0x4000404000010240, 0x2400, 16, 1024, swizzle.B128),
        (0x4000404000010242, 0x2420, 16, 1024, swizzle.B128),
        (0x4000404000000000, 0x0, 0, 1024, swizzle.B128),
        (0x8000402000000040, 0x400, 0, 512, swizzle.B64),
        (0xC000401000000040, 0x400, 0, 256, swizzle.B32),
        (0x4000404002000800, 0x8000, 8192, 1024, swizzle.B128),
        (0x4000404002000880, 0x8800, 8192, 1024, swizzle.B128),
        (0x0000400800800040, 0x400, 2048, 128, swizzle.NONE),
        (0x0000400800000040, 0x400, 0, 128, swizzle.NONE),
    ],
)
def test_worked_shared_descriptors_decode(word, start, leading, stride, mode):
    got = decode_shared(word)
    assert (got.start, got.leading, got.stride, got.swizzle) == (start, leading, stride, mode)
    assert got.base_offset == 0


def test_base_offset_field_is_bits_49_to_51():
    assert decode_shared(0x4000404000010240 | 5 << 49).base_offset == 5


def test_base_offset_bits_above_the_pattern_mean_nothing():
    """It is written as address bits 7 to 9, also where the pattern repeats sooner or is none"""
    assert decode_shared(0x0000400800800040 | 5 << 49).base_offset == 0
    assert decode_shared(0xC000404000010240 | 5 << 49).base_offset == 1


GOOD = 0x4000404000010240


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (GOOD | 1 << 47, "bits 46-48 must be 0b001, got 0b011"),
        (GOOD | 1 << 14, "bits 14-15 must be zero, got 0x1"),
        (GOOD | 1 << 31, "bits 30-31 must be zero, got 0x2"),
        (GOOD | 1 << 53, "bits 53-60 must be zero, got 0x1"),
        (GOOD | 1 << 52, "absolute leading-dimension mode (bit 52) needs sm_103a"),
        (GOOD | 1 << 61, "swizzle code (bits 61-63) must be 0, 1, 2, 4 or 6, got 3"),
    ],
)
def test_a_bad_shared_descriptor_is_refused(word, message):
    with pytest.raises(Trap) as caught:
        decode_shared(word)
    assert caught.value.message == f"shared-memory descriptor 0x{word:016x}: {message}"
    assert caught.value.category == "descriptor"


@pytest.mark.parametrize(
    ("word", "kind", "group", "a", "b", "d", "m", "n", "transposed_b"),
    [
        (0x04100490, "f16", 1, "bf16", "bf16", "f32", 64, 64, False),
        (0x08200490, "f16", 1, "bf16", "bf16", "f32", 128, 128, False),
        (0x08400490, "f16", 1, "bf16", "bf16", "f32", 128, 256, False),
        (0x08410490, "f16", 1, "bf16", "bf16", "f32", 128, 256, True),
        (0x10400490, "f16", 2, "bf16", "bf16", "f32", 256, 256, False),
        (0x08200010, "f16", 1, "f16", "f16", "f32", 128, 128, False),
        (0x08200000, "f16", 1, "f16", "f16", "f16", 128, 128, False),
        (0x08200910, "tf32", 1, "tf32", "tf32", "f32", 128, 128, False),
    ],
)
def test_worked_instruction_descriptors_decode(word, kind, group, a, b, d, m, n, transposed_b):
    got = decode_instruction(word, kind, group)
    assert (got.a.name, got.b.name, got.accumulator, got.m, got.n) == (a, b, d, m, n)
    assert (got.a_transposed, got.b_transposed) == (False, transposed_b)
    assert not got.negate_a and not got.negate_b
    assert got.k == (8 if kind == "tf32" else 16)


def test_negate_and_transpose_bits_are_13_to_16():
    got = decode_instruction(0x08200490 | 1 << 13 | 1 << 15, "f16", 1)
    assert (got.negate_a, got.negate_b, got.a_transposed, got.b_transposed) == (True, False) * 2
    got = decode_instruction(0x08200490 | 1 << 14 | 1 << 16, "f16", 1)
    assert (got.negate_a, got.negate_b, got.a_transposed, got.b_transposed) == (False, True) * 2


BASE = 0x08200490


@pytest.mark.parametrize(
    ("word", "kind", "group", "message"),
    [
        (BASE | 1, "f16", 1, "sparsity selector of a dense operation must be 0, got 1"),
        (BASE | 4, "f16", 1, "sparsity (bit 2) must be 0 for a dense operation, got 1"),
        (BASE | 8, "f16", 1, "saturate (integer only) at bit 3 must be 0, got 1"),
        (BASE | 1 << 6, "f16", 1, "reserved at bit 6 must be 0, got 1"),
        (BASE | 1 << 23, "f16", 1, "reserved at bit 23 must be 0, got 1"),
        (BASE | 1 << 29, "f16", 1, "reserved at bit 29 must be 0, got 1"),
        (BASE | 1 << 31, "f16", 1, "B-reuse shift (.ws only) at bit 30 must be 0, got 2"),
        (BASE | 2 << 7, "f16", 1, "type of A (bit 7) must be 0 (f16), 1 (bf16), got 3"),
        (BASE, "tf32", 1, "type of A (bit 7) must be 2 (tf32), got 1"),
        (BASE ^ 0x30, "f16", 1, "type of D (bit 4) must be 0 (f16), 1 (f32), got 2"),
        (BASE & ~0x30, "f16", 1, "D of type f16 needs A and B of type f16, got ['bf16']"),
        (BASE ^ (8 ^ 5) << 24, "f16", 1, "M must be 64 or 128, got 80"),
        (0x10400490, "f16", 1, "M must be 64 or 128, got 256"),
        (0x04100490, "f16", 2, "M must be 128 or 256, got 64"),
        (BASE & ~(63 << 17), "f16", 1, "N must be a multiple of 8 in 8..256, got 0"),
        (BASE | 63 << 17, "f16", 1, "N must be a multiple of 8 in 8..256, got 504"),
        (BASE ^ 1 << 17, "f16", 2, "N must be a multiple of 16 in 16..256, got 136"),
    ],
)
def test_a_bad_instruction_descriptor_is_refused(word, kind, group, message):
    where = f"instruction descriptor 0x{word:08x} (kind::{kind}, cta_group::{group}): "
    with pytest.raises(Trap) as caught:
        decode_instruction(word, kind, group)
    assert caught.value.message == where + message
    assert caught.value.category == "descriptor"


def test_a_sparse_operation_covers_twice_as_much_of_k_as_a_row_of_a_holds():
    sparse = decode_instruction(BASE | 5, "f16", 1, sparse=True)
    assert (sparse.k, sparse.stored_k, sparse.selector) == (32, 16, 1)
