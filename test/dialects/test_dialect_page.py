"""docs/dialects.md says what the dialects declare."""

from pathlib import Path

from tilewright.tools.pages.dialect_docs import render

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"


def test_the_dialect_page_is_up_to_date():
    assert PAGE.read_text() == render(), (
        "run python -m tilewright.tools.pages.dialect_docs > docs/dialects.md"
    )
