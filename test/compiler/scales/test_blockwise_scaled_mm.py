"""`tilewright.scaled_mm` with scales of 128 elements of K, and with two-level sums."""

import pytest
import torch
from torch.nn import functional as F

from tilewright import CompileError, scaled_mm

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(7)
M, N, K = 20, 136, 272
KIND = F.ScalingType
ROWS, SQUARES = KIND.BlockWise1x128, KIND.BlockWise128x128
A, B = (torch.randn(rows, K, generator=GENERATOR).to(torch.float8_e4m3fn) for rows in (M, N))
BIAS = torch.randn(N, generator=GENERATOR)


def of_rows(rows, k=K):
    """[rows, blocks], rows contiguous."""
    return torch.rand(-(-k // 128), rows, generator=GENERATOR).T


def of_squares(rows, k=K):
    """[blocks rounded up to 4, blocks of rows], blocks of K contiguous; NaN where nothing is."""
    blocks = -(-k // 128)
    made = torch.full((-(-rows // 128), -(-blocks // 4) * 4), torch.nan)
    made[:, :blocks] = torch.rand(made[:, :blocks].shape, generator=GENERATOR)
    return made.T


def dequantized(values, scales, kind):
    wide = scales.double().nan_to_num()
    if kind is ROWS:
        return values.double() * wide.repeat_interleave(128, 1)[:, : values.shape[1]]
    spread = wide.T.repeat_interleave(128, 0).repeat_interleave(128, 1)
    return values.double() * spread[: values.shape[0], : values.shape[1]]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("of_a", "of_b"), [(ROWS, SQUARES), (ROWS, ROWS), (SQUARES, ROWS)], ids=lambda kind: kind.name
)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_scales_of_128_lie_as_torch_has_them(of_a, of_b, target):
    scale_a, scale_b = (
        of_rows(rows) if kind is ROWS else of_squares(rows) for kind, rows in ((of_a, M), (of_b, N))
    )
    got = scaled_mm(
        A, B.T, scale_a, of_a, scale_b, of_b, bias=BIAS, output_dtype="f32", target=target
    )
    expected = dequantized(A, scale_a, of_a) @ dequantized(B, scale_b, of_b).T + BIAS.double()
    assert torch.allclose(got.double(), expected, rtol=2**-18, atol=2**-12)


def test_sums_that_may_not_be_short_have_two_levels_on_hopper():
    one, recipe = torch.tensor(2.0), KIND.TensorWise
    got = scaled_mm(A, B.T, one, recipe, one, recipe, output_dtype="f32", target="sm_90a")
    assert torch.allclose(got.double(), 4 * A.double() @ B.T.double(), rtol=2**-18, atol=2**-12)


ONE = torch.tensor(1.0)
WRONG = {
    "rows that are not contiguous": (
        (of_rows(M).contiguous(), ROWS, of_rows(N), ROWS),
        r"scale_a must be \[20, 3\] with strides \[1, 20\] for BlockWise1x128, got \[20, 3\] with "
        r"\[3, 1\]; lay it out so",
    ),
    "no padding": (
        (of_rows(M), ROWS, torch.rand(2, 3).T, SQUARES),
        r"scale_b must be \[4, 2\] with strides \[1, 4\] for BlockWise128x128, got \[3, 2\] with "
        r"\[1, 3\]; pad it so, and pass its transpose",
    ),
    "squares twice": ((of_squares(M), SQUARES, of_squares(N), SQUARES), "must be BlockWise1x128"),
    "one side": ((of_rows(M), ROWS, ONE, KIND.TensorWise), "both or none must have scales of 128"),
    "another type": ((of_rows(M).half(), ROWS, of_rows(N), ROWS), "scale_a must be float32"),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_scales_of_128_are_refused(what):
    scales, message = WRONG[what]
    with pytest.raises(CompileError, match=message):
        scaled_mm(A, B.T, *scales, target="sm_90a")


def test_chips_whose_threads_add_no_products_are_refused():
    scales = (of_rows(M), ROWS, of_rows(N), ROWS)
    with pytest.raises(
        CompileError, match="scales of 128 elements are for sm_100a or sm_90a, whose threads add"
    ):
        scaled_mm(A, B.T, *scales, target="sm_80")
