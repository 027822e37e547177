"""The operators that torch sees keep its rules, and graphs are not made anew for each call."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, regions
from torch import library
from torch._dynamo.utils import counters
from torch.autograd import forward_ad

import tilewright
from tilewright.compiler.calls.dense import matmul_operator as _operators  # noqa: F401  registers some
from tilewright.compiler.calls.grouped import grouped_operator as _groups  # noqa: F401  registers one
from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle
from tilewright.compiler.calls.layers import linear_operator as _layers  # noqa: F401  registers one
from tilewright.compiler.calls.weights import weight_operator as _weights  # noqa: F401  registers one
from tilewright.compiler.inductor import graph_pass, operator
from tilewright.compiler.inductor.recipe import recipe_of
from tilewright.compiler.inductor.source import prepare
from tilewright.nn import quantize_weights
from tilewright.runtime.errors import LaunchError
from tilewright.runtime.launch import torch_op as _others  # noqa: F401  registers some
from tilewright.runtime.launch.kernel import Kernel

A, B = draw(16, 32), draw(24, 32)
LOADED: list[Kernel] = []


def of_product():
    return A, B, "f32", "", "", ""


def of_layer():
    return A, B, draw(24)


def of_input_gradient():
    return draw(2, 8, B.shape[0]), B


def of_weight_gradient():
    return draw(2, 8, 24), draw(2, 8, 32, seed=3)


def of_region():
    prepared = entered(torch.relu)
    return [A, B], prepared.key, recipe_of(prepared)


def of_one():
    return loaded(torch.relu).key, [A, B]


def of_several():
    return loaded(lambda h: (h, torch.relu(h))).key, [A, B]


def entered(behind):
    (region,) = regions(lambda a, b: behind(F.linear(a, b)), A, B)
    prepared = prepare(region, "sm_90a")
    bundle = cached_bundle(prepared.source, prepared.target, prepared.pipeline)
    operator.enter(prepared.key, bundle)
    return prepared


def loaded(behind):
    """The kernel as one that a user has loaded."""
    LOADED.append(Kernel(operator.kernel_of(entered(behind).key).bundle, copies=True))
    return LOADED[-1]


def of_weights():
    b, scales, _ = quantize_weights(B, "int8", 32)
    return A.clone().requires_grad_(), b, scales.detach(), None, None, "s8", "", ""


def of_groups():
    stack, ends = draw(2, 24, 32).mT, torch.tensor([9, 16], dtype=torch.int32)
    how = "", True, "", "", "", "", ""
    return A.clone().requires_grad_(), stack.requires_grad_(), ends, None, *how


OPERATORS = {
    "tilewright::product": of_product,
    "tilewright::matmul": of_product,
    "tilewright::linear": of_layer,
    "tilewright::linear_input_gradient": of_input_gradient,
    "tilewright::linear_weight_gradient": of_weight_gradient,
    "tilewright::weight_only": of_weights,
    "tilewright::grouped": of_groups,
    "tilewright::region": of_region,
    "tilewright::run_kernel": of_one,
    "tilewright::run_kernel_of_several": of_several,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_keeps_torchs_rules(name):
    target = getattr(torch.ops.tilewright, name.partition("::")[2]).default
    library.opcheck(target, OPERATORS[name]())


def test_no_operator_is_left_unchecked():
    homes = (tilewright.compiler, tilewright.runtime)
    files = (path for home in homes for path in Path(home.__file__).parent.rglob("*.py"))
    sources = "".join(path.read_text() for path in files)
    defined = re.findall(r'(?:define|custom_op)\(\s*"(tilewright::\w+)"', sources)
    assert sorted(defined) == sorted(OPERATORS)


@pytest.fixture
def graphs():
    """How many graphs dynamo has made, with nothing from before."""
    torch._dynamo.reset()
    counters.clear()
    yield lambda: counters["stats"]["unique_graphs"]
    torch._dynamo.reset()


def compiled(function):
    return torch.compile(function, backend="tilewright", options={"device": "emulator"})


def test_layers_alike_and_calls_alike_are_one_graph_and_one_kernel(graphs, monkeypatch):
    """Values, new tensors, and other weights of the same sizes change nothing."""
    kernels = []
    monkeypatch.setattr(
        graph_pass, "enter", lambda key, bundle: (kernels.append(key), operator.enter(key, bundle))
    )
    product = compiled(lambda x, w: F.linear(x, w))
    with torch.no_grad():
        for seed in range(5):
            x, w = draw(16, 32, seed=seed), draw(24, 32, seed=seed + 9)
            torch.testing.assert_close(product(x, w), F.linear(x, w))
    assert graphs() == 1 and len(set(kernels)) == 1


def test_many_numbers_of_rows_are_two_graphs(graphs):
    """The first is for its own number, the second for any."""
    product = compiled(lambda x, w: F.linear(x, w))
    with torch.no_grad():
        for rows in (5, 6, 7, 11, 30, 17, 3):
            x = draw(rows, 32)
            torch.testing.assert_close(product(x, B), F.linear(x, B))
    assert graphs() == 2


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_compiled_region_refuses_a_tangent(graphs, outputs):
    """torch takes derivatives forward of no compiled code; it must not lose them either."""

    def function(x):
        h = F.linear(x, B)
        return (torch.relu(h), h)[:outputs]

    product, along = compiled(function), torch.ones_like(A)
    for recorded in (False, True):
        with torch.set_grad_enabled(recorded), forward_ad.dual_level():
            assert len(product(A)) == outputs, "a level alone is no tangent"
            with pytest.raises(LaunchError, match=r"^kernel matmul_\w+: has no derivatives"):
                product(forward_ad.make_dual(A, along))


def test_our_own_product_in_a_graph_is_made_anew_no_more_often_than_torchs(graphs):
    multiply = torch.compile(lambda x: tilewright.matmul(x, B) * 2, backend="aot_eager")
    for rows in (5, 6, 7, 11, 30):
        multiply(draw(rows, 32))
    ours = graphs()
    torch._dynamo.reset()
    counters.clear()
    theirs = torch.compile(lambda x: F.linear(x, B) * 2, backend="aot_eager")
    for rows in (5, 6, 7, 11, 30):
        theirs(draw(rows, 32))
    assert 0 < ours <= graphs()
