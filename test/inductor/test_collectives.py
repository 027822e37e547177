"""Collectives run while our kernels do, as they do beside torch's products.

The group is torch's fake one: its collectives give at once what they were given room for, and what
is looked at is the order in which Inductor's code starts them, multiplies and waits.
"""

import importlib
import re
from importlib.util import find_spec

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of, regions
from torch import distributed
from torch._inductor import config
from torch._inductor.utils import run_and_get_code
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.flop_counter import FlopCounterMode

from tilewright import grouped_mm, matmul, weight_only_mm
from tilewright.compiler.inductor import ranks
from tilewright.compiler.inductor.collectives import collectives_of
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.judge import Verdict
from tilewright.compiler.inductor.settings import Settings
from tilewright.nn import quantize_weights

ESTIMATES = [
    importlib.import_module(each)
    for each in ("torch._inductor.utils", "torch.utils._runtime_estimation")
    if find_spec(each)  # the second is there since torch 2.10
]
RANKS = 2
X, W, V, Y = draw(32, 64), draw(64, 64), draw(64, 64, seed=2), draw(16, 64, seed=3)
collective = torch.ops._c10d_functional


@pytest.fixture(scope="module", autouse=True)
def group():
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    yield
    distributed.destroy_process_group()


def gathered(x):
    return collective.wait_tensor(collective.all_gather_into_tensor(x, RANKS, "0"))


def scattered(x):
    return collective.wait_tensor(collective.reduce_scatter_tensor(x, "sum", RANKS, "0"))


def gathering_beside(x, w, v, y):
    h = x @ w
    g = gathered(y)
    return (h @ v) @ w, g @ w


def sequence_parallel(x, w, v, y):
    """Rows are gathered before the first product of a block and scattered behind the last."""
    h = scattered(gathered(x) @ w)
    return scattered(gathered(h) @ v), scattered(gathered(y) @ w)


def gradients_scattered(x, w, v, y):
    """Each weight's gradient is scattered while the next is computed."""
    del y
    return [scattered(each.T @ x) for each in (x @ w, x @ v, (x @ w) @ v)]


STEP = re.compile(r"_c10d_functional\.(\w+)\.default\(|extern_kernels(?:\.|_)(mm|region_into)\(")
LATER = {"reorder_for_compute_comm_overlap": True}
BY_NODES = {
    **LATER,
    "reorder_for_compute_comm_overlap_passes": ["sink_waits", "reorder_compute_for_overlap"],
    "estimate_op_runtime": lambda node: 1.0,
}
BY_GRAPH = {
    "aten_distributed_optimizations.enable_overlap_scheduling": True,
    "aten_distributed_optimizations.pre_bucketing_fsdp_collectives": False,  # C++ for its copies
    "aten_distributed_optimizations.collective_bucketing": False,
    "aten_distributed_optimizations.custom_runtime_estimation": (
        lambda node, size=None: 0.0 if node.target is torch.ops.aten.permute.default else 1.0
    ),
}


ROOFLINE = "torch.distributed._tools.runtime_estimator.RuntimeEstimator._roofline_estimate"


def steps(function, **options):
    """What the code that Inductor writes does, one after the other."""
    torch._dynamo.reset()
    compiled = torch.compile(function, **options)
    with torch.no_grad():
        _, (code,) = run_and_get_code(compiled, X, W, V, Y)
    found = [one or "product" for one, other in STEP.findall(code)]
    assert found.count("product") > 2 and "wait_tensor" in found
    return found


@pytest.mark.sweep(9)
@pytest.mark.parametrize("patch", [{}, BY_NODES, BY_GRAPH], ids=["as they stand", "nodes", "graph"])
@pytest.mark.parametrize("function", [gathering_beside, sequence_parallel, gradients_scattered])
def test_waits_stand_where_they_stand_beside_torchs_products(function, patch, monkeypatch):
    if patch is BY_GRAPH and not hasattr(config, "aten_distributed_optimizations"):
        pytest.skip("torch 2.9 has no such pass")
    for module in ESTIMATES:
        monkeypatch.setattr(module, "get_gpu_dram_gbps", lambda: 3e3, raising=False)
        monkeypatch.setattr(module, "get_device_tflops", lambda dtype: 900.0, raising=False)
    monkeypatch.setattr(ROOFLINE, lambda *_: (None, 1.0))  # torch 2.11 asks a GPU for its own
    with config.patch({name: patch[name] for name in patch if name in config._config}):
        ours = steps(function, backend="tilewright", options={"device": "emulator"})
        assert ours == steps(function, backend="inductor")


def test_inductor_counts_what_our_kernels_compute(monkeypatch):
    """Of one output by a direct call, of two by an operator; it times neither as a copy."""
    counted = {}

    def look(node):
        name = str(getattr(node.node, "python_kernel_name", ""))
        if "region" in name:
            counted[name] = node.estimate_flops(), node.node.maybe_get_dtype()
        return 1.0

    def function(x, w, v, y):
        h = x @ w
        return torch.relu(h), gathered(y), h, torch.relu(x @ v)

    patch = {**BY_NODES, "estimate_op_runtime": look}
    with config.patch(patch), torch.no_grad():
        torch._dynamo.reset()
        torch.compile(function, backend="tilewright", options={"device": "emulator"})(X, W, V, Y)
    known = 2 * 32 * 64 * 64, torch.bfloat16
    direct, operator = (
        "tilewright_extern_kernels_region_into",
        "torch.ops.tilewright.region.direct",
    )
    assert counted == {direct: known, operator: known}


COUNTED = {
    "matrices": (lambda: matmul(X, V), 2 * 32 * 64 * 64),
    "one matrix for all": (lambda: matmul(draw(3, 8, 64), V), 2 * 24 * 64 * 64),
    "stacks": (lambda: matmul(draw(3, 8, 64), draw(3, 16, 64)), 2 * 3 * 8 * 64 * 16),
    "rows of groups": (
        lambda: grouped_mm(X, draw(2, 64, 24), offs=torch.tensor([9, 32], dtype=torch.int32)),
        2 * 32 * 64 * 24,
    ),
    "parts of K": (
        lambda: grouped_mm(X, draw(64, 24), offs=torch.tensor([9, 64], dtype=torch.int32)),
        2 * 32 * 64 * 24,
    ),
    "narrow weights": (
        lambda: weight_only_mm(X, *quantize_weights(V, "int8", 32)[:2], b_dtype="s8"),
        2 * 32 * 64 * 64,
    ),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_torchs_counter_counts_our_products(kind):
    call, expected = COUNTED[kind]
    with FlopCounterMode(display=False) as counter:
        call()
    assert counter.get_total_flops() == expected


def test_a_product_does_not_wait_for_what_is_added_to_it_later():
    (region,) = regions(lambda x, w, y: torch.relu(x @ w) + gathered(y), X, W, Y)
    assert region.fused() == ["relu"]
    assert region.stop == "add: waits for a collective that the product does not wait for"


def test_what_the_product_waits_for_itself_stops_nothing():
    (region,) = regions(lambda y, w, b: torch.relu(gathered(y) @ w) + gathered(b), Y, W, Y)
    assert region.fused() == ["relu"]

    def same(y, w):
        x = gathered(y)
        return torch.relu(x @ w) + x

    (region,) = regions(same, Y, W)
    assert region.fused() == ["relu", "add"]


def test_two_products_are_one_where_they_wait_for_the_same():
    def gated(x, w, v, first, second):
        return F.silu(x @ first(w)) * (x @ second(v))

    def count(first, second):
        found = regions(lambda x, w, v: gated(x, w, v, first, second), X, W[:32], V[:32])
        return [len(each.products) for each in found]

    assert count(gathered, gathered) == [1, 1]
    assert count(lambda w: torch.cat([w, w]), lambda v: torch.cat([v, v])) == [2]

    def of_one(y, w, v):
        x = gathered(y)
        return F.silu(x @ w) * (x @ v)

    assert [len(each.products) for each in regions(of_one, Y, W, V)] == [2]


def test_collectives_keep_their_order_around_a_region_that_ends_behind_them():
    """The first one reads what the region makes first, and the region reads what is made later."""

    def function(x, w, v, y):
        h = x @ w
        first = collective.all_reduce(h, "sum", "0")
        second = collective.all_reduce(y, "sum", "0")
        late = torch.sin(v[:32])
        return collective.wait_tensor(first), collective.wait_tensor(second), h * late

    module = graph_of(function, X, W, V, Y)
    before = collectives_of(module.graph)
    take_regions(module.graph, Settings(device="emulator"))
    assert len(module.graph.find_nodes(op="call_function", target=torch.ops.aten.mm.default)) == 0
    assert collectives_of(module.graph) == before
    module.graph.lint()


def test_the_first_verdict_holds_for_all_ranks(monkeypatch):
    store = distributed.HashStore()
    monkeypatch.setattr(ranks, "_store", lambda: store)
    first, second = Verdict(True, "1.02 of Inductor's speed", 9.8, 10.0), Verdict(False, "slower")
    assert ranks.agreed(["a region"], lambda: first) == first
    assert ranks.agreed(["a region"], lambda: second) == first
    assert ranks.agreed(["another"], lambda: second) == second


def test_a_verdict_that_came_meanwhile_holds_as_well(monkeypatch):
    store = distributed.HashStore()
    monkeypatch.setattr(ranks, "_store", lambda: store)
    first, second = Verdict(True, "faster"), Verdict(False, "slower")

    def slow():
        ranks.agreed(["a region"], lambda: first)
        return second

    assert ranks.agreed(["a region"], slow) == first


def test_a_store_that_keeps_nothing_leaves_each_rank_its_own():
    own = Verdict(False, "slower", 3.0, 2.0, True)
    assert ranks.agreed(["a region"], lambda: own) == own
