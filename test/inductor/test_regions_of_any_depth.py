"""Regions whose K is a symbol, as gradients of weights are: a few kernels for any K instead."""

import pytest
import torch
import torch.nn.functional as F
from graphs import draw
from test_regions_of_any_rows import calls, taken
from torch.testing import assert_close

from tilewright import matmul
from tilewright.compiler.calls.kernels import lookup
from tilewright.compiler.inductor.operator import kernel_of
from tilewright.compiler.schedule.any_size.buckets import DEPTH_KERNELS
from tilewright.compiler.spec import DEPTH_HINT

W, SCALE = draw(48, 32), draw(32)
COUNTS = (5, 16, 0, 130)


def gradient(x, w):
    return (x @ w.T).mT @ x


def scaled(x, w, scale):
    return torch.relu((x @ w.T).mT @ x * scale) + w


def of_batches(x, w):
    """As torch makes it of a layer of [batch, sequence, columns]."""
    y = x @ w.T
    return y.reshape(-1, 48).mT @ x.reshape(-1, 32)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("function", "known", "fused"),
    [(gradient, (W,), []), (scaled, (W, SCALE), ["mul", "relu", "add"])],
)
def test_a_region_is_right_for_a_depth_that_nobody_traced(function, known, fused, target, rows):
    """Without any rows it gives what torch gives, through what is fused."""
    module = taken(function, draw(12, 32), *known, target=target)
    assert [(row.taken, row.fused) for row in rows] == [(True, []), (True, fused)]
    assert len(calls(module)) == 2
    for count in COUNTS:
        x = draw(count, 32, seed=count) / 4
        assert_close(module(x, *known), function(x, *known), rtol=2e-2, atol=4e-2)


def test_the_rows_of_batches_are_one_depth(rows):
    module = taken(of_batches, draw(2, 6, 32), W)
    assert [row.taken for row in rows] == [True, True], [row.reason for row in rows]
    for sizes in ((2, 6, 32), (3, 5, 32)):
        x = draw(*sizes) / 4
        assert_close(module(x, W), of_batches(x, W), rtol=2e-2, atol=4e-2)


def test_the_same_kernels_serve_every_depth(rows):
    """Also of a graph that was traced with other rows."""
    keys = set()
    for count in (12, 40):
        module = taken(gradient, draw(count, 32), W)
        keys.add(calls(module)[1].args[1])
    (key,) = keys
    assert 1 < len(kernel_of(key).bundle.kernels) <= DEPTH_KERNELS


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_groups_of_any_depth_share_a_kernel(target, rows):
    """As the gradients of experts' weights are, also where no expert has any row."""

    def function(x, ends):
        return torch._grouped_mm(x.T, x, ends)

    first = torch.tensor([3, 5, 9, 24], dtype=torch.int32)
    module = taken(function, draw(24, 32), first, target=target)
    assert [row.taken for row in rows] == [True], rows[0].reason
    for ends in ([0, 0, 7, 64], [70, 140, 150, 150], [0, 0, 0, 0]):
        x, offsets = draw(ends[-1], 32, seed=ends[-1]), torch.tensor(ends, dtype=torch.int32)
        assert_close(module(x, offsets), function(x, offsets), rtol=2e-2, atol=4e-2)


def of_stored_depth(x, w):
    return (x @ w.T).mT.contiguous() @ x


def test_a_product_with_k_contiguous_is_left(rows):
    """Whose rows would be as long as the symbol says."""
    module = taken(of_stored_depth, draw(12, 32), W)
    (left,) = (row for row in rows if not row.taken)
    rule = (
        "K that is a symbol is of no kernel: error: spec: a dynamic k must come with a_major = 'm'"
    )
    assert rule in left.reason
    x = draw(7, 32)
    assert_close(module(x, W), of_stored_depth(x, W), rtol=2e-2, atol=4e-2)


def train(model, x):
    model.zero_grad()
    model(x).sum().backward()
    return [each.grad.clone() for each in model.parameters()]


@pytest.mark.slow
@pytest.mark.parametrize("marked", [False, True])
def test_gradients_of_weights_are_compiled_once_for_every_number_of_rows(marked, rows):
    torch._dynamo.reset()
    options = {"device": "emulator", "target": "sm_90a", "processes": 1}
    model = torch.nn.Linear(32, 48, bias=False, dtype=torch.bfloat16)
    compiled = torch.compile(
        model, backend="tilewright", options=options, dynamic=None if marked else True
    )
    with torch._dynamo.config.patch(error_on_recompile=True):
        for count in (6, 20, 33):
            x = draw(count, 32, seed=count) / 4
            if marked:
                torch._dynamo.mark_dynamic(x, 0)
            made = train(compiled, x)
            assert_close(made, train(model, x), rtol=3e-2, atol=4e-2)
    assert [row.taken for row in rows] == [True, True], [row.reason for row in rows]


def test_gradients_of_calls_of_any_rows_take_it(monkeypatch):
    """In eager torch, where a new number of rows compiles nothing."""
    compiled, make = [], lookup.cached_bundle

    def noted(source, *how, **named):
        compiled.append(source)
        return make(source, *how, **named)

    monkeypatch.setattr(lookup, "cached_bundle", noted)
    weight = draw(56, 24).requires_grad_()
    for count in (3, 20, 41):
        x = draw(count, 24, seed=count)
        F.relu(matmul(x, weight, m="dynamic")).sum().backward()
        wanted = torch.autograd.grad(F.relu(x @ weight.T).sum(), weight)
        assert_close(weight.grad, wanted[0], rtol=2e-2, atol=4e-2)
        weight.grad = None
    assert [each.k for each in compiled if each.dynamic_k] == [DEPTH_HINT]
    assert all(each.open_sizes for each in compiled)
