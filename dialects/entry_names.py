"""Legal names of kernels in PTX (PTX ISA, "Identifiers")."""

from __future__ import annotations

import re

IDENTIFIER = re.compile(r"(?:[A-Za-z]|[_$][\w$])[\w$]*", re.ASCII)
LENGTH_MAX = 1024
SHARED_MEMORY = "dynamic_shared"
TAKEN = ("WARP_SZ", SHARED_MEMORY)
SHOWN_CHARACTERS = 40


def name_refusal(name: str) -> str | None:
    """Why PTX has no kernel of this name; None if it can.

    1024 characters are what every implementation must take. `%`, which PTX would allow first, is
    LLVM's mark of registers.
    """
    if name in TAKEN:
        return f"the name must be none of PTX's own, {' and '.join(TAKEN)}, got {name!r}"
    if len(name) > LENGTH_MAX:
        shown = name[:SHOWN_CHARACTERS] + "…"
        return f"the name must have up to {LENGTH_MAX} characters, got {len(name)}, {shown!r}"
    if not IDENTIFIER.fullmatch(name):
        rule = "the name must be of ASCII letters, digits, _ and $, and must not begin with a digit"
        return f"{rule} or be _ or $ alone, got {name!r}"
    return None
