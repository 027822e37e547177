"""`grouped_mm` where torch must see it: opcheck, graphs of torch.compile, gradients in both."""

import pytest
import torch
from torch import library

from tilewright import grouped_mm, scaled_grouped_mm
from tilewright.compiler.calls.grouped.grouped_operator import grouped_operator
from tilewright.compiler.calls.grouped.grouped_rows import multiply_rows
from tilewright.compiler.calls.kernels.lookup import How

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(19)
ROWS, N, K, GROUPS = 24, 16, 24, 3
OFFS = torch.tensor([9, 9, 24], dtype=torch.int32)
SHORT = torch.tensor([9, 9, 20], dtype=torch.int32)
HOW = ("", "sm_90a", "", "", "", "")


def whole(*shape, dtype=torch.bfloat16):
    return torch.randint(-3, 4, shape, generator=GENERATOR).to(dtype)


def numbers():
    return torch.randint(0, 11, (ROWS,), generator=GENERATOR, dtype=torch.int32)


@pytest.fixture
def fresh_graphs():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.sweep(9)
@pytest.mark.parametrize("form", ["rows", "gathered", "k"])
def test_the_operator_keeps_torchs_rules(form):
    if form == "k":
        operands = whole(24, ROWS), whole(ROWS, N), OFFS, None
    else:
        rows = numbers() if form == "gathered" else None
        operands = whole(11 if rows is not None else ROWS, K), whole(GROUPS, K, N), OFFS, rows
    a, b, *others = operands
    library.opcheck(
        grouped_operator, (a.requires_grad_(), b.requires_grad_(), *others, "", True, *HOW)
    )


@pytest.mark.parametrize("k", [0, K])
def test_the_caller_gets_the_tensor_that_the_product_went_to(k):
    """Also where K has no elements, of which the sums are 0."""
    a, b = whole(ROWS, k), whole(GROUPS, k, N)
    out = torch.full((ROWS, N), torch.nan, dtype=torch.bfloat16)
    assert multiply_rows(a, b.mT, OFFS, How(target="sm_90a"), out=out) is out
    parts = [a[:9] @ b[0], a[9:] @ b[2]]
    assert out.equal(torch.cat(parts))


def bias_and_gate(acc, bias, weights):
    return torch.relu(acc + bias) * weights


@pytest.mark.sweep(2)
@pytest.mark.parametrize("gathered", [False, True])
def test_a_graph_of_torch_holds_the_operator_and_its_gradients(fresh_graphs, gathered):
    """With an epilogue, which is a step of its own there; beside the same without torch.compile."""
    a, b = whole(11 if gathered else ROWS, K), whole(GROUPS, K, N)
    bias, weights = whole(GROUPS, 1, N, dtype=torch.float32), whole(ROWS, 1, dtype=torch.float32)
    rows = numbers() if gathered else None

    def layer(a, b):
        y = grouped_mm(
            a,
            b,
            offs=SHORT,
            rows=rows,
            epilogue=bias_and_gate,
            operands=[bias, weights],
            target="sm_90a",
        )
        return y[:20].float() * 2

    found = []
    for call in (torch.compile(layer, backend="aot_eager", fullgraph=True), layer):
        leaves = a.clone().requires_grad_(), b.clone().requires_grad_()
        y = call(*leaves)
        found.append((y.detach(), *torch.autograd.grad(y.sum(), leaves)))
    for mine, wanted in zip(*found, strict=True):
        assert torch.equal(mine, wanted)
    assert found[0][1].any() and found[0][2].any()


def test_groups_of_k_and_columns_are_in_graphs_too(fresh_graphs):
    a, b, stack = whole(24, ROWS), whole(ROWS, N), whole(GROUPS, 8, K)
    columns = whole(K, ROWS)

    def both(a, b):
        of_k = grouped_mm(a, b, offs=OFFS, order="heavy", target="sm_90a")
        return of_k.sum(0), grouped_mm(stack, columns, offs=OFFS, target="sm_90a")

    for mine, wanted in zip(
        torch.compile(both, backend="eager", fullgraph=True)(a, b), both(a, b), strict=True
    ):
        assert torch.equal(mine, wanted)


def test_scales_of_rows_are_in_graphs_too(fresh_graphs):
    a, b = whole(ROWS, 32).to(torch.float8_e4m3fn), whole(GROUPS, N, 32).to(torch.float8_e4m3fn)
    of_a, of_b = torch.full((ROWS,), 0.5), torch.full((GROUPS, N), 2.0)

    def call():
        how = {"offs": OFFS, "target": "sm_90a", "use_fast_accum": True}
        return scaled_grouped_mm(a, b.mT, of_a, "RowWise", of_b, "RowWise", **how)

    assert torch.equal(torch.compile(call, backend="eager", fullgraph=True)(), call())


@pytest.mark.sweep(2)
@pytest.mark.parametrize("form", ["rows", "k"])
def test_gradients_are_the_slopes(form):
    """f64, by the threads' fma: torch.autograd.gradcheck along random directions."""
    draw = {"generator": GENERATOR, "dtype": torch.float64}
    offs = torch.tensor([2, 2, 6], dtype=torch.int32)
    shapes = ((6, 3), (3, 3, 4)) if form == "rows" else ((3, 6), (6, 4))
    a, b = (torch.randn(shape, **draw).requires_grad_() for shape in shapes)

    def product(a, b):
        return grouped_mm(a, b, offs=offs, target="sm_90a")

    assert torch.autograd.gradcheck(product, (a, b), fast_mode=True)


@pytest.mark.parametrize("gathered", [False, True])
def test_gradients_have_the_groups_of_the_product_whatever_the_offsets(gathered):
    """Each as the nearest that is neither less than the one before it nor beyond the rows."""
    a, b = whole(11 if gathered else ROWS, K), whole(GROUPS, K, N)
    rows = numbers() if gathered else None
    found = []
    for ends in ([14, -7, 2**31 - 1], [14, 14, ROWS]):
        leaves = a.clone().requires_grad_(), b.clone().requires_grad_()
        offs = torch.tensor(ends, dtype=torch.int32)
        y = grouped_mm(*leaves, offs=offs, rows=rows, target="sm_90a")
        found.append((y.detach(), *torch.autograd.grad(y.square().sum(), leaves)))
    for mine, wanted in zip(*found, strict=True):
        assert torch.equal(mine, wanted) and wanted.any()


@pytest.mark.sweep(2)
@pytest.mark.parametrize("form", ["rows", "gathered", "k"])
def test_second_derivatives_are_those_of_products_by_torch(form):
    """Of small whole numbers, which f64 sums exactly; rows 4 and 5 of six belong to no group."""
    offs = torch.tensor([2, 2, 4], dtype=torch.int32)
    ends = [(0, 2), (2, 2), (2, 4)]
    shapes = ((6, 3), (6, 4)) if form == "k" else ((6, 3), (3, 3, 4))
    values = [torch.randint(-2, 3, each, generator=GENERATOR).double() for each in shapes]
    rows = torch.tensor([5, 0, 0, 1, 2, 3], dtype=torch.int32) if form == "gathered" else None

    def mine(a, b):
        left = a.mT if form == "k" else a
        made = grouped_mm(left, b, offs=offs, rows=rows, target="sm_90a")
        return made if form == "k" else made[:4]

    def wanted(a, b):
        a = a if rows is None else a[rows.long()]
        if form == "k":
            return torch.stack([a[i:j].mT @ b[i:j] for i, j in ends])
        return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(ends)])

    found = []
    for product in (mine, wanted):
        a, b = (each.clone().requires_grad_() for each in values)
        first = torch.autograd.grad(product(a, b).square().sum(), (a, b), create_graph=True)
        whole_of_both = sum((each * each).sum() for each in first)
        found.append([*first, *torch.autograd.grad(whole_of_both, (a, b))])
    for each, other in zip(*found, strict=True):
        assert each.any() and each.equal(other)
