"""How the lanes of a mask get into a register, whose array is never changed in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..interface import Warp
from .lanes import FULL, merge

Write = Callable[["Warp", np.ndarray, np.ndarray], None]


def register_write(slot: int, own: np.dtype, view: np.dtype) -> Write:
    """A function (warp, mask, values[32] of dtype `view`) that writes a register of dtype `own`.

    A wider register gets the value sign- or zero-extended by `view`.
    """
    if own == view:
        return _plain_write(slot)
    if own.itemsize == view.itemsize:
        return _view_write(slot, own)
    kind = "i" if view.kind == "i" else "u"
    return _extending_write(slot, own, kind, view.itemsize)


def _plain_write(slot: int) -> Write:
    def write(warp: Warp, mask: np.ndarray, values: np.ndarray) -> None:
        regs = warp.regs
        regs[slot] = values if mask is FULL else merge(regs[slot], values, mask)

    return write


def _view_write(slot: int, own: np.dtype) -> Write:
    def write(warp: Warp, mask: np.ndarray, values: np.ndarray) -> None:
        regs = warp.regs
        raw = values.view(own)
        regs[slot] = raw if mask is FULL else merge(regs[slot], raw, mask)

    return write


def _extending_write(slot: int, own: np.dtype, kind: str, size: int) -> Write:
    narrow, wide = np.dtype(f"{kind}{size}"), np.dtype(f"{kind}{own.itemsize}")

    def write(warp: Warp, mask: np.ndarray, values: np.ndarray) -> None:
        regs = warp.regs
        raw = values.view(narrow).astype(wide).view(own)
        regs[slot] = raw if mask is FULL else merge(regs[slot], raw, mask)

    return write
