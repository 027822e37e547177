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
    """Where a CTA's share of an operand lies. words: their numbers in its window; span: the
    bytes in which they lie; overlaps: whether one of them is read for several elements."""

    what: str
    descriptor: SharedDescriptor
    kind: OperandType
    layout: Layout
    words: np.ndarray
    span: tuple[int, int]
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
    span = start + plan.low, start + plan.high
    return Operand(what, descriptor, kind, layout, words, span, plan.overlaps)


def gather(ctas: tuple[Cta, ...], operand: Operand) -> np.ndarray:
    """``float32[rows * len(ctas), k]``: each CTA holds its share of the rows at the same place."""
    shares = [_decoded(words, operand) for words in gather_words(ctas, operand)]
    return shares[0] if len(shares) == 1 else np.concatenate(shares)


def gather_words(ctas: tuple[Cta, ...], operand: Operand) -> list[np.ndarray]:
    """The words of each CTA's share, in the order of the operand's."""
    return [_gather_share(cta, operand) for cta in ctas]


def _decoded(words: np.ndarray, operand: Operand) -> np.ndarray:
    return operand_matrix(words, operand.layout, operand.kind.name)


def _gather_share(cta: Cta, operand: Operand) -> np.ndarray:
    index, what, span = operand.words, operand.what, operand.span
    if span[0] < cta.shared.lowest or span[1] > len(cta.shared.data):
        raise Trap(
            "out-of-bounds",
            f"{what} covers shared offsets 0x{span[0]:x}..0x{span[1]:x}, the CTA's shared memory is"
            f" 0x{cta.shared.lowest:x}..0x{len(cta.shared.data):x}",
        )
    events, kind = cta.launch.events, operand.kind
    events.operand_read(cta, index, operand.descriptor, what)
    if operand.overlaps:
        _note_overlap(cta, operand.descriptor, what)
    words = _read(cta, index, what, span, kind)
    events.operand_gathered(cta, lambda: _decoded(words, operand), what)
    return words


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
