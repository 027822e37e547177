"""tools/pages/docstrings.py: docstrings as Markdown."""

from tilewright.tools.pages.docstrings import details, summary


def documented(text: str):
    """Something with this docstring."""
    return type("Documented", (), {"__doc__": text})


def test_the_summary_is_the_first_paragraph_on_one_line():
    assert summary(documented("Does one\n    thing.\n\n    More.")) == "Does one thing."


def test_an_indented_paragraph_becomes_a_block_without_its_common_indent():
    text = "Cuts.\n\n        before →\n          after\n\n    It cuts."
    assert details(documented(text)) == ["```text\nbefore →\n  after\n```", "It cuts."]


def test_a_docstring_of_one_line_has_no_details():
    assert details(documented("Only a line.")) == []
