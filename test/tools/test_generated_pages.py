"""docs/passes/ and docs/presets.md say what the code says."""

from dataclasses import fields
from pathlib import Path

import pytest

from tilewright.compiler.pipeline import PASSES, all_presets
from tilewright.tools.pages import pass_docs, preset_docs

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def pages():
    """The pages of all passes, which compile a small kernel for each."""
    return pass_docs.render_all()


def test_the_pass_pages_are_up_to_date(pages):
    written = {path.name: path.read_text() for path in (DOCS / "passes").glob("*.md")}
    assert written == pages, "run python -m tilewright.tools.pages.pass_docs"


def test_every_pass_has_a_page_with_its_options_and_short_ir(pages):
    assert set(pages) == {"README.md", *(f"{name}.md" for name in PASSES)}
    for name, pass_class in PASSES.items():
        text = pages[f"{name}.md"]
        options = [option.name for option in fields(pass_class)]
        assert all(f"| `{option}` |" in text for option in options)
        assert len(text.partition("## On a small kernel")[2].splitlines()) < 250, name


def test_the_preset_page_is_up_to_date():
    assert (DOCS / "presets.md").read_text() == preset_docs.render(), (
        "run python -m tilewright.tools.pages.preset_docs > docs/presets.md"
    )


def test_every_preset_is_described():
    assert set(all_presets()) <= set(preset_docs.STEPS)
