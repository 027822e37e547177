"""A module that changed when it was compiled: what a call reads again counts, else it says so."""

import copy
import pickle
import sys
import weakref

import pytest
import torch

from tilewright import compile_module
from tilewright.compiler.calls.dense import module_form
from tilewright.dialects.errors import CompileError
from tilewright.runtime.collector import no_full_collections
from tilewright.runtime.errors import LaunchError

ROWS, COLUMNS, DEPTH = 16, 24, 32
BF16 = torch.bfloat16


FACTOR = 1.0


class Options:
    def __init__(self):
        self.power, self.unread = 1.0, 0


def halved(module, value):
    return value * module.half


class Scaled(torch.nn.Module):
    """A product, and what numbers and a tensor that is no buffer make of it."""

    half = 0.5

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(DEPTH, COLUMNS, bias=False, dtype=BF16)
        self.act = torch.nn.ReLU()
        self.scale, self.name = 2.0, "unread"
        self.constant = torch.tensor(3.0, dtype=BF16)
        self.options, self.steps, self.layer.offset = Options(), [2.0], 1.0

    def forward(self, x):
        found = self.act(self.layer(x)) * self.scale * self.constant * self.options.power
        return self.stepped(halved(self, found)) * FACTOR * self.layer.offset

    def stepped(self, value):
        return value * self.steps[0]

    def unread_elsewhere(self):
        return self.other


X = torch.randn(ROWS, DEPTH, dtype=BF16, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def compiled():
    torch.manual_seed(2)
    return compile_module(Scaled(), X)


@pytest.fixture
def kernel(compiled):
    """A copy with a module of its own, which a test may change, called once as it is."""
    copied = copy.deepcopy(compiled)
    module_form.check_form("Scaled", copied.module, copied._form, copied._watch)
    assert copied._watch.holds(copied.module)
    return copied


def is_right(kernel):
    weight = kernel.module.layer.weight.double()
    right = torch.relu(X.double() @ weight.T) * 6
    with torch.no_grad():
        return torch.allclose(kernel(X).double(), right, rtol=2**-6, atol=2**-6)


def pickled(kernel):
    return pickle.loads(pickle.dumps(kernel))


def replaced(kernel):
    kernel.module.layer = torch.nn.Linear(DEPTH, COLUMNS, bias=False, dtype=BF16)
    kernel.module.layer.offset = 1.0


def loaded(kernel):
    weight = torch.randn(COLUMNS, DEPTH)
    kernel.module.load_state_dict({"layer.weight": weight}, assign=False)


def assigned(kernel):
    kernel.module.layer.weight = torch.nn.Parameter(torch.randn(DEPTH, COLUMNS, dtype=BF16).T)


def unread(kernel):
    kernel.module.name, kernel.module.other, kernel.module.options.unread = "another", 3, 4


@pytest.mark.parametrize("change", [replaced, loaded, assigned, unread, pickled])
def test_what_a_call_reads_may_change(kernel, change):
    again = change(kernel) or kernel
    assert is_right(again)


def test_a_copy_of_a_kernel_whose_module_changed_says_so_too(kernel):
    kernel.module.constant.fill_(4)
    with pytest.raises(CompileError, match="constant must be the same Tensor"):
        is_right(pickled(kernel))


AS_COMPILED = "as it was compiled, got"
CHANGES = [
    (lambda m: setattr(m, "scale", 3.0), f"the module: scale must be 2.0, {AS_COMPILED} 3.0"),
    (lambda m: setattr(m, "scale", 2), f"the module: scale must be 2.0, {AS_COMPILED} 2"),
    (lambda m: setattr(m, "act", torch.nn.GELU()), f"act must be a ReLU, {AS_COMPILED} a GELU"),
    (lambda m: m.steps.append(1.0),
     f"the module: steps must be ('list', 2.0), {AS_COMPILED} ('list', 2.0, 1.0)"),
    (lambda m: setattr(m, "half", 2.0), f"the module: half must be 0.5, {AS_COMPILED} 2.0"),
    (lambda m: setattr(m.layer, "offset", 2.0), f"layer: offset must be 1.0, {AS_COMPILED} 2.0"),
    (lambda m: m.constant.fill_(4),
     f"the module: constant must be the same Tensor, {AS_COMPILED} another Tensor"),
    (lambda m: setattr(m, "forward", m.layer.forward),
     f"the module: forward must be the same function, {AS_COMPILED} another method"),
    (lambda m: m.act.register_forward_hook(lambda *_: None),
     "act must have the hooks with which it was compiled, got others"),
    (lambda m: m.act.register_forward_pre_hook(lambda *_: None),
     "act must have the hooks with which it was compiled, got others"),
    (lambda m: setattr(m.layer, "bias", torch.nn.Parameter(torch.ones(COLUMNS, dtype=BF16))),
     f"layer: bias must be None, {AS_COMPILED} 'a tensor'"),
    (lambda m: m.add_module("more", torch.nn.ReLU()), f"more must be nothing, {AS_COMPILED} ReLU"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name"), [(Scaled, "half"), (sys.modules[__name__], "FACTOR")])
def test_numbers_of_the_class_and_globals_may_not(kernel, owner, name, monkeypatch):
    monkeypatch.setattr(owner, name, 7.0)
    with pytest.raises(CompileError, match=f"the module: .*{name} must be .*got 7.0; compile"):
        is_right(kernel)


def test_what_an_object_of_the_users_holds_may_not(kernel):
    kernel.module.options.power = 2.0
    with pytest.raises(CompileError, match="the module: options must be "):
        is_right(kernel)


@pytest.mark.parametrize(("change", "rule"), CHANGES)
def test_what_is_in_the_kernel_may_not(kernel, change, rule):
    change(kernel.module)
    with pytest.raises(CompileError) as caught, torch.no_grad():
        kernel(X)
    assert caught.value.message == f"Scaled: {rule}; compile the module again"


def test_hooks_of_all_modules_may_not_change_but_those_that_torch_counts_by(kernel):
    with torch.utils.flop_counter.FlopCounterMode(display=False):
        assert is_right(kernel)
    hook = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.raises(CompileError, match="the module must have the hooks with which it was"):
            is_right(kernel)
    finally:
        hook.remove()
    assert is_right(kernel)


class Filled(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x) * torch.full((COLUMNS,), 1.5)


@pytest.mark.parametrize("kind", [Filled, torch.nn.Linear])
def test_the_type_of_what_code_makes_of_numbers_may_not_change(kind):
    kernel = compile_module(kind(DEPTH, COLUMNS, bias=False, dtype=BF16), X)
    with torch.no_grad():
        was = kernel(X)
        torch.set_default_dtype(torch.float64)
        try:
            if kind is Filled:
                with pytest.raises(CompileError, match=r"torch's default dtype must be 'torch.f"):
                    kernel(X)
            else:  # makes nothing
                assert kernel(X).equal(was)
        finally:
            torch.set_default_dtype(torch.float32)
        assert kernel(X).equal(was)


def test_a_module_without_its_parameters_is_refused():
    with pytest.raises(CompileError, match="LazyLinear: weight must have its values, got none yet"):
        compile_module(torch.nn.LazyLinear(COLUMNS, dtype=BF16), X)


def test_a_graph_that_holds_a_kernel_looks_at_each_run(kernel):
    graph = torch.compile(lambda x: kernel(x), backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        right = graph(X)
        assert torch.equal(copy.copy(kernel)(X), right)
        assert torch.equal(graph(X), right)
        kernel.module.options.power = 2.0  # of which dynamo has no guard
        with pytest.raises(CompileError, match="the module: options must be "):
            graph(X)


def test_a_kernel_lets_go_of_its_module_with_its_last_user(compiled):
    copied = copy.deepcopy(compiled)
    held = weakref.ref(copied.module.layer.weight)
    assert copied._kernel.key.count("-checked-") == 1
    with no_full_collections():
        del copied
        assert held() is None


def test_no_autocast_is_for_tensors_without_memory(kernel):
    assert module_form.autocast_of(X.to("meta")) is None
    rule = "must be on the CPU for this device, got meta"
    with torch.no_grad(), pytest.raises(LaunchError, match=rule):
        kernel(X.to("meta"))


def test_a_call_of_what_has_not_changed_looks_at_nothing_by_value(kernel, monkeypatch):
    loaded(kernel)
    monkeypatch.delattr(module_form, "_parts_of")
    assert is_right(kernel)


def test_an_autocast_to_another_type_is_refused(kernel):
    with torch.autocast("cpu", dtype=BF16):
        assert is_right(kernel)
    with torch.autocast("cpu", dtype=torch.float16), pytest.raises(CompileError) as caught:
        kernel(X)
    rule = "autocast must be that in which it was compiled, None, got torch.float16"
    assert caught.value.message == f"Scaled: {rule}; leave it by torch.autocast(…, enabled=False)"
