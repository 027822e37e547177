"""Writes the pages of a folder of `docs/`, and drops those that are gone."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ..command_line.own_process import as_process


def write_folder(render_all: Callable[[], dict[str, str]], folder: Path) -> int:
    """The command `[FOLDER]` of a module that renders pages by their paths; its exit status."""
    parser = argparse.ArgumentParser(description=write_pages.__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=folder)
    options = parser.parse_args()
    return as_process(lambda: write_pages(render_all(), options.folder))


def write_pages(pages: dict[str, str], folder: Path) -> None:
    """Write every page into a folder, and drop pages of what is gone."""
    for path in set(folder.rglob("*.md")) - {folder / name for name in pages}:
        path.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
