"""Bytes that asynchronous copies bring to shared memory, and nobody reads in the whole launch.

No rule of PTX says that all of a copy is used. A thread that reads another place than its own, or a
swizzle that is undone wrongly, takes some bytes twice and others never, and the result is wrong.
A kernel lays its shared memory out once, so that what one CTA or one turn of a ring leaves out
another reads at the same offset. Zeros need no reader: they are what lies outside of a tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interface import Cta, Launch, Warp
from ..machine.events import Listener, Watcher
from ..machine.memory import Region
from ..machine.shared_access import WORD, Words
from ..truth import any_of

CATEGORY = "unread-copy"
FEW = 2
"""What is left out is told where so many times as many bytes of the copies are read, or more."""
_LOADS = ("ld.shared", "ldmatrix.", "wmma.load.")
_MANY = 4
"""Instructions of threads that load from shared memory, from which on it is looked at: operands of
wgmma and tcgen05.mma are held to the boxes of their copies (`BoxRules`)."""


class UnreadCopies(Listener):
    """By offset of shared memory: whether anybody has read there, and by PTX line of the copies
    that wrote there, where a copy's bytes were replaced or left unread that were not zero."""

    def __init__(self, launch: Launch):
        self._launch = launch
        loads = [each for each in launch.program.source if each.opcode.startswith(_LOADS)]
        self._looks = len(loads) >= _MANY
        self._of: dict[Cta, _Pending] = {}
        self.read = np.zeros(0, bool)
        self.lost = np.zeros(0, np.int32)
        self.written: dict[int, np.ndarray] = {}

    def cta_started(self, cta: Cta) -> None:
        if not self._looks:
            return
        if not len(self.read):
            size = _whole_words(len(cta.shared.data))
            self.read, self.lost = np.zeros(size, bool), np.zeros(size, np.int32)
        self._of[cta] = _Pending(self, self._launch, cta)
        cta.shared.watch(self._of[cta])

    def cta_exited(self, cta: Cta) -> None:
        if self._looks:
            self._of.pop(cta).left()

    def finished(self) -> None:
        if self._launch.report.workers > 1:
            return
        for line, written in self.written.items():
            left, read = (self.lost == line) & ~self.read, written & self.read
            left[_last(read) :] = False
            count = int(left.sum())
            if count and count * FEW <= int(read.sum()):
                self._launch.report.warn(
                    CATEGORY,
                    f"ptx:{line}: nobody in the launch has read {count} of the bytes that this copy"
                    f" brings to shared memory, at offset 0x{int(left.argmax()):x} first, beside"
                    f" {int(read.sum())} that are read; they are not 0",
                )


class _Pending(Watcher):
    """For each offset in a CTA's shared memory, the PTX line of the copy whose bytes nobody has
    read; 0 for none."""

    def __init__(self, checks: UnreadCopies, launch: Launch, cta: Cta):
        self._checks, self._launch, self._region = checks, launch, cta.shared
        self._line = np.zeros(_whole_words(len(cta.shared.data)), np.int32)
        self._words = self._line.reshape(-1, WORD)
        self._read_words = checks.read.reshape(-1, WORD)

    def left(self) -> None:
        """What nobody has read is about to be lost."""
        self._lose(np.flatnonzero(self._line))

    def _lose(self, offsets: np.ndarray) -> None:
        lost = offsets[(self._line[offsets] > 0) & (self._region.data[offsets] != 0)]
        self._checks.lost[lost] = self._line[lost]

    def _written(self, line: int) -> np.ndarray:
        if line not in self._checks.written:
            self._checks.written[line] = np.zeros(len(self._line), bool)
        return self._checks.written[line]

    def copying(
        self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int, line: int
    ) -> None:
        places = (offsets[:, None] + np.arange(size)).reshape(-1)
        self._lose(places)
        self._line[places] = line
        self._written(line)[places] = True

    def writing_words(self, words: Words, span: tuple[int, int]) -> None:
        operation = self._launch.engines.current
        if operation is None:
            return
        if any_of(self._words[words]):
            low, high = span
            unread = np.zeros_like(self._words, bool)
            unread[words] = True
            self._lose(low + np.flatnonzero(unread.reshape(-1)[low:high]))
        self._words[words] = operation.line
        self._written(operation.line).reshape(-1, WORD)[words] = True

    def loading(self, region: Region, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        places = region.offsets(addresses)[:, None] + np.arange(size)
        self._checks.read[places] = True
        self._line[places] = 0

    def reading(self, region: Region, at: int, size: int) -> None:
        self._checks.read[at : at + size] = True
        self._line[at : at + size] = 0

    def reading_words(self, words: Words, what: str, span: tuple[int, int], partly: bool) -> None:
        self._read_words[words] = True
        self._words[words] = 0

    def storing(
        self, region: Region, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        self._line[region.offsets(addresses)[:, None] + np.arange(size)] = 0


def _whole_words(size: int) -> int:
    return -(-size // WORD) * WORD


def _last(read: np.ndarray) -> int:
    """The last index that is true, 0 if there is none."""
    return int(np.flatnonzero(read)[-1]) if any_of(read) else 0
