"""The error of the compiler: the program or its options must change."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_PLACE = re.compile(r'"((?:[^"\\]|\\.)+)":(\d+):(\d+)')
_ESCAPE = re.compile(rb"\\(\\|[0-9A-F]{2})")


class CompileError(Exception):
    """A program or option that the compiler refuses.

    `message` follows `what: rule, got value; cure`. `location` is `file:line:col` where the
    refused op came from a file, `file` where MLIR knows no more, or None when there is none.
    """

    def __init__(self, message: str, location: str | None = None):
        # Not by Exception's, which Dynamo cannot trace: it then hides the message. `args` are set.
        self.message = message
        self.location = location

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location else ""
        return f"{prefix}error: {self.message}"


class OptionError(CompileError):
    """A spec field, option, pipeline text or name that can't be taken: wrong usage."""


def instead_of(name: str, known: Iterable[str]) -> str:
    """What an error on an unknown name suggests: the known name most like it, else all of them."""
    names = list(known)
    if close := difflib.get_close_matches(name, names, n=1):
        return f"did you mean {close[0]!r}?"
    return f"use one of {', '.join(names)}"


def place_in(location: object) -> str | None:
    """`file:line:col` of an MLIR location, of the innermost call where there are several; None for
    no file. MLIR prints the bytes of a name that aren't ASCII as `\\C3`."""
    found = _PLACE.search(str(location))
    if found is None:
        return None
    name = _ESCAPE.sub(_byte, found[1].encode()).decode(errors="replace")
    return f"{name}:{found[2]}:{found[3]}"


def _byte(escape: re.Match[bytes]) -> bytes:
    return b"\\" if escape[1] == b"\\" else bytes.fromhex(escape[1].decode())
