"""Linalg on tensors as text, from a file or from a torch module."""

from __future__ import annotations

from typing import Any

from ...dialects.errors import CompileError
from ...dialects.record import record
from ...dialects.target import TARGETS, find_target

SHORT_SUMS = ("sm_89", "sm_90a")
"""Chips that sum products of 8-bit floats with 14 bits."""
TWO_LEVEL_CHIPS = tuple(name for name in SHORT_SUMS if TARGETS[name].added_mma is not None)
"""Those of them whose threads can add what a tensor core sums of a part of K."""


@record
class LinalgText:
    """A module's text, what to call it in errors, and what its function's arguments are.

    is_file: `name` is a file that holds the text. arguments: their names, of a torch module.
    column_major: the arguments whose examples lie with the first of two axes contiguous. turned:
    those that the text's function takes transposed (`argument_layout`). exact_sums: torch was not
    allowed to sum products of 8-bit floats with fewer bits than f32 has (`use_fast_accum`). parts:
    what each argument is of the module's inputs and state, and which part or view of that
    (`torch_parts`, `view_chains`); empty where they are those themselves. results: how the module's
    results are made of what the function returns (`torch_views`); empty where they are that.
    strides: of each argument those that the kernel shall read it with, none where it has no gaps.
    all_digits: whether torch may leave out no digits of operands of f32. mma: the MMA by which the
    kernel then multiplies them; "" is the chip's own.
    """

    text: str
    name: str
    arguments: tuple[str, ...] = ()
    is_file: bool = False
    column_major: frozenset[int] = frozenset()
    transposed: frozenset[int] = frozenset()
    exact_sums: bool = False
    parts: tuple[tuple[str, Any], ...] = ()
    results: tuple[Any, ...] = ()
    strides: tuple[tuple[int, ...], ...] = ()
    all_digits: bool = False
    mma: str = ""

    def has_two_levels(self, target: str) -> bool:
        """Whether threads of the target shall add the sums of parts of K, in f32."""
        return self.exact_sums and adds_two_levels(target)

    def check_sums(self, target: str) -> None:
        """Refuse a target whose sums are shorter than the text's, if its threads can't add them."""
        if self.exact_sums and sums_are_short(target) and not adds_two_levels(target):
            raise CompileError(f"{self.name}: {short_sums_rule(target)}")


def sums_are_short(target: str) -> bool:
    """Whether a chip, or that of a GPU, sums products of 8-bit floats with 14 bits."""
    return find_target(target).chip in SHORT_SUMS


def adds_two_levels(target: str) -> bool:
    """Whether it does, and its threads can add in f32 what it sums of parts of K."""
    return find_target(target).chip in TWO_LEVEL_CHIPS


def short_sums_rule(target: str) -> str:
    """What a scaled_mm must say where sums are short."""
    rule = f"use_fast_accum must be True on {target}, whose sums of 8-bit floats have 14 bits"
    return f"{rule}, got False; pass True, or multiply in bf16"
