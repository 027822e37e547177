"""Ours against Inductor's: what is launched, when Inductor compiles for it, and what is kept.

Without a GPU the clock is a stand-in that calls each contender once.
"""

import os

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of, regions
from torch._inductor import config
from torch.testing import assert_close

from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle
from tilewright.compiler.inductor import graph_pass, judge, operator, race
from tilewright.compiler.inductor.describe import described
from tilewright.compiler.inductor.graph_pass import take_regions
from tilewright.compiler.inductor.race import Raced
from tilewright.compiler.inductor.settings import Settings
from tilewright.compiler.inductor.source import prepare

X, W, V, BIAS = draw(16, 32), draw(48, 32, seed=2), draw(48, 32, seed=3), draw(48)
NOT_TUNED = {"max_autotune": False}


def entered(function, *values):
    """The region of a function, with its kernel."""
    (region,) = regions(function, *values)
    prepared = prepare(region, "sm_100a")
    operator.enter(prepared.key, cached_bundle(prepared.source, "sm_100a", prepared.pipeline))
    return region, prepared


def clock(monkeypatch, *times):
    """Let races take these microseconds, ours and theirs; gives what the contenders made."""
    made, left = [], list(times)

    def once(contenders, sets, rounds, clocks, rest):
        assert rest > 0, "long products in a row run at the limit of power"
        made.append([contenders[name](sets - 1) for name in ("ours", "inductor")])
        return {race.APART: dict(zip(("ours", "inductor"), left.pop(0), strict=True))}

    monkeypatch.setattr(race, "measure_in_graphs", once)
    return made


def test_a_product_alone_races_against_aten_on_the_same_inputs(monkeypatch):
    region, prepared = entered(F.linear, X, W)
    monkeypatch.delattr(race, "by_inductor")
    made = clock(monkeypatch, (2.0, 3.0))
    assert race.race(region, prepared, NOT_TUNED, 0.99) == Raced(2.0, 3.0)
    assert_close(made[0][0], made[0][1][0])
    assert judge._by_estimate(region, prepared).taken is False


def test_a_region_that_beats_its_products_needs_no_kernel_of_inductors(monkeypatch):
    region, prepared = entered(lambda x, w, b: F.gelu(F.linear(x, w, b)), X, W, BIAS)
    monkeypatch.delattr(race, "by_inductor")
    clock(monkeypatch, (2.0, 3.0))
    assert race.race(region, prepared, NOT_TUNED, 0.99) == Raced(2.0, 3.0, at_least=True)


def test_a_region_as_fast_as_its_products_races_against_all_of_it(monkeypatch):
    region, prepared = entered(lambda x, w, b: F.gelu(F.linear(x, w, b)), X, W, BIAS)
    monkeypatch.setattr(race, "by_inductor", lambda module, inputs, options: module)
    made = clock(monkeypatch, (2.0, 2.01), (2.0, 5.0))
    assert race.race(region, prepared, NOT_TUNED, 0.99) == Raced(2.0, 5.0)
    assert_close(made[1][0], made[1][1][0], rtol=2e-2, atol=2e-2)


def test_inductor_compiles_for_a_race_without_us_and_with_the_models_options():
    """In the middle of a compilation, whose state it must not see."""
    from torch._inductor import config

    seen = []

    def hook(graph):
        seen.append((config.post_grad_custom_post_pass, config.max_autotune_pointwise))

    (region,) = regions(F.linear, X, W)
    options = {"max_autotune_pointwise": True, "post_grad_custom_pre_pass": hook}
    with config.patch(post_grad_custom_post_pass=hook):
        compiled = race.by_inductor(race.module_of(region), [X, W.T], options)
    assert_close(compiled(X, W.T)[0], X @ W.T)
    assert seen == [(None, True)]


def test_where_inductor_tunes_products_each_race_is_against_all_of_the_region(monkeypatch):
    region, prepared = entered(lambda x, w: F.relu(F.linear(x, w)), X, W)
    monkeypatch.setattr(race, "by_inductor", lambda module, inputs, options: module)
    clock(monkeypatch, (2.0, 9.0))
    assert race.race(region, prepared, {"max_autotune": True}, 0.99) == Raced(2.0, 9.0)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (lambda x, w, b: F.gelu(F.linear(x, w, b)), (X, W, BIAS), [X @ W.T]),
        (lambda x, w, v: F.silu(x @ w.T) * (x @ v.T), (X, W, V), [X @ W.T, X @ V.T]),
        (lambda x, w: (lambda g, u: F.silu(g) * u)(*(x @ w.T).chunk(2, -1)), (X, W), [X @ W.T]),
        (lambda c, a, b: torch.baddbmm(c, a, b) * 2, (draw(2, 8, 8),) * 3,
         [torch.bmm(draw(2, 8, 8), draw(2, 8, 8))]),
    ],
    ids=["addmm", "swiglu", "halves", "baddbmm"],
)  # fmt: skip
def test_a_regions_products_are_atens_without_what_is_added(function, values, expected):
    (region,) = regions(function, *values)
    known = values_of(graph_of(function, *values), values)
    reads = [known[each.name] for each in region.reads]
    for made, wanted in zip(race.products_of(region)(*reads), expected, strict=True):
        assert_close(made, wanted)


def masked(x, w, mask):
    return F.linear(x, w) * mask * 2


def masked_by_its_conversion(x, w, mask):
    """As backward has a mask of dropout that forward saved."""
    return F.linear(x, w) * mask.to(x.dtype) * 2


@pytest.mark.parametrize(
    ("function", "sizes"), [(masked, (48,)), (masked_by_its_conversion, (16, 48))]
)
def test_ours_converts_a_bool_each_time_and_inductor_reads_it(function, sizes, monkeypatch):
    region, prepared = entered(function, X, W, draw(*sizes) > 0)
    theirs, converted = [], []
    monkeypatch.setattr(race, "by_inductor", lambda module, *known: theirs.append(known) or module)
    to = torch.Tensor.to

    def counted(value, dtype, *others):
        converted.append((value.dtype, dtype))
        return to(value, dtype, *others)

    monkeypatch.setattr(torch.Tensor, "to", counted)
    made = clock(monkeypatch, (2.0, 2.0), (2.0, 3.0))
    assert race.race(region, prepared, NOT_TUNED, 0.99) == Raced(2.0, 3.0)
    assert converted.count((torch.bool, torch.bfloat16)) == 2, "once in each of two measurements"
    assert [each.dtype for each in theirs[0][0]][2] is torch.bool
    assert_close(made[1][0], made[1][1][0])
    assert 0.2 < (made[1][0] == 0).float().mean() < 0.8, "a mask that is drawn"


def test_only_of_bools_a_conversion_is_told_from_what_is_there():
    """Equal texts share the times of a race."""
    mask = draw(16, 48)
    (one,), (other,) = (regions(masked_by_its_conversion, X, W, m) for m in (mask > 0, mask))
    assert described(one).replace("$2: converted from a bool\n", "") == described(other)
    assert described(one) != described(other)
    assert [judge._converted(each) for each in (one, other)] == [16 * 48, 0]


def values_of(module, values):
    """What each node of a graph gives for these inputs, by name."""
    found = {}

    class Watch(torch.fx.Interpreter):
        def run_node(self, n):
            found[n.name] = super().run_node(n)
            return found[n.name]

    Watch(module).run(*values)
    return found


def test_races_are_kept_on_disk_and_a_damaged_one_is_run_again(fresh_cache):
    place = fresh_cache / "races" / "one.json"
    assert judge.read_race(place) is None
    judge.keep_race(place, Raced(2.0, 3.0, True))
    assert judge.read_race(place) == Raced(2.0, 3.0, True)
    for damaged in ('{"ours_us": "nan?"}', '{"ours_us": 0, "inductor_us": 3, "at_least": true}'):
        place.write_text(damaged)
        assert judge.read_race(place) is None
    os.chmod(place, 0o666)
    judge.keep_race(place, Raced(2.0, 3.0))
    assert judge.read_race(place) == Raced(2.0, 3.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "taken"),
    [(28.5, 21.6, False), (21.6, 21.6, False), (21.4, 21.6, False), (21.3, 21.6, True)],
    ids=["slower", "as fast", "0.9 % faster", "1.4 % faster"],
)
def test_a_weight_gradient_is_left_unless_it_is_faster_by_the_margin(
    ours, theirs, taken, monkeypatch, fresh_cache, rows
):
    module = graph_of(lambda gradient, x: gradient.T @ x, draw(64, 16), draw(64, 32))
    races = []

    def on_a_gpu(region, *known):
        for each in region.reads:
            each.meta["val"] = each.meta["val"].to("meta")  # or else it runs on the emulator
        return judge.judge(region, *known)

    def once(*asked):
        races.append(asked)
        return Raced(ours, theirs)

    monkeypatch.setattr(graph_pass, "judge", on_a_gpu)
    monkeypatch.setattr(judge, "race", once)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {ours}")
    for _ in range(2):  # as another process that finds what this one measured
        take_regions(module.graph, Settings(device="emulator"))
        kept = [node.target for node in module.graph.nodes if node.op == "call_function"]
        assert (torch.ops.aten.mm.default in kept) is not taken
        assert rows[-1].taken is taken, rows[-1]
        assert rows[-1].ours_us == ours and rows[-1].inductor_us == theirs
        module = graph_of(lambda gradient, x: gradient.T @ x, draw(64, 16), draw(64, 32))
    ((*_, enough),) = races
    assert enough == 1 - judge.LEAST_GAIN


def test_without_a_race_the_estimate_decides(monkeypatch):
    """That of two products is twice that of one; a measured schedule needs none."""
    region, prepared = entered(lambda x, w, v: F.silu(F.linear(x, w)) * F.linear(x, v), X, W, V)
    assert len(region.products) == 2
    monkeypatch.setattr(judge, "memory_us", lambda *_: 0.0)
    monkeypatch.setattr(judge, "traffic_us", lambda *_: 0.5)
    for us, reason, taken in (
        (None, "no estimate is known", False),
        (2.0, "by estimate 2.25 of Inductor's speed", True),
    ):
        monkeypatch.setattr(judge, "Estimate", lambda *_, us=us: lambda: us)
        assert judge._by_estimate(region, prepared)[:2] == (taken, reason)
    monkeypatch.setattr(judge, "measured_schedule", lambda *_: "a schedule")
    assert judge._by_estimate(region, prepared)[:2] == (True, "a measured schedule is known")


@pytest.mark.skipif(not hasattr(config, "deterministic"), reason="this Inductor has no such mode")
def test_where_rounding_may_not_depend_on_measurements_nothing_is_measured(monkeypatch):
    region, prepared = entered(lambda x, w, b: F.gelu(F.linear(x, w, b)), X, W, BIAS)
    for each in region.reads:
        each.meta["val"] = each.meta["val"].to("meta")  # a GPU's, or else it is not measured
    monkeypatch.delattr(judge, "race")
    with config.patch(deterministic=True):
        verdict = judge.judge(region, prepared, "text", Settings())
    assert verdict.reason.startswith("by estimate"), verdict


@pytest.mark.skipif(not hasattr(config, "batch_invariant"), reason="this Inductor has no such mode")
def test_where_results_may_not_depend_on_the_rows_nothing_is_taken():
    region, prepared = entered(F.linear, X, W)
    with config.patch(batch_invariant=True):
        verdict = judge.judge(region, prepared, "text", Settings(device="emulator"))
    assert not verdict.taken
    assert "batch_invariant" in verdict.reason
