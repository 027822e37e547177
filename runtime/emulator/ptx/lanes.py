"""The 32 lanes of a warp as bool[32] masks and as 32-bit integers (lane 0 is bit 0)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

WARP_SIZE = 32

FULL = np.ones(WARP_SIZE, bool)
"""The mask of all lanes. Steps may test `mask is FULL`: the core always passes this object."""
FULL.flags.writeable = False
TOGETHER = np.ones(WARP_SIZE, bool)
"""In place of the mask of a load: all lanes read each address."""
TOGETHER.flags.writeable = False
FULL_BYTES = FULL.tobytes()
EMPTY_BYTES = bytes(WARP_SIZE)
LANE_IDS = np.arange(WARP_SIZE, dtype=np.uint32)
LANE_IDS.flags.writeable = False


def lanes_to_int(mask: np.ndarray) -> int:
    """A bool[32] mask as a 32-bit integer."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def lanes_in(mask: np.ndarray) -> tuple[int, ...]:
    """The lanes of a bool[32] mask, ascending."""
    return _set_bytes(mask.tobytes())


@lru_cache(maxsize=4096)
def _set_bytes(flags: bytes) -> tuple[int, ...]:
    return tuple(lane for lane, flag in enumerate(flags) if flag)


def int_to_lanes(bits: int) -> np.ndarray:
    """A 32-bit integer as a bool[32] mask (the object `FULL` when all are set)."""
    if bits == 0xFFFFFFFF:
        return FULL
    raw = np.frombuffer(bits.to_bytes(4, "little"), np.uint8)
    return np.unpackbits(raw, bitorder="little").astype(bool)


def canonical(mask: np.ndarray) -> np.ndarray:
    """The same mask, as the object `FULL` when every lane is set."""
    return FULL if mask.tobytes() == FULL_BYTES else mask


def first_lane(mask: np.ndarray) -> int:
    """The lowest set lane."""
    return int(mask.argmax())


def merge(old: np.ndarray, new: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """`new` in the lanes of the mask, `old` elsewhere, as a fresh array (or `new` itself)."""
    if mask is FULL:
        return new
    lanes = lanes_in(mask)
    if len(lanes) == 1:
        merged = old.copy()
        merged[lanes[0]] = new[lanes[0]]
        return merged
    return np.where(mask if new.ndim == 1 else mask[:, None], new, old)


def guarded(
    mask: np.ndarray, predicate: np.ndarray, negated: bool, lone: int | None
) -> np.ndarray | None:
    """The lanes of the mask whose guard holds, None if there are none; lone: the only one."""
    if lone is not None:
        return mask if predicate.item(lone) is not negated else None
    if mask is FULL:
        held = predicate.tobytes()
        if held == (EMPTY_BYTES if negated else FULL_BYTES):
            return FULL
        if held == (FULL_BYTES if negated else EMPTY_BYTES):
            return None
        return ~predicate if negated else predicate
    lanes = mask & ~predicate if negated else mask & predicate
    return None if lanes.tobytes() == EMPTY_BYTES else lanes
