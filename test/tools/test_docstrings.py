"""tools/docstrings.py: docstrings as Markdown."""

import importlib

from tilewright.tools.docstrings import details, summary


def documented(text: str):
    """Something with this docstring."""
    return type("Documented", (), {"__doc__": text})


def test_the_summary_is_the_first_paragraph_on_one_line():
    assert summary(documented("Does one\n    thing.\n\n    More.")) == "Does one thing."


def test_an_indented_paragraph_becomes_a_block_without_its_common_indent():
    text = "Cuts.\n\n        before →\n          after\n\n    It cuts."
    assert details(documented(text)) == ["```text\nbefore →\n  after\n```", "It cuts."]


def test_a_module_whose_docstring_ends_with_a_picture_keeps_it_as_a_block(tmp_path, monkeypatch):
    (tmp_path / "cuts_tiles.py").write_text('"""Cuts.\n\n    before →\n      after\n"""\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("cuts_tiles")
    assert details(module) == ["```text\nbefore →\n  after\n```"]


def test_a_docstring_of_one_line_has_no_details():
    assert details(documented("Only a line.")) == []
