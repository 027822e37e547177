"""The page of bugs says what the zoo tests."""

from pathlib import Path

from bug_table import render

PAGE = Path(__file__).parent.parent.parent / "docs/bugs.md"


def test_the_page_of_bugs_is_generated_from_the_zoo():
    assert PAGE.read_text() == render(), "run python test/bugs/bug_table.py > docs/bugs.md"
