"""Edits of a kernel: each takes PTX text apart by a pattern and fails if it finds nothing there.

Patterns are regular expressions on whole instructions, with register numbers left open, so that an
edit still fits when the compiler numbers its registers differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Edit = Callable[[str], str]


def _matches(pattern: str, text: str) -> list[re.Match]:
    found = list(re.finditer(pattern, text, re.MULTILINE))
    assert found, f"no line of the kernel matches {pattern!r}"
    return found


def replace(pattern: str, replacement: str, nth: int | None = None) -> Edit:
    r"""Replace the `nth` match (from 0, negative from the end), or all; `\1` names a group."""

    def edit(text: str) -> str:
        found = _matches(pattern, text)
        chosen = found if nth is None else [found[nth]]
        for match in reversed(chosen):
            text = text[: match.start()] + match.expand(replacement) + text[match.end() :]
        return text

    return edit


def line(pattern: str) -> str:
    """A pattern of the whole line, with its end, that `pattern` begins; guards may precede it."""
    return rf"^[ \t]*(?:@!?%p\d+ )?(?:{pattern}).*\n"


def delete(pattern: str, nth: int | None = None) -> Edit:
    """Delete the `nth` or every line whose instruction begins with `pattern`."""
    return replace(line(pattern), "", nth)


def insert_before(pattern: str, text: str, nth: int | None = None) -> Edit:
    """Insert a line before the `nth` or every line whose instruction begins with `pattern`."""
    return replace(f"({line(pattern)})", f"\t{text}\n\\1", nth)


def insert_after(pattern: str, text: str, nth: int | None = None) -> Edit:
    """Insert a line behind the `nth` or every line whose instruction begins with `pattern`."""
    return replace(f"({line(pattern)})", f"\\1\t{text}\n", nth)


def move_before(pattern: str, target: str, nth: int = 0, target_nth: int = 0) -> Edit:
    """Move the `nth` line that begins with `pattern` before a line that begins with `target`."""

    def edit(text: str) -> str:
        moved = _matches(line(pattern), text)[nth].group()
        rest = delete(pattern, nth)(text)
        at = _matches(line(target), rest)[target_nth].start()
        return rest[:at] + moved + rest[at:]

    return edit


def chain(*edits: Edit) -> Edit:
    """One edit after the other."""

    def edit(text: str) -> str:
        for each in edits:
            text = each(text)
        return text

    return edit


def flip_parity(nth: int) -> Edit:
    """The `nth` wait for an mbarrier asks about the other parity."""
    wait = r"(mbarrier\.try_wait\.parity\S* +%p\d+, \[[^\]]+\], )(%r\d+);"
    flipped = r"{ .reg .b32 %flip; xor.b32 %flip, \2, 1; \1%flip; }"
    return replace(wait, flipped, nth)


def without_waiting(nth: int) -> Edit:
    """The `nth` wait for an mbarrier goes on at once."""
    loop = r"(^\$L\w+:\n)((?:[^\n]*mov[^\n]*\n)?[^\n]*try_wait[^\n]*\n[^\n]*not\.pred[^\n]*\n)"
    return replace(loop + r"[^\n]*bra[^\n]*\n", r"\1", nth)


def without_waiting_for_slot_0() -> Edit:
    """The last loop over slots goes on at once where it comes to slot 0."""
    wait = (
        r"(shl\.b32 \t%r\d+, (%r\d+), 3;\n(?:[^\n]*\n){4}\$L\w+:\n"
        r"[^\n]*try_wait[^\n]* (%p\d+), [^\n]*\n)(?=[^\n]*not\.pred \t(%p\d+),)"
    )
    return replace(wait, r"\1\tsetp.eq.b32 \t\4, \2, 0;\n\tor.pred \t\3, \3, \4;\n", -1)
