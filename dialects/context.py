"""MLIR contexts with our dialects in them, made by one thread at a time."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .mlir import declare_dialect, ir
from .pipe import Pipe
from .sm import Sm
from .tile_place import PlaceOp as PlaceOp  # declares an op of `tile`
from .tile_stores import WritePieceOp as WritePieceOp  # declares ops of `tile`
from .tile_types import Tile

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_turn = threading.RLock()

declare_dialect("tile")
declare_dialect("pipe")
declare_dialect("sm")


def _remember_declaration(dialect: Any) -> None:
    """Let a dialect put its declaration together once; each context after the first parses it.

    Parsing takes a third of the time.
    """
    emit, remembered = dialect._emit_module, []

    def declaration() -> ir.Module:
        if not remembered:
            remembered.append(str(emit()))
        return ir.Module.parse(remembered[0])

    dialect._emit_module = declaration


for _dialect in (Tile, Pipe, Sm):
    _remember_declaration(_dialect)


def make_context() -> ir.Context:
    """A fresh MLIR context with `tile`, `pipe` and `sm` loaded (each context loads them once)."""
    context = ir.Context()
    with context:
        Tile.load()
        Pipe.load()
        Sm.load()
    return context


def one_thread_at_a_time(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """For functions that make a context: two threads that load our dialects crash the process."""

    @functools.wraps(function)
    def in_turn(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        with _turn:
            return function(*arguments, **options)

    return in_turn
