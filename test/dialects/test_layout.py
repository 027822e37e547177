"""The eight operand layouts against the canonical layouts and swizzles of the PTX ISA."""

import itertools

import pytest

from tilewright.dialects.layout import (
    SPAN_BYTES,
    TileLayout,
    bank_conflicts,
    core_matrix_conflicts,
    row_conflicts,
    swizzle_address,
    widest_swizzle,
)

TILES = [(8, 64), (64, 16), (128, 64), (48, 128), (256, 32)]


def canonical_offset(layout, mn, k):
    """PTX ISA, tcgen05 canonical layouts, one formula a row of the table."""
    leading, stride = layout.descriptor_strides()
    es, w = layout.element_bytes, SPAN_BYTES[layout.swizzle]
    kb, nb = k * es, mn * es
    if layout.major == "k" and layout.swizzle == "none":
        return (mn % 8) * 16 + (mn // 8) * stride + kb % 16 + (kb // 16) * leading
    if layout.major == "k":
        chunk, kb = divmod(kb, w)
        return chunk * layout.mn * w + (mn % 8) * w + (mn // 8) * stride + kb
    if layout.swizzle == "none":
        return nb % 16 + (nb // 16) * stride + (k % 8) * 16 + (k // 8) * leading
    return nb % w + (nb // w) * leading + (k % 8) * w + (k // 8) * stride


def fitting_layouts():
    for (mn, k), major, swizzle in itertools.product(TILES, ("k", "mn"), SPAN_BYTES):
        layout = TileLayout(mn, k, 2, major, swizzle)
        if layout.fits() is None:
            yield layout


@pytest.mark.parametrize("layout", list(fitting_layouts()), ids=str)
def test_offsets_are_the_canonical_layout(layout):
    for mn, k in itertools.product(range(layout.mn), range(layout.k)):
        assert layout.offset(mn, k) == canonical_offset(layout, mn, k)


@pytest.mark.parametrize("layout", list(fitting_layouts()), ids=str)
def test_every_byte_of_a_tile_holds_one_element(layout):
    addresses = {
        layout.byte_address(mn, k, base=4096)
        for mn, k in itertools.product(range(layout.mn), range(layout.k))
    }
    assert addresses == set(range(4096, 4096 + layout.size_bytes, layout.element_bytes))


@pytest.mark.parametrize(
    ("swizzle", "row", "k", "address"),
    [
        ("128B", 3, 10, 420),
        ("128B", 9, 10, 1156),
        ("64B", 3, 10, 196),
        ("64B", 9, 10, 596),
        ("32B", 3, 10, 116),
        ("32B", 5, 10, 164),
    ],
)
def test_worked_swizzle_examples(swizzle, row, k, address):
    span = SPAN_BYTES[swizzle] // 2
    assert TileLayout(64, span, 2, "k", swizzle).byte_address(row, k) == address


def test_worked_mn_major_example():
    layout = TileLayout(128, 64, 2, "mn", "128B")
    assert layout.offset(70, 9) == 9356
    assert layout.byte_address(70, 9) == 9372


@pytest.mark.parametrize(("swizzle", "period"), [("32B", 256), ("64B", 512), ("128B", 1024)])
def test_swizzle_repeats_after_its_period_and_undoes_itself(swizzle, period):
    for address in range(0, 4 * period, 2):
        moved = swizzle_address(swizzle, address)
        assert swizzle_address(swizzle, moved) == address
        assert swizzle_address(swizzle, address + period) == moved + period


@pytest.mark.parametrize(
    ("mn", "k", "major", "expected"),
    [
        (128, 64, "k", "128B"),
        (128, 32, "k", "64B"),
        (128, 16, "k", "32B"),
        (128, 96, "k", "64B"),
        (48, 64, "mn", "32B"),
        (8, 64, "mn", "none"),
        (192, 64, "mn", "128B"),
    ],
)
def test_widest_swizzle_divides_the_contiguous_extent(mn, k, major, expected):
    assert widest_swizzle(TileLayout(mn, k, 2, major)) == expected


def test_bank_conflicts_count_the_fullest_bank_group():
    assert bank_conflicts([0, 16, 32, 48]) == 1
    assert bank_conflicts([0, 128, 256, 16]) == 3


def test_unswizzled_rows_conflict_and_swizzled_rows_do_not():
    plain, wide = (TileLayout(128, 64, 2, "k", swizzle) for swizzle in ("none", "128B"))
    assert (row_conflicts(plain), core_matrix_conflicts(plain)) == (8, 1)
    assert (row_conflicts(wide), core_matrix_conflicts(wide)) == (1, 1)


def test_a_layout_that_does_not_fit_says_why():
    assert TileLayout(128, 48, 2, "k", "128B").fits() == (
        "contiguous extent must be a multiple of 128 bytes for swizzle 128B, got 96 bytes along K"
    )
    assert TileLayout(12, 64, 2, "k").fits() == "rows must be a multiple of 8, got 12"
