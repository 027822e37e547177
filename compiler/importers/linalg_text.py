"""Linalg on tensors as text, from a file or from a torch module."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LinalgText:
    """A module's text, what to call it in errors, and what its function's arguments are.

    is_file: `name` is a file that holds the text. arguments: their names, of a torch module.
    column_major: the arguments whose examples lie with the first of two axes contiguous. turned:
    those that the text's function takes transposed (`argument_layout`).
    """

    text: str
    name: str
    arguments: tuple[str, ...] = ()
    is_file: bool = False
    column_major: frozenset[int] = frozenset()
    turned: frozenset[int] = frozenset()
