"""`grouped_mm(rows=…)`: the rows of groups by their numbers, as of a copy in that order."""

import pytest
import torch

from tilewright import grouped_mm, scaled_grouped_mm
from tilewright.dialects.errors import OptionError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(13)
TOKENS, ROWS, N, K = 40, 96, 24, 32
TARGETS = ["sm_90a", "sm_100a"]
SMALL = "tiling{tile=64x16x32},tma-insertion,pipelining{stages=2},warp-specialization,"
SMALL += "persistence{ctas=4}"


def whole(*shape):
    return torch.randint(-3, 4, shape, generator=GENERATOR).bfloat16()


def numbers(count=ROWS, most=TOKENS):
    return torch.randint(0, most, (count,), generator=GENERATOR, dtype=torch.int32)


def ends(*values):
    return torch.tensor(values, dtype=torch.int32)


TABLE = whole(TOKENS, K)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "offs",
    [
        ends(10, 10, 40, 41, 41, 77, 90, 96),  # empty groups, none aligned
        ends(0, 0, 96, 96, 96, 96, 96, 96),  # one has all
        ends(3, 6, 9, 12, 15, 18, 21, 24),  # a few rows each, and rows that no group has
        ends(*[0] * 8),
    ],
)
def test_rows_are_those_of_a_copy_in_their_order(offs, target):
    b, rows = whole(len(offs), K, N), numbers()
    found = grouped_mm(TABLE, b, offs=offs, rows=rows, target=target, check_offsets=True)
    wanted = grouped_mm(TABLE[rows], b, offs=offs, target=target)
    assert found.shape == (ROWS, N) and torch.equal(found[: offs[-1]], wanted[: offs[-1]])


@pytest.mark.parametrize("target", TARGETS)
def test_two_products_of_gathered_rows_are_those_of_a_copy(target):
    """Gate and up of experts, whose tokens lie as they came."""

    def function(gate, up, bias):
        return torch.relu(gate + bias) * up, gate

    offs, rows = ends(0, 10, 41, 41, 90), numbers(most=TOKENS + 5) - 2
    pair, bias = (whole(len(offs), K, N), whole(len(offs), K, N)), whole(len(offs), 1, N)
    how = {"epilogue": function, "operands": [bias], "target": target}
    found = grouped_mm(TABLE, pair, offs=offs, rows=rows, **how)
    wanted = grouped_mm(TABLE[rows.clamp(0, TOKENS - 1)], pair, offs=offs, **how)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == (ROWS, N) and torch.equal(one[: offs[-1]], other[: offs[-1]])


def test_128_groups_of_a_few_rows_are_gathered():
    offs = torch.arange(1, 129, dtype=torch.int32) * 3 // 2
    b, rows = whole(128, K, 16), numbers(192)
    found = grouped_mm(TABLE, b, offs=offs, rows=rows, target="sm_90a", pipeline=SMALL)
    begin = 0
    for group, end in enumerate(offs.tolist()):
        wanted = TABLE[rows[begin:end]].double() @ b[group].double()
        assert torch.equal(found[begin:end], wanted.bfloat16())
        begin = end


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_without_a_row_count_as_the_nearest(target):
    b, offs = whole(2, K, N), ends(50, 96)
    wild, tame = numbers(), numbers()
    wild[::5] = torch.tensor([2**31 - 1, -1, TOKENS, -(2**31)]).repeat(5)
    tame = wild.clamp(0, TOKENS - 1)
    found, wanted = (
        grouped_mm(TABLE, b, offs=offs, rows=rows, target=target) for rows in (wild, tame)
    )
    assert torch.equal(found, wanted)


def test_an_epilogue_weighs_what_each_row_gives():
    b, rows, offs = whole(3, K, N), numbers(), ends(20, 50, 96)
    weights, bias = torch.rand(ROWS, 1), torch.rand(3, 1, N)
    found = grouped_mm(
        TABLE,
        b,
        offs=offs,
        rows=rows,
        out_dtype="f32",
        target="sm_90a",
        epilogue=lambda acc, weights, bias: weights * (acc + bias),
        operands=[weights, bias],
    )
    for g, (begin, end) in enumerate([(0, 20), (20, 50), (50, 96)]):
        sums = TABLE[rows[begin:end]].double() @ b[g].double() + bias[g]
        assert torch.allclose(found[begin:end].double(), sums * weights[begin:end], atol=1e-5)


def test_gradients_add_up_what_each_row_was_read_for():
    b = whole(4, K, N).requires_grad_()
    table, rows, offs = TABLE.clone().requires_grad_(), numbers(), ends(10, 10, 41, 90)
    rows[:2] = ends(-5, TOKENS + 7)
    upstream = whole(ROWS, N)
    found = grouped_mm(table, b, offs=offs, rows=rows, order="heavy", target="sm_90a")
    of_table, of_b = torch.autograd.grad(found, (table, b), upstream)
    near = rows.clamp(0, TOKENS - 1)
    wanted = torch.zeros(TOKENS, K, dtype=torch.float64)
    for g, (begin, end) in enumerate([(0, 10), (10, 10), (10, 41), (41, 90)]):
        part = upstream[begin:end].double()
        wanted.index_add_(0, near[begin:end], part @ b[g].double().T)
        assert torch.equal(of_b[g], (TABLE[near[begin:end]].double().T @ part).bfloat16())
    assert torch.equal(of_table, wanted.bfloat16())


def test_gathered_rows_of_8_bits_have_a_factor_each():
    table = torch.randn(TOKENS, K, generator=GENERATOR).to(torch.float8_e4m3fn)
    b = torch.randn(3, N, K, generator=GENERATOR).to(torch.float8_e4m3fn)
    of_rows, of_b = torch.rand(TOKENS) + 0.1, torch.rand(3, N) + 0.1
    rows, offs, row = numbers(), ends(20, 50, 96), "RowWise"
    how = {"offs": offs, "target": "sm_90a", "use_fast_accum": True}
    found = scaled_grouped_mm(table, b.mT, of_rows[rows], row, of_b, row, rows=rows, **how)
    gathered = table.view(torch.uint8)[rows].view(
        table.dtype
    )  # torch 2.9 gathers no floats of 8 bits
    permuted = scaled_grouped_mm(gathered, b.mT, of_rows[rows], row, of_b, row, **how)
    assert torch.equal(found, permuted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": numbers().long()}, "rows must be a vector of int32, got [96] of torch.int64"),
        ({"rows": numbers()[:, None]}, "rows must be a vector of int32, got [96, 1] of torch.int"),
        ({"rows": [1, 2]}, "rows must be a torch tensor, got list"),
        (
            {"mat_b": whole(K, N), "mat_a": whole(5, K)},
            "rows must be None but for mat_a [rows, k] and mat_b [groups, k, n], got [5, 32] and ",
        ),
        ({"mat_a": TABLE[:0]}, "mat_a must have a row to gather, got none; drop rows"),
        (
            {"offs": ends(9, 97), "check_offsets": True},
            "offs[1] must be from 9, the end of the group before, to 96 rows, got 97; sort and",
        ),
    ],
)
def test_what_gathers_no_rows_is_refused(change, message):
    given = {"mat_a": TABLE, "mat_b": whole(2, K, N), "rows": numbers(), "offs": ends(9, 96)}
    with pytest.raises(OptionError) as refused:
        grouped_mm(**(given | change))
    assert str(refused.value).startswith(f"error: grouped_mm: {message}")
