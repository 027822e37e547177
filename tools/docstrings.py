"""Docstrings as Markdown: a summary, pictures as blocks of text, and paragraphs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any


def summary(documented: Any) -> str:
    """The first paragraph, on one line."""
    return " ".join(_text(documented).partition("\n\n")[0].split())


def details(documented: Any) -> list[str]:
    """What stands behind the first paragraph; an indented paragraph is a picture or a table."""
    _, _, rest = _text(documented).partition("\n\n")
    return [_paragraph(part) for part in rest.split("\n\n") if part]


def _text(documented: Any) -> str:
    """The docstring without the indent of its code, of which a module's has none.

    Of a module it is read in the source: Python 3.13 takes the common indent of a docstring away,
    and with it that of a picture with nothing behind it.
    """
    if inspect.ismodule(documented):
        return (
            ast.get_docstring(ast.parse(inspect.getsource(documented)), clean=False) or ""
        ).strip()
    return inspect.getdoc(documented) or ""


def _paragraph(text: str) -> str:
    return f"```text\n{textwrap.dedent(text)}\n```" if text.startswith("    ") else text
