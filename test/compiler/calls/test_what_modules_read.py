"""What a module's code reads besides attributes that are numbers: a change of it is seen, too."""

import copy
import functools
import gc
import os
import random
import re
import sys
import time
import weakref
from collections import deque
from contextvars import ContextVar
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch

from tilewright import compile_module
from tilewright.compiler.calls.dense import module_form
from tilewright.dialects.errors import CompileError

ROWS, COLUMNS, DEPTH = 16, 24, 32
BF16 = torch.bfloat16
X = torch.randn(ROWS, DEPTH, dtype=BF16, generator=torch.Generator().manual_seed(1))
CONFIG = {"scale": 1.0}
UNREAD = {"scale": 1.0}


class Slotted:
    __slots__ = ("unread", "value")

    def __init__(self):
        self.value, self.unread = 1.0, 0


class Options(dict):
    """A dictionary that has its items as attributes, and KeyError for others."""

    __getattr__ = dict.__getitem__

    def __deepcopy__(self, memo):
        return Options(self)


class Kind:
    number, of_method = 1.0, 1.0

    def __init__(self):
        self.held, self.got = 1.0, {"a": 1.0}

    def __call__(self, value):
        return value * self.held * type(self).of_method

    def __getitem__(self, name):
        return self.got[name]


ROOM = ContextVar("ROOM", default=1.0)
LEAKY, WEAKLY = torch.nn.LeakyReLU(1.0), Kind()
ANY_KIND = "(kind|weak|the global Kind) must be "
os.environ["TILEWRIGHT_TEST_SCALE"] = "1"


def of_objects(self, value):
    """What objects, classes, modules that are no parts, and the environment make of a value."""
    value = self.kind(value) * Kind.number * self.kind["a"] * self.options.scale
    value = LEAKY(self.hooked[0](value)) * ROOM.get() * self.weak().held * self.deep[0][0][0][0][0]
    return value * float(os.environ.get("TILEWRIGHT_TEST_SCALE", "2"))


def same(value):
    return value


def negated(value):
    return -value


def around(cell):
    def forward(self, x, factor=1.0):
        found = same(self.layer(x)) * factor * cell[0] * CONFIG["scale"]
        found = found * self.queue[0] * max(self.kinds) * self.space.value * self.slotted.value
        found = of_objects(self, self.scaled(found)) * float(self.array[0]) * self.of_class[0]
        return found * getattr(self, "hid" + "den") * (1.0 if torch.is_grad_enabled() else 2.0)

    return forward


def passed_on(function):
    def forward(self, *inputs):
        return function(self, *inputs)

    return forward


CELL = {0: 1.0}


class Reading(torch.nn.Module):
    of_class: ClassVar = {0: 1.0}
    forward = passed_on(around(CELL))

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(DEPTH, COLUMNS, bias=False, dtype=BF16)
        self.queue, self.kinds = deque([1.0]), {1.0}
        self.space, self.slotted = SimpleNamespace(value=1.0), Slotted()
        self.scaled = functools.partial(torch.mul, other=1.0)
        self.array, self.hidden = np.array([1.0]), 1.0
        self.kind, self.options, self.deep = Kind(), Options(scale=1.0), [[[[[1.0]]]]]
        self.hooked, self.weak = [torch.nn.LeakyReLU(1.0)], weakref.ref(WEAKLY)
        self.requires_grad_(False)


@pytest.fixture(scope="module")
def compiled():
    return compile_module(Reading(), X)


@pytest.fixture
def kernel(compiled):
    """A copy with a module of its own, which a test may change, called once as it is."""
    copied = copy.deepcopy(compiled)
    assert copied(X).equal(copied.module(X))
    return copied


CHANGES = [
    (lambda m: m.queue.append(2.0), "queue must be ('deque', 1.0), * ('deque', 1.0, 2.0)"),
    (lambda m: m.kinds.add(2.0), "kinds must be ('set', 1.0), * ('set', 1.0, 2.0)"),
    (lambda m: setattr(m.space, "value", 2.0), "space must be (namespace("),
    (lambda m: setattr(m.slotted, "value", 2.0), "slotted must be (<"),
    (lambda m: m.scaled.keywords.update(other=2.0), "scaled must be ('partial', <"),
    (lambda m: m.array.fill(2.0), "array must be ('ndarray', 'float64', "),
    (lambda m: setattr(m, "hidden", 2.0), "hidden must be 1.0, * 2.0"),
    (lambda m: setattr(m.kind, "held", 2.0), "kind must be (<"),
    (lambda m: m.kind.got.update(a=2.0), "kind must be (<"),
    (lambda m: m.options.update(scale=2.0), "options must be ('dict', ('scale', 1.0)), *"),
    (lambda m: setattr(m.hooked[0], "negative_slope", 2.0), "hooked must be ('list', (LeakyReLU"),
    (lambda m: m.hooked[0].register_forward_hook(print), "hooked must be ('list', (LeakyReLU"),
    (lambda m: m.deep[0][0][0][0].append(2.0), "deep must be ('list', ('list', "),
]


@pytest.mark.parametrize(("change", "rule"), CHANGES)
def test_what_collections_of_a_module_hold_may_not_change(kernel, change, rule):
    change(kernel.module)
    rule = re.escape(f"Reading: the module: {rule}").replace(r"\*", "as it was compiled, got")
    with pytest.raises(CompileError, match=rule):
        kernel(X)


HERE = sys.modules[__name__]
OUTSIDE = [
    (Reading, "of_class", {0: 2.0}, r"of_class must be \('dict', \(0, 1.0\)\), as it was"),
    (
        Reading,
        "forward",
        passed_on(around({0: 2.0})),
        "forward must be the same function, .* another function",
    ),
    (HERE, "CONFIG", {"scale": 2.0}, r"the global CONFIG must be \('dict', \('scale', 1.0\)\)"),
    (HERE, "same", negated, "the global same must be the same function, .* another function"),
    (Reading.forward.__closure__[0].cell_contents, "__defaults__", (2.0,), "forward must be the"),
    (Kind, "number", 2.0, ANY_KIND),
    (Kind, "of_method", 2.0, ANY_KIND),
    (Kind, "__getitem__", lambda self, name: 2.0, ANY_KIND),
    (WEAKLY, "held", 2.0, "weak must be "),
    (LEAKY, "negative_slope", 2.0, "the global LEAKY must be "),
    (same, "__code__", negated.__code__, "the global same must be the same function"),
]


def test_the_environment_and_the_context_may_not_change_where_they_are_read(kernel, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TEST_OTHER", "2")
    assert kernel(X).equal(kernel.module(X))
    token = ROOM.set(2.0)
    with pytest.raises(CompileError, match="the global ROOM must be "):
        kernel(X)
    ROOM.reset(token)
    monkeypatch.setenv("TILEWRIGHT_TEST_SCALE", "2")
    with pytest.raises(CompileError, match="the environment's TILEWRIGHT_TEST_SCALE must be '1', "):
        kernel(X)


class Changing(torch.nn.Module):
    """One whose code reads what gives something else each time."""

    def __init__(self, forward):
        super().__init__()
        self.layer, self.numbers = torch.nn.Linear(DEPTH, COLUMNS, dtype=BF16), random.Random(1)
        type(self).forward, self.counted = forward, iter([1.0, 2.0])


def test_what_gives_something_else_each_time_is_refused():
    taken = {
        "random.random": lambda self, x: self.layer(x) * random.random(),
        "np.random.rand": lambda self, x: self.layer(x) * float(np.random.rand()),
        "self.numbers.random": lambda self, x: self.layer(x) * self.numbers.random(),
        "time.time": lambda self, x: self.layer(x) * time.time(),
        "self.counted": lambda self, x: self.layer(x) * next(self.counted),
    }
    for name, forward in taken.items():
        with pytest.raises(CompileError, match=f"must take no random .* got {name} in <lambda>"):
            compile_module(Changing(forward), X)


def test_a_function_around_a_function_is_what_it_was():
    module = Reading()
    module.layer.forward = passed_on(passed_on(module.layer.forward))
    module_form.check_form("", module, module_form.form_of(module), module_form.watch_of())


def test_nothing_holds_a_module_that_was_compiled_with_a_forward_of_its_own():
    module = Reading()
    module.layer.forward = functools.partial(torch.nn.Linear.forward, module.layer)
    module_form.form_of(module)
    last = weakref.ref(module)
    del module
    gc.collect()
    assert last() is None


@pytest.mark.parametrize(("owner", "name", "value", "rule"), OUTSIDE)
def test_what_a_module_reads_from_around_it_may_not_change(
    kernel, owner, name, value, rule, monkeypatch
):
    monkeypatch.setattr(owner, name, value)
    with pytest.raises(CompileError, match=f"Reading: the module: {rule}"):
        kernel(X)


@pytest.mark.parametrize("holder", [CELL, Reading.of_class])
def test_nor_what_it_holds(kernel, holder, monkeypatch):
    monkeypatch.setitem(holder, 0, 2.0)
    with pytest.raises(CompileError, match=r"Reading: the module: \w+ must be "):
        kernel(X)


def test_a_state_of_torch_that_code_asks_for_may_not_change(kernel):
    rule = r"torch.is_grad_enabled\(\) must be 'True', as it was compiled, got 'False'"
    with torch.no_grad(), pytest.raises(CompileError, match=rule):
        kernel(X)
    assert kernel(X).equal(kernel.module(X))


def test_what_has_not_changed_is_not_compared_by_value(kernel, monkeypatch):
    monkeypatch.setitem(UNREAD, "scale", 2.0)
    kernel.module.slotted.unread = 1
    assert kernel(X).equal(kernel.module(X))
    monkeypatch.delattr(module_form, "_parts_of")
    assert kernel(X).equal(kernel.module(X))
