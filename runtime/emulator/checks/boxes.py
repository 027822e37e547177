"""Which tensor copies filled the shared memory of a CTA, to compare with how it is read.

A tensor copy swizzles what it writes, a matrix descriptor says how its operand is swizzled; the
tensor core checks neither against the other (PTX ISA, "Swizzling Modes" and "Shared memory layout
and swizzling"). A swizzled box that is read with another mode, or with a base offset though the
copy's pattern starts at a multiple of 1024, gives permuted elements: an error here. Bytes that a
copy wrote without swizzle may have been arranged in global memory: a suspicion. So is a box that
operands cover in part, as with a wrong step along K, which reads some elements twice and others
never, and an operand whose elements are of another type than the tensor map says.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..copies.box_copy import Box
from ..errors import Trap
from ..interface import Cta, Launch, Warp
from ..machine import swizzle as swizzles
from ..machine.events import Listener, Watcher
from ..machine.memory import Region
from ..machine.shared_access import Words
from ..tensor.descriptor import SharedDescriptor
from ..tensor.spans import Claim, Span
from ..truth import all_of
from .box_axes import share_a_dimension, start_of

_WORD_SHIFT = 3
_MOST_MET = 256
"""Operands of which the boxes are kept: those of all stages of a ring."""
_OPERANDS = {
    "float16": ("f16",), "bfloat16": ("bf16",), "float64": ("f64",),
    "float32": ("tf32",), "float32_ftz": ("tf32",),
    "tfloat32": ("tf32",), "tfloat32_ftz": ("tf32",),
    "16u4_align8b": ("e2m1x2",), "16u4_align16b": ("e2m1",), "16u6_align16b": ("e2m3", "e3m2"),
}  # fmt: skip
"""Types of operands by those of tensor maps; maps of integers move elements of any type."""


class Met:
    """What an operand has met. words: where it lies; boxes: what filled some of them; fits: the
    descriptor and the type of elements that are known to read them as they were written."""

    __slots__ = ("boxes", "fits", "has_nan", "words")

    def __init__(self, words: np.ndarray, boxes: list[Box]):
        self.words, self.boxes = words, boxes
        self.has_nan = any(box.has_nan for box in boxes)
        self.fits: tuple[SharedDescriptor, str] | None = None


class Boxes:
    """Per 64-bit word of one CTA's shared memory the `Box` that filled it, by number; 0 is none.

    A ring's stages are filled by the same boxes and read by the same operands again and again, so
    what an operand meets is kept for as long as no number changes.
    """

    def __init__(self, size: int):
        self.numbers = np.zeros(size >> _WORD_SHIFT, np.uint32)
        self._starts = np.zeros(size >> _WORD_SHIFT, np.int64)
        self._fills, self._filled = np.zeros(size >> _WORD_SHIFT, np.uint32), 0
        self.unread = np.zeros(size >> _WORD_SHIFT, bool)
        self._places: dict[int, tuple[Words, Box]] = {}
        self._known: dict[Box, int] = {}
        self._boxes: list[Box] = []
        self._low = self._high = 0
        self._met: dict[int, Met] = {}
        self._intact: set[int] = set()
        self._overwritten: Words | None = None

    def fill(self, words: Words, box: Box) -> Box | None:
        """A tensor copy has written these words; the box that was there, if operands have read
        some of its words and not the others."""
        place = words.start if isinstance(words, slice) else int(words.flat[0])
        again = self._is_again(place, words, box)
        if again:
            self._overwritten = None
        self._settle()
        partial = self._partial(place)
        self._places[place] = words, box
        self.unread[words] = True
        self._filled += 1
        self._fills[words] = self._filled
        if not again:
            self._note(words, box)
        self._intact.add(place)
        return partial

    def _is_again(self, place: int, words: Words, box: Box) -> bool:
        """Whether words in a row are filled as they were, and were not changed in between."""
        if place not in self._places or self._overwritten is None:
            return False
        before, old = self._places[place]
        last = self._overwritten
        if not (isinstance(words, slice) and isinstance(before, slice) and isinstance(last, slice)):
            return False
        if not before == words == last:
            return False
        if old is not box and old != box:
            return False
        return place in self._intact or all_of(self.numbers[words] == self._known[box])

    def fill_at(self, offset: int) -> int:
        """Which tensor copy filled the word at an offset, counted from 1; 0 if none has, or it was
        written since."""
        self._settle()
        word = offset >> _WORD_SHIFT
        inside = word < len(self.numbers) and self.numbers[word]
        return int(self._fills[word]) if inside else 0

    def overwrite(self, words: Words) -> None:
        """Something has written these words; perhaps the copy that fills them next."""
        self._settle()
        self._overwritten = words

    def _settle(self) -> None:
        if self._overwritten is not None:
            self._change(self._overwritten, 0)
            self._overwritten = None

    def _change(self, words: Words, number: int) -> None:
        self.numbers[words] = number
        self._met.clear()
        self._intact.clear()

    def _partial(self, place: int) -> Box | None:
        if place not in self._places:
            return None
        words, box = self._places[place]
        unread = self.unread[words]
        if not box.is_inside or np.count_nonzero(unread) in (0, unread.size):
            return None
        numbers = self.numbers[words]
        whole = (numbers == self._known[box]) | (numbers == 0)
        return box if all_of(whole) else None

    def partial(self) -> list[Box]:
        """At the CTA's exit: the boxes still there of which operands have read a part."""
        self._settle()
        found = [self._partial(place) for place in list(self._places)]
        return [box for box in found if box is not None]

    def _note(self, words: Words, box: Box) -> None:
        number = self._known.get(box)
        if number is None:
            self._boxes.append(box)
            number = self._known[box] = len(self._boxes)
        self._change(words, number)
        first = words.start if isinstance(words, slice) else int(words.flat[0])
        self._starts[words] = start_of(first)
        low, high = _extent(words)
        self._low = min(low, self._low) if self._high else low
        self._high = max(high, self._high)

    def forget(self, offsets: np.ndarray, size: int) -> None:
        """Something else has written ``size`` bytes at each of ``offsets``."""
        low, high = int(np.minimum.reduce(offsets)), int(np.maximum.reduce(offsets)) + size
        if low < self._high and self._low < high:
            self._settle()
            for at in range(0, size, 1 << _WORD_SHIFT):
                self._change(offsets + at >> _WORD_SHIFT, 0)

    def of(self, words: np.ndarray) -> Met:
        """The boxes that filled some of these words, which an operand reads now."""
        if self._overwritten is not None:
            self._settle()
        self.unread[words] = False
        met = self._met.get(id(words))
        if met is None:
            if len(self._met) == _MOST_MET:
                self._met.clear()
            found = _distinct(self.numbers[words])
            met = Met(words, [self._boxes[number - 1] for number in found if number])
            self._met[id(words)] = met
        return met

    def starts(self, words: np.ndarray, box: Box) -> np.ndarray:
        """Where the box begins that filled each of these words, -1 where it was another one."""
        return np.where(self.numbers[words] == self._known[box], self._starts[words], -1)

    def corners(self, words: np.ndarray) -> tuple[int, ...]:
        """How far the four corners of an operand lie behind the starts of their boxes, and these
        behind the first."""
        first, *rest = (words.item(row, column) for row in (0, -1) for column in (0, -1))
        starts = [self._starts.item(word) for word in (first, *rest)]
        return (first - (starts[0] >> _WORD_SHIFT), *(start - starts[0] for start in starts))


def _distinct(numbers: np.ndarray) -> list[int]:
    first = numbers.item(0)
    return [first] if all_of(numbers == first) else np.unique(numbers).tolist()


def _extent(words: Words) -> tuple[int, int]:
    """The bytes [low, high) between which words lie."""
    if isinstance(words, slice):
        return words.start << _WORD_SHIFT, words.stop << _WORD_SHIFT
    return int(words.min()) << _WORD_SHIFT, int(words.max()) + 1 << _WORD_SHIFT


class BoxRules(Listener):
    """Compares what tensor copies write into shared memory with how operands are read."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._of: dict[Cta, Boxes] = {}
        self._met: Met | None = None
        self._two_axes: dict[tuple, bool] = {}
        self._multiplied: dict[Cta, dict[Hashable, dict[tuple, tuple]]] = {}

    def box_written(self, cta: Cta, words: Words, box: Callable[[], Box]) -> None:
        boxes = self._of.get(cta) or self._watch(cta)
        if partial := boxes.fill(words, box()):
            self._warn_unread(partial)

    def _watch(self, cta: Cta) -> Boxes:
        boxes = self._of[cta] = Boxes(len(cta.shared.data))
        cta.shared.watch(_Forgetting(boxes))
        cta.at_exit(lambda: self._check_rest(cta))
        return boxes

    def _check_rest(self, cta: Cta) -> None:
        self._multiplied.pop(cta, None)
        for box in self._of.pop(cta).partial():
            self._warn_unread(box)

    def _warn_unread(self, box: Box) -> None:
        self._launch.warn("unread", f"ptx:{box.line}: operands have read a part of a box that this"
                                    " tensor copy wrote, and never the rest of it")  # fmt: skip

    def operand_read(
        self, cta: Cta, words: np.ndarray, descriptor: SharedDescriptor, what: str, elements: str
    ) -> None:
        boxes = self._of.get(cta)
        met = self._met = None if boxes is None else boxes.of(words)
        if met is not None and met.fits != (descriptor, elements):
            fits = self._fits(met.boxes, descriptor, what, elements)
            fits &= not elements or self._has_two_axes(self._of[cta], met, descriptor, what)
            met.fits = (descriptor, elements) if fits else None

    def _fits(
        self, boxes: list[Box], descriptor: SharedDescriptor, what: str, elements: str
    ) -> bool:
        """Whether a descriptor reads them as they were written; a Trap or a warning where not."""
        same = [self._same_swizzle(box, descriptor, what) for box in boxes]
        same += [self._same_elements(box, what, elements) for box in boxes]
        if len({box.tensor for box in boxes}) < 2:
            return all(same)
        lines = " and ".join(sorted(f"ptx:{box.line}" for box in boxes))
        self._launch.warn(
            "descriptor",
            f"{what} reaches from one tensor's bytes into another's, which"
            f" the copies of {lines} wrote",
        )
        return False

    def _has_two_axes(
        self, boxes: Boxes, met: Met, descriptor: SharedDescriptor, what: str
    ) -> bool:
        """Whether rows and K move along different dimensions of each box; a warning where not."""
        strides = descriptor.leading, descriptor.stride
        return all(self._has_two_in(boxes, met, box, strides, what) for box in met.boxes)

    def _has_two_in(
        self, boxes: Boxes, met: Met, box: Box, strides: tuple[int, int], what: str
    ) -> bool:
        """The same of one box. Operands of one form that lie alike in their boxes, as those of the
        stages of a ring, are judged once."""
        form = box, strides, met.words.shape, boxes.corners(met.words)
        if form not in self._two_axes:
            starts = boxes.starts(met.words, box)
            two = not box.shape or not share_a_dimension(met.words, starts, box)
            self._two_axes[form] = two
        if not self._two_axes[form]:
            self._launch.warn(
                "descriptor",
                f"{what} moves along one dimension of the box that the copy of ptx:{box.line}"
                f" wrote both from row to row and along K, with leading offset {strides[0]} and"
                f" stride offset {strides[1]}",
            )
        return self._two_axes[form]

    def _same_swizzle(self, box: Box, descriptor: SharedDescriptor, what: str) -> bool:
        mode = descriptor.swizzle
        if mode is box.swizzle and not descriptor.base_offset:
            return True
        how = f"{what} is read with swizzle {mode.name} and base offset {descriptor.base_offset}"
        text = f"{how}, the tensor copy of ptx:{box.line} wrote it with {box.swizzle.name} and 0"
        if box.swizzle is not swizzles.NONE:
            raise Trap("swizzle", text)
        self._launch.warn("swizzle", text)
        return False

    def _same_elements(self, box: Box, what: str, elements: str) -> bool:
        legal = _OPERANDS.get(box.elements)
        if not elements or legal is None or elements in legal:
            return True
        self._launch.warn(
            "element-type",
            f"{what} is read as {elements}, the tensor map of the copy of ptx:{box.line} says"
            f" {box.elements}",
        )
        return False

    def columns_used(self, cta: Cta, warp: Warp, claim: Claim, fences: bool) -> None:
        """Sums that threads store begin anew."""
        if claim.what == "tcgen05.st":
            for sums, known in self._multiplied.get(cta, {}).items():
                if isinstance(sums, Span) and sums.meets(claim.span):
                    known.clear()

    def product_issued(
        self,
        cta: Cta,
        line: int,
        sums: Hashable,
        adds: bool,
        operands: tuple | None,
        form: Hashable,
    ) -> None:
        """Warn of a product of the same bytes onto the same sums as an earlier one."""
        known = self._multiplied.setdefault(cta, {}).setdefault(sums, {})
        if not adds:
            known.clear()
        boxes = self._of.get(cta)
        if operands is None or boxes is None:
            return
        fills = tuple(boxes.fill_at(each.start) for each in operands)
        before = known.get((operands, form))
        if before is not None and before[0] == fills and all(fills):
            self._launch.warn(
                "repeated-product",
                f"ptx:{line}: this product adds to its sums once more what the one of"
                f" ptx:{before[1]} has added: the same bytes of A and of B",
            )
        known[operands, form] = fills, line

    def operand_gathered(self, cta: Cta, matrix: Callable[[], np.ndarray], what: str) -> None:
        """Note NaN that was filled in along all of K, where it reaches every sum."""
        met = self._met
        if met is not None and met.has_nan and np.isnan(matrix()).all(axis=0).any():
            self._launch.warn(
                "nan-fill",
                f"{what} has elements outside the tensor along K, which its tensor"
                " map fills with NaN: every sum becomes NaN",
            )


class _Forgetting(Watcher):
    """Bytes that something else writes are of no box."""

    def __init__(self, boxes: Boxes):
        self._boxes = boxes

    def storing(
        self, region: Region, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        if who is not None and who[0].cta.shared is region:
            self._boxes.forget(region.offsets(addresses), size)

    def claiming(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        self._boxes.forget(offsets, size)

    def writing_words(self, words: Words, span: tuple[int, int]) -> None:
        self._boxes.overwrite(words)
