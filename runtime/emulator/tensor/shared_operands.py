"""Operands of tcgen05.mma gathered from shared memory, of one CTA or of both of a pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import Trap
from ..interface import Cta
from ..machine.shared_access import WORD, read_words
from .descriptor import OperandType, SharedDescriptor
from .element_formats import BITS
from .tensor_core import Layout, check_row, gather_plan, operand_layout, operand_matrix


@dataclass(frozen=True)
class Operand:
    """Where a CTA's share of an operand lies. words: their numbers in its window; low, high: the
    bytes they span; overlaps: whether one of them is read for several elements."""

    what: str
    descriptor: SharedDescriptor
    kind: OperandType
    layout: Layout
    words: np.ndarray
    low: int
    high: int
    overlaps: bool


@lru_cache(maxsize=1024)
def operand_at(descriptor: SharedDescriptor, rows: int, k: int, kind: OperandType, transposed: bool,
               name: str) -> Operand:  # fmt: skip
    """``rows`` x ``k`` elements of operand ``name`` ("A" or "B"); Trap if it is no legal one."""
    layout = operand_layout(descriptor, rows, k, kind.bits, transposed, name)
    plan, what, start = gather_plan(layout), f"tcgen05.mma operand {name}", descriptor.start
    check_row(layout, what)
    words = plan.words + start // WORD
    words.flags.writeable = False
    low, high = start + plan.low, start + plan.high
    return Operand(what, descriptor, kind, layout, words, low, high, plan.overlaps)


def gather(ctas: tuple[Cta, ...], operand: Operand) -> np.ndarray:
    """``float32[rows * len(ctas), k]``: each CTA holds its share of the rows at the same place."""
    if len(ctas) == 1:
        return _gather_share(ctas[0], operand)
    return np.concatenate([_gather_share(cta, operand) for cta in ctas])


def _gather_share(cta: Cta, operand: Operand) -> np.ndarray:
    index, what, low, high = operand.words, operand.what, operand.low, operand.high
    if low < cta.shared.lowest or high > len(cta.shared.data):
        raise Trap(
            "out-of-bounds",
            f"{what} covers shared offsets 0x{low:x}..0x{high:x}, the CTA's shared memory is "
            f"0x{cta.shared.lowest:x}..0x{len(cta.shared.data):x}",
        )
    events, kind = cta.launch.events, operand.kind
    events.operand_read(cta, index, operand.descriptor, what)
    if operand.overlaps:
        _note_overlap(cta, operand.descriptor, what)
    matrix = operand_matrix(_read(cta, index, what, (low, high), kind), operand.layout, kind.name)
    events.operand_decoded(cta, matrix, what)
    return matrix


def _note_overlap(cta: Cta, descriptor: SharedDescriptor, what: str) -> None:
    """Note a descriptor whose strides give several elements of an operand the same bytes."""
    cta.launch.warn(
        "descriptor",
        f"{what} reads the same bytes for several elements, with leading"
        f" offset {descriptor.leading} and stride offset {descriptor.stride}",
    )


def _read(
    cta: Cta, index: np.ndarray, what: str, span: tuple[int, int], kind: OperandType
) -> np.ndarray:
    if kind.name == "e2m1":
        return read_padded_words(cta, index, what, span, BITS[kind.name])
    return read_words(cta, index, what, span)


def read_padded_words(
    cta: Cta, index: np.ndarray, what: str, span: tuple[int, int], bits: int
) -> np.ndarray:
    """uint64 words of 4- or 6-bit elements, 16 of them in each pair of words.

    Of 4-bit elements the second word is padding, which is not read.
    """
    if bits != 4:
        return read_words(cta, index, what, span)
    words = np.zeros(index.shape, np.uint64)
    words[..., ::2] = read_words(cta, index[..., ::2], what, span)
    return words
