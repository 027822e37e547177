"""Sizes of 0 with m="dynamic" give what torch gives: no elements, or zeros through the function."""

import pytest
import torch

from tilewright import matmul


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 8), (3, 0, 8), (3, 5, 0), (0, 0, 0)])
@pytest.mark.parametrize("leading", [(), (2,)])
def test_no_rows_no_columns_or_no_sums(m, n, k, leading):
    a, b, bias = torch.ones(*leading, m, k), torch.ones(n, k), torch.arange(n) + 1.0
    a, b = a.bfloat16(), b.bfloat16()
    product = matmul(a, b, m="dynamic")
    assert product.shape == (*leading, m, n) and not product.any()
    made = matmul(a, b, m="dynamic", epilogue=lambda acc, bias: acc + bias, operands=[bias])
    wanted = (a.double() @ b.double().T + bias).bfloat16()
    assert made.dtype == torch.bfloat16 and torch.equal(made, wanted)


@pytest.mark.parametrize(("batch", "m", "k"), [(0, 3, 8), (2, 0, 8), (2, 3, 0)])
def test_stacks_without_matrices_rows_or_sums(batch, m, k):
    a, b = torch.ones(batch, m, k).bfloat16(), torch.ones(batch, 5, k).bfloat16()
    assert torch.equal(matmul(a, b), a @ b.mT)
