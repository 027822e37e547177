"""Every bug of the zoo is named by the emulator, and the same kernels without it raise nothing."""

import re
from string import ascii_lowercase

import pytest
from bug_zoo import BUGS

from tilewright.compiler.backend import assemble
from tilewright.runtime.emulator import Trap

ORDERS = 3


def verdict(bug, seed: int) -> bool:
    """Whether a seed names the bug; another verdict than the right ones fails"""
    found = bug.run(seed)
    if not isinstance(found, Trap):
        named = any(bug.is_named_by(warning.category, warning.message) for warning in found)
        return bug.warns and named
    assert bug.is_named_by(found.category, str(found)) and not bug.warns, str(found)
    assert found.kernel and found.line and found.text and found.cta
    return True


@pytest.mark.parametrize("bug", BUGS, ids=[bug.title for bug in BUGS])
def test_the_bug_is_named(bug):
    assert any(verdict(bug, seed) for seed in range(bug.seeds))


ALWAYS_SEEN = [bug for bug in BUGS if bug.seeds == 1]


@pytest.mark.sweep(64)
@pytest.mark.parametrize("seed", range(1, ORDERS))
@pytest.mark.parametrize("bug", ALWAYS_SEEN, ids=[bug.title for bug in ALWAYS_SEEN])
def test_a_bug_that_every_order_of_events_shows_is_named_in_others_too(bug, seed):
    assert verdict(bug, seed)


BASES = tuple(dict.fromkeys(bug.base for bug in BUGS))


def raises_nothing(base, seed: int) -> bool:
    report, passed = base.run(base.ptx, seed)
    return passed and not report.warnings


@pytest.mark.parametrize("base", BASES, ids=[base.title for base in BASES])
def test_the_kernel_without_the_bug_is_right_and_raises_nothing(base):
    assert raises_nothing(base, 0)


@pytest.mark.sweep(64)
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("base", BASES, ids=[base.title for base in BASES])
def test_the_kernel_without_the_bug_raises_nothing_in_other_orders(base, seed):
    assert raises_nothing(base, seed)


@pytest.mark.sweep(64)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.title for bug in BUGS])
def test_the_assembler_does_not_see_the_bug(bug):
    text = bug.edit(bug.base.ptx)
    (chip,) = re.findall(r"^\.target (\w+)", text, re.MULTILINE)
    assert assemble(text, chip=chip, allow_spills=True).cubin


def test_numbers_are_unique_and_cover_the_forty():
    numbers = [bug.number for bug in BUGS]
    assert len(set(numbers)) == len(numbers)
    assert {int(number.rstrip(ascii_lowercase)) for number in numbers} >= set(range(1, 41))


@pytest.mark.parametrize("number", ["21a", "24a", "24d", "38b"])
def test_what_tensor_copies_wrote_is_not_kept_with_checks_off(number):
    (bug,) = (bug for bug in BUGS if bug.number == number)
    report, passed = bug.base.run(bug.edit(bug.base.ptx), 0, bug.describe, check="off")
    assert not passed and not report.warnings
