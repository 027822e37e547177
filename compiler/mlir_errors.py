"""MLIR's diagnostics as errors of the compiler."""

from __future__ import annotations

from ..dialects.errors import CompileError, place_in
from ..dialects.mlir import ir


class mlir_errors:
    """Context manager: an MLIRError inside becomes a CompileError with its first location.

    `where` is said instead of a location that MLIR does not know.
    """

    def __init__(self, where: str | None = None) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> None:
        if not isinstance(error, ir.MLIRError):
            return
        diagnostics = list(error.error_diagnostics)
        if not diagnostics:
            raise CompileError(str(error.message), self._where) from error
        first = diagnostics[0]
        where = place_in(first.location) or self._where
        raise CompileError(first.message.strip(), where) from error
