"""Comparisons in backward read what forward saves for a product."""

import copy

import pytest
import torch
from graphs import aten_graph, draw, graph_of
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from tilewright.compiler.inductor import backend
from tilewright.compiler.inductor.joint_pass import JointPass, compare_what_is_saved

X, W, V = draw(2, 16, 64), draw(128, 64, seed=6), draw(64, 128, seed=7)
TANGENTS = draw(32, 64, seed=8)
LE = torch.ops.aten.le.Scalar


def hidden_of(x, w):
    return (x.reshape(-1, 64) @ w.t()).reshape(*x.shape[:-1], 128).relu()


def both_ways(x, w, v, tangents):
    """A layer with ReLU: what it gives, and the gradients of v and of what ReLU got."""
    hidden, given = hidden_of(x, w), tangents.reshape(-1, 64)
    matrix = hidden.reshape(-1, 128)
    behind = (given @ v).reshape(hidden.shape)
    return matrix @ v.t(), given.t() @ matrix, torch.where(hidden <= 0, 0, behind)


def saved_as_it_is(x, w, v, tangents):
    """A product of backward reads the value in the sizes in which it is compared."""
    hidden = (x.reshape(-1, 64) @ w.t()).relu()
    return hidden.reshape(16, -1), tangents.t() @ hidden, torch.where(hidden <= 0, 0, tangents @ v)


def read_by_no_product(x, w, v, tangents):
    hidden = hidden_of(x, w)
    behind = (tangents @ v).reshape(hidden.shape)
    return hidden.reshape(-1, 128) @ v.t(), torch.where(hidden <= 0, 0, behind)


def made_in_backward(x, w, v, tangents):
    """What is compared is computed from what backward gets: nothing of it is saved."""
    hidden = (tangents @ v).reshape(2, 16, 128)
    return hidden.reshape(-1, 128).t() @ tangents, torch.where(hidden <= 0, 0, hidden)


def compared(module):
    """What the one comparison of a graph reads."""
    (node,) = module.graph.find_nodes(op="call_function", target=LE)
    return node.args[0]


def test_a_comparison_reads_what_a_product_of_backward_reads():
    module = graph_of(both_ways, X, W, V, TANGENTS)
    before = module(X, W, V, TANGENTS)
    old = compared(module)
    compare_what_is_saved(module.graph)
    new = compared(module)
    assert new is not old and old.meta["val"].shape == new.meta["val"].shape
    (saved,) = new.all_input_nodes
    readers = {user.target for user in saved.users}
    assert torch.ops.aten.mm.default in readers
    module.recompile()
    for one, other in zip(before, module(X, W, V, TANGENTS), strict=True):
        assert one.equal(other)


@pytest.mark.parametrize("function", [saved_as_it_is, read_by_no_product, made_in_backward])
def test_other_comparisons_stay(function):
    module = graph_of(function, X, W, V, TANGENTS)
    text = str(module.graph)
    compare_what_is_saved(module.graph)
    assert str(module.graph) == text and compared(module) is not None


def test_comparisons_of_open_sizes_stay():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    dims = [DimDynamic.DYNAMIC, DimDynamic.DYNAMIC, DimDynamic.STATIC]
    symbols = StatelessSymbolicContext(dynamic_sizes=dims)
    x, tangents = (mode.from_tensor(each, symbolic_context=symbols) for each in (X, X))
    w, v = (mode.from_tensor(each, static_shapes=True) for each in (W, V))
    with mode:
        module = aten_graph(both_ways, x, w, v, tangents)
    text = str(module.graph)
    compare_what_is_saved(module.graph)
    assert str(module.graph) == text


def test_a_pass_before_runs_first_and_is_a_part_of_the_name():
    seen = []
    graph = graph_of(both_ways, X, W, V, TANGENTS).graph
    JointPass([seen.append, seen.append])(graph)
    assert seen == [graph, graph]
    assert JointPass().uuid() == JointPass().uuid() is not None
    assert JointPass(JointPass()).uuid() not in (None, JointPass().uuid())
    assert JointPass(seen.append).uuid() is None


@pytest.mark.slow
def test_the_kernel_of_the_gradient_computes_relus(rows):
    """Of a layer of [batch, rows, columns]; forward saves no bool."""
    torch._dynamo.reset()
    torch.manual_seed(3)
    layer = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).bfloat16()
    wide = copy.deepcopy(layer).double()
    saved = []
    compiled = torch.compile(layer, backend="tilewright", options={"device": "emulator"})
    with torch.autograd.graph.saved_tensors_hooks(
        lambda each: saved.append(each.dtype) or each, lambda each: each
    ):
        made = compiled(X)
    weights = draw(*made.shape, seed=9)
    (made * weights).sum().backward()
    (wide(X.double()) * weights.double()).sum().backward()
    assert saved and torch.bool not in saved
    assert ["le", "where"] in [row.fused for row in rows]
    for mine, wanted in zip(layer.parameters(), wide.parameters(), strict=True):
        assert (mine.grad - wanted.grad).norm() <= 0.02 * wanted.grad.norm()


def test_both_passes_go_when_the_provider_goes():
    import tilewright

    joint = backend.hook(backend.JOINT_HOOK)
    tilewright.torch.enable(device="emulator")
    assert isinstance(backend.hook(backend.JOINT_HOOK), JointPass)
    tilewright.torch.enable(device="emulator")
    tilewright.torch.disable()
    assert backend.hook(backend.JOINT_HOOK) is joint
