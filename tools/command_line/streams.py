"""The standard streams, made robust against encodings and closed pipes."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO

ERRORS = "tilewright-plain"
PLAIN = {"×": "x", "·": "*", "→": "->", "…": "...", "µ": "u", "–": "-", "ᵀ": "^T", "⁻": "^-"}
"""What characters of ours become where the encoding lacks them; others are escaped."""


class _Output(io.FileIO):
    """A descriptor that is written; errors name the stream."""

    def __init__(self, descriptor: int, name: str):
        super().__init__(descriptor, "w", closefd=False)
        self.stream = name

    def write(self, content) -> int:  # type: ignore[override]
        try:
            return super().write(content)
        except OSError as error:
            error.filename = self.stream
            raise


class _Messages(_Output):
    """A descriptor for messages: where they can't be written, nobody reads them."""

    def write(self, content) -> int:  # type: ignore[override]
        try:
            return super().write(content)
        except OSError:
            return len(content)


def own_streams(messages: int = 2) -> None:
    """Make stdin, stdout and stderr work: closed ones, ones that fail, ones that are ASCII.

    Reading or writing a closed one is an OSError, which names it; stderr never fails. messages:
    the descriptor that stderr writes to.
    """
    encodings = [stream.encoding if stream else "utf-8" for stream in (sys.stdout, sys.stderr)]
    _fill_closed()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)
    codecs.register_error(ERRORS, _plain)
    sys.stdout = _text(_Output(1, "stdout"), encodings[0])
    sys.stderr = _text(_Messages(messages, "stderr"), encodings[1], lines=True)


def drop_output() -> None:
    """Forget what stdout holds and can't take, so that nothing fails when the program ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _fill_closed() -> None:
    """Open what fails as a closed one does in its place, so that no other file gets its number."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDWR)):
        try:
            os.fstat(descriptor)
        except OSError:
            found = os.open(os.devnull, mode)
            if found != descriptor:
                os.dup2(found, descriptor)
                os.close(found)


def _text(raw: io.RawIOBase, encoding: str, lines: bool = False) -> TextIO:
    at_once = lines or raw.isatty()
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding, ERRORS, line_buffering=at_once)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """What an encoding lacks, in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN.get(each) or _escaped(each) for each in text), error.end


def _escaped(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode()
