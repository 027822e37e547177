"""Linalg on tensors as text, from a file or from a torch module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...dialects.errors import CompileError
from ...dialects.target import TARGETS

SHORT_SUMS = ("sm_89", "sm_90a")
"""Chips that sum products of 8-bit floats with 14 bits."""
TWO_LEVEL_CHIPS = tuple(name for name in SHORT_SUMS if TARGETS[name].added_mma is not None)
"""Those of them whose threads can add what a tensor core sums of a part of K."""


@dataclass(frozen=True)
class LinalgText:
    """A module's text, what to call it in errors, and what its function's arguments are.

    is_file: `name` is a file that holds the text. arguments: their names, of a torch module.
    column_major: the arguments whose examples lie with the first of two axes contiguous. turned:
    those that the text's function takes transposed (`argument_layout`). exact_sums: torch was not
    allowed to sum products of 8-bit floats with fewer bits than f32 has (`use_fast_accum`). parts:
    what each argument is of the module's inputs and state, and which part of that (`torch_parts`);
    empty where they are those themselves.
    """

    text: str
    name: str
    arguments: tuple[str, ...] = ()
    is_file: bool = False
    column_major: frozenset[int] = frozenset()
    turned: frozenset[int] = frozenset()
    exact_sums: bool = False
    parts: tuple[tuple[str, Any], ...] = ()

    def has_two_levels(self, chip: str) -> bool:
        """Whether threads of the chip shall add the sums of parts of K, in f32."""
        return self.exact_sums and chip in TWO_LEVEL_CHIPS

    def check_sums(self, chip: str) -> None:
        """Refuse a chip whose sums are shorter than the text's, if its threads can't add them."""
        if self.exact_sums and chip in SHORT_SUMS and not self.has_two_levels(chip):
            raise CompileError(f"{self.name}: {short_sums_rule(chip)}")


def short_sums_rule(chip: str) -> str:
    """What a scaled_mm must say where sums are short."""
    rule = f"use_fast_accum must be True on {chip}, whose sums of 8-bit floats have 14 bits"
    return f"{rule}, got False; pass True, or multiply in bf16"
