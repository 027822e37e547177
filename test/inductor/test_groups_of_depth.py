"""Groups of K in graphs, as gradients of the matrices of experts: what is taken or left."""

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of
from torch.utils.flop_counter import FlopCounterMode

from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.operator import region_operator
from tilewright.compiler.inductor.race import _with_even_groups
from tilewright.compiler.inductor.settings import Settings

ENDS = torch.tensor([10, 10, 40, 41, 96], dtype=torch.int32)
X, G = draw(96, 64), draw(96, 48, seed=8)


def taken(function, *values, target="sm_90a"):
    """The graph of a function with kernels in it, and their calls."""
    module = graph_of(function, *values)
    take_regions(module.graph, Settings(device="emulator", target=target, processes=1))
    module.recompile()
    return module, [node for node in module.graph.nodes if node.target is region_operator]


def gradient(x, g, ends):
    return torch._grouped_mm(x.T, g, ends)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_the_gradient_of_experts_is_one_kernel(target, rows):
    module, calls = taken(gradient, X, G, ENDS, target=target)
    assert len(calls) == 1 and [(row.sizes, row.fused) for row in rows] == [((5, 64, 48, 96), [])]
    for number, ends in enumerate((ENDS, ENDS.flip(0).cummax(0).values, torch.zeros_like(ENDS))):
        x, g = draw(96, 64, seed=number), draw(96, 48, seed=9)
        parts = zip([0, *ends.tolist()], ends.tolist(), strict=False)
        wanted = torch.stack([x[a:b].double().T @ g[a:b].double() for a, b in parts])
        made = module(x, g, ends)
        torch.testing.assert_close(made.double(), wanted, rtol=2**-8, atol=1e-2)


def test_what_follows_is_left_to_inductor_and_the_product_is_taken(rows):
    module, calls = taken(lambda *given: F.relu(gradient(*given)) * 2, X, G, ENDS)
    assert len(calls) == 1 and rows[0].taken and rows[0].fused == []
    assert "must be a product alone" in rows[0].stop
    wanted = F.relu(gradient(X, G, ENDS)) * 2
    torch.testing.assert_close(module(X, G, ENDS), wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (draw(64, 96), G, "a: must have K as rows without gaps for groups of K"),
        (X.T, draw(48, 96).T, "b: must have K as rows without gaps for groups of K"),
        (draw(96, 72)[:, :64].T, G, "a: must have K as rows without gaps for groups of K"),
    ],
)
def test_operands_that_would_be_copied_are_left(a, b, said, rows):
    _, calls = taken(lambda a, b, ends: torch._grouped_mm(a, b, ends), a, b, ENDS)
    assert not calls and said in rows[0].reason, rows


def test_groups_share_the_operations_of_all_of_k(rows):
    module, _ = taken(gradient, X, G, ENDS)
    with FlopCounterMode(display=False) as counter:
        module(X, G, ENDS)
    assert counter.get_total_flops() == 2 * 96 * 64 * 48


def test_a_race_gives_each_group_as_much_of_k():
    *_, ends = _with_even_groups([X.T, G, ENDS])
    assert ends.tolist() == [19, 38, 57, 76, 96]
