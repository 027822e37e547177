"""Which tensor copies filled the shared memory of a CTA, to compare with how it is read.

A tensor copy swizzles what it writes, a matrix descriptor says how its operand is swizzled; the
tensor core checks neither against the other (PTX ISA, "Swizzling Modes" and "Shared memory layout
and swizzling"). A swizzled box that is read with another mode, or with a base offset though the
copy's pattern starts at a multiple of 1024, gives permuted elements: an error here. Bytes that a
copy wrote without swizzle may have been arranged in global memory: a suspicion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import swizzle as swizzles
from .errors import Trap

if TYPE_CHECKING:
    from .cta import Cta
    from .descriptor import SharedDescriptor
    from .swizzle import Swizzle

_WORD_SHIFT = 3


@dataclass(frozen=True)
class Box:
    """How a tensor copy wrote a word: swizzle, tensor (its global address), PTX line, and whether
    the box has elements outside the tensor that were filled with NaN."""

    swizzle: Swizzle
    tensor: int
    line: int | None
    has_nan: bool


class Boxes:
    """Per 64-bit word of one CTA's shared memory the `Box` that filled it, by number; 0 is none."""

    def __init__(self, size: int):
        self.numbers = np.zeros(size >> _WORD_SHIFT, np.uint32)
        self._known: dict[Box, int] = {}
        self._boxes: list[Box] = []
        self._low = self._high = 0

    def fill(self, words: np.ndarray, box: Box) -> None:
        """A tensor copy has written these words."""
        if box not in self._known:
            self._boxes.append(box)
            self._known[box] = len(self._boxes)
        self.numbers[words] = self._known[box]
        low, high = int(words.min()) << _WORD_SHIFT, int(words.max()) + 1 << _WORD_SHIFT
        self._low = min(low, self._low) if self._high else low
        self._high = max(high, self._high)

    def forget(self, offsets: np.ndarray, size: int) -> None:
        """Something else has written ``size`` bytes at each of ``offsets``."""
        low, high = int(np.minimum.reduce(offsets)), int(np.maximum.reduce(offsets)) + size
        if low < self._high and self._low < high:
            for at in range(0, size, 1 << _WORD_SHIFT):
                self.numbers[offsets + at >> _WORD_SHIFT] = 0

    def of(self, words: np.ndarray) -> list[Box]:
        """The boxes that filled some of these words."""
        numbers = self.numbers[words]
        first = int(numbers.flat[0])
        found = [first] if (numbers == first).all() else np.unique(numbers).tolist()
        return [self._boxes[number - 1] for number in found if number]


def filled(cta: Cta, words: np.ndarray, box: Box) -> None:
    """A tensor copy has written these words of a CTA's shared memory."""
    proxy = cta.shared.proxy
    if proxy.boxes is None:
        proxy.boxes = Boxes(len(cta.shared.data))
    proxy.boxes.fill(words, box)


def check_operand(
    cta: Cta, words: np.ndarray, descriptor: SharedDescriptor, what: str
) -> list[Box]:
    """Compare how words were written with the descriptor that reads them; the boxes they are of."""
    if cta.shared.proxy.boxes is None:
        return []
    boxes = cta.shared.proxy.boxes.of(words)
    for box in boxes:
        _check_swizzle(cta, box, descriptor, what)
    if len({box.tensor for box in boxes}) > 1:
        lines = " and ".join(sorted(f"ptx:{box.line}" for box in boxes))
        _warn(cta, "descriptor", f"{what} reaches from one tensor's bytes into another's, which"
                                 f" the copies of {lines} wrote")  # fmt: skip
    return boxes


def _check_swizzle(cta: Cta, box: Box, descriptor: SharedDescriptor, what: str) -> None:
    mode = descriptor.swizzle
    if mode is box.swizzle and not descriptor.base_offset:
        return
    how = f"{what} is read with swizzle {mode.name} and base offset {descriptor.base_offset}"
    text = f"{how}, the tensor copy of ptx:{box.line} wrote it with {box.swizzle.name} and 0"
    if box.swizzle is not swizzles.NONE:
        raise Trap("swizzle", text)
    _warn(cta, "swizzle", text)


def check_fill(cta: Cta, matrix: np.ndarray, boxes: list[Box], what: str) -> None:
    """Note NaN that was filled in along all of K, where it reaches every element of the product."""
    if any(box.has_nan for box in boxes) and np.isnan(matrix).all(axis=0).any():
        _warn(cta, "nan-fill", f"{what} has elements outside the tensor along K, which its tensor"
                               " map fills with NaN: every sum becomes NaN")  # fmt: skip


def note_overlap(cta: Cta, descriptor: SharedDescriptor, what: str) -> None:
    """Note a descriptor whose strides give several elements of an operand the same bytes."""
    _warn(cta, "descriptor", f"{what} reads the same bytes for several elements, with leading"
          f" offset {descriptor.leading} and stride offset {descriptor.stride}")  # fmt: skip


def _warn(cta: Cta, category: str, message: str) -> None:
    running = cta.launch.engines.current
    line = f"ptx:{running.origin.get('line')}: " if running is not None else ""
    cta.launch.report.warn(category, line + message)
