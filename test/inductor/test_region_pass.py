"""The pass as a whole: kernels in the place of regions, and what happens when there are none."""

import logging
import re
import threading
import warnings
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, graph_of
from graphs import regions as regions_of
from torch._inductor import config
from torch.testing import assert_close

import tilewright
from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle
from tilewright.compiler.calls.kernels.lookup import How, pipeline_of
from tilewright.compiler.calls.operators import direct_calls
from tilewright.compiler.inductor import (
    ahead,
    backend,
    chips,
    graph_pass,
    judge,
    operator,
    race,
)
from tilewright.compiler.inductor.graph_pass import RegionPass, take_regions
from tilewright.compiler.inductor.operator import region_operator
from tilewright.compiler.inductor.report import LOGGER
from tilewright.compiler.inductor.settings import Settings, split_options
from tilewright.compiler.inductor.source import prepare
from tilewright.dialects.errors import CompileError, OptionError
from tilewright.dialects.target import TARGETS
from tilewright.passes import PASSES

ON_EMULATOR = Settings(device="emulator")
X, W, V, D = draw(2, 8, 32), draw(48, 32), draw(48, 32), draw(32, 48)


def layer(x, w, v, d):
    h = F.rms_norm(x, (32,))
    return x + F.linear(F.silu(F.linear(h, w)) * F.linear(h, v), d)


def linear(x, w):
    return F.relu(F.linear(x, w))


def calls(graph):
    return [node for node in graph.nodes if node.target is region_operator]


def test_two_layers_give_what_eager_gives_from_two_kernels(rows, monkeypatch):
    """Rounding is eager's, so that only the order of sums may differ."""
    module = graph_of(lambda x, *w: layer(layer(x, *w), *w), X, W, V, D)
    said: list[str] = []
    monkeypatch.setattr(LOGGER, "info", lambda form, *values: said.append(form % values))
    take_regions(module.graph, ON_EMULATOR)
    module.recompile()
    assert [len(node.args[0]) for node in calls(module.graph)] == [3, 3, 3, 3]
    assert len({node.args[1] for node in calls(module.graph)}) == 2
    assert_close(module(X, W, V, D), layer(layer(X, W, V, D), W, V, D), rtol=2e-2, atol=2e-2)
    assert [row.product for row in rows] == ["2 mm", "mm"] * 2
    report = tilewright.torch.report()
    head, first, *_ = str(report).splitlines()
    assert re.fullmatch(r"4 of 4 products taken \(regions \d.* s, kernels \d.* s\)", head)
    assert first.startswith("   2 x taken 2 mm 16x") and list(report.seconds) == [
        "regions",
        "kernels",
    ]
    assert said == [str(row) for row in rows]


def test_torch_logs_can_ask_for_the_lines():
    """As TORCH_LOGS=tilewright does, which takes packages and no modules within them."""
    assert not LOGGER.isEnabledFor(logging.INFO)
    torch._logging.set_logs(modules={"tilewright": logging.INFO})
    try:
        assert LOGGER.isEnabledFor(logging.INFO)
    finally:
        torch._logging.set_logs()
        logging.getLogger("tilewright").setLevel(logging.NOTSET)
    assert not LOGGER.isEnabledFor(logging.INFO)


def test_what_nothing_reads_is_no_region(rows):
    """Inductor knows y * 0 without y, and leaves what made it in the graph."""
    module = graph_of(linear, X, W)
    (output,) = module.graph.find_nodes(op="output")
    with module.graph.inserting_before(output):
        zeros = module.graph.call_function(torch.ops.aten.full.default, ([2, 8, 48], 0.0))
    zeros.meta["val"] = output.args[0].meta["val"]
    output.args = (zeros,)
    take_regions(module.graph, ON_EMULATOR)
    assert not rows and not [node for node in module.graph.nodes if node.all_input_nodes[1:]]


def test_every_region_is_judged_by_the_operators_that_the_graph_had(monkeypatch):
    """A race copies a region's operators, which read what regions before it give."""
    module, copied = graph_of(lambda x, *w: layer(layer(x, *w), *w), X, W, V, D), []

    def verdict(region, prepared, text, settings):
        copied.append(race.module_of(region))
        return judge.Verdict(True, "for a test")

    monkeypatch.setattr(graph_pass, "judge", verdict)
    take_regions(module.graph, ON_EMULATOR)
    assert len(copied) == 2 and len(calls(module.graph)) == 4


def test_whatever_a_race_raises_leaves_the_region_to_inductor(monkeypatch, rows):
    def broken(*arguments):
        raise KeyError("reshape")

    module = graph_of(linear, X, W)
    monkeypatch.setattr(graph_pass, "judge", broken)
    with pytest.warns(UserWarning, match="left to Inductor: internal error: KeyError: 'reshape'"):
        take_regions(module.graph, ON_EMULATOR)
    assert not calls(module.graph) and not rows[0].taken


@pytest.mark.parametrize("name", ["numbered", "products_of_graph", "compiled_regions"])
def test_a_graph_that_cannot_be_read_is_left_as_it_is_with_one_warning(name, monkeypatch):
    def broken(*arguments):
        raise IndexError("an operator of another torch")

    module = graph_of(linear, X, W)
    before = str(module.graph)
    monkeypatch.setattr(graph_pass, name, broken)
    with pytest.warns(
        UserWarning, match="a graph is left to Inductor: internal error: Ind"
    ) as said:
        take_regions(module.graph, ON_EMULATOR)
    assert len(said) == 1 and str(module.graph) == before


def test_another_process_reads_the_kernel_from_disk_or_compiles_it_anew(fresh_cache):
    """Torch's cache gives it the graph alone, with the key and the recipe."""
    module = graph_of(linear, X, W)
    take_regions(module.graph, ON_EMULATOR)
    module.recompile()
    expected = module(X, W)
    operator._loaded.clear()
    cached_bundle.cache_clear()
    assert torch.equal(module(X, W), expected)
    (call,) = calls(module.graph)
    place = fresh_cache / f"{call.args[1]}.zip"
    place.unlink()
    operator._loaded.clear()
    cached_bundle.cache_clear()
    assert torch.equal(module(X, W), expected)
    assert place.exists()


def test_kernels_of_graphs_are_forgotten_where_a_pass_is_entered(monkeypatch):
    """Else a graph that is traced anew would call the kernel of the pass before."""
    monkeypatch.setitem(operator._loaded, "key", None)
    monkeypatch.setitem(direct_calls._kernels, "key", None)
    monkeypatch.setitem(PASSES, "tiling", PASSES["tiling"])
    assert not operator._loaded and not direct_calls._kernels


def test_a_region_that_does_not_compile_is_left_with_one_warning(rows, monkeypatch):
    def refuse(*_):
        raise CompileError("tiling: must be possible, got a test")

    monkeypatch.setattr(ahead, "cached_bundle", refuse)
    module = graph_of(lambda x, y, w: linear(x, w).sum() + linear(y, w).sum(), X, X + 1, W)
    before = str(module.graph)
    wanted = "mm 16x48x32 bfloat16 is left to Inductor: tiling: must be possible, got a test"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        take_regions(module.graph, ON_EMULATOR)
    assert [str(each.message) for each in said] == [f"tilewright: {wanted}"], "of equal ones one"
    assert str(module.graph) == before
    assert [row.taken for row in rows] == [False, False]


def test_tensors_of_the_cpu_are_left_to_inductor_unless_asked_for(rows):
    module = graph_of(linear, X, W)
    take_regions(module.graph, Settings())
    assert not calls(module.graph)
    assert rows[0].reason.endswith("device='emulator' runs them on the emulator")


def test_a_gpu_of_another_family_is_named_once(monkeypatch):
    chips._chip_of_gpu.cache_clear()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda number: (8, 6))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "GPU X")
    with pytest.warns(UserWarning, match="GPU X .* is neither Hopper nor Blackwell") as said:
        found = [chips.chip_of(torch.device("cuda:0"), Settings()) for _ in range(2)]
    assert len(said) == 1 and found[0] == found[1] and found[0][0] == ""
    chips._chip_of_gpu.cache_clear()


def test_regions_have_the_schedules_of_the_gpu_that_they_are_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda number: (9, 0))
    monkeypatch.setattr(chips, "default_target", lambda number: "h100")
    chips._chip_of_gpu.cache_clear()
    assert chips.chip_of(torch.device("cuda:0"), Settings()) == ("h100", "")
    chips._chip_of_gpu.cache_clear()
    gradient, x = torch.empty(8192, 768).bfloat16(), torch.empty(8192, 768).bfloat16()
    (region,) = regions_of(lambda gradient, x: gradient.T @ x, gradient, x)
    own, other = (prepare(region, target) for target in ("h100", "h200"))
    assert own.pipeline != other.pipeline
    assert own.pipeline == pipeline_of(own.spec, "h100", How())


def test_any_number_of_rows_is_one_graph_and_shared_kernels(rows):
    torch._dynamo.reset()
    options = {"device": "emulator"}
    module = torch.compile(lambda x: x @ W.T, backend="tilewright", options=options)
    with torch.no_grad():
        for count in (5, 20):
            x = draw(count, 32)
            torch._dynamo.mark_dynamic(x, 0)
            assert_close(module(x), x @ W.T)
    assert [(row.taken, row.sizes[1:]) for row in rows] == [(True, (48, 32))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "torch: device must be one of 'cuda', 'emulator', got 'tpu'"),
        ({"race": 1}, "torch: race must be one of True, False, got 1"),
        ({"target": "sm_1"}, "target: unknown chip 'sm_1'"),
        ({"math": "wild"}, "torch: math must be one of '', 'fast', 'exact', got 'wild'"),
        ({"processes": -1}, "torch: processes must be a number of processes, or 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, message):
    with pytest.raises(OptionError) as caught:
        split_options(options)
    assert str(caught.value).removeprefix("error: ").startswith(message)


def test_what_is_no_setting_of_ours_goes_to_inductor():
    settings, rest = split_options({"device": "emulator", "max_autotune": True})
    assert settings == ON_EMULATOR and rest == {"max_autotune": True}


def test_graphs_under_other_settings_or_passes_have_other_keys(monkeypatch, tmp_path):
    own = RegionPass().uuid()
    assert own == RegionPass().uuid() != RegionPass(ON_EMULATOR).uuid()
    assert RegionPass(before=RegionPass()).uuid() != own
    assert RegionPass(before=lambda graph: None).uuid() is None
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    assert RegionPass().uuid() == own, "what another folder lacks is compiled anew"
    monkeypatch.setitem(TARGETS, "sm_90a", replace(TARGETS["sm_90a"], multiprocessors=16))
    assert RegionPass().uuid() not in (own, None)
    monkeypatch.setitem(PASSES, "tiling", type("Mine", (PASSES["tiling"],), {}))
    assert RegionPass().uuid() is None


def test_the_provider_runs_behind_what_was_there_and_goes_again():
    seen = []
    with config.patch({backend.HOOK: seen.append}):
        tilewright.torch.enable(device="emulator")
        tilewright.torch.enable(device="emulator")
        graph = graph_of(linear, X, W).graph
        backend.hook()(graph)
        assert seen == [graph] and len(calls(graph)) == 1
        tilewright.torch.disable()
        assert backend.hook() == seen.append


def test_backward_in_a_thread_of_its_own_has_the_provider_as_well(rows):
    """So torch compiles it for a GPU."""
    torch._dynamo.reset()
    x, w = (draw(32, 32).requires_grad_() for _ in range(2))
    tilewright.torch.enable(device="emulator")
    try:
        made = torch.compile(torch.mm)(x, w)
        thread = threading.Thread(target=made.backward, args=[torch.ones_like(made)])
        thread.start()
        thread.join()
    finally:
        tilewright.torch.disable()
    assert backend.hook() is None and len(rows) == 3 and all(row.taken for row in rows)
    assert_close(x.grad, torch.ones_like(made) @ w.T)


class OfEachThread:
    """Inductor's settings as they are from torch 2.13 on, whichever is installed."""

    def __init__(self):
        names = backend.HOOK, backend.JOINT_HOOK
        own = {name: ContextVar(name) for name in names}
        entries = {name: SimpleNamespace(user_override=own[name], default=None) for name in names}
        vars(self)["_config"] = entries

    def __getattr__(self, name):
        if name not in self._config:
            raise AttributeError(name)
        return self._config[name].user_override.get(self._config[name].default)

    def __setattr__(self, name, value):
        self._config[name].user_override.set(value)


def test_settings_that_each_thread_has_for_itself_have_the_provider_in_all(monkeypatch):
    monkeypatch.setattr(torch._inductor, "config", OfEachThread())
    found = []

    def look():
        found.extend(map(backend.hook, (backend.HOOK, backend.JOINT_HOOK)))

    for change in (partial(tilewright.torch.enable, device="emulator"), tilewright.torch.disable):
        change()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert isinstance(found[0], RegionPass) and isinstance(found[1], backend.JointPass)
    assert found[2:] == [None, None]


def test_an_unknown_option_of_the_provider_is_named():
    with pytest.raises(OptionError, match=r"options must be of device, .*, got devise; set it"):
        tilewright.torch.enable(devise="emulator")


def test_programs_of_aot_inductor_keep_their_products(rows):
    from torch._inductor.virtualized import V

    graph = graph_of(linear, X, W).graph
    with V.set_aot_compilation(True):
        take_regions(graph, ON_EMULATOR)
    assert not calls(graph) and rows[0].reason.startswith("AOTInductor's programs have no Python")


def test_code_in_cpp_keeps_its_products(rows):
    """Which ends the process where an operator gives a list of tensors."""
    graph = graph_of(linear, X, W).graph
    with torch._inductor.config.patch(cpp_wrapper=True):
        take_regions(graph, ON_EMULATOR)
    assert not calls(graph) and rows[0].reason.startswith("Inductor's code in C++ (cpp_wrapper)")


def test_a_torch_without_the_hook_is_named(monkeypatch):
    monkeypatch.setattr(backend, "HOOK", "no_such_pass")
    with pytest.raises(OptionError, match=r"torch must be 2\.9 to 2\.13, whose Inductor has"):
        tilewright.torch.enable()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_ragged_rows_are_left_with_their_reason(rows):
    """Of a nested tensor; torch has a symbol for the rows of each, which has no number."""
    compiled = torch.compile(
        linear, backend="tilewright", options={"device": "emulator", "race": False}
    )
    for count in (3, 5):
        x = torch.nested.nested_tensor([draw(8, 32), draw(count, 32)], layout=torch.jagged)
        assert_close(compiled(x, W).values(), linear(x.values(), W))
    assert {(row.taken, row.reason) for row in rows} == {
        (False, "a size is a symbol that stands for no number")
    }
