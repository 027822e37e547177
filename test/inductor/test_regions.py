"""Which operators behind a product are one region with it, and why others are not."""

import random

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of, regions
from patterns import (
    BIAS,
    GELU,
    PATTERNS,
    RESIDUAL,
    SILU,
    TRAINED,
    W2,
    W,
    X,
    backward_of_gelu,
    rms_and_itself,
    saved,
)
from torch._subclasses.fake_tensor import FakeTensorMode

from tilewright.compiler.calls.dense.matmul_operator import product_operator
from tilewright.compiler.calls.kernels.lookup import How
from tilewright.compiler.inductor.describe import described
from tilewright.compiler.inductor.grow import Others, in_circle, regions_of
from tilewright.compiler.inductor.products import Refusal, product_of
from tilewright.compiler.inductor.region import Region
from tilewright.compiler.inductor.region_function import takes_a_bias
from tilewright.compiler.inductor.source import prepare


@pytest.mark.parametrize("name", PATTERNS)
def test_a_product_and_what_follows_it_are_one_region(name):
    function, values, fused = PATTERNS[name]
    (region,) = regions(function, *values)
    assert described(region).endswith(f"return %{region.nodes.index(region.outputs[0])}")
    assert sorted(region.fused()) == sorted(fused)
    assert len(region.outputs) == 1
    assert len(region.products) == (2 if name.startswith("swiglu") else 1)


@pytest.mark.parametrize(
    ("function", "once"),
    [(lambda x, w, b: F.relu(F.linear(x, w) + b), True),
     (lambda x, w, b: F.relu(F.linear(x, w) * b), False),
     (lambda x, w, b: (lambda h: h + b + h)(F.linear(x, w)), False),
     (lambda x, w, b: F.relu(F.linear(x, w)) + b, False)],
    ids=["bias", "factor", "read twice", "a function before it"],
)  # fmt: skip
def test_a_product_rounds_after_its_bias_and_before_anything_else(function, once):
    """So does eager's addmm, which Inductor takes apart on GPUs."""
    (region,) = regions(function, X, W, BIAS)
    assert takes_a_bias(region, region.products[0]) is once


def test_groups_have_a_second_output_as_well():
    def both(x, w, ends):
        h = torch._grouped_mm(x, w, ends)
        return h, F.silu(h)

    ends = torch.tensor([9, 32], dtype=torch.int32)
    (region,) = regions(both, draw(32, 64), draw(2, 64, 48), ends)
    assert region.fused() == SILU and len(region.outputs) == 2


OUTPUTS = {
    **dict.fromkeys((name for name in TRAINED if name.startswith("what backward needs")), 2),
    "what backward needs of swiglu": 3,
    "backward of swiglu": 2,
}
PLAIN = ("gradient of a weight", "gradient of a weight as addmm")


@pytest.mark.parametrize("name", TRAINED)
def test_each_product_of_a_training_step_is_one_region_with_what_follows(name):
    function, values = TRAINED[name]
    (region,) = regions(function, *values)
    assert len(region.outputs) == OUTPUTS.get(name, 1) and region.stop == ""
    assert bool(region.fused()) is (name not in PLAIN)
    assert len(region.products) == (2 if name.endswith(("of swiglu", "gate")) * ("needs" in name)
                                    else 1)  # fmt: skip


def test_a_gradient_of_two_products_is_a_region_of_the_second_that_adds_the_first():
    def backward(g, w, h, v, r):
        return g @ w + (h @ v) + r

    values = [draw(32, 96), draw(96, 64), draw(32, 96), draw(96, 64), draw(32, 64)]
    first, second = sorted(regions(backward, *values), key=lambda each: len(each.nodes))
    assert first.fused() == [] and second.fused() == ["add", "add"]
    assert first.outputs[0] in second.operands


def test_the_gradient_of_a_bias_is_left_to_inductor():
    """It is the sum over rows of what the region gives."""

    def backward(gradient, w, before):
        h = backward_of_gelu(gradient, w, before)
        return h, h.sum(0)

    (region,) = regions(backward, *TRAINED["backward of gelu"][1])
    assert len(region.outputs) == 1 and region.stop == "sum: is not elementwise"
    assert "exp" in region.fused()


def test_both_gradients_of_a_gated_layer_are_outputs_of_the_product_that_makes_them():
    (region,) = regions(*_parts(TRAINED["backward of swiglu"]))
    read = {each.name for each in region.operands}
    if "sigmoid" in SILU:  # torch 2.9 computes it of the gate ahead, and what is made of it is read
        read = {"gate_1" if each != "up_1" else each for each in read}
    assert read == {"gate_1", "up_1"}
    assert region.frame == (32, 64) and len(region.products) == 1


def _parts(pattern):
    function, values = pattern
    return function, *values


def test_the_value_that_backward_needs_is_a_second_output():
    (region,) = regions(saved, X, W, BIAS)
    assert region.fused() == GELU
    assert len(region.outputs) == 2


def test_backward_of_an_activation_joins_the_product_of_the_gradient():
    (region,) = regions(backward_of_gelu, draw(32, 96), draw(96, 64), draw(32, 64))
    assert len(region.outputs) == 1 and "exp" in region.fused()


NEAR_MISSES = {
    "a reduction": (
        lambda x, w: torch.softmax(F.linear(x, w), -1), (X, W),
        "amax: is not elementwise",
    ),
    "a norm behind a residual": (rms_and_itself, (X, W, RESIDUAL), "mean: is not elementwise"),
    "rows that are broadcast in part": (
        lambda x, w, p: F.linear(x, w) + p, (X, W, draw(16, 96)),
        "add: reads [16, 96], which has some of the rows' dims and not all",
    ),
    "heads": (
        lambda x, w: F.linear(x, w).view(2, 16, 4, 24) * 2, (X, W),
        "view: has the sizes [2, 16, 4, 24]",
    ),
    "an operand of int64": (
        lambda x, w, i: F.linear(x, w) * i, (X, W, torch.ones(96, dtype=torch.int64)),
        "mul: reads torch.int64",
    ),
    "a mask of elements": (
        lambda x, w, m: F.linear(x, w).masked_fill(m, 0.0), (X, W, RESIDUAL > 0),
        "where: reads a bool of each element",
    ),
    "an operand that would be copied": (
        lambda x, w, r: F.linear(x, w) + r.transpose(0, 1), (X, W, draw(16, 2, 96)),
        "add: reads a tensor with strides [96, 192, 1], which would be copied",
    ),
    "an operator that no kernel has": (
        lambda x, w: torch.cumsum(F.linear(x, w), -1), (X, W), "cumsum: is not elementwise",
    ),
    "a function of no kernel": (
        lambda x, w: torch.asin(F.linear(x, w)), (X, W), "asin: is computed in no kernel",
    ),
    "another power": (
        lambda x, w: F.linear(x, w).pow(1.5), (X, W),
        "pow: has the exponent 1.5, which no kernel computes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_no_kernel_computes_is_left_out_and_named(name):
    function, values, stop = NEAR_MISSES[name]
    (region,) = regions(function, *values)
    assert region.stop == stop
    assert [each for each in region.fused() if each != "add" or "residual" not in name] == []


def test_an_operand_that_would_be_copied_is_known_among_fake_tensors():
    """As torch.compile makes them, whose views refuse by an error of another kind."""
    function, values, stop = NEAR_MISSES["an operand that would be copied"]
    graph = graph_of(function, *values).graph
    found = [product_of(node) for node in graph.nodes]
    with FakeTensorMode():
        (region,) = regions_of(graph, [each for each in found if each])
    assert region.stop == stop


def test_a_product_that_is_cut_otherwise_stays_whole():
    def cut(x, w):
        q, k, v = F.linear(x, w).split(32, -1)
        return F.silu(q) * k, v

    (region,) = regions(cut, X, W)
    assert region.frame == (32, 96) and region.fused() == []


def test_a_mask_that_is_saved_is_made_outside():
    """A kernel stores no bool, so that the comparison is Inductor's."""
    (region,) = regions(lambda x, w: (lambda h: (F.relu(h), h > 0))(F.linear(x, w)), X, W)
    assert region.fused() == ["relu"] and len(region.outputs) == 2


def test_a_second_product_that_others_read_is_an_output_of_the_region():
    def both(x, w, v):
        gate, up = F.linear(x, w), F.linear(x, v)
        return F.silu(gate) * up, up.sum(), gate.sum()

    (region,) = regions(both, X, W, W2)
    assert len(region.products) == 2 and len(region.outputs) == 3


def test_a_second_product_is_no_part_of_the_region_where_others_read_what_lies_between():
    def both(x, w, v):
        gate, up = F.linear(x, w), F.linear(x, v) * 2
        return F.silu(gate) * up, up.sum()

    assert [len(each.products) for each in regions(both, X, W, W2)] == [1, 1]


def test_a_second_product_that_the_region_needs_in_another_way_is_no_part_of_it():
    """What a norm makes of it is read as well: the kernel would wait for itself."""

    def both(x, w, v):
        gate, up = F.linear(x, w), F.linear(x, v)
        return F.silu(gate) * up * torch.cumsum(up, -1)

    found = regions(both, X, W, W2)
    assert [len(each.products) for each in found] == [1, 1]


def test_two_products_of_different_inputs_are_two_regions():
    found = regions(
        lambda x, y, w, v: F.silu(F.linear(x, w)) * F.linear(y, v), X, draw(2, 16, 64), W, W2
    )
    assert sorted(len(each.products) for each in found) == [1, 1]


def test_a_value_that_changes_before_the_region_ends_leaves_the_product_alone():
    def changed(x, w, r):
        c = F.linear(x, w) + r
        r.add_(1)
        return c * 2

    (region,) = regions(changed, X, W, RESIDUAL)
    assert "add_" in region.stop and region.fused() == []


def test_regions_never_need_each_other():
    """Each product's chain reads the other's: only one of them is a region with its chain."""

    def crossed(x, w, v):
        one, two = F.linear(x, w), F.linear(x * 2, v)
        return one * torch.exp(two).cumsum(-1), two * torch.exp(one).cumsum(-1)

    found = regions(crossed, X, W, W2)
    assert len(found) == 2
    assert any("another region" in each.stop for each in found)


@pytest.mark.parametrize(
    ("function", "values", "reason"),
    [
        (torch.mm, (draw(8, 8, dtype=torch.float32), draw(8, 8, dtype=torch.float32)),
         "float32 must be multiplied exactly (torch.set_float32_matmul_precision)"),
        (torch.mm, (draw(0, 8), draw(8, 8)), "a size is 0"),
    ],
)  # fmt: skip
def test_products_that_no_kernel_makes_are_left_with_the_reason(function, values, reason):
    nodes = graph_of(function, *values).graph.nodes
    (refusal,) = [product_of(node) for node in nodes if product_of(node)]
    assert isinstance(refusal, Refusal) and refusal.reason == reason


def test_layers_alike_are_described_alike_and_others_are_not():
    def layers(x, w, v):
        return F.gelu(F.linear(F.gelu(F.linear(F.gelu(F.linear(x, w)), v)), w))

    one, two, three = regions(layers, X, draw(96, 64), draw(64, 96))
    assert described(one) == described(three) != described(two)


@pytest.mark.parametrize("seed", range(20))
def test_what_depends_on_others_is_found_as_by_following_every_user(seed):
    """Operators of a random graph are added in its order, as regions grow."""
    draws = random.Random(seed)
    graph = torch.fx.Graph()
    nodes = [graph.placeholder("a")]
    for _ in range(30):
        pair = tuple(draws.choice(nodes[-8:]) for _ in range(2))
        nodes.append(graph.call_function(torch.add, pair))
    product = nodes[5]
    others = Others(product, {node: place for place, node in enumerate(graph.nodes)})
    behind = set()
    for node in nodes[6:]:
        depends = any(each in behind for each in node.all_input_nodes)
        assert (node in others) is depends
        if depends or (product in node.all_input_nodes and draws.random() < 0.4):
            others.add(node)
            behind.add(node)


@pytest.mark.parametrize("seed", range(20))
def test_circles_are_found_as_by_following_every_user(seed):
    """Regions of a random graph, of operators that lie apart."""
    draws = random.Random(seed)
    graph = torch.fx.Graph()
    nodes = [graph.placeholder("a")]
    for _ in range(40):
        pair = tuple(draws.choice(nodes[-6:]) for _ in range(2))
        nodes.append(graph.call_function(torch.add, pair))
    order = {node: place for place, node in enumerate(graph.nodes)}
    owner = {}
    for begin in draws.sample(range(1, 34), 12):
        free = [node for node in nodes[begin : begin + 7] if node not in owner]
        region = Region([], free[:1] + free[2::3])
        assert in_circle(region, owner, order) is leads_back(region, owner)
        if not leads_back(region, owner):
            owner |= dict.fromkeys(region.nodes, region)


def leads_back(region, owner):
    reached, waiting = set(), list(region.nodes)
    while waiting:
        node = waiting.pop()
        together = owner[node].nodes if node in owner else [node]
        for user in (user for each in together for user in each.users):
            if user in region.nodes:
                if node not in region.nodes:
                    return True
            elif user not in reached:
                reached.add(user)
                waiting.append(user)
    return False


@pytest.mark.parametrize(
    ("setting", "asked", "types"),
    [
        ("highest", ("", ""), ["bf16x9"]),
        ("high", ("", ""), ["tf32"]),
        ("highest", ("tf32", "tf32"), ["tf32"]),
        ("high", ("3xtf32", "ieee"), ["3xtf32", "f32"]),
    ],
)
def test_our_own_product_of_f32_has_the_digits_of_its_call_or_of_torchs_setting(
    setting, asked, types
):
    def gated(x, w, v):
        """As Dynamo records calls, which do not know the setting."""
        gate = product_operator(x, w, *How(precision=asked[0]))
        return F.silu(gate) * product_operator(x, v, *How(precision=asked[1]))

    sizes = (32, 48), (16, 48), (16, 48)
    values = [draw(*each, dtype=torch.float32, seed=n) for n, each in enumerate(sizes)]
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        found = [prepare(each, "sm_100a").spec for each in regions(gated, *values)]
    finally:
        torch.set_float32_matmul_precision(before)
    assert [each.a_dtype for each in found] == types
