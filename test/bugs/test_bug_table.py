"""The page that lists bugs says what the zoo tests."""

from bug_table import PAGE, render


def test_the_page_of_bugs_is_generated_from_the_zoo():
    assert PAGE.read_text() == render(), "run python test/bugs/bug_table.py"
