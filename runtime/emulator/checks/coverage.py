"""Which bytes of each array a launch has written and read, and which it has left out.

PTX has no rule by which a kernel must write all of an array, or read all of one. Most of them do:
what they leave out is then a store, or a load, with a wrong address or guard. A launch can say of
which arrays each element is a result, or is needed (`launch(outputs=…, inputs=…)`). Of others a
pattern tells: single elements are left out beside others of their rows and of their columns. Whole
rows and whole columns that are left out say nothing, as groups of rows and gaps are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import Trap
from ..interface import Launch
from ..machine.events import Listener, Watcher
from ..machine.memory import READ, WRITTEN, Region

OUTPUT = "unwritten-output"
INPUT = "unread-input"
SCRATCH = "unread-scratch"
FEW = 2
"""What a pattern leaves out is told where all of it has so many times as many elements or more."""
F32_INFINITY = 0xFF000000
"""Its bits without the sign, shifted left; those of NaN are more."""
REREAD, WEAK, EARLY = 4, 8, 16
"""Marks beside `READ` and `WRITTEN`: read behind a write of this launch; written last by a store
that is not strong; read before any write."""


class Marks(Watcher):
    """What has happened to each byte of a region: uint8[bytes], bits as `READ` and `WRITTEN`."""

    def __init__(self, launch: Launch, region: Region):
        self._launch = launch
        self.of = np.zeros(len(region.data), np.uint8)

    def _read(self, marks: np.ndarray, where: Any) -> None:
        before = marks[where]
        written = before & WRITTEN
        early = (written ^ WRITTEN) * (EARLY // WRITTEN)
        marks[where] = before | READ | written * (REREAD // WRITTEN) | early

    def _write(self, marks: np.ndarray, where: Any) -> None:
        kind = WRITTEN if self._launch.strong is not None else WRITTEN | WEAK
        marks[where] = marks[where] & (READ | REREAD | EARLY) | kind

    def loading(self, region: Region, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        self._read(self.of, _bytes_of(region, addresses, size))

    def storing(
        self, region: Region, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        self._write(self.of, _bytes_of(region, addresses, size))

    def reading(self, region: Region, at: int, size: int) -> None:
        self._read(self.of, slice(at, at + size))

    def writing(self, region: Region, at: int, values: np.ndarray) -> None:
        self._write(self.of, slice(at, at + len(values)))

    def reading_box(self, region: Region, at: int, view: np.ndarray) -> None:
        self._read(self._like(at, view), ...)

    def writing_box(self, region: Region, at: int, view: np.ndarray, same: Any) -> None:
        self._write(self._like(at, view), ...)

    def touched_apart(self, touched: np.ndarray) -> None:
        self.of |= touched

    def _like(self, at: int, view: np.ndarray) -> np.ndarray:
        return np.ndarray(view.shape, np.uint8, self.of, at, view.strides)


def _bytes_of(region: Region, addresses: np.ndarray, size: int) -> np.ndarray:
    return region.offsets(addresses)[:, None] + np.arange(size)


class Coverage(Listener):
    """Judges what a launch has left out, at its end."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._marks: dict[Region, Marks] = {}

    def bound(self) -> None:
        for region in self._launch.arrays.regions:
            self._marks[region] = Marks(self._launch, region)
            region.watch(self._marks[region])
        arrays = self._launch.arrays
        for array in (*arrays.outputs, *arrays.inputs, *arrays.scratch):
            arrays.region_of(array)

    def finished(self) -> None:
        arrays = self._launch.arrays
        for array in arrays.outputs:
            self._require_written(array)
        for array in arrays.inputs if self._launch.report.workers == 1 else ():
            self._expect_read(array)
        stated = [*arrays.outputs, *arrays.inputs, *arrays.scratch]
        for name, array in arrays.named():
            if not any(np.may_share_memory(array, each) for each in stated):
                self._look_at(name, array)
        for array in arrays.scratch:
            self._expect_used(array)

    # -- arrays of which the launch says what they are --------------------------------------------

    def _require_written(self, array: np.ndarray) -> None:
        name, marks = self._of(array)
        missing = ~_all_of(marks, WRITTEN)
        if missing.any():
            rule = "every element of an output must be written"
            raise Trap(OUTPUT, f"{rule}, got {_counted(missing)} of {name} that never were")

    def _expect_read(self, array: np.ndarray) -> None:
        name, marks = self._of(array)
        missing = ~_any_of(marks, READ)
        if missing.any():
            self._launch.report.warn(INPUT, f"{_counted(missing)} of {name} were never read")

    def _expect_used(self, array: np.ndarray) -> None:
        """Of scratch memory: what is read has been written before, and what an ordinary store has
        written is read by somebody, unless it is 0 or NaN: sums of what lies past an edge, and of
        scales that pad their atoms."""
        name, marks = self._of(array)
        early = _any_of(marks, EARLY)
        if early.any():
            rule = "scratch memory holds anything until the launch has written it"
            found = f"{_counted(early)} of {name} that were read before"
            raise Trap("uninitialised-read", f"{rule}, got {found}")
        missing = _any_of(marks, WEAK) & ~_any_of(marks, REREAD) & _adds(array)
        if missing.any():
            what = f"{_counted(missing)} of {name} were written and never read"
            self._launch.report.warn(SCRATCH, what)

    # -- others -------------------------------------------------------------------------------

    def _look_at(self, name: str, array: np.ndarray) -> None:
        if array.ndim < 2:
            return
        marks = self._of(array)[1]
        written = _all_of(marks, WRITTEN)
        if written.any() and not _any_of(marks, READ).any() and (left := _left_out(written)).any():
            self._launch.report.warn(
                OUTPUT,
                f"{_counted(left)} of {name} were never written, beside others of their rows and"
                " of their columns",
            )

    def _of(self, array: np.ndarray) -> tuple[str, np.ndarray]:
        """The name of an array's memory, and the marks of its bytes, uint8[*shape, bytes]."""
        region, at = self._launch.arrays.region_of(array)
        shape, strides = (*array.shape, array.itemsize), (*array.strides, 1)
        return region.name, np.ndarray(shape, np.uint8, self._marks[region].of, at, strides)


def _all_of(marks: np.ndarray, how: int) -> np.ndarray:
    return np.asarray((marks & how != 0).all(-1))


def _any_of(marks: np.ndarray, how: int) -> np.ndarray:
    return np.asarray((marks & how != 0).any(-1))


def _adds(array: np.ndarray) -> np.ndarray:
    """bool[*shape]: elements that are neither 0, -0 nor NaN, also of floats as raw bits; words of
    32 bits count as f32."""
    if array.dtype.kind in "fc":
        return np.asarray((array != 0) & (array == array))
    magnitude = array.view(f"u{array.itemsize}") << 1
    adds = magnitude != 0
    return np.asarray(adds & (magnitude <= F32_INFINITY) if array.itemsize == 4 else adds)


def _left_out(done: np.ndarray) -> np.ndarray:
    """bool[*shape]: elements that are left out beside others of their rows and columns, none where
    these are many; rows run along the last axis."""
    rows = done.reshape(-1, done.shape[-1])
    in_row, in_column = np.asarray(rows.any(1)), np.asarray(rows.any(0))
    left = in_row[:, None] & in_column[None, :] & ~rows
    few = np.count_nonzero(left) * FEW <= np.count_nonzero(rows)
    return (left if few else np.zeros_like(left)).reshape(done.shape)


def _counted(missing: np.ndarray) -> str:
    """How many elements, and the first of them."""
    first = next(_places(missing))
    return f"{np.count_nonzero(missing)} of {missing.size} elements, {list(first)} first,"


def _places(missing: np.ndarray) -> Iterator[Sequence[int]]:
    for each in np.argwhere(missing):
        yield each.tolist()
