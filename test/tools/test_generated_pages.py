"""docs/passes/, docs/dialects/ and docs/presets.md say what the code says."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tilewright.compiler.pipeline import PASSES, all_presets
from tilewright.dialects import pipe, sm, tile
from tilewright.tools.pages import dialect_docs, pass_docs, preset_docs
from tilewright.tools.pages.page_folder import write_pages

DOCS = Path(__file__).parents[2] / "docs"


def read_pages(folder):
    """The pages of a folder by their paths in it."""
    found = folder.rglob("*.md")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


@pytest.fixture(scope="module")
def pages():
    """The pages of all passes, which compile a small kernel for each."""
    return pass_docs.render_all()


def test_the_pass_pages_are_up_to_date(pages):
    assert read_pages(DOCS / "passes") == pages, "run python -m tilewright.tools.pages.pass_docs"


def test_every_pass_has_a_page_with_its_options_and_short_ir(pages):
    assert set(pages) == {"README.md", *(f"{name}.md" for name in PASSES)}
    for name, pass_class in PASSES.items():
        text = pages[f"{name}.md"]
        options = [option.name for option in fields(pass_class)]
        assert all(f"| `{option}` |" in text for option in options)
        assert len(text.partition("## On a small kernel")[2].splitlines()) < 250, name


def test_the_dialect_pages_are_up_to_date():
    assert read_pages(DOCS / "dialects") == dialect_docs.render_all(), (
        "run python -m tilewright.tools.pages.dialect_docs"
    )


@pytest.mark.parametrize("dialect", [tile.Tile, pipe.Pipe, sm.Sm])
def test_the_index_of_the_dialects_leads_to_every_op(dialect):
    pages = dialect_docs.render_all()
    index = dict(re.findall(r"^\| \[`([\w.]+)`\]\(([\w/.]+)#", pages["README.md"], re.MULTILINE))
    for operation in dialect.operations:
        name = operation.OPERATION_NAME
        assert f"\n## `{name}`\n" in pages[index[name]]


def test_pages_of_what_is_gone_are_dropped(tmp_path):
    write_pages({"old.md": "old\n", "tile/kept.md": "before\n"}, tmp_path)
    write_pages({"README.md": "index\n", "tile/kept.md": "after\n"}, tmp_path)
    assert read_pages(tmp_path) == {"README.md": "index\n", "tile/kept.md": "after\n"}


def test_the_preset_page_is_up_to_date():
    assert (DOCS / "presets.md").read_text() == preset_docs.render(), (
        "run python -m tilewright.tools.pages.preset_docs > docs/presets.md"
    )


def test_every_preset_is_described():
    assert set(all_presets()) <= set(preset_docs.STEPS)


def test_a_refusal_is_listed_with_the_rule_that_a_name_stands_for():
    text = (DOCS / "passes/pipelining.md").read_text()
    assert (
        "- pipelining: the ring must be filled in an scf.for of constant bounds, got it in" in text
    )
