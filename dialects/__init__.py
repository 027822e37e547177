"""Dialects, layout algebra and target limits: what every other package but `runtime` stands on."""

from .mlir import ir
from .pipe import Pipe
from .tile_types import Tile


def make_context() -> ir.Context:
    """A fresh MLIR context with `tile` and `pipe` loaded (each context loads them once)."""
    context = ir.Context()
    with context:
        Tile.load()
        Pipe.load()
    return context
