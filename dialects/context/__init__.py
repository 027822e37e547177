"""MLIR contexts with our dialects loaded, used by one thread at a time."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from ...runtime.collector import no_full_collections
from ...runtime.locks import shared_lock
from ..mlir import declare_dialect, ir, irdl, quicken
from ..pipe import Pipe
from ..sm import Sm
from ..tile import Tile

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_turn = shared_lock()
_declarations: dict[type, bytes] = {}
_spare: list[tuple[int, int, ir.Context]] = []
LOANS_MAX = 64
BUILT = ("arith", "gpu", "llvm", "math", "memref", "nvvm", "scf", "tensor", "vector")

declare_dialect("tile")
declare_dialect("pipe")
declare_dialect("sm")


@contextmanager
def lent_context() -> Iterator[ir.Context]:
    """A context that is current for as long as it is lent: one that is spare, or a fresh one.

    To make one takes 12 ms, a tenth of a small compilation. A context keeps every attribute and
    type that it has seen, so it is dropped after `LOANS_MAX` loans; one whose borrower raised, or
    that another process made, is not lent again. Its borrowers come one at a time
    (`one_thread_at_a_time`), each with modules of its own.
    """
    maker, loans, context = _spare.pop() if _spare else (os.getpid(), 0, make_context())
    if maker != os.getpid():
        maker, loans, context = os.getpid(), 0, make_context()
    with context:
        yield context
    if loans + 1 < LOANS_MAX:
        _spare.append((maker, loans + 1, context))


def make_context() -> ir.Context:
    """A fresh MLIR context with `tile`, `pipe` and `sm` loaded (each context loads them once).

    Of MLIR's own it has those of `BUILT`; the parser and passes load what they meet beside them.
    To load all that there are takes 10 ms and makes each canonicalization longer. A module is one
    function, so that threads of its own would only cost time.
    """
    context = ir.Context(load_on_create_dialects=["irdl", *BUILT])
    context.enable_multithreading(False)
    with context:
        for dialect in (Tile, Pipe, Sm):
            _load(dialect)
    return context


def _load(dialect: Any) -> None:
    """Load a dialect of ours into the current context, which is to be new.

    The first time `ext.Dialect.load` puts the declaration together, canonicalizes it and registers
    the classes. After that a context needs only what is its own: declaration, verifiers and types.
    """
    if dialect not in _declarations:
        dialect.load()
        for op in dialect.operations:
            quicken(op)
        _declarations[dialect] = _bytecode(dialect._mlir_module)
        dialect._mlir_module = None  # it would keep this context for as long as the process is
        return
    irdl.load_dialects(ir.Module.parse(_declarations[dialect]))
    for op in dialect.operations:
        op._attach_traits()
    for type_ in dialect.types:
        ir.register_type_caster(ir.DynamicType.lookup_typeid(type_.type_name), replace=True)(type_)


def _bytecode(module: ir.Module) -> bytes:
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    return written.getvalue()


def one_thread_at_a_time(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """For functions that make a context: two threads that load our dialects crash the process.

    Inside, Python collects in its young generations alone: a compilation leaves little garbage, and
    what it imports none.
    """

    @functools.wraps(function)
    def in_turn(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        with _turn, no_full_collections():
            return function(*arguments, **options)

    return in_turn
