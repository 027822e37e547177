"""A function is traced again when anything that it reads from around it has changed."""

import datetime
import functools
import os
import random
import time
import types
import weakref
from array import array
from collections import deque
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
import torch

from tilewright import matmul
from tilewright.compiler.calls.dense import fused
from tilewright.compiler.calls.kernels import function_keys
from tilewright.compiler.calls.kernels.function_keys import LIKE_NO_OTHER, function_key

GLOBAL = types.SimpleNamespace(value=2.0)
MODULE: Any = types.ModuleType("a_module_of_settings")
exec("VALUE = 2.0\ndef times(acc): return acc * VALUE", MODULE.__dict__)


class Slots:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 2.0


class Tagged(list):
    factor = 2.0


class Global:
    @property
    def factor(self):
        return GLOBAL.value


def times_factor_of(anything, acc):
    return acc * anything.factor


class Owner:
    value = 2.0
    factor = property(lambda self: self.held.value)

    def __init__(self):
        self.held = types.SimpleNamespace(value=2.0, deep=[types.SimpleNamespace(value=2.0)])
        self.slots = Slots()

    @property
    def computed(self):
        return self.held.value

    def by_class(self, acc):
        return acc * self.value

    def by_path(self, acc):
        return acc * self.held.deep[0].value

    def by_method(self, acc):
        return self.by_class(acc)

    def by_property(self, acc):
        return acc * self.computed

    def __call__(self, acc):
        return acc * GLOBAL.value


class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.config = types.SimpleNamespace(scale=2.0)
        self.inner = torch.nn.LeakyReLU(2.0)

    def forward(self, acc):
        return self.inner(acc) * self.config.scale


def read_deeply(depth):
    """A function that calls one that calls one, and so on, which reads a global."""
    function = lambda acc: acc * GLOBAL.value  # noqa: E731
    for _ in range(depth):
        function = (lambda inner: lambda acc: inner(acc))(function)
    return function


def cases():
    owner, module, slots, table = Owner(), Doubled(), Slots(), np.array([2.0])
    numbers, places = {2}, {"value": 2.0}
    recent, packed, tagged = deque([2.0]), array("f", [2.0]), Tagged()
    proxy, held = types.MappingProxyType(places), weakref.ref(owner)
    setting = ContextVar("setting", default=2.0)
    helper = lambda acc: acc * helper.factor  # noqa: E731
    helper.factor = 2.0
    by_import = {}
    exec(
        "def times(acc):\n    import a_module_of_settings as m\n    return acc * m.VALUE", by_import
    )
    return {
        "attribute": (lambda acc: acc * GLOBAL.value, lambda: setattr(GLOBAL, "value", 3.0)),
        "class": (owner.by_class, lambda: setattr(Owner, "value", 3.0)),
        "class by name": (lambda acc: acc * Owner.value, lambda: setattr(Owner, "value", 3.0)),
        "method of a method": (owner.by_method, lambda: setattr(Owner, "value", 3.0)),
        "object in a list": (owner.by_path, lambda: setattr(owner.held.deep[0], "value", 3.0)),
        "property": (owner.by_property, lambda: setattr(owner.held, "value", 3.0)),
        "slots": (lambda acc: acc * slots.value, lambda: setattr(slots, "value", 3.0)),
        "passed on": (
            lambda acc: Owner.by_property(owner, acc),
            lambda: setattr(owner.held, "value", 3.0),
        ),
        "callable": (owner, lambda: setattr(GLOBAL, "value", 3.0)),
        "module": (module, lambda: setattr(module.config, "scale", 3.0)),
        "part of a module": (module, lambda: setattr(module.inner, "negative_slope", 3.0)),
        "module of Python": (lambda acc: acc * MODULE.VALUE, lambda: setattr(MODULE, "VALUE", 3.0)),
        "function of it": (lambda acc: MODULE.times(acc), lambda: setattr(MODULE, "VALUE", 3.0)),
        "import": (by_import["times"], lambda: setattr(MODULE, "VALUE", 3.0)),
        "deep calls": (read_deeply(9), lambda: setattr(GLOBAL, "value", 3.0)),
        "array": (lambda acc: acc * float(table[0]), lambda: table.__setitem__(0, 3.0)),
        "set": (lambda acc: acc * (2.0 if 2 in numbers else 3.0), numbers.clear),
        "method of a dict": (
            lambda acc: acc * places.get("value", 1.0),
            lambda: places.__setitem__("value", 3.0),
        ),
        "deque": (lambda acc: acc * recent[0], lambda: recent.__setitem__(0, 3.0)),
        "packed": (lambda acc: acc * packed[0], lambda: packed.__setitem__(0, 3.0)),
        "attribute of a list": (
            lambda acc: times_factor_of(tagged, acc),
            lambda: setattr(tagged, "factor", 3.0),
        ),
        "attribute of a function": (
            lambda acc: times_factor_of(helper, acc),
            lambda: setattr(helper, "factor", 3.0),
        ),
        "proxy": (
            lambda acc: acc * proxy["value"],
            lambda: places.__setitem__("value", 3.0),
        ),
        "weak reference": (
            lambda acc: times_factor_of(held(), acc),
            lambda: setattr(owner.held, "value", 3.0),
        ),
        "context": (lambda acc: acc * setting.get(), lambda: setting.set(3.0)),
        "property of an object": (
            lambda acc: times_factor_of(Global(), acc),
            lambda: setattr(GLOBAL, "value", 3.0),
        ),
        "environment": (
            lambda acc: acc * float(os.environ["TILEWRIGHT_OF_A_TEST"]),
            lambda: os.environ.__setitem__("TILEWRIGHT_OF_A_TEST", "3"),
        ),
    }


@pytest.fixture
def as_before(monkeypatch):
    monkeypatch.setattr(GLOBAL, "value", 2.0)
    monkeypatch.setattr(Owner, "value", 2.0)
    monkeypatch.setattr(MODULE, "VALUE", 2.0)
    monkeypatch.setitem(__import__("sys").modules, "a_module_of_settings", MODULE)
    monkeypatch.setenv("TILEWRIGHT_OF_A_TEST", "2")


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("name", cases())
def test_what_a_function_reads_is_in_its_key(name):
    function, change = cases()[name]
    kept: list[Any] = []
    before = function_key(function, kept)
    assert function_key(function, kept) == before
    acc = -torch.ones(1)
    first = function(acc)
    change()
    assert not function(acc).equal(first)
    assert function_key(function, kept) != before


@pytest.mark.usefixtures("as_before", "fresh_cache")
def test_a_changed_attribute_of_a_class_changes_the_product():
    a, b = torch.eye(16, dtype=torch.bfloat16), torch.ones(8, 16, dtype=torch.bfloat16)
    owner = Owner()
    assert matmul(a, b, epilogue=owner.by_method).eq(2).all()
    Owner.value = 3.0
    assert matmul(a, b, epilogue=owner.by_method).eq(3).all()


def test_what_is_cyclic_or_deep_has_a_key():
    owner = Owner()
    owner.held.owner = owner
    kept: list[Any] = []
    call = lambda acc: Owner.by_path(owner, acc)  # noqa: E731
    assert function_key(call, kept) == function_key(call, kept)
    chain: list[Any] = []
    for _ in range(5000):
        chain = [chain]
    assert function_key(lambda acc: acc * len(chain), kept)


def by_text(acc):
    return acc * eval("GLOBAL.value")


NUMBERS = iter([2.0, 3.0])
OPEN = {
    "names": lambda acc: acc * globals()["GLOBAL"].value,
    "text": by_text,
    "text of a partial": functools.partial(by_text),
    "a package": lambda acc: acc * __import__("a_module_of_settings").VALUE,
    "random numbers": lambda acc: acc * random.random(),
    "random numbers of numpy": lambda acc: acc * np.random.rand(),
    "a clock": lambda acc: acc * time.time(),
    "a date": lambda acc: acc * datetime.datetime.now().year,
    "an iterator": lambda acc: acc * next(NUMBERS),
    "torch's state": lambda acc: acc * (2.0 if torch.is_grad_enabled() else 3.0),
}


@pytest.mark.usefixtures("as_before", "fresh_cache")
@pytest.mark.parametrize("name", OPEN)
def test_a_function_that_reads_what_it_does_not_name_is_like_no_other(name):
    kept: list[Any] = []
    assert function_key(OPEN[name], kept) != function_key(OPEN[name], kept)
    assert any(each is LIKE_NO_OTHER for each in kept)


@pytest.mark.usefixtures("as_before", "fresh_cache")
def test_a_function_that_evaluates_text_is_traced_in_each_call():
    a, b = torch.eye(16, dtype=torch.bfloat16), torch.ones(8, 16, dtype=torch.bfloat16)
    assert matmul(a, b, epilogue=by_text).eq(2).all()
    count, GLOBAL.value = len(fused._fused), 3.0
    assert matmul(a, b, epilogue=by_text).eq(3).all()
    assert len(fused._fused) == count


@pytest.mark.usefixtures("fresh_cache")
@pytest.mark.parametrize("name", ["an iterator", "torch's state"])
def test_a_function_of_another_result_each_time_is_traced_in_each_call(name):
    a, b = torch.eye(16, dtype=torch.bfloat16), torch.ones(8, 16, dtype=torch.bfloat16)
    assert matmul(a, b, epilogue=OPEN[name]).eq(2).all()
    with torch.no_grad():
        assert matmul(a, b, epilogue=OPEN[name]).eq(3).all()


def test_the_type_that_torch_makes_by_default_is_in_a_key():
    kept: list[Any] = []
    plus_one = lambda acc: acc + torch.full(acc.shape, 1.001)  # noqa: E731
    before = function_key(plus_one, kept)
    torch.set_default_dtype(torch.float16)
    try:
        assert function_key(plus_one, kept) != before
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_known_of_code_is_bounded(monkeypatch):
    """Text may be compiled anew for each call, to code that is like no other."""
    monkeypatch.setattr(function_keys, "CODES_KEPT", 3)
    monkeypatch.setattr(function_keys, "_read", {})
    keys = []
    for number in range(5):
        made = eval(f"lambda acc: (lambda: acc + {number})()")
        keys.append(function_key(made, []))
        assert len(function_keys._read) <= 3
    assert len(set(keys)) == 5
