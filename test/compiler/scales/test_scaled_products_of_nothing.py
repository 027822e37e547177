"""Products with scales of which a size is 0, and types that nobody names: what torch gives."""

import pytest
import torch

from tilewright import matmul, scaled_grouped_mm, scaled_mm, scales, weight_only_mm

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
M, N, K = 24, 32, 256
E4M3, BF16 = torch.float8_e4m3fn, torch.bfloat16
BIAS = torch.arange(N).float()
BLOCKS = {"mxfp8": (32, "BlockWise1x32"), "mxfp4": (32, "BlockWise1x32")}
BLOCKS |= {"nvfp4": (16, "BlockWise1x16"), "128": (128, "BlockWise1x128")}


def side(form, rows, k):
    """Ones [rows, k], with scales of 1."""
    if form in ("tensor", "rows"):
        return torch.ones(rows, k).to(E4M3), torch.ones(rows, 1) if form == "rows" else torch.ones(
            ()
        )
    if form == "128":
        return torch.ones(rows, k).to(E4M3), torch.ones(k // 128, rows).T
    if not k:  # of which nothing can be quantised
        made, scale = side(form, rows, K)
        return made[:, :0], scale[:, :0]
    pair = scales.quantize(torch.ones(rows, k), form)
    return pair.data, pair.scales


def recipe(form):
    return {"tensor": "TensorWise", "rows": "RowWise"}.get(form) or BLOCKS[form][1]


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("form", ["tensor", "rows", *BLOCKS])
@pytest.mark.parametrize("sizes", [(0, N, K), (M, 0, K), (M, N, 0)])
def test_a_scaled_product_of_nothing_is_its_bias(sizes, form, target):
    m, n, k = sizes
    (a, of_a), (b, of_b) = side(form, m, k), side(form, n, k)
    kind = recipe(form)
    given = of_a, kind, of_b.T if form == "rows" else of_b, kind
    found = scaled_mm(a, b.T, *given, bias=BIAS[:n], target=target, output_dtype=torch.float32)
    assert found.dtype == torch.float32 and found.equal(BIAS[:n].expand(m, n))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("form", ["mxfp8", "mxfp6", "mxfp4", "nvfp4"])
def test_a_product_without_k_is_quantised_as_any_other(form):
    """Beside that of zeros, for which there is a kernel."""
    others = {"epilogue": lambda acc, bias: (acc + bias, acc - 1), "operands": [BIAS]}
    found, wanted = (
        matmul(
            torch.zeros(130, k, dtype=BF16), torch.zeros(N, k, dtype=BF16), out_dtype=form, **others
        )
        for k in (0, 16)
    )
    for mine, other in zip((*found[0], found[1]), (*wanted[0], wanted[1]), strict=True):
        assert mine.dtype == other.dtype
        assert mine.view(torch.uint8).equal(other.view(torch.uint8))


@pytest.mark.parametrize("form", ["mxfp8", "nvfp4"])
def test_no_rows_are_quantised_to_none(form):
    pair = matmul(torch.zeros(0, 16, dtype=BF16), torch.zeros(N, 16, dtype=BF16), out_dtype=form)
    wanted = scales.quantize(torch.zeros(0, N), form)
    assert pair.data.shape == wanted.data.shape and pair.data.dtype == wanted.data.dtype
    assert not pair.scales.numel() and pair.scales.dtype == wanted.scales.dtype


@pytest.mark.parametrize("shape", [(N,), (N, 1), (N, 0)])
def test_weights_without_k_have_scales_of_all_or_of_no_groups(shape):
    a, b = torch.ones(M, 0, dtype=BF16), torch.ones(N, 0, dtype=torch.int8)
    assert weight_only_mm(a, b, torch.ones(shape)).equal(torch.zeros(M, N, dtype=BF16))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
def test_the_type_of_a_result_is_that_of_the_rows_where_none_is_said(fast, target):
    """As torch's `scaled_mm` has it, whose groups have bf16."""
    (a, one), (b, _) = side("tensor", M, 32), side("tensor", N, 32)
    how = {"output_dtype": None, "use_fast_accum": fast, "target": target}
    given = one, "TensorWise", one, "TensorWise"
    found = scaled_mm(a, b.T, *given, **how)
    assert found.dtype == E4M3 and found.float().equal(torch.full((M, N), 32.0))
    ends = torch.tensor([M], dtype=torch.int32)
    assert scaled_grouped_mm(a, b[None].mT, *given, offs=ends, **how).dtype == BF16


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a", "sm_89"])
def test_sums_of_other_types_are_not_short(target):
    """So none of them is added on two levels, or refused where no thread adds."""
    ends, given = torch.tensor([M], dtype=torch.int32), (torch.tensor(2.0), "TensorWise") * 2
    for dtype in (torch.int8, BF16):
        a = torch.randint(-128, 128, (M, 64)).to(dtype)
        b = torch.randint(-128, 128, (N, 64)).to(dtype)
        wanted = 4 * (a.double() @ b.double().T).float()
        how = {"output_dtype": torch.float32, "target": target}
        assert scaled_mm(a, b.T, *given, **how).equal(wanted)
        assert scaled_grouped_mm(a, b[None].mT, *given, offs=ends, **how).equal(wanted)
