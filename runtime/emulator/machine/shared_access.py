"""How engine instructions and asynchronous operations reach shared memory and its barriers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

from ..errors import Trap
from ..interface import Cta, EngineOp, Launch, Warp
from ..ptx.addresses import SHARED_WINDOW, WINDOW_SIZE
from .mbarrier import Mbarrier

WORD = 8
"""Bytes of the unit in which engines move shared memory."""
OFFSET_MASK = (1 << 24) - 1
_ALL_WRITTEN = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def locate(cta: Cta, address: int, space: str) -> tuple[Cta, int]:
    """(CTA, offset in its window) of a shared address as seen by ``cta``.

    ``space`` is "shared::cta" (own CTA: plain offsets or own rank bits), "shared::cluster" or
    "generic". Raises ``Trap`` where the address is outside the space.
    """
    if space == "generic":
        if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
            raise Trap("address-space", f"0x{address:x} is no generic address of shared memory")
        address -= SHARED_WINDOW
    rank, offset = address >> 24, address & OFFSET_MASK
    if space == "shared::cta":
        if rank not in (0, cta.rank):
            raise Trap(
                "address-space",
                f"0x{address:x} is in the shared memory of cluster rank {rank}; .shared::cta "
                f"reaches rank {cta.rank}, the own CTA, only",
            )
        return cta, offset
    return peer(cta, rank), offset


def peer(cta: Cta, rank: int) -> Cta:
    """The CTA of a cluster rank; ``Trap`` if there is none or it has exited."""
    target = cta.cluster.cta(rank)
    if target.exited:
        raise Trap("exited-cta", f"the CTA of cluster rank {rank} has exited")
    return target


def shared_of(cta: Cta, target: Cta) -> str:
    """What profiles call the shared memory of `target` when an operation of `cta` moves it."""
    return "shared" if cta is target else "distributed shared"


def check_span(cta: Cta, offset: int, size: int, align: int, what: str) -> None:
    """Trap unless ``size`` bytes at ``offset`` are aligned and inside the CTA's shared memory."""
    if offset % align:
        raise Trap(
            "misaligned", f"{what}: shared address 0x{offset:x} must be a multiple of {align}"
        )
    low, high = cta.shared.lowest, len(cta.shared.data)
    if offset < low or offset + size > high:
        raise Trap(
            "out-of-bounds",
            f"{what}: {size} bytes at shared offset 0x{offset:x} are not inside the CTA's shared "
            f"memory 0x{low:x}..0x{high:x}",
        )


def words(data: np.ndarray) -> np.ndarray:
    """Bytes as 64-bit words, a view; a ragged end is left off."""
    return data[: len(data) // WORD * WORD].view(np.uint64)


def read_words(cta: Cta, index: np.ndarray, what: str, span: tuple[int, int]) -> np.ndarray:
    """Async-proxy read of 64-bit words; unwritten or unfenced bytes are a ``Trap``.

    ``span`` is the byte range [low, high) in which all of the words lie.
    """
    low, high = span
    if cta.shared.written[low:high].tobytes() != _ones(high - low):
        _check_written(cta, index, what)
    return _ordered_words(cta, index, what, span)


def read_partly_written_words(
    cta: Cta, index: np.ndarray, what: str, span: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The same with their marks, 0xFF in each byte that was written; none at all is a ``Trap``."""
    marks = words(cta.shared.written)[index]
    if not marks.any():
        _check_written(cta, index, what)
    return _ordered_words(cta, index, what, span), marks


def _ordered_words(cta: Cta, index: np.ndarray, what: str, span: tuple[int, int]) -> np.ndarray:
    low, high = span
    if cta.launch.races is not None:
        _check_order(cta, index, "read", what)
    elif cta.shared.proxy.unfenced_in(low, high):
        cta.shared.proxy.check_words(index, what)
    return words(cta.shared.data)[index]


def _check_order(cta: Cta, index: np.ndarray, access: str, what: str) -> None:
    """Trap if the operation under way races for these words."""
    actor = cta.launch.races.actor()
    if actor is not None:
        shadow = cta.shared.shadow
        (shadow.read if access == "read" else shadow.write)(index, WORD, actor, what)


def mark_bytes(cta: Cta, offsets: np.ndarray, access: str, what: str) -> None:
    """Trap if the operation under way races for these bytes; remember its access."""
    actor = None if cta.launch.races is None else cta.launch.races.actor()
    if actor is not None:
        shadow = cta.shared.shadow
        (shadow.read if access == "read" else shadow.write)(offsets.reshape(-1), 1, actor, what)


def next_event(warp: Warp, kind: str, lane: int | None = None) -> tuple[int, int] | None:
    """What tells of the completion of the next operation of a kind; None without race checks."""
    races = warp.launch.races
    return None if races is None else races.stream(warp, kind, lane)


def latest_event(warp: Warp, kind: str, lane: int | None = None) -> tuple[int, int] | None:
    """The same for the operations of the kind so far, None if there are none."""
    races = warp.launch.races
    return None if races is None else races.latest(warp, kind, lane)


def observe(warp: Warp, operations: list[EngineOp]) -> None:
    """The warp has waited for these operations."""
    if warp.launch.races is not None:
        warp.launch.races.observe(warp, operations)


@contextmanager
def strong_accesses(launch: Launch, order: str = "relaxed") -> Iterator[None]:
    """What an engine accesses inside counts as strong, of a memory order (PTX ISA §8.7)."""
    races = launch.races
    if races is None:
        yield
        return
    races.order = order
    try:
        yield
    finally:
        races.order = None


@lru_cache(maxsize=64)
def _ones(size: int) -> bytes:
    return b"\xff" * size


def _check_written(cta: Cta, index: np.ndarray, what: str) -> None:
    written = words(cta.shared.written)[index]
    if not (written == _ALL_WRITTEN).all():
        at = int(index[written != _ALL_WRITTEN].flat[0]) * WORD
        at += int((cta.shared.written[at : at + WORD] == 0).argmax())
        raise Trap("uninitialised-read", f"{what} reads shared offset 0x{at:x}, never written")


def write_words(cta: Cta, index: np.ndarray, values: np.ndarray, span: tuple[int, int]) -> None:
    """Async-proxy write of 64-bit words, which lie in the byte range ``span``."""
    if cta.launch.races is not None:
        _check_order(cta, index, "write", "an asynchronous write")
    words(cta.shared.data)[index] = values
    words(cta.shared.written)[index] = _ALL_WRITTEN
    if cta.shared.proxy.unfenced_in(*span):
        cta.shared.proxy.written_words(index)
    if cta.shared.proxy.boxes is not None:
        cta.shared.proxy.boxes.numbers[index] = 0


def check_target(cta: Cta, low: int, high: int, what: str) -> None:
    """Trap if an async write of [``low``, ``high``) meets a live mbarrier or a busy source."""
    cta.shared.proxy.check_idle(low, high, what)
    if cta.shared.proxy.barrier_in(low, high):
        raise Trap(
            "barrier-protocol",
            f"{what} covers shared offsets 0x{low:x}..0x{high:x}, where a live mbarrier lies",
        )


def barrier_table(cta: Cta) -> dict[int, Mbarrier]:
    """The live mbarrier objects of a CTA by window offset."""
    return cta.state("mbarriers", dict)


def barrier_at(cta: Cta, offset: int) -> Mbarrier:
    """The live mbarrier at ``offset``; ``Trap`` if nobody initialised one there."""
    if offset % 8:
        raise Trap("misaligned", f"an mbarrier address must be a multiple of 8, got 0x{offset:x}")
    barrier = barrier_table(cta).get(offset)
    if barrier is None:
        raise Trap(
            "barrier-protocol",
            f"no mbarrier object at shared offset 0x{offset:x} of cta {cta.index}; "
            f"mbarrier.init has not been executed there",
        )
    return barrier


def count_event(cta: Cta, name: str, amount: int = 1) -> None:
    """Add to a named count of the launch's report."""
    cta.launch.engine_counts[name] += amount
