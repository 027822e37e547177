"""Contexts are lent again: what one compilation leaves in one, the next does not see."""

import os

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects import context
from tilewright.dialects.context import lent_context, one_thread_at_a_time
from tilewright.dialects.errors import CompileError


@pytest.fixture(autouse=True)
def no_spare(monkeypatch):
    monkeypatch.setattr(context, "_spare", [])


def ptx_of(k: int) -> str | None:
    return compile_matmul(MatmulSpec(128, 64, k), until="ptx", preset="v1a").ptx


def test_a_kernel_is_the_same_in_a_context_that_has_seen_others():
    fresh = ptx_of(128)
    assert ptx_of(256) != fresh
    assert ptx_of(128) == fresh
    assert len(context._spare) == 1


@one_thread_at_a_time
def test_a_context_whose_borrower_raised_is_not_lent_again():
    with pytest.raises(CompileError), lent_context():
        raise CompileError("no")
    assert not context._spare


@one_thread_at_a_time
def test_a_context_is_dropped_after_so_many_loans(monkeypatch):
    monkeypatch.setattr(context, "LOANS_MAX", 2)
    for _ in range(2):
        with lent_context() as lent:
            pass
    with lent_context() as third:
        assert third is not lent


@one_thread_at_a_time
def test_another_process_makes_its_own():
    with lent_context() as lent:
        pass
    maker, loans, _ = context._spare.pop()
    context._spare.append((maker + 1, loans, lent))
    with lent_context() as own:
        assert own is not lent
    assert [maker for maker, _, _ in context._spare] == [os.getpid()]
