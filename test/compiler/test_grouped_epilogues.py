"""`grouped_mm` with a function of the sums, for each of its four forms, against float64."""

from itertools import pairwise

import pytest
import torch

from tilewright import CompileError, grouped_mm

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(9)
ROWS, N, K = 90, 24, 40
ENDS = [10, 10, 41, 83]  # the second group is empty, and the last rows are of none
GROUPS = len(ENDS)
OFFS = torch.tensor(ENDS, dtype=torch.int32)
PARTS = list(pairwise([0, *ENDS]))
TARGETS = ["sm_90a", "sm_100a"]


def whole(*shape):
    return torch.randint(-3, 4, shape, generator=GENERATOR).bfloat16()


def random(*shape):
    return torch.randn(shape, generator=GENERATOR)


A, B = whole(ROWS, K), whole(GROUPS, K, N)
BIAS, WEIGHTS = random(GROUPS, 1, N), random(ROWS, 1)


def weighed(acc, bias, weights):
    return torch.relu(acc + bias) * weights, acc.bfloat16()


def wanted_rows():
    sums = [A[begin:end].double() @ B[g].double() + BIAS[g] for g, (begin, end) in enumerate(PARTS)]
    return torch.relu(torch.cat(sums)) * WEIGHTS[: ENDS[-1]]


@pytest.mark.parametrize("target", TARGETS)
def test_an_operand_of_three_dims_has_a_row_for_each_group(target):
    how = {"offs": OFFS, "out_dtype": "f32", "target": target}
    c, sums = grouped_mm(A, B, epilogue=weighed, operands=[BIAS, WEIGHTS], **how)
    assert torch.allclose(c[: ENDS[-1]].double(), wanted_rows(), rtol=1e-6, atol=1e-6)
    plain = [A[begin:end].float() @ B[g].float() for g, (begin, end) in enumerate(PARTS)]
    assert torch.equal(sums[: ENDS[-1]], torch.cat(plain).bfloat16())


def test_of_grouped_columns_it_has_a_column_for_each_group():
    operands = [BIAS.mT, WEIGHTS.T]
    how = {"offs": OFFS, "out_dtype": "f32", "target": "sm_90a"}
    c, sums = grouped_mm(B.mT, A.T, epilogue=weighed, operands=operands, **how)
    assert c.shape == sums.shape == (N, ROWS)
    assert torch.allclose(c.T[: ENDS[-1]].double(), wanted_rows(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_where_k_is_grouped_the_function_sees_all_groups(target):
    left, right, old = whole(ROWS, 16), whole(ROWS, N), random(GROUPS, 16, N)
    scale = random(GROUPS, 1, 1)
    found = grouped_mm(
        left.T,
        right,
        offs=OFFS,
        out_dtype="f32",
        epilogue=lambda acc, old, scale: old + acc * scale,
        operands=[old, scale],
        target=target,
    )
    for g, (begin, end) in enumerate(PARTS):
        sums = left[begin:end].double().T @ right[begin:end].double()
        assert torch.allclose(found[g].double(), old[g] + sums * scale[g], rtol=1e-6, atol=1e-5)


def test_gradients_of_an_epilogue_are_those_of_both_steps():
    b, bias = B.clone().requires_grad_(), BIAS.clone().requires_grad_()
    found = grouped_mm(
        A,
        b,
        offs=OFFS,
        out_dtype="f32",
        epilogue=weighed,
        operands=[bias, WEIGHTS],
        target="sm_90a",
    )[0][: ENDS[-1]]
    assert torch.allclose(found.double(), wanted_rows(), rtol=1e-6, atol=1e-6)
    of_b, of_bias = torch.autograd.grad(found.sum(), (b, bias))
    of_sums = (found != 0) * WEIGHTS[: ENDS[-1]]
    for g, (begin, end) in enumerate(PARTS):
        assert torch.allclose(of_bias[g, 0], of_sums[begin:end].sum(0), atol=1e-5)
        wanted = A[begin:end].float().T @ of_sums[begin:end].bfloat16().float()
        assert torch.allclose(of_b[g].float(), wanted, rtol=2**-8, atol=1e-5)


def test_a_k_of_0_is_zeros_through_the_epilogue():
    found = grouped_mm(
        A[:, :0], B[:, :0], offs=OFFS, epilogue=lambda acc, bias: acc + bias, operands=[BIAS]
    )
    for g, (begin, end) in enumerate(PARTS):
        assert torch.equal(found[begin:end], BIAS[g].bfloat16().expand(end - begin, N))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"operands": [random(GROUPS, ROWS, N)]},
            "epilogue: operands[0] of three dims must have one row for each group, got "
            "[4, 90, 24]; pass an operand of two dims",
        ),
        (
            {"operands": [random(3, 1, N)]},
            "epilogue: operands[0] of three dims must have one part for each of 4 groups, got "
            "[3, 1, 24]",
        ),
        (
            {"epilogue": lambda acc, bias: (acc, (acc + bias).sum(-1))},
            "grouped_mm: results must have the shape of acc where something is grouped, got a "
            "reduction; reduce outside",
        ),
        (
            {"epilogue": 3},
            "grouped_mm: epilogue must be a function of acc and operands, got int",
        ),
        (
            {"epilogue": None},
            "grouped_mm: operands are those of an epilogue, got none; pass epilogue=",
        ),
    ],
)
def test_epilogues_that_are_none_are_refused(how, message):
    given = {"epilogue": lambda acc, bias: acc + bias, "operands": [random(GROUPS, 1, N)], **how}
    with pytest.raises(CompileError) as refused:
        grouped_mm(A, B, offs=OFFS, **given)
    assert str(refused.value) == f"error: {message}"
