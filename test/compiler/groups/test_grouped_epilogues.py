"""`grouped_mm` with a function of the sums, for each of its four forms, against float64."""

from itertools import pairwise

import pytest
import torch

from tilewright import CompileError, grouped_mm
from tilewright.dialects.errors import OptionError

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


def silu_times(gate, up, weights):
    return torch.nn.functional.silu(gate) * up * weights


def test_two_products_of_each_group_are_one_kernel_and_have_gradients():
    """SwiGLU of experts; beside each product by itself, and with gradients by torch."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(40, 32, generator=generator).bfloat16()
    gate, up = (torch.randn(3, 32, 24, generator=generator).bfloat16() for _ in range(2))
    weights = torch.rand(40, 1, generator=generator)
    offs = torch.tensor([9, 9, 40], dtype=torch.int32)
    how = {"offs": offs, "operands": [weights], "target": "sm_90a", "epilogue": silu_times}
    found = grouped_mm(x, (gate, up), **how)
    apart = [
        grouped_mm(x, each, offs=offs, out_dtype="f32", target="sm_90a") for each in (gate, up)
    ]
    wanted = silu_times(*apart, weights)
    assert torch.allclose(found.float(), wanted, rtol=2.0**-7, atol=2.0**-9)
    leaves = [each.clone().requires_grad_() for each in (x, gate, up)]
    stepwise = grouped_mm(leaves[0], tuple(leaves[1:]), **how)
    assert torch.allclose(stepwise, wanted.bfloat16(), rtol=2.0**-7)
    made = torch.autograd.grad(stepwise.float().sum(), leaves)
    assert all(each.any() for each in made)
    nothing = grouped_mm(x[:0], (gate, up), **{**how, "operands": [weights[:0]]})
    assert nothing.shape == (0, 24)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epilogue": None}, "with an epilogue, got 2 of .* without one; multiply them apart"),
        ({"mat_b": (torch.ones(2, 8, 8),)}, "must be two stacks .* got 1 of"),
        ({"mat_a": torch.ones(2, 8, 8)}, "must be two stacks"),
    ],
)
def test_pairs_that_are_no_two_stacks_are_refused(change, message):
    both = torch.ones(2, 8, 8).bfloat16(), torch.ones(2, 8, 8).bfloat16()
    given = {"mat_a": torch.ones(16, 8).bfloat16(), "mat_b": both}
    given |= {"offs": torch.tensor([9, 16], dtype=torch.int32)}
    given |= {"epilogue": lambda gate, up: gate * up}
    with pytest.raises(OptionError, match=message):
        grouped_mm(**{**given, **change})
