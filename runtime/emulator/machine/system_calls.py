"""Functions that the driver provides to every kernel: vprintf and __assertfail.

Source: PTX Writer's Guide to Interoperability, "System Calls". A call reads its arguments as the
bytes of the caller's .param variables; it may read memory, never write it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

import numpy as np

from ..errors import Trap
from ..interface import Warp

MAX_TEXT_BYTES = 4096
"""Of a format, a message or one printed string."""
_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d{0,3})(?P<precision>\.\d{1,3})?"
    r"(?P<length>hh|h|ll|l|j|z|t)?(?P<kind>[diouxXcsfFeEgGaAp%])"
)
_WIDE = ("ll", "l", "j", "z", "t")


def vprintf(warp: Warp, lane: int, arguments: list[int]) -> int:
    """int vprintf(const char *format, const void *values): one line more of `report.printed`."""
    layout, values = arguments
    text = _text(warp, layout)
    reader = _Values(warp, values)
    printed = _CONVERSION.sub(lambda found: _formatted(found, reader), text)
    warp.launch.report.note_printed(printed)
    return reader.count


def assertfail(warp: Warp, lane: int, arguments: list[int]) -> int:
    """__assertfail(message, file, line, function, character size): the launch stops."""
    message, file, line, function = arguments[:4]
    place = f"{_text(warp, file)}:{line}: {_text(warp, function)}"
    raise Trap("trap", f"{place}: assertion failed: {_text(warp, message)}")


SYSTEM_CALLS: dict[str, tuple[Callable[[Warp, int, list[int]], int], int]] = {
    "vprintf": (vprintf, 2),
    "__assertfail": (assertfail, 5),
}
"""By name: what one lane does, and how many arguments it takes."""


def _text(warp: Warp, address: int) -> str:
    return b"".join(_characters(warp, address)).decode(errors="replace")


def _characters(warp: Warp, address: int) -> Iterator[bytes]:
    for at in range(address, address + MAX_TEXT_BYTES):
        character = warp.generic.load(np.array([at], np.uint64), 1).tobytes()
        if character == b"\0":
            return
        yield character


class _Values:
    """The values behind a format, each at a multiple of its size; floats are doubles."""

    def __init__(self, warp: Warp, address: int):
        self._warp, self._at = warp, address
        self.count = 0

    def take(self, size: int) -> bytes:
        self._at = -(-self._at // size) * size
        raw = self._warp.generic.load(np.array([self._at], np.uint64), size).tobytes()
        self._at += size
        self.count += 1
        return raw

    def text(self) -> str:
        return _text(self._warp, int.from_bytes(self.take(8), "little"))


def _formatted(found: re.Match, values: _Values) -> str:
    kind = found["kind"]
    if kind == "%":
        return "%"
    shown = f"%{found['flags']}{found['width']}{found['precision'] or ''}"
    if kind == "s":
        return (shown + "s") % values.text()
    if kind in "fFeEgGaA":
        return _float(shown, kind, struct.unpack("<d", values.take(8))[0])
    wide = kind == "p" or found["length"] in _WIDE
    number = int.from_bytes(values.take(8 if wide else 4), "little", signed=kind in "di")
    return _integer(shown, kind, number)


def _float(shown: str, kind: str, value: float) -> str:
    return value.hex() if kind in "aA" else (shown + kind) % value


def _integer(shown: str, kind: str, number: int) -> str:
    if kind == "c":
        return (shown + "s") % chr(number & 0xFF)
    if kind == "p":
        return (shown + "s") % hex(number)
    return (shown + {"i": "d", "u": "d"}.get(kind, kind)) % number
