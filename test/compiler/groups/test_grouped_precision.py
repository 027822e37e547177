"""`grouped_mm` of f32: what `precision=` asks for, of every form of groups and of gradients."""

import pytest
import torch

from tilewright import CompileError, grouped_mm

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
OFFS = torch.tensor([10, 10, 50], dtype=torch.int32)
PARTS = ((0, 10), (10, 10), (10, 50))
COARSE, FINE = (1e-5, 2e-3), (0, 1e-6)
"""Of the largest element: between what tf32 errs by, and what the others do."""


def of_rows(a, b):
    return torch.cat([a[i:j] @ each for (i, j), each in zip(PARTS, b, strict=True)])


def of_depth(a, b):
    return torch.stack([a[:, i:j] @ b[i:j] for i, j in PARTS])


FORMS = {
    "rows": ((50, 40), (3, 40, 24), of_rows),
    "columns": ((3, 24, 40), (40, 50), lambda a, b: of_rows(b.mT, a.mT).mT),
    "depth": ((16, 50), (50, 24), of_depth),
    "stack": ((3, 16, 40), (3, 40, 24), torch.matmul),
}


def error(found, wanted):
    return float((found.double() - wanted).abs().max() / wanted.abs().max())


@pytest.mark.sweep(2)
@pytest.mark.array(
    precision=["tf32", "3xtf32", "bf16x9", "ieee"],
    form=list(FORMS),
    target=["sm_90a", "sm_100a"],
)
def test_a_product_of_groups_errs_by_what_is_asked_for(precision, form, target):
    """A grouped K is multiplied by all digits where tf32 cannot be read as rows."""
    shape_a, shape_b, wanted = FORMS[form]
    a, b = torch.randn(shape_a), torch.randn(shape_b)
    offs = None if form == "stack" else OFFS
    found = grouped_mm(a, b, offs=offs, precision=precision, target=target)
    least, most = COARSE if precision == "tf32" and form != "depth" else FINE
    assert least <= error(found, wanted(a.double(), b.double())) <= most


@pytest.mark.parametrize("precision", ["tf32", "bf16x9"])
def test_gradients_have_the_precision_of_their_product_or_more(precision):
    _, _, product = FORMS["rows"]
    a, b = torch.randn(50, 40), torch.randn(3, 40, 24)
    upstream = torch.randn(50, 24)
    mine = [each.clone().requires_grad_() for each in (a, b)]
    wide = [each.double().requires_grad_() for each in (a, b)]
    y = grouped_mm(*mine, offs=OFFS, precision=precision, target="sm_90a")
    found = torch.autograd.grad(y, mine, upstream)
    wanted = torch.autograd.grad(product(*wide), wide, upstream.double())
    of_a = COARSE if precision == "tf32" else FINE
    for (least, most), each, other in zip((of_a, FINE), found, wanted, strict=True):
        assert least <= error(each, other) <= most


@pytest.mark.parametrize("setting", ["highest", "high"])
def test_torchs_setting_is_the_default(setting):
    _, _, product = FORMS["rows"]
    a, b = torch.randn(50, 40), torch.randn(3, 40, 24)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        found = grouped_mm(a, b, offs=OFFS, target="sm_90a")
    finally:
        torch.set_float32_matmul_precision(before)
    least, most = FINE if setting == "highest" else COARSE
    assert least <= error(found, product(a.double(), b.double())) <= most


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "high"}, "precision must be tf32 or 3xtf32 or bf16x9 or ieee, got 'high'"),
        ({"precision": 32}, "precision must be a text, got 32; leave it out"),
        ({"bias": torch.zeros(24)}, "bias must be None, got one; add it by epilogue=lambda acc, "),
    ],
)
def test_what_no_product_of_groups_takes_is_refused(options, message):
    with pytest.raises(CompileError, match=message):
        grouped_mm(torch.randn(50, 40), torch.randn(3, 40, 24), offs=OFFS, **options)


def test_a_bias_that_is_none_is_torchs_default():
    a, b = torch.ones(50, 40).bfloat16(), torch.ones(3, 40, 24).bfloat16()
    found = grouped_mm(a, b, offs=OFFS, bias=None, target="sm_90a")
    theirs = getattr(torch.nn.functional, "grouped_mm", torch._grouped_mm)  # torch 2.9 lacks it
    assert torch.equal(found, theirs(a, b, offs=OFFS, bias=None))
