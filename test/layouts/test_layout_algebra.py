"""The layout algebra against what it is said to compute, index by index."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.dialects.strided import (
    Layout,
    LayoutError,
    Swizzle,
    Swizzled,
    coalesce,
    complement,
    compose,
    divide,
    left_inverse,
    right_inverse,
)

EXTENTS = st.sampled_from([1, 2, 3, 4, 6, 8])
MOST = 256
"""Elements of a drawn layout: those beyond are asked one by one, too, and show nothing else."""
QUICK = settings(max_examples=100, deadline=None, derandomize=True)


def extents(most):
    """Those of up to `most` modes."""
    drawn = st.lists(EXTENTS, min_size=1, max_size=most)
    return drawn.filter(lambda shape: math.prod(shape) <= MOST)


@st.composite
def layouts(draw, most=4):
    """Layouts of up to `most` modes with any strides, now and then nested."""
    shape = tuple(draw(extents(most)))
    stride = tuple(draw(st.integers(0, 24)) for _ in shape)
    if len(shape) > 2 and draw(st.booleans()):
        return Layout((shape[0], shape[1:]), (stride[0], stride[1:]))
    return Layout(shape, stride)


@st.composite
def compact_layouts(draw):
    """Layouts that take every offset once: modes of a compact one in any order."""
    shape = draw(extents(4))
    order = draw(st.permutations(range(len(shape))))
    strides, reached = {}, 1
    for mode in order:
        strides[mode] = reached
        reached *= shape[mode]
    return Layout(tuple(shape), tuple(strides[mode] for mode in range(len(shape))))


def test_the_first_mode_runs_fastest():
    assert [Layout((2, 3), (10, 100))(index) for index in range(6)] == [0, 10, 100, 110, 200, 210]
    assert Layout((2, 3)).offsets() == list(range(6))


@QUICK
@given(layouts())
def test_an_index_and_its_coordinate_have_the_same_offset(layout):
    for index, offset in enumerate(layout.offsets()):
        assert layout(index) == layout(layout.coordinate(index)) == offset
    assert max(layout.offsets()) + 1 == layout.cosize


@QUICK
@given(layouts())
def test_coalescing_keeps_the_function_and_leaves_nothing_to_join(layout):
    joined = coalesce(layout)
    assert joined.offsets() == layout.offsets()
    modes = [*joined.leaves()]
    pairs = itertools.pairwise(modes)
    assert all(extent * stride != step for (extent, stride), (_, step) in pairs)
    assert len(modes) == 1 or all(extent > 1 for extent, _ in modes)


@QUICK
@given(layouts(), layouts(2))
def test_a_composition_is_one_layout_after_the_other(outer, inner):
    if inner.cosize > outer.size:
        return
    try:
        both = compose(outer, inner)
    except LayoutError:
        return
    assert both.offsets() == [outer(index) for index in inner.offsets()]


def test_a_composition_that_is_no_layout_is_refused():
    with pytest.raises(LayoutError, match="compose: 2:2 must divide the modes"):
        compose(Layout((3, 4), (1, 5)), Layout(2, 2))
    # Indices 0 to 5 of (4, 3):(1, 5) go to 0 1 2 3 5 6: no extents and strides say that.
    with pytest.raises(LayoutError, match="compose: 6:1 must divide the modes"):
        compose(Layout((4, 3), (1, 5)), Layout(6, 1))


@QUICK
@given(compact_layouts(), st.data())
def test_a_layout_and_its_complement_take_every_offset_once(layout, data):
    kept = data.draw(st.integers(1, len([*layout.leaves()])))
    part = Layout(tuple(layout.shape[:kept]), tuple(layout.stride[:kept]))
    rest = complement(part, layout.size)
    taken = [first + more for first in rest.offsets() for more in part.offsets()]
    assert len(set(taken)) == len(taken)
    assert set(range(layout.size)) <= set(taken)


def test_no_complement_of_a_layout_that_meets_an_offset_twice():
    with pytest.raises(LayoutError, match="complement: strides must be multiples"):
        complement(Layout((4, 4), (1, 2)), 16)


@QUICK
@given(compact_layouts())
def test_inverses_undo_a_layout_from_both_sides(layout):
    right, left = right_inverse(layout), left_inverse(layout)
    assert right.size == layout.size
    assert [layout(right(index)) for index in range(layout.size)] == [*range(layout.size)]
    assert [left(layout(index)) for index in range(layout.size)] == [*range(layout.size)]


@QUICK
@given(layouts())
def test_a_right_inverse_goes_as_far_as_offsets_follow_one_another(layout):
    right = right_inverse(layout)
    assert [layout(right(index)) for index in range(right.size)] == [*range(right.size)]


def test_a_left_inverse_of_a_layout_with_gaps():
    layout = Layout((4, 2), (2, 16))
    left = left_inverse(layout)
    assert [left(layout(index)) for index in range(8)] == [*range(8)]


def test_a_tile_and_the_tiles():
    tiles = divide(Layout((8, 8), (8, 1)), Layout((2, 4), (1, 8)))
    tile, rest = tiles.modes
    assert tile.offsets() == [row * 8 + column for column in range(4) for row in range(2)]
    assert len({first + more for first in rest.offsets() for more in tile.offsets()}) == 64


@pytest.mark.parametrize(("bits", "span"), [(1, 32), (2, 64), (3, 128)])
def test_a_swizzle_exchanges_units_of_16_bytes_by_the_line_of_128(bits, span):
    swizzle = Swizzle(bits, 4, 3)
    for address in range(0, 2048, 2):
        unit, line = address % 128 // 16, address // 128
        moved = unit ^ (line % (span // 16))
        assert swizzle(address) == line * 128 + moved * 16 + address % 16


def test_a_swizzled_layout_prints_both():
    swizzled = Swizzled(Swizzle(3, 4, 3), Layout((8, 64), (128, 2)))
    assert str(swizzled) == "Sw<3,4,3> o 0 o (8,64):(128,2)"
    assert swizzled(1, 0) == 128 + 16


@pytest.mark.parametrize(
    ("shape", "stride", "words"),
    [
        ((4, 8), (1,), "shape and stride must nest alike, got (4,8) and (1)"),
        (((4, 2), 8), (1, 2), "must nest alike"),
        ((4, 0), (1, 4), "extents must be 1 or more, got (4,0)"),
    ],
)
def test_what_is_no_layout_is_refused(shape, stride, words):
    with pytest.raises(LayoutError) as caught:
        Layout(shape, stride)
    assert words in str(caught.value)


def test_what_is_no_coordinate_is_refused():
    layout = Layout((4, (2, 2)))
    with pytest.raises(LayoutError, match="index must be 0 to 15, got 16"):
        layout(16)
    with pytest.raises(LayoutError, match="coordinate must be 0 to 3, got 4"):
        layout(4, 0)
    with pytest.raises(LayoutError, match="is no coordinate of shape"):
        layout(1, 2, 3)
    with pytest.raises(LayoutError, match="index must be 0 to 15, got -1"):
        layout.coordinate(-1)
