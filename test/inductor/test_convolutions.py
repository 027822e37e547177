"""Convolutions of 1x1 as products: what is taken, with what follows, and what stays as it was."""

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of, taken_apart
from torch.testing import assert_close

from tilewright.compiler.inductor import graph_pass, race
from tilewright.compiler.inductor.convolutions import Convolutions
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.judge import Verdict
from tilewright.compiler.inductor.operator import region_operator
from tilewright.compiler.inductor.products import aten
from tilewright.compiler.inductor.settings import Settings

N, C, H, W, M = 2, 24, 5, 6, 40
X, ONE = draw(N, C, H, W), draw(1, C, H, W)
WEIGHT, BIAS, SECOND = draw(M, C, 1, 1), draw(M), draw(M, M, 1, 1, seed=7)
SCALE, SHIFT = draw(M, dtype=torch.float32), draw(M, dtype=torch.float32)
RESIDUAL = draw(N, M, H, W)
LAST = torch.channels_last


def last(*values):
    return [each.to(memory_format=LAST) if each.dim() == 4 else each for each in values]


def plain(x, w):
    return F.conv2d(x, w)


def activated(x, w, bias):
    return F.silu(F.conv2d(x, w, bias))


def normed(x, w, bias, scale, shift):
    y = F.conv2d(x, w, bias).float()
    return torch.relu(y * scale[:, None, None] + shift[:, None, None]).bfloat16()


def residual(x, w, bias, r):
    return F.conv2d(x, w, bias) + r


def targets(module):
    return [node.target for node in module.graph.nodes]


def taken(function, *values, target="sm_90a"):
    module = graph_of(function, *values)
    take_regions(module.graph, Settings(device="emulator", target=target, processes=1))
    module.recompile()
    return module


CASES = [
    (plain, (X, WEIGHT), []),
    (activated, (X, WEIGHT, BIAS), taken_apart(F.silu)),
    (normed, (X, WEIGHT, BIAS, SCALE, SHIFT), ["mul", "add", "relu"]),
    (residual, (X, WEIGHT, BIAS, RESIDUAL), ["add"]),
]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("form", ["last", "one", "several"])
@pytest.mark.parametrize(("function", "values", "fused"), CASES)
def test_a_convolution_is_one_kernel_with_what_follows(function, values, fused, form, target, rows):
    """Whose result lies as torch's does."""
    if form == "one":
        values = tuple(
            each[:1] if each.dim() == 4 and each is not WEIGHT else each for each in values
        )
    values = last(*values) if form == "last" else values
    module = taken(function, *values, target=target)
    assert targets(module).count(region_operator) == 1, [row.reason for row in rows]
    assert aten.convolution.default not in targets(module)
    (row,) = rows
    assert (row.product, row.fused) == ("convolution", fused)
    made, wanted = module(*values), function(*values)
    assert made.stride() == wanted.stride()
    assert_close(made, wanted, rtol=2e-2, atol=2e-2)


def chained(x, w, bias, v):
    """Two of a bottleneck, whose first output something else reads as well."""
    h = torch.relu(F.conv2d(x, w, bias))
    return F.conv2d(h, v) + h, h.sum()


@pytest.mark.parametrize("form", ["last", "several"])
def test_values_between_convolutions_are_read_in_place(form, rows):
    values = (X, WEIGHT, BIAS, SECOND)
    values = last(*values) if form == "last" else values
    module = taken(chained, *values)
    assert [(row.product, row.fused) for row in rows] == [
        ("convolution", ["relu"]),
        ("convolution", ["add"]),
    ]
    for made, wanted in zip(module(*values), chained(*values), strict=True):
        assert_close(made, wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("form", ["last", "one", "several"])
@pytest.mark.parametrize(
    ("function", "values", "fused"), [*CASES, (chained, (X, WEIGHT, BIAS, SECOND), [])]
)
def test_what_no_kernel_takes_is_as_it_was(function, values, fused, form, monkeypatch):
    monkeypatch.setattr(graph_pass, "judge", lambda *_: Verdict(False, "slower"))
    if form == "one":
        values = tuple(
            e[:1] if e.dim() == 4 and e.shape[1] != 1 and e.shape[2] > 1 else e for e in values
        )
    values = last(*values) if form == "last" else values
    module = graph_of(function, *values)
    before = str(module.graph)
    take_regions(module.graph, Settings(device="emulator"))
    assert str(module.graph) == before


@pytest.mark.parametrize("first", [True, False])
def test_a_convolution_that_is_left_beside_one_that_is_taken_stays_one(first, monkeypatch, rows):
    verdicts = iter([Verdict(first, ""), Verdict(not first, "")])
    monkeypatch.setattr(graph_pass, "judge", lambda *_: next(verdicts))
    values = last(X, WEIGHT, BIAS, SECOND)
    module = taken(chained, *values)
    found = targets(module)
    assert (found.count(region_operator), found.count(aten.convolution.default)) == (1, 1)
    assert aten.mm.default not in found and aten.addmm.default not in found
    for made, wanted in zip(module(*values), chained(*values), strict=True):
        assert_close(made, wanted, rtol=2e-2, atol=2e-2)


NEAR = {
    "three by three": (lambda x, w: F.conv2d(x, w), (X, draw(M, C, 3, 3))),
    "a stride": (lambda x, w: F.conv2d(x, w, stride=2), (X, WEIGHT)),
    "padding": (lambda x, w: F.conv2d(x, w, padding=1), (X, WEIGHT)),
    "groups": (lambda x, w: F.conv2d(x, w, groups=2), (X, draw(M, C // 2, 1, 1))),
    "transposed": (lambda x, w: F.conv_transpose2d(x, w), (X, draw(C, M, 1, 1))),
    "f32": (lambda x, w: F.conv2d(x, w), (X.float(), WEIGHT.float())),
    "gaps": (lambda x, w: F.conv2d(x[:, :, :, ::2], w), (X, WEIGHT)),
    "one dim": (lambda x, w: F.conv1d(x, w), (X[:, :, 0], WEIGHT[..., 0])),
    "no image": (lambda x, w: F.conv2d(x[:0], w), (X, WEIGHT)),
}


@pytest.mark.parametrize("name", NEAR)
def test_other_convolutions_stay(name, rows):
    function, values = NEAR[name]
    graph = graph_of(function, *values).graph
    before = str(graph)
    Convolutions(graph)
    assert str(graph) == before


def test_images_that_lie_by_channels_are_left_beside_other_convolutions(rows):
    """To which Inductor may give channels last."""

    def function(x, w, wide):
        return F.conv2d(F.conv2d(x, w), wide)

    values = X, WEIGHT, draw(M, M, 3, 3)
    assert aten.convolution.default in targets(taken(function, *values)) and not rows
    taken(function, *last(*values))
    assert [row.product for row in rows] == ["convolution"]


def test_a_race_is_against_the_convolution(rows, monkeypatch):
    """Also where its products alone are asked for, which have no bias."""
    found = []
    monkeypatch.setattr(
        graph_pass, "judge", lambda region, *_: found.append(region) or Verdict(False, "")
    )
    for values in (last(X, WEIGHT, BIAS), (X, WEIGHT, BIAS), (ONE, WEIGHT, BIAS)):
        module = graph_of(activated, *values)
        modules = []
        monkeypatch.setattr(
            graph_pass,
            "judge",
            lambda region, *_, modules=modules: (
                modules.append((race.module_of(region), race.products_of(region), region.reads))
                or Verdict(False, "")
            ),
        )
        take_regions(module.graph, Settings(device="emulator"))
        ((whole, product, reads),) = modules
        assert targets(whole).count(aten.convolution.default) == 1
        assert targets(product).count(aten.convolution.default) == 1
        assert [each.meta["val"].dim() for each in reads] in ([2, 2, 1], [2, 2, 2], [3, 3, 3])


def test_a_model_of_convolutions_trains(rows):
    torch._dynamo.reset()
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(C, M, 1), torch.nn.ReLU(), torch.nn.Conv2d(M, C, 1, bias=False)
    ).to(torch.bfloat16, memory_format=LAST)
    options = {"device": "emulator", "target": "sm_90a", "processes": 1}
    compiled = torch.compile(model, backend="tilewright", options=options)
    (x,) = last(X)
    found = []
    for each in (compiled, model):
        model.zero_grad()
        y = each(x)
        y.float().square().sum().backward()
        found.append([y, *(p.grad.clone() for p in model.parameters())])
    assert [row.taken for row in rows if row.product == "convolution"] == [True, True]
    for made, wanted in zip(*found, strict=True):
        assert_close(made, wanted, rtol=3e-2, atol=0.1)
