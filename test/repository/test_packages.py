"""The packages: no two import each other, and the drawing shows what is there."""

import subprocess
from pathlib import Path

import draw_packages
import pytest

ROOT = Path(__file__).parent.parent.parent
FOLDERS = [".ci", "benchmarks", "compiler", "dialects", "docs", "examples", "package", "passes"]
FOLDERS += ["runtime", "test", "tools", "typings"]
PAGES = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
]
SETTINGS = [".gitignore", ".pre-commit-config.yaml", "MANIFEST.in", "Makefile", "constraints.txt"]
SETTINGS += ["pyproject.toml"]


@pytest.fixture(scope="module")
def files():
    return draw_packages.import_graph(ROOT)


def test_no_files_import_each_other_in_a_cycle(files):
    assert draw_packages.cyclic(files) == []


def test_no_packages_import_each_other_in_a_cycle(files):
    assert draw_packages.cyclic(draw_packages.package_graph(files)) == []


def test_a_cycle_would_be_found(tmp_path):
    for name, text in {"a": "from .b import x", "b": "def f():\n    from . import a"}.items():
        path = tmp_path / "tools" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert draw_packages.cyclic(draw_packages.import_graph(tmp_path)) == [["tools/a", "tools/b"]]


def test_the_drawing_shows_the_packages_that_are_there():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    assert page == draw_packages.with_drawing(page), "run python test/repository/draw_packages.py"


def test_nothing_else_is_kept_beside_the_folders():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {path.split("/")[0] for path in listed.splitlines()}
    assert found == {*FOLDERS, *PAGES, *SETTINGS}
