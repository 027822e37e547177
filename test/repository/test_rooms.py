"""The rooms of the house: no two import each other, and the drawing shows what is there."""

from pathlib import Path

import draw_house
import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def files():
    return draw_house.import_graph(ROOT)


def test_no_files_import_each_other_in_a_circle(files):
    assert draw_house.cyclic(files) == []


def test_no_rooms_import_each_other_in_a_circle(files):
    assert draw_house.cyclic(draw_house.room_graph(files)) == []


def test_a_circle_would_be_found(tmp_path):
    for name, text in {"a": "from .b import x", "b": "def f():\n    from . import a"}.items():
        path = tmp_path / "tools" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert draw_house.cyclic(draw_house.import_graph(tmp_path)) == [["tools/a", "tools/b"]]


def test_the_drawing_shows_the_rooms_that_are_there():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    assert page == draw_house.with_drawing(page), "run python test/repository/draw_house.py"
