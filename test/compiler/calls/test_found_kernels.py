"""The tables in which calls find the kernels of calls before them."""

import threading
import time
from itertools import count
from typing import Any

import torch

import tilewright
from tilewright.compiler.calls.kernels import found_kernels, lookup
from tilewright.compiler.calls.kernels.found_kernels import FoundKernels
from tilewright.compiler.calls.kernels.function_keys import LIKE_NO_OTHER
from tilewright.compiler.calls.kernels.lookup import _seen
from tilewright.compiler.calls.layers import linear_operator
from tilewright.dialects.tables import kept_until_changed
from tilewright.passes import PASSES


def test_a_full_table_loses_its_oldest_entry(monkeypatch):
    monkeypatch.setattr(found_kernels, "KERNELS_KEPT", 3)
    table: FoundKernels[Any] = FoundKernels()
    for number in (1, 2, 3, 1, 4):
        assert table.of(number, lambda number=number: [number]) == [number]
    assert [*table] == [2, 3, 4]
    assert table.of(4, lambda: "another") == [4]


def test_what_was_found_for_a_function_like_no_other_is_not_kept():
    table: FoundKernels[str] = FoundKernels()
    assert table.of("key", lambda: "first", [LIKE_NO_OTHER]) == "first"
    assert table.of("key", lambda: "second", ["a helper"]) == "second"
    assert table.of("key", lambda: "third") == "second"


def test_what_was_found_is_forgotten_where_a_pass_is_entered(monkeypatch):
    table: FoundKernels[str] = FoundKernels()
    assert table.of("key", lambda: "first") == "first"
    _seen["key"] = ()
    monkeypatch.setitem(PASSES, "tiling", PASSES["tiling"])
    assert table.of("key", lambda: "second") == "second"
    assert "key" not in _seen


def test_what_was_found_while_a_pass_was_entered_is_not_kept(monkeypatch):
    """As by another thread, whose kernel may be of the pass before."""
    table: FoundKernels[int] = FoundKernels()
    times = count()

    def find() -> int:
        if (number := next(times)) == 0:
            monkeypatch.setitem(PASSES, "tiling", PASSES["tiling"])
        return number

    assert [table.of("key", find) for _ in range(3)] == [0, 1, 1]


def test_results_are_kept_until_a_pass_is_entered_also_meanwhile(monkeypatch):
    times = count()

    @kept_until_changed(4)
    def number(key: str) -> int:
        found = next(times)
        if found == 0:
            monkeypatch.setitem(PASSES, "tiling", PASSES["tiling"])
        return found

    assert [number("key") for _ in range(3)] == [0, 1, 1]
    monkeypatch.setitem(PASSES, "tiling", PASSES["tiling"])
    assert (number(key="key"), number.cache_info().currsize) == (2, 1)


def test_threads_that_ask_for_the_same_get_it_from_the_first():
    table: FoundKernels[object] = FoundKernels()
    asked = threading.Barrier(4)
    results, found = [], []

    def find() -> object:
        time.sleep(0.02)  # the others ask meanwhile
        found.append(object())
        return found[-1]

    def ask() -> None:
        asked.wait()
        results.append(table.of("key", find))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 1 and set(results) == {found[0]} and len(results) == 4


def test_what_is_seen_while_another_thread_enters_a_pass_is_not_seen_again(monkeypatch):
    """As if it did so between the look-up of a kernel and the moment at which it is kept."""

    class Meanwhile(dict):
        def get(self, *given):
            monkeypatch.setitem(PASSES, "tiling", PASSES["tiling"])
            return super().get(*given)

    a, b = torch.randn(8, 16).bfloat16(), torch.randn(8, 16).bfloat16()
    bias = torch.randn(8).bfloat16()
    for where, call in (
        (lookup, lambda: tilewright.matmul(a, b)),
        (linear_operator, lambda: linear_operator._alone(a, b, bias)),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(where, "_seen", Meanwhile())
            call()
            assert not where._seen
