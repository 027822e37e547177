"""The one error of the compiler: the program or its options must change."""

from __future__ import annotations


class CompileError(Exception):
    """A program or option that the compiler refuses.

    `message` follows `what: rule, got value; cure`. `location` is `file:line:col` where the
    refused op came from a file, `file` where MLIR knows no more, or None when there is none.
    """

    def __init__(self, message: str, location: str | None = None):
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        prefix = f"{self.location}: " if self.location else ""
        return f"{prefix}error: {self.message}"


class OptionError(CompileError):
    """A spec field, option, pipeline text or name that can't be taken: wrong usage."""
