"""Scales in atoms of 128 rows × 4 blocks: against a formula byte by byte, torch, and back."""

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import scales
from tilewright.scales import ScaleError


def blocked_by_bytes(linear, fill):
    """Every byte by the formula of cuBLAS's documentation."""
    rows, blocks = linear.shape
    atoms = -(-blocks // 4)
    out = np.full(-(-rows // 128) * atoms * 512, fill, np.uint8)
    for row, block in np.ndindex(rows, blocks):
        atom = row // 128 * atoms + block // 4
        out[atom * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block % 4] = linear[row, block]
    return out


def random_bytes(*shape):
    return np.random.default_rng(shape).integers(0, 256, shape, np.uint8)


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 300), blocks=st.integers(1, 13), fill=st.sampled_from([0, 127]))
def test_blocked_scales_are_where_the_formula_says_and_come_back(rows, blocks, fill):
    linear = random_bytes(rows, blocks)
    blocked = scales.to_blocked(linear, fill)
    assert blocked.shape == (-(-rows // 128), -(-blocks // 4), 32, 4, 4)
    np.testing.assert_array_equal(blocked.reshape(-1), blocked_by_bytes(linear, fill))
    np.testing.assert_array_equal(scales.from_blocked(blocked, rows, blocks), linear)


def test_torch_lays_blocked_scales_out_alike(of_torch):
    linear = torch.from_numpy(random_bytes(200, 6)).view(torch.float8_e8m0fnu)
    ours = scales.to_blocked(linear)
    theirs = of_torch.to_blocked(linear)
    assert ours.dtype == torch.float8_e8m0fnu
    assert torch.equal(ours.flatten().view(torch.uint8), theirs.view(torch.uint8))
    back = scales.from_blocked(theirs, 200, 6)
    assert torch.equal(back.view(torch.uint8), linear.view(torch.uint8))


def test_batches_and_other_shapes_of_the_same_bytes_come_back():
    linear = random_bytes(3, 130, 5)
    blocked = scales.to_blocked(linear)
    for batch in (blocked, blocked.reshape(3, 2048)):
        np.testing.assert_array_equal(scales.from_blocked(batch, 130, 5), linear)
        np.testing.assert_array_equal(scales.from_blocked(batch[:1], 130, 5), linear[:1])
    for shape in ((2 * 32, 2 * 16), (2, 2, 32, 4, 4), (2048,)):
        found = scales.from_blocked(blocked[1].reshape(shape), 130, 5)
        np.testing.assert_array_equal(found, linear[1])


def test_the_dtype_of_scales_stays():
    linear = random_bytes(4, 4).view(ml_dtypes.float8_e8m0fnu)
    assert scales.to_blocked(linear).dtype == ml_dtypes.float8_e8m0fnu


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((130, 5), "which is linear; pass it through to_blocked"),
        ((650,), "which is linear; pass it through to_blocked"),
        ((256, 8), "which is padded but row-major; pass it through to_blocked, or flatten it if "
                   "its bytes are blocked"),
        ((2047,), "which is neither linear, nor padded, nor blocked"),
    ],
)  # fmt: skip
def test_scales_of_another_layout_are_refused_by_name(shape, message):
    with pytest.raises(ScaleError) as caught:
        scales.from_blocked(np.zeros(shape, np.uint8), 130, 5)
    assert str(caught.value) == (
        "scales: blocked scales must be 2048 bytes, for 130 rows and 5 blocks padded to 256 and 8,"
        f" got shape {list(shape)}, {message}"
    )


def test_scales_of_more_than_a_byte_or_of_no_rows_are_refused():
    with pytest.raises(ScaleError) as caught:
        scales.to_blocked(np.zeros((4, 4), np.float32))
    assert str(caught.value) == (
        "scales: elements must have one byte, got float32; pass codes, as quantize gives them"
    )
    with pytest.raises(ScaleError) as caught:
        scales.to_blocked(np.zeros(4, np.uint8))
    assert str(caught.value) == (
        "scales: linear scales must be [rows, blocks], got shape [4]; reshape them"
    )
