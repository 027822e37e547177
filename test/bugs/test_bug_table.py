"""The pages that list bugs say what the zoo tests."""

from bug_table import EMULATOR, PAGE, render, section

HOW = "run python test/bugs/bug_table.py"


def test_the_page_of_bugs_is_generated_from_the_zoo():
    assert PAGE.read_text() == render(), HOW


def test_the_emulators_page_lists_bugs_and_verdicts():
    assert section() in EMULATOR.read_text(), HOW
