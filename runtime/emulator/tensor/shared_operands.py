"""Operands of tcgen05.mma gathered from shared memory, of one CTA or of both of a pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from ..errors import Trap
from ..interface import Cta
from ..machine.shared_access import WORD, read_words
from .descriptor import OperandType, SharedDescriptor
from .element_formats import BITS
from .tensor_core import Layout, check_row, gather_plan, operand_layout, operand_matrix

_PADDED = ("e2m1",)
"""Types of elements whose gaps in shared memory are not read."""


@dataclass(frozen=True, eq=False)
class Operand:
    """Where a CTA's share of an operand lies, the same object each time. words: their numbers in
    its window; span: the bytes in which they lie; overlaps: whether one of them is read for several
    elements."""

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


def rows_from(operand: Operand, first: int) -> Operand:
    """A K-major operand without the rows before one."""
    words = operand.words[first:]
    span = int(words.min()) * WORD, (int(words.max()) + 1) * WORD
    return replace(operand, words=words, span=span)


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
    check_inside(cta, operand)
    events, what = cta.launch.events, operand.what
    events.operand_read(cta, operand.words, operand.descriptor, what, operand.kind.name)
    if operand.overlaps:
        _note_overlap(cta, operand.descriptor, what)
    words = _read(cta, operand.words, what, operand.span, operand.kind)
    events.operand_gathered(cta, lambda: _decoded(words, operand), what)
    return words


def check_inside(cta: Cta, operand: Operand) -> None:
    """Trap unless it lies in the CTA's shared memory."""
    span = operand.span
    if span[0] < cta.shared.lowest or span[1] > len(cta.shared.data):
        raise Trap(
            "out-of-bounds",
            f"{operand.what} covers shared offsets 0x{span[0]:x}..0x{span[1]:x}, the CTA's shared"
            f" memory is 0x{cta.shared.lowest:x}..0x{len(cta.shared.data):x}",
        )


# -- operands that follow one another along K ----------------------------------------------------


@lru_cache(maxsize=1024)
def may_join(first: Operand, other: Operand) -> bool:
    """Whether two operands may be read as one."""
    alike = first.kind == other.kind and first.words.shape == other.words.shape
    return alike and not (first.overlaps or other.overlaps or first.kind.name in _PADDED)


@lru_cache(maxsize=256)
def join_operands(parts: tuple[Operand, ...], transposed: bool) -> Operand:
    """One operand, as long along K as they are together."""
    words = np.concatenate([part.words for part in parts], axis=0 if transposed else 1)
    words.flags.writeable = False
    span = min(part.span[0] for part in parts), max(part.span[1] for part in parts)
    return replace(parts[0], words=words, span=span)


def read_joined(cta: Cta, operand: Operand) -> np.ndarray:
    """The words of a CTA's share of a joined operand, whose parts have been announced."""
    check_inside(cta, operand)
    return read_words(cta, operand.words, operand.what, operand.span)


def announce(cta: Cta, operand: Operand) -> None:
    """A CTA's share of a part of a joined operand is about to be read."""
    events = cta.launch.events
    check_inside(cta, operand)
    what, elements = operand.what, operand.kind.name
    events.operand_read(cta, operand.words, operand.descriptor, what, elements)
    matrix = partial(_peek, cta, operand)
    events.operand_gathered(cta, matrix, operand.what)


def _peek(cta: Cta, operand: Operand) -> np.ndarray:
    return _decoded(cta.shared.words[operand.words], operand)


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
    if kind.name in _PADDED:
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
