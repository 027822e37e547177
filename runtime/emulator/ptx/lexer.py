"""PTX text to tokens (PTX ISA §4.2–§4.5)."""

from __future__ import annotations

import bisect
import re

from ..errors import PtxSyntaxError

_TOKEN = re.compile(
    r"""(?:(?P<word>[%$_A-Za-z][\w$%]*(?:(?:\.|::)[\w$]+)*)
    |(?P<directive>\.[A-Za-z_]\w*(?:::\w+)*)
    |(?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
        |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)
    |(?P<string>"[^"\n]*")
    |(?P<mark><<|>>|<=|>=|==|!=|&&|\|\||/(?!\*)|[][{}()<>,;:@!|+\-~=*&^?]))\s*""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"[^\"\n]*\"", re.DOTALL)

Token = tuple[str, str, int]
"""(kind, text, offset); kinds: word, directive, number, string, mark, end."""


def _blank(match: re.Match) -> str:
    """A comment as spaces; one without an end stays, and is no token."""
    text = match.group()
    if text[0] == '"' or (text[1] == "*" and (len(text) < 4 or text[-2:] != "*/")):
        return text
    return re.sub(r"[^\n]", " ", text)


class Source:
    """The text without comments, and the line and column of any offset."""

    def __init__(self, text: str):
        self.text = _COMMENT.sub(_blank, text)
        self._newlines = [match.start() for match in re.finditer("\n", self.text)]

    def line(self, offset: int) -> int:
        """1-based line of an offset."""
        return bisect.bisect_left(self._newlines, offset) + 1

    def column(self, offset: int) -> int:
        """1-based column of an offset."""
        line = self.line(offset)
        return offset - (self._newlines[line - 2] if line > 1 else -1)

    def error(self, message: str, offset: int) -> PtxSyntaxError:
        return PtxSyntaxError(message, self.line(offset), self.column(offset))

    def tokens(self) -> list[Token]:
        """All tokens, ended by one of kind `end`; PtxSyntaxError at a foreign character."""
        tokens: list[Token] = []
        text = self.text
        at = len(text) - len(text.lstrip())
        for match in _TOKEN.finditer(text, at):
            start, end = match.span()
            if start != at:
                break
            at, kind = end, match.lastgroup or ""
            tokens.append((kind, match[kind], start))
        if at != len(text):
            raise self.error(_why_no_token(text, at), at)
        tokens.append(("end", "the end of the text", len(text)))
        return tokens


def _why_no_token(text: str, at: int) -> str:
    if text.startswith("/*", at):
        return "expected `*/` at the end of the comment, got the end of the text"
    if text[at] == '"':
        return 'expected `"` at the end of the string, got the end of the line'
    return f"character not allowed in PTX, got {text[at]!r}"
