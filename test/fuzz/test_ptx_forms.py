"""The emulator takes the forms of instructions that PTX has, or says that it does not model them.

`python test/fuzz/ptx_forms.py` shows what differs; `--page` writes the page that is compared here.
"""

import re

import pytest
from ptx_forms import HEAD, KNOWN, PAGE, chosen, families, forms, judge, known_rows, page, row
from ptx_grid import text_of
from ptx_mutants import TESTS, emulator_refuses
from thread_forms import LEFT_OUT, compared_opcodes

CHOSEN = list(chosen())
OF_A_THREAD = [pattern for pattern, family in CHOSEN if family.name.endswith("of a thread")]


@pytest.mark.sweep
@pytest.mark.parametrize("at", range(len(CHOSEN)))
def test_forms_are_taken_as_by_ptxas_and_counted_on_the_page(at):
    pattern, family = CHOSEN[at]
    outcome = judge(pattern, family.target)
    assert outcome.unexplained() == []
    assert row(pattern, outcome) in PAGE.read_text()


@pytest.mark.sweep
@pytest.mark.parametrize("at", range(len(OF_A_THREAD)))
def test_forms_of_a_thread_are_compared_with_silicon_or_it_is_said_why_not(at):
    compared = compared_opcodes()
    for form in forms(OF_A_THREAD[at]):
        opcode = form.partition(" ")[0]
        if opcode not in compared and not any(re.match(each, opcode) for each in LEFT_OUT):
            assert emulator_refuses(text_of([form], "sm_90a", "9.0", HEAD)), form


def test_the_page_has_a_row_for_each_pattern_and_no_other():
    rows = known_rows()
    assert [pattern for pattern, _ in CHOSEN] == list(rows)
    assert all(f"` | {len(forms(pattern))} |" in text for pattern, text in rows.items())
    assert PAGE.read_text() == page(rows)


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_tests_that_execute_a_family_are_there_and_name_its_instructions(family):
    texts = [(TESTS / "emulator" / name).read_text() for name in family.tests]
    first = {pattern.split("<")[0].split(".")[0] for pattern in family.patterns} - {""}
    assert not texts or not first or any(name in text for name in first for text in texts)


def test_what_is_known_to_differ_says_why():
    assert all(len(reason) > 20 for reason in KNOWN.values())
