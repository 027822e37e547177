"""What a module's code reads besides attributes that are numbers: a change of it is seen, too."""

import copy
import functools
import re
import sys
from collections import deque
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


def same(value):
    return value


def negated(value):
    return -value


def around(cell):
    def forward(self, x, factor=1.0):
        found = same(self.layer(x)) * factor * cell[0] * CONFIG["scale"]
        found = found * self.queue[0] * max(self.kinds) * self.space.value * self.slotted.value
        found = self.scaled(found) * float(self.array[0]) * self.of_class[0]
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
]


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
