"""Regions whose rows are a symbol: kernels for any M in their place, and what is left."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from graphs import aten_graph, draw, taken_apart
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)
from torch.testing import assert_close

from tilewright.compiler.calls.kernels import row_kernels
from tilewright.compiler.inductor import operator
from tilewright.compiler.inductor.ahead import Workers
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.operator import kernel_of, region_operator
from tilewright.compiler.inductor.row_regions import RowsPrepared
from tilewright.compiler.inductor.settings import Settings
from tilewright.compiler.inductor.symbols import numbered
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import MANY_ROWS, ROWS_MOST, MatmulSpec
from tilewright.runtime.bundles.several import bands_of

W, V, D, BIAS = draw(48, 32), draw(48, 32), draw(32, 48), draw(48)


@pytest.fixture(autouse=True)
def two_kernels(monkeypatch):
    """One for up to 16 rows, and one for more, where the choice would have some more."""

    choose = row_kernels.kept_buckets

    def made(spec: MatmulSpec, target: str) -> list[Bucket]:
        if spec.dynamic_k:
            return choose(spec, target)
        passes = "tma-insertion,swizzle-selection"
        few = replace(spec, m=16, least_m=1, most_m=16)
        more = replace(spec, m=MANY_ROWS, least_m=17, most_m=ROWS_MOST)
        tiles = {16: "64x32x32", MANY_ROWS: "64x64x32"}
        return [
            Bucket(each, f"tiling{{tile={tiles[each.m]}}},{passes}", ((each.least_m, each.most_m),))
            for each in (few, more)
        ]

    monkeypatch.setattr(row_kernels, "kept_buckets", made)


def on_emulator(target: str) -> Settings:
    return Settings(device="emulator", target=target, processes=1)


def traced(function, x, *known):
    """The graph of a function with symbols for all sizes of x but its columns."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    dims = [DimDynamic.DYNAMIC] * (x.dim() - 1) + [DimDynamic.STATIC]
    symbols = StatelessSymbolicContext(dynamic_sizes=dims)
    fakes = [mode.from_tensor(x, symbolic_context=symbols)]
    fakes += [mode.from_tensor(each, static_shapes=True) for each in known]
    with mode:
        return aten_graph(function, *fakes)


def taken(function, x, *known, target="sm_90a"):
    """That graph with kernels in it."""
    module = traced(function, x, *known)
    guards = guards_of(module)
    take_regions(module.graph, on_emulator(target))
    assert guards_of(module) == guards, "the pass binds the graph to sizes"
    module.recompile()
    return module


def guards_of(module) -> int:
    sizes = (each for node in module.graph.nodes for each in shape_of(node))
    found = next((each for each in sizes if isinstance(each, torch.SymInt)), None)
    return -1 if found is None else len(found.node.shape_env.guards)


def shape_of(node):
    value = node.meta.get("val")
    return value.shape if isinstance(value, torch.Tensor) else ()


def calls(module):
    return [node for node in module.graph.nodes if node.target is region_operator]


def plain(x, w):
    return x @ w.T


def biased(x, w, bias):
    return F.gelu(F.linear(x, w, bias))


def layer(x, w, v, d):
    h = F.rms_norm(x, (32,))
    return x + F.linear(F.silu(F.linear(h, w)) * F.linear(h, v), d)


def scaled_rows(x, w):
    return (x @ w.T) * x.abs().amax(-1, keepdim=True) * 0.5


ERF, SILU = ["mul", "mul", "erf", "add", "mul"], taken_apart(F.silu)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("function", "known", "shapes", "fused"),
    [
        (plain, (W,), ((5, 32), (16, 32), (40, 32)), [[]]),
        (biased, (W, BIAS), ((5, 32), (17, 32), (80, 32)), [ERF]),
        (scaled_rows, (W,), ((6, 32), (19, 32)), [["mul", "mul"]]),
        (layer, (W, V, D), ((2, 8, 32), (3, 5, 32), (4, 21, 32)), [[*SILU, "mul"], ["add"]]),
    ],
)
def test_a_region_is_right_for_rows_that_nobody_traced(
    function, known, shapes, fused, target, rows
):
    """Also of two symbols, whose product the rows are."""
    module = taken(function, draw(*shapes[0]), *known, target=target)
    assert [row.fused for row in rows] == fused and all(row.taken for row in rows)
    assert len(calls(module)) == len(fused)
    for number, shape in enumerate(shapes):
        x = draw(*shape, seed=number)
        assert_close(module(x, *known), function(x, *known), rtol=2e-2, atol=2e-2)


def test_values_of_rows_and_of_columns_are_told_apart(rows):
    """Where as many rows were traced as there are columns."""

    def function(x, w, scale):
        return (x @ w.T) * x[:, 0][:, None] * scale

    module = taken(function, draw(48, 32), W, BIAS)
    assert len(calls(module)) == 1
    for count in (48, 9):
        x = draw(count, 32, seed=count)
        assert_close(module(x, W, BIAS), function(x, W, BIAS), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("by_row", [False, True])
def test_scaled_products_share_any_rows(by_row, rows):
    """With one factor for a tensor, and with one for each row and column."""

    def factors(x, of_columns):
        return (x[:, :1].float().abs() + 1, of_columns) if by_row else (of_columns[:, :1],) * 2

    def function(x, w, of_columns, bias):
        factor, columns = factors(x, of_columns)
        made = torch._scaled_mm(
            x, w.t(), factor, columns, bias=bias, out_dtype=torch.bfloat16, use_fast_accum=True
        )
        return F.relu(made)

    def eight_bits(*sizes, seed=5):
        return draw(*sizes, seed=seed).to(torch.float8_e4m3fn)

    known = eight_bits(48, 32), draw(1, 48, dtype=torch.float32).abs() + 0.5, BIAS
    module = taken(function, eight_bits(16, 32), *known, target="sm_100a")
    assert [row.taken for row in rows] == [True], rows[0]
    for count in (7, 33):
        x = eight_bits(count, 32, seed=count)
        w, of_columns, bias = known
        factor, columns = factors(x, of_columns)
        exact = (x.double() * factor) @ (w.double().T * columns) + bias
        made = module(x, *known)
        assert_close(made.double(), F.relu(exact), rtol=2e-2, atol=2e-2)


def experts(x, w, v, ends):
    h = F.silu(torch._grouped_mm(x, w, ends)) + 1
    return torch._grouped_mm(h, v, ends) * x


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("transposed", [False, True])
def test_groups_share_any_rows(target, transposed, rows):
    """Also where the matrices of groups lie with the other dim contiguous."""
    w, v = draw(4, 32, 48, seed=2), draw(4, 48, 32, seed=3)
    w = w.mT.contiguous().mT if transposed else w

    def ends(count):
        return torch.tensor([3, 3, count // 2, count], dtype=torch.int32)

    module = taken(experts, draw(40, 32), w, v, ends(40), target=target)
    assert [row.taken for row in rows] == [True, True], rows
    assert [row.fused for row in rows] == [[*SILU, "add"], ["mul"]]
    for count in (40, 7, 16, 95):
        given = draw(count, 32, seed=count), w, v, ends(count)
        assert_close(module(*given), experts(*given), rtol=2e-2, atol=2e-2)


def test_other_symbols_of_groups_are_left(rows):
    """The rows of an operand that are not contiguous."""

    def function(x, w, ends):
        return torch._grouped_mm(x[::2], w, ends)

    ends = torch.tensor([3, 5, 9, 24], dtype=torch.int32)
    module = taken(function, draw(48, 32), draw(4, 32, 48), ends)
    assert not calls(module)
    (row,) = rows
    assert "must be contiguous for groups" in row.reason


def test_known_rows_keep_a_kernel_of_their_own(rows):
    def function(x, w, v, y):
        return F.relu(x @ w.T), torch.tanh(y @ v.T)

    known = W, V, draw(24, 32, seed=9)
    module = taken(function, draw(6, 32), *known)
    kinds = [type(kernel_of(node.args[1])).__name__ for node in calls(module)]
    assert sorted(kinds) == ["DynamicKernel", "Kernel"]
    x = draw(21, 32, seed=4)
    for made, wanted in zip(module(x, *known), function(x, *known), strict=True):
        assert_close(made, wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    ("function", "values", "said"),
    [
        (lambda x: x @ x.T, (draw(24, 32),), "sizes beside rows must be numbers"),
        (lambda x, w: w @ x.T, (draw(48, 24), draw(32, 24)), "rows or K must be the symbol"),
        (
            lambda x, w: torch.bmm(w, x.mT),
            (draw(4, 24, 32), draw(4, 8, 32)),
            "the matrices and their rows alone may be symbols",
        ),
    ],
)
def test_other_symbols_are_left_with_their_reason(function, values, said, rows):
    module = taken(function, *values)
    assert not calls(module)
    assert len(rows) == 1 and said in rows[0].reason
    assert_close(module(*values), function(*values))


@pytest.mark.parametrize(
    ("function", "counts", "stop"),
    [
        (lambda x, w: (x @ w.T) * torch.sym_min(x.shape[0], 8), (12, 5), "mul"),
        (lambda x, w: (x @ w.T) + (x.shape[0] % 2), (12, 5), "add"),
        (lambda x, w: (x @ w.T) * (1 + x.shape[0] // 100), (12, 205), "mul"),
        (lambda x, w: (x @ w.T) + x.new_full((48,), x.shape[0] // 100), (12, 205), ""),
        (lambda x, w: (w @ w.T) * torch.sym_min(x.shape[0], 8), (12, 5), "mul"),
    ],
)
def test_a_symbol_that_is_computed_with_is_read_by_no_kernel(function, counts, stop, rows):
    """Also where it is the same number of the rows that are traced and of other ones."""
    module = taken(function, draw(counts[0], 32), W)
    assert rows[0].taken and stop in rows[0].stop
    for count in counts:
        x = draw(count, 32, seed=count)
        assert_close(module(x, W), function(x, W), rtol=2e-2, atol=2e-2)


def test_rows_of_a_weight_that_follow_from_a_symbol_are_left(rows):
    def function(x, w):
        return x @ w.new_ones((torch.sym_min(x.shape[0], 8), 32)).T

    module = taken(function, draw(12, 32), W)
    assert not calls(module) and "or differ where symbols do" in rows[0].reason
    for count in (12, 5):
        x = draw(count, 32, seed=count)
        assert_close(module(x, W), function(x, W))


def test_a_symbol_that_another_size_binds_is_a_number(rows):
    module = taken(lambda x, w: w @ x, draw(48, 24), draw(32, 48))
    assert [row.sizes for row in rows] == [(32, 24, 48)] and len(calls(module)) == 1


def test_a_function_that_no_kernel_has_is_left_with_its_product(rows, monkeypatch):
    from tilewright.compiler.inductor import row_regions

    def refused(*_):
        raise row_regions.CompileError("region: must be a function, got none")

    monkeypatch.setattr(row_regions, "any_rows", refused)
    taken(biased, draw(5, 32), W, BIAS)
    assert not rows[0].taken and "must be a function" in rows[0].reason


def test_numbers_stand_for_symbols_in_all_sizes():
    def function(x, w):
        return (x @ w.T).view(2, -1, 48)

    graphs = numbered(traced(function, draw(6, 32), W).graph)
    assert graphs is not None
    first, second = (
        [tuple(shape_of(node)) for node in graph.nodes] for graph in (graphs.first, graphs.second)
    )
    assert (6, 48) in first and (2, 3, 48) in first
    assert (42, 48) in second and (2, 21, 48) in second
    assert numbered(graphs.first) is None


def test_another_process_finds_the_kernels_of_a_cached_graph(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    module = taken(plain, draw(7, 32), W)
    monkeypatch.setattr(operator, "_loaded", {})
    for count in (3, 30):
        x = draw(count, 32, seed=count)
        assert_close(module(x, W), plain(x, W), rtol=2e-2, atol=2e-2)


class Layer(torch.nn.Module):
    """The layer with weights of known sizes, as a model has them."""

    def __init__(self):
        super().__init__()
        self.w, self.v, self.d = (torch.nn.Parameter(each) for each in (W, V, D))

    def forward(self, x):
        return layer(x, self.w, self.v, self.d)


def test_kernels_that_share_the_rows_otherwise_are_another_bundle():
    """A process keeps it by its key, and would launch the wrong kernel by one for both."""
    shared = [bands_of([[(1, last)], [(last + 1, 64)]]) for last in (16, 32)]
    jobs = dict.fromkeys(["few", "many"])
    one, other = (RowsPrepared(*[None] * 6, jobs, each) for each in shared)
    assert one.key != other.key


@pytest.mark.slow
def test_torch_compiles_once_for_every_number_of_rows(rows):
    torch._dynamo.reset()
    options = {"device": "emulator", "target": "sm_90a", "processes": 1}
    model = Layer()
    module = torch.compile(model, backend="tilewright", options=options, dynamic=True)
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        for count in (8, 3, 21, 16, 17):
            x = draw(2, count, 32, seed=count)
            assert_close(module(x), model(x), rtol=3e-2, atol=0.2)
    assert [(row.taken, row.product) for row in rows] == [(True, "2 mm"), (True, "mm")]


@pytest.mark.slow
def test_gradients_of_any_rows_are_those_of_eager(rows):
    """Of the input by kernels for any M; those of weights, which have the symbol as their K, by one
    for any K."""
    torch._dynamo.reset()
    options = {"device": "emulator", "target": "sm_90a", "processes": 1}
    linear = torch.nn.Linear(32, 48, dtype=torch.bfloat16)
    linear.load_state_dict({"weight": W, "bias": BIAS})
    eager = torch.nn.Sequential(linear, torch.nn.GELU())
    compiled = torch.compile(eager, backend="tilewright", options=options, dynamic=True)
    for count in (6, 20):
        found = []
        for module in (compiled, eager):
            x = draw(count, 32, seed=count).requires_grad_()
            linear.zero_grad()
            module(x).sum().backward()
            found.append((x.grad, linear.weight.grad.clone(), linear.bias.grad.clone()))
        for ours, wanted in zip(*found, strict=True):
            assert_close(ours, wanted, rtol=3e-2, atol=4e-2)
    assert len(rows) == 3 and all(row.taken for row in rows), [row.reason for row in rows]


def test_what_processes_choose_ahead_is_what_kernels_are_asked_for(monkeypatch):
    """Of each different region of the graph once, before any of them is prepared."""
    asked, ahead = [], []
    choose = row_kernels.kept_buckets
    monkeypatch.setattr(row_kernels, "kept_buckets", lambda *a: asked.append(a) or choose(*a))
    monkeypatch.setattr(
        Workers, "choose_all", lambda _, each: ahead.append(([tuple(e) for e in each], len(asked)))
    )
    taken(lambda x, w, v, d: torch.relu(x @ w.T) + torch.tanh(x @ v.T), draw(20, 32), W, V, D)
    taken(lambda x, w: torch.relu(torch.relu(x @ w.T) @ w), draw(20, 32), W)
    (first, before), (second, between) = ahead
    assert asked == [*first, *second] and (before, between) == (0, len(first))
    assert [len(first), len(second)] == [1, 2]


@pytest.mark.parametrize("more", [False, True])
def test_a_size_that_only_the_region_gives_is_no_size_of_its_kernel(more, rows):
    """Its node stands behind the region. One such size is what is left of all elements; with more
    the region is left, as it was."""

    def pairs(x, w):
        count = x.shape[0]
        sums = (x[:, None] + x[None]).reshape(count**2, -1) @ w.T
        known = sums.view(count, -1, w.shape[0])
        rest = known.shape[1]
        if more:
            return sums.view(count * count * rest // (count * rest), rest, -1).relu()
        return known.relu() + known.new_ones(rest, 1)

    module = taken(pairs, draw(6, 32), W)
    assert [(row.fused[:1], row.taken) for row in rows] == [(["relu"], not more)]
    assert len(calls(module)) == (not more)
    x = draw(8, 32, seed=1)
    assert_close(module(x, W), pairs(x, W), rtol=2e-2, atol=2e-2)
