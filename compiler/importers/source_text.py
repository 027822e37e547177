"""Refuses text that crashes MLIR's parser, before it is parsed.

MLIR descends one call for each bracket and each minus sign of an affine expression, and ends the
process when the stack is full. It reads on after a list of linalg.transpose or linalg.broadcast
that it could not read. Its strings may hold any bytes, which Python's may not.
"""

from __future__ import annotations

import re

from ...dialects.errors import CompileError

DEPTH_MAX = 256
_INTEGER = r"\s*-?\d{1,18}\s*"
_LIST = rf"\s*(?:array\b|\[(?:\s*|{_INTEGER}(?:,{_INTEGER})*)\])"
_TOKENS = re.compile(
    r'//[^\n]*|"(?P<string>[^"\\\n]*(?:\\.[^"\\\n]*)*)"|->|[<>]=|(?P<open>[(\[{<])'
    r"|(?P<close>[)\]}>])|(?P<signs>-(?:\s*-)+)"
    rf"|(?P<no_list>\b(?:permutation|dimensions)\s*=(?!{_LIST}))"
)
_ESCAPE = re.compile(rb"\\([0-9a-fA-F]{2}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t"}


def check_text(text: str, filename: str) -> None:
    """Raise CompileError, with the place, for brackets or signs nested deeper than `DEPTH_MAX`, for
    lists of dims that are none, and for strings that are not UTF-8."""
    depth = 0
    for token in _TOKENS.finditer(text):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth = max(depth - 1, 0)
        reason = _refusal(token, depth)
        if reason:
            raise CompileError(f"text: {reason}", _place(text, filename, token.start()))


def _refusal(token: re.Match[str], depth: int) -> str | None:
    if depth > DEPTH_MAX:
        return f"brackets must nest at most {DEPTH_MAX} deep, got more"
    if (token["signs"] or "").count("-") > DEPTH_MAX:
        return f"minus signs must nest at most {DEPTH_MAX} deep, got more"
    if token["no_list"]:
        return "permutation and dimensions must be lists of integers, got something else"
    if "\\" in (token["string"] or "") and not _is_utf8(token["string"]):
        return "a string must be UTF-8, got other bytes"
    return None


def _is_utf8(string: str) -> bool:
    """Whether the bytes that a string's escapes stand for are text."""
    try:
        _ESCAPE.sub(_byte, string.encode()).decode()
    except UnicodeError:
        return False
    return True


def _byte(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes.fromhex(code.decode()) if len(code) == 2 else _LETTERS.get(code, code)


def _place(text: str, filename: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    return f"{filename}:{text.count(chr(10), 0, at) + 1}:{at - start + 1}"
