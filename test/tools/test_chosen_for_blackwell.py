"""The page of what is chosen for a B200 says what is chosen now."""

from pathlib import Path

import pytest

from tilewright.tools.pages import chosen_schedules as page

KEPT = Path(__file__).parents[2] / "docs" / "appendix" / "blackwell-schedules.md"


@pytest.fixture(scope="module")
def rendered():
    return page.render()


def test_the_page_has_what_is_chosen_now(rendered):
    command = f"python -m tilewright.tools.pages.chosen_schedules > docs/appendix/{KEPT.name}"
    assert KEPT.read_text() == rendered, f"run {command}"


def test_the_page_has_forty_shapes_in_five_types_where_k_allows_it(rendered):
    rows = [line for line in rendered.splitlines() if line[2:3].isdigit()]
    assert len(page.SHAPES) == len(set(page.SHAPES)) == 40
    assert 180 < len(rows) < 200
