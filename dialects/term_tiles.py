"""Tiles of shared memory that hold the narrower terms of f32 tiles."""

from __future__ import annotations

from collections.abc import Sequence

from .mlir import ir
from .terms import FORMS, TermForm, term_layout
from .tile_types import SmemType


def is_term(tile: ir.Type) -> bool:
    """Whether it lies as MMAs read terms."""
    return isinstance(tile, SmemType) and any(_is_of(tile, form) for form in FORMS)


def _is_of(tile: SmemType, form: TermForm) -> bool:
    is_element = str(tile.element) == form.dtype.mlir
    return is_element and tile.layout == term_layout(tile.layout, form)


def form_of(tiles: Sequence[SmemType]) -> TermForm | None:
    """The form whose slots have such tiles."""
    return next((each for each in FORMS if _has_form(tiles, each)), None)


def _has_form(tiles: Sequence[SmemType], form: TermForm) -> bool:
    """Whether they are as many alike of each operand as that one has."""
    operands = [tiles[at : at + form.terms] for at in range(0, len(tiles), form.terms)]
    if len(tiles) % form.terms or len(operands) not in ((2, 3) if form.of_a else (1, 2)):
        return False
    alike = all(len(set(map(str, each))) == 1 for each in operands)
    return alike and all(_is_of(each, form) for each in tiles)
