"""Docstrings as Markdown: a summary, pictures as blocks of text, and paragraphs."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

# A line of a list of ops: a name, and after two spaces what it does.
LISTED = re.compile(r"\w+\.\w+ {2,}\S")


def summary(documented: Any) -> str:
    """The first paragraph, on one line."""
    return " ".join(_text(documented).partition("\n\n")[0].split())


def details(documented: Any) -> list[str]:
    """What comes after the first paragraph; an indented paragraph is a picture or a table.

    So is one that begins with a line of a list of ops.

    A sentence must follow the last picture: a docstring whose rest is all indented has no indent.
    """
    _, _, rest = _text(documented).partition("\n\n")
    return [_paragraph(part) for part in rest.split("\n\n") if part]


def _text(documented: Any) -> str:
    return inspect.getdoc(documented) or ""


def _paragraph(text: str) -> str:
    return f"```text\n{textwrap.dedent(text)}\n```" if _is_block(text) else text


def _is_block(text: str) -> bool:
    return text.startswith("    ") or bool(LISTED.match(text))
