"""f32 by nine products of bf16, by warps and by tiles that threads split: how exact it is, what is
no number, and what the judge allows."""

import numpy as np
import pytest
from split_products import cancelling, drawn, errors

import tilewright
from tilewright.runtime.judge.sums import part_sums

pytestmark = pytest.mark.pairwise

NINE = "bf16x9"
LARGEST = np.finfo(np.float32).max
TILES = (
    "tiling{{tile=64x16x{} mma={}}},tma-insertion,swizzle-selection,pipelining,warp-specialization"
)
FORMS = {
    "mma.sync": ("sm_90a", "tiling{tile=16x16x32},copy-insertion,swizzle-selection,pipelining"),
    "tcgen05, 32": ("sm_100a", TILES.format(32, "tcgen05.mma+bf16x9")),
    "tcgen05, 16": ("sm_100a", TILES.format(16, "tcgen05.mma+bf16x9")),
    "wgmma, 32": ("sm_90a", TILES.format(32, "wgmma.mma_async+bf16x9")),
}
DEPTHS = {name: 32 if name.endswith("32") else 16 for name in FORMS}
"""Elements of K that MMAs sum before threads add them."""


def product(a, b, form):
    target, pipeline = FORMS[form]
    return tilewright.matmul(a, b, precision=NINE, target=target, pipeline=pipeline)


def bound_of(k, form):
    """What docs/mma-sync.md says."""
    return (2 * k / DEPTHS[form] + 2.4 * min(k, DEPTHS[form]) + 4) * 2.0**-24


@pytest.mark.sweep(2)
@pytest.mark.array(1, k=(1, 64, 500), form=tuple(FORMS))
def test_errors_are_those_of_f32(k, form):
    """Of numbers of many magnitudes; a long K has less, since threads add sums of few products."""
    a, b = drawn(k, -8, 8)
    exact = errors(tilewright.matmul(a, b, precision="ieee"), a, b)
    found = errors(product(a, b, form), a, b)
    assert found <= exact + 2.0**-23
    assert found <= bound_of(k, form)


@pytest.mark.array(1, least=(-149, -130, -110, 80, 106), form=tuple(FORMS))
def test_magnitudes_at_the_ends_of_f32(least, form):
    """Subnormal numbers keep the bits that they have: parts that are left are made larger."""
    a, _ = drawn(24, least, least + 20)
    _, b = drawn(24, 80, 100) if least < -100 else drawn(24, -80, -60)
    assert errors(product(a, b, form), a, b) <= 2.0**-21


@pytest.mark.sweep(2)
@pytest.mark.parametrize("form", FORMS)
def test_products_of_any_magnitudes_that_cancel(form):
    """2^80 between the elements of a row, and a millionth left of the sums of two products each."""
    a, b = cancelling(70)
    assert errors(product(a, b, form), a, b) <= bound_of(70, form)
    a, b = drawn(70, -40, 40)
    assert errors(product(a, b, form), a, b) <= bound_of(70, form)


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_number(form):
    a = np.full((16, 8), 0, np.float32)
    a[:, 3] = LARGEST
    b = np.zeros((8, 8), np.float32)
    b[:, 3] = [1, -1, 0.5, 0.25, 0, 2.0**-20, -(2.0**-126), 2.0**-140]
    assert np.array_equal(product(a, b, form), a @ b.T)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_number_is_as_in_f32(form):
    a, b = drawn(24, -4, 4)
    a[1, 2], a[2, 3], a[3, 7], a[4, 20] = np.inf, -np.inf, np.nan, np.inf
    a[5] = 0
    b[3, 9], b[6, 20], b[7, 2] = np.inf, -np.inf, 0
    a.view(np.uint32)[8, 5] = 0x7F800001  # a NaN of whose fraction bf16 has nothing
    with np.errstate(invalid="ignore"):
        wanted = a.astype(np.float64) @ b.astype(np.float64).T
    made = product(a, b, form)
    numbers = np.isfinite(wanted)
    assert np.array_equal(made[~numbers], wanted[~numbers].astype(np.float32), equal_nan=True)
    assert np.allclose(made[numbers], wanted[numbers], rtol=0, atol=2.0**-12)


@pytest.mark.parametrize("depth", [16, 32])
def test_the_judge_holds_it_to_that(depth):
    """A product that leaves out what three products of tf32 do is wrong."""
    draw = np.random.default_rng(5)
    a, b = (draw.standard_normal((40, 2)).astype(np.float32).astype(np.float64) for _ in range(2))
    found, exact = part_sums(a, b, depth), a @ b.T
    assert (found.low < exact).all() and (exact < found.high).all()
    cut = (a.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFFF00)).view(np.float32)
    wrong = cut.astype(np.float64) @ b.T
    assert ((wrong < found.low) | (wrong > found.high)).any()


def test_the_judge_allows_sums_of_more_products_a_larger_error():
    a = np.ones((1, 64))
    few, more = (part_sums(a, a, depth) for depth in (16, 32))
    reach = [float(each.high[0, 0] - each.low[0, 0]) / 2 for each in (few, more)]
    assert np.allclose(reach, [(8 + 38.4 + 4) * 2.0**-18, (4 + 76.8 + 4) * 2.0**-18], rtol=1e-3)


def test_the_judge_knows_what_is_no_number():
    a, b = np.array([[np.inf, 1.0]]), np.array([[1.0, 1.0], [0.0, 1.0], [2.0**-140, 1.0]])
    found = part_sums(a, b)
    assert list(found.nan[0]) == [False, True, True]
    assert found.low[0, 0] == np.inf
