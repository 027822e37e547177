"""The suite finds each planted fault in the family that is named for it, and shrinks it."""

from pathlib import Path

import pytest

from tilewright.runtime.conformance import FAMILIES, run_family, subject_of
from tilewright.runtime.conformance.campaign import cases_of, try_case
from tilewright.runtime.conformance.cases import Case, Layout
from tilewright.runtime.conformance.verdicts import Verdict
from tilewright.runtime.errors import LaunchError

HERE = Path(__file__).parent
FAMILY = {family.name: family for family in FAMILIES}
FAULTS = [
    ("drops_the_k_tail", "k-tails", (1, 1, 1)),
    ("leaves_ragged_rows", "ragged-m", (1, 1, 1)),
    ("transposes_a_square", "square", (2, 2, 1)),
    ("ignores_leading_dimensions", "padded", (2, 1, 1)),
    ("ignores_leading_dimensions", "majors", (2, 1, 1)),
    ("rounds_addresses_down", "unaligned", (1, 1, 1)),
    ("swallows_nan", "non-finite", (1, 1, 1)),
    ("flushes_denormals", "extremes", (1, 1, 1)),
    ("writes_beside_the_output", "out", (1, 1, 1)),
    ("adds_to_the_output", "out", (1, 1, 1)),
    ("returns_its_own_buffer", "again", (1, 1, 1)),
    ("scales_its_input", "ones", (1, 1, 1)),
    ("shares_scratch_between_threads", "threads", None),
]


def subject(name, dtype="f16"):
    found = subject_of(f"{HERE / 'faulty.py'}:{name}", dtypes=(dtype, dtype))
    found.size = (33, 24, 40)
    return found


@pytest.mark.parametrize(("name", "family", "smallest"), FAULTS)
def test_a_planted_fault_is_found_and_made_small(name, family, smallest):
    found = run_family(subject(name), FAMILY[family])
    assert found.failed and found.failing is not None
    assert smallest is None or found.failing.size == smallest, found


@pytest.mark.parametrize("name", ["multiplies_padding_of_zeros", "sums_in_half"])
def test_faults_of_arithmetic_are_found_in_some_family(name):
    names = ("non-finite", "drawn")
    assert any(run_family(subject(name), FAMILY[each]).failed for each in names)


def test_a_right_matmul_fails_nowhere():
    for family in FAMILIES:
        result = run_family(subject("right", "bf16"), family)
        assert not result.failed, result
        assert result.skipped or result.counts[Verdict.RIGHT], result


def test_a_refusal_is_no_failure_and_tells_its_reason():
    result = run_family(subject("refuses_odd_k"), FAMILY["k-tails"])
    assert not result.failed and result.counts[Verdict.REFUSED] > 5
    assert result.refusal == "ValueError: K must be even, got 1"


def test_every_case_of_every_family_can_be_made():
    right = subject("right", "f32")
    for family in FAMILIES:
        if family.place or family.large:
            continue
        last = list(cases_of(right, family))[-1]
        assert try_case(right, last).verdict is Verdict.RIGHT, last


def test_gaps_around_an_operand_hold_nan_and_offsets_are_kept():
    from tilewright.runtime.conformance.operands import place

    placed = place((3, 5), "f16", Layout("column", padding=2, offset=7), "cpu")
    assert placed.view.stride() == (1, 5) and placed.view.storage_offset() == 7
    assert placed.view.isnan().all() and placed.is_untouched()
    placed.view[1, 1] = 0
    assert not placed.is_untouched() and placed.is_untouched_around()


def test_a_subject_that_cannot_be_loaded_is_named():
    for text, words in [
        ("torch", "must be MODULE:NAME"),
        ("no_such_module:f", "No module named"),
        ("torch:no_such_operator", "no_such_operator"),
        ("missing.py:f", "no file missing.py"),
        ("torch:pi", "must be callable, got float"),
        ("torch:add", "must multiply"),
    ]:
        with pytest.raises(LaunchError, match=words):
            subject_of(text)


def test_cases_read_as_words():
    case = Case(3, 4, 5, a=Layout("column", 2), b=Layout(offset=1), values="zeros")
    assert str(case) == "3×4×5, a column, padded by 2, b 1 elements in, zeros"
