"""What a pass changed, as a unified diff of the IR around it."""

from __future__ import annotations

import difflib


def ir_diff(before: str, after: str, name: str) -> str:
    """The lines that differ, with three around them; one line where none does."""
    names = (f"before {name}", f"after {name}")
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""))
    return "\n".join(lines or [f"{name} left the IR as it was"]) + "\n"
