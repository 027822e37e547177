"""Which tensor copies filled the shared memory of a CTA, to compare with how it is read.

A tensor copy swizzles what it writes, a matrix descriptor says how its operand is swizzled; the
tensor core checks neither against the other (PTX ISA, "Swizzling Modes" and "Shared memory layout
and swizzling"). A swizzled box that is read with another mode, or with a base offset though the
copy's pattern starts at a multiple of 1024, gives permuted elements: an error here. Bytes that a
copy wrote without swizzle may have been arranged in global memory: a suspicion. So is a box that
operands cover in part, as with a wrong step along K, which reads some elements twice and others
never.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import Trap
from ..interface import Cta
from ..machine import swizzle as swizzles
from ..machine.swizzle import Swizzle
from ..tensor.descriptor import SharedDescriptor

_WORD_SHIFT = 3


@dataclass(frozen=True)
class Box:
    """How a tensor copy wrote a word: swizzle, tensor (its global address), PTX line, whether the
    box lies inside the tensor as a whole, and whether elements outside were filled with NaN."""

    swizzle: Swizzle
    tensor: int
    line: int | None
    has_nan: bool
    is_inside: bool = True


class Boxes:
    """Per 64-bit word of one CTA's shared memory the `Box` that filled it, by number; 0 is none."""

    def __init__(self, size: int):
        self.numbers = np.zeros(size >> _WORD_SHIFT, np.uint32)
        self.unread = np.zeros(size >> _WORD_SHIFT, bool)
        self._places: dict[int, tuple[np.ndarray, Box]] = {}
        self._known: dict[Box, int] = {}
        self._boxes: list[Box] = []
        self._low = self._high = 0

    def fill(self, words: np.ndarray, box: Box) -> Box | None:
        """A tensor copy has written these words; the box that was there, if operands have read
        some of its words and not the others."""
        place = int(words.flat[0])
        partial = self._partial(place)
        self._places[place] = words, box
        self._note(words, box)
        return partial

    def _partial(self, place: int) -> Box | None:
        if place not in self._places:
            return None
        words, box = self._places.pop(place)
        unread = self.unread[words]
        if not box.is_inside or unread.all() or not unread.any():
            return None
        numbers = self.numbers[words]
        whole = (numbers == self._known[box]) | (numbers == 0)
        return box if whole.all() else None

    def partial(self) -> list[Box]:
        """At the CTA's exit: the boxes still there of which operands have read a part."""
        found = [self._partial(place) for place in list(self._places)]
        return [box for box in found if box is not None]

    def _note(self, words: np.ndarray, box: Box) -> None:
        self.unread[words] = True
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
        """The boxes that filled some of these words, which an operand reads now."""
        self.unread[words] = False
        numbers = self.numbers[words]
        first = int(numbers.flat[0])
        found = [first] if (numbers == first).all() else np.unique(numbers).tolist()
        return [self._boxes[number - 1] for number in found if number]


def filled(cta: Cta, words: np.ndarray, box: Box) -> None:
    """A tensor copy has written these words of a CTA's shared memory."""
    if not cta.launch.orders:
        return
    proxy = cta.shared.proxy
    if proxy.boxes is None:
        proxy.boxes = Boxes(len(cta.shared.data))
        cta.at_exit(lambda: _check_rest(cta, proxy.boxes))
    partial = proxy.boxes.fill(words, box)
    if partial is not None:
        _warn_unread(cta, partial)


def _check_rest(cta: Cta, boxes: Boxes) -> None:
    for box in boxes.partial():
        _warn_unread(cta, box)


def _warn_unread(cta: Cta, box: Box) -> None:
    cta.launch.warn("unread", f"ptx:{box.line}: operands have read a part of a box that this"
                                     " tensor copy wrote, and never the rest of it")  # fmt: skip


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
    cta.launch.warn(category, message)
