"""Matrix and instruction descriptors against worked values (PTX ISA, tcgen05 descriptors)."""

import pytest

from tilewright.dialects.dtypes import DTYPES
from tilewright.dialects.layout import TileLayout
from tilewright.passes.lowering.operands.descriptors import (
    encode_bytes,
    instruction_descriptor,
    shared_descriptor,
)


def word_of(layout, address):
    lbo, sbo = layout.descriptor_strides()
    return shared_descriptor(lbo, sbo, layout.swizzle, version=1, address=address)


@pytest.mark.parametrize(
    ("layout", "address", "word"),
    [
        (TileLayout(128, 64, 2, "k", "128B"), 0x2400, 0x4000404000010240),
        (TileLayout(128, 64, 2, "k", "128B"), 0x2420, 0x4000404000010242),
        (TileLayout(128, 32, 2, "k", "64B"), 0x400, 0x8000402000010040),
        (TileLayout(128, 16, 2, "k", "32B"), 0x400, 0xC000401000010040),
        (TileLayout(128, 64, 2, "mn", "128B"), 0x8000, 0x4000404002000800),
        (TileLayout(128, 64, 2, "k", "none"), 0x400, 0x0000400800800040),
    ],
)
def test_shared_descriptor_words(layout, address, word):
    assert word_of(layout, address) == word


@pytest.mark.parametrize(
    ("layout", "k", "advance_bytes"),
    [
        (TileLayout(128, 128, 2, "k", "128B"), 16, 32),
        (TileLayout(128, 128, 2, "k", "128B"), 64, 128 * 128),
        (TileLayout(128, 64, 2, "mn", "128B"), 16, 2048),
        (TileLayout(128, 64, 2, "k", "none"), 16, 2 * 128 * 16),
        (TileLayout(128, 64, 2, "mn", "none"), 16, 256),
    ],
)
def test_k_steps_advance_the_address(layout, k, advance_bytes):
    assert layout.offset(0, k) == advance_bytes
    assert encode_bytes(layout.offset(0, k)) == advance_bytes // 16


@pytest.mark.parametrize(
    ("m", "n", "types", "majors", "word"),
    [
        (64, 64, "bf16 bf16", "kk", 0x04100490),
        (128, 128, "bf16 bf16", "kk", 0x08200490),
        (128, 256, "bf16 bf16", "kk", 0x08400490),
        (128, 256, "bf16 bf16", "kn", 0x08410490),
        (128, 128, "f16 f16", "kk", 0x08200010),
        (128, 128, "tf32 tf32", "kk", 0x08200910),
        (128, 128, "e4m3 e5m2", "mk", 0x08208410),
        (128, 128, "s8 u8", "kk", 0x082000A0),
    ],
)
def test_instruction_descriptor_words(m, n, types, majors, word):
    a_major, b_major = ("k" if major == "k" else "mn" for major in majors)
    a, b = (DTYPES[name] for name in types.split())
    assert instruction_descriptor(m, n, (a, b), (a_major, b_major)) == word


def test_cluster_rank_bits_never_reach_the_address_field():
    layout = TileLayout(128, 64, 2, "k", "128B")
    assert word_of(layout, 0x1000400) == word_of(layout, 0x400)
