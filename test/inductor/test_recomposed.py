"""Products of one row or column, which Inductor takes apart where coordinate descent tunes."""

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of
from torch._inductor import config
from torch._subclasses import FakeTensorMode
from torch.testing import assert_close

from tilewright.compiler.inductor import graph_pass
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.judge import Verdict
from tilewright.compiler.inductor.operator import region_operator
from tilewright.compiler.inductor.products import aten
from tilewright.compiler.inductor.recomposed import Recomposed
from tilewright.compiler.inductor.settings import Settings

ON_EMULATOR = Settings(device="emulator")
X, W, V = draw(1, 64), draw(48, 64), draw(48, 64, seed=6)


def apart(a, b):
    """a [.., m, k] · b [.., k, n] as Inductor writes it for one row or one column."""
    products = a.float().unsqueeze(-1) * b.float().unsqueeze(-3)
    return products.sum(-2)


def gated(x, w, v):
    """Inductor drops casts that follow each other, and so the rounding of the first product."""
    return (F.silu(apart(x, w.T)) * apart(x, v.T).bfloat16()).bfloat16()


def targets(graph):
    return [node.target for node in graph.nodes]


@pytest.mark.parametrize(
    "function, sizes, product",
    [
        (torch.mm, ((1, 64), (64, 48)), aten.mm.default),
        (torch.mm, ((40, 64), (64, 1)), aten.mm.default),
        (torch.bmm, ((3, 1, 64), (3, 64, 48)), aten.bmm.default),
    ],
)
def test_what_inductor_takes_apart_is_found_and_put_back(function, sizes, product):
    with FakeTensorMode(), config.patch(coordinate_descent_tuning=True):
        values = [torch.empty(size, dtype=torch.bfloat16, device="cuda") for size in sizes]
        graph = graph_of(function, *values).graph
    before = str(graph)
    assert product not in targets(graph)
    found = Recomposed(graph)
    (node,) = (each for each in graph.nodes if each.target is product)
    assert [tuple(each.meta["val"].shape) for each in node.args] == list(sizes)
    assert node.meta["val"].dtype is torch.bfloat16
    assert node in list(graph.output_node().all_input_nodes)
    found.restore()
    assert str(graph) == before


def test_their_regions_run_as_kernels_and_round_as_eager_torch():
    module = graph_of(gated, X, W, V)
    take_regions(module.graph, ON_EMULATOR)
    module.recompile()
    assert targets(module.graph).count(region_operator) == 1
    assert aten.sum.dim_IntList not in targets(module.graph)
    expected = F.silu(F.linear(X, W)) * F.linear(X, V)
    assert_close(module(X, W, V), expected, rtol=2e-2, atol=2e-2)


def test_what_no_kernel_takes_stays_as_inductor_has_it(monkeypatch, rows):
    monkeypatch.setattr(graph_pass, "judge", lambda *_: Verdict(False, "slower"))
    module = graph_of(gated, X, W, V)
    before = str(module.graph)
    take_regions(module.graph, ON_EMULATOR)
    assert str(module.graph) == before
    assert [(row.product, row.taken) for row in rows] == [("2 mm", False)]


def test_only_what_reads_the_sums_unrounded_reads_the_product_in_f32():
    graph = graph_of(gated, X, W, V).graph
    Recomposed(graph)
    first, second = (each for each in graph.nodes if each.target is aten.mm.default)
    assert [user.args for user in first.users] == [(first, torch.float32)]
    assert len(second.users) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: apart(x.expand(2, 64), w.T),
        lambda x, w: apart(x.float().sin(), w.T.float()),
        lambda x, w: (x.float().unsqueeze(-1) * w.T.float().unsqueeze(0)).sum(-2, keepdim=True),
        lambda x, w: (x.float().unsqueeze(-1) * w.T.float().unsqueeze(0)).sum(-1),
        lambda x, w: (x.float().unsqueeze(-1) + w.T.float().unsqueeze(0)).sum(-2),
        lambda x, w: (x.float().unsqueeze(-1) * w.T.half().float().unsqueeze(0)).sum(-2),
        lambda x, w: ((x * x).unsqueeze(-1) * w.T.float().unsqueeze(0)).sum(-2),
    ],
    ids=["two rows", "f32", "kept dim", "other dim", "no product", "two types", "own product"],
)
def test_other_sums_are_no_products(function):
    graph = graph_of(function, X, W).graph
    before = str(graph)
    Recomposed(graph)
    assert str(graph) == before
