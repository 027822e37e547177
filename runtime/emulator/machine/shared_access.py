"""How engine instructions and asynchronous operations reach shared memory and its barriers."""

from __future__ import annotations

import numpy as np

from ..errors import Trap
from ..interface import Cta, Launch
from ..ptx.addresses import SHARED_WINDOW, WINDOW_SIZE
from .mbarrier import Mbarrier

WORD = 8
"""Bytes of the unit in which engines move shared memory."""
Words = np.ndarray | slice
"""Numbers of 64-bit words of a window; a slice is of words in a row."""
OFFSET_MASK = (1 << 24) - 1
_ALL_WRITTEN = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def locate(cta: Cta, address: int, space: str) -> tuple[Cta, int]:
    """(CTA, offset in its window) of a shared address as seen by ``cta``.

    ``space`` is "shared::cta" (own CTA: plain offsets or own rank bits), "shared::cluster" or
    "generic". Raises ``Trap`` where the address is outside the space. A generic address differs
    from one of the space in its upper half alone, of which ptxas makes nothing where the memory can
    only be shared: taking either for the other is told of.
    """
    is_generic = SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE
    if is_generic != (space == "generic"):
        _warn_of_space(cta.launch, address, space, is_generic)
    if is_generic:
        address -= SHARED_WINDOW
    rank, offset = address >> 24, address & OFFSET_MASK
    if space == "shared::cta":
        if rank not in (0, cta.rank):
            raise Trap(
                "address-space",
                f"0x{address:x} is in the shared memory of cluster rank {rank}; .shared::cta "
                f"reaches rank {cta.rank}, the own CTA, only",
            )
        if rank != cta.rank:
            cta.warn_of_rank(address)
        return cta, offset
    return peer(cta, rank), offset


def _warn_of_space(launch: Launch, address: int, space: str, is_generic: bool) -> None:
    if address >> 32 and not is_generic:
        raise Trap("address-space", f"0x{address:x} is no generic address of shared memory")
    if is_generic:
        what = f"is a generic address, and .{space} takes none; cvta.to.shared makes it one"
    else:
        what = "is no generic address, and no state space is named; name it, or use cvta"
    launch.warn(
        "generic-address", f"0x{address:x} {what}: GPUs take the low 32 bits (PTX ISA §5.1)"
    )


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


def numbers(index: Words) -> np.ndarray:
    """The numbers of words, one by one."""
    return np.arange(index.start, index.stop) if isinstance(index, slice) else index


def read_words(cta: Cta, index: Words, what: str, span: tuple[int, int]) -> np.ndarray:
    """Async-proxy read of 64-bit words, which lie in the byte range [low, high) ``span``."""
    for tell in cta.shared.heard("reading_words"):
        tell(index, what, span, False)
    found = cta.shared.words[index]
    return found.copy() if isinstance(index, slice) else found


def read_partly_written_words(
    cta: Cta, index: np.ndarray, what: str, span: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The same with their marks, 0xFF in each byte that was written."""
    for tell in cta.shared.heard("reading_words"):
        tell(index, what, span, True)
    return cta.shared.words[index], written_marks(cta)[index]


def written_marks(cta: Cta) -> np.ndarray:
    """uint64: 0xFF in each byte of shared memory that was written; all, where that is not kept."""
    if cta.shared.written is None:
        return np.broadcast_to(_ALL_WRITTEN, len(cta.shared.data) // WORD)
    return cta.shared.written_words


def write_words(cta: Cta, index: Words, values: np.ndarray, span: tuple[int, int]) -> None:
    """Async-proxy write of 64-bit words, which lie in the byte range ``span``."""
    for tell in cta.shared.heard("writing_words"):
        tell(index, span)
    cta.shared.words[index] = values
    if cta.shared.written is not None:
        cta.shared.written_words[index] = _ALL_WRITTEN


def check_target(cta: Cta, low: int, high: int, what: str) -> None:
    """An async write of the bytes [``low``, ``high``) is about to be performed."""
    for tell in cta.shared.heard("aiming"):
        tell(low, high, what)


def barrier_at(cta: Cta, offset: int) -> Mbarrier:
    """The live mbarrier at ``offset``; ``Trap`` if nobody initialised one there."""
    barrier = cta.mbarriers.get(offset)
    if barrier is None:
        raise _no_barrier(cta, offset)
    return barrier


def _no_barrier(cta: Cta, offset: int) -> Trap:
    if offset % 8:
        return Trap("misaligned", f"an mbarrier address must be a multiple of 8, got 0x{offset:x}")
    return Trap(
        "barrier-protocol",
        f"no mbarrier object at shared offset 0x{offset:x} of cta {cta.index}; "
        f"mbarrier.init has not been executed there",
    )


def count_event(cta: Cta, name: str, amount: int = 1) -> None:
    """Add to a named count of the launch's report."""
    cta.launch.engine_counts[name] += amount
