"""The marks of shared memory: unfenced generic writes and live barriers (PTX ISA, async proxy)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.runtime.emulator.checks.fences.proxy import SharedProxy
from tilewright.runtime.emulator.errors import Trap

ALL = np.ones(32, bool)


def warp(index: int, line: int = 1) -> SimpleNamespace:
    source = [SimpleNamespace(line=line)]
    return SimpleNamespace(
        index=index,
        program=SimpleNamespace(source=source),
        split=SimpleNamespace(pc=0),
    )


def lanes(*chosen: int) -> np.ndarray:
    mask = np.zeros(32, bool)
    mask[list(chosen)] = True
    return mask


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_a_store_tags_exactly_its_bytes(size):
    proxy = SharedProxy(2048)
    proxy.stored(warp(3), lanes(4, 9), np.array([size * 5, size * 7]), size)
    expected = np.zeros(2048, np.uint16)
    expected[size * 5 : size * 6] = 1 + 3 * 32 + 4
    expected[size * 7 : size * 8] = 1 + 3 * 32 + 9
    assert np.array_equal(proxy.tags, expected)


def test_an_unfenced_write_is_named_with_writer_and_line():
    proxy = SharedProxy(2048)
    proxy.stored(warp(2, line=41), lanes(7), np.array([96]), 16)
    with pytest.raises(Trap) as caught:
        proxy.check_words(np.array([[0, 13]]), "a tensor store reads")
    assert caught.value.category == "proxy-fence"
    assert caught.value.message == (
        "a tensor store reads shared offset 0x68, which warp 2 lane 7 wrote through the generic "
        "proxy (ptx:41) without fence.proxy.async afterwards"
    )
    proxy.check_words(np.array([[0, 14]]), "a tensor store")


def test_without_clocks_a_fence_covers_all_earlier_writes_of_the_cta():
    """It may stand behind a barrier, on the reader's side (PTX ISA §8.9.5)"""
    proxy = SharedProxy(2048, clocked=False)
    proxy.stored(warp(1), ALL, np.arange(0, 128, 4), 4)
    proxy.fence(warp(0), lanes(3))
    proxy.check_span(0, 2048, "a tensor store")
    proxy.stored(warp(1), ALL, np.arange(0, 128, 4), 4)
    with pytest.raises(Trap, match="which warp 1 lane 0 wrote"):
        proxy.check_span(0, 2048, "a tensor store")


def test_only_the_writers_own_fence_clears_its_bytes():
    proxy = SharedProxy(2048)
    offsets = np.arange(0, 128, 4)
    proxy.stored(warp(1), ALL, offsets, 4)
    proxy.fence(warp(0), ALL)
    assert proxy.tags[:128].all()
    proxy.fence(warp(1), lanes(0))
    assert not proxy.tags[:4].any() and proxy.tags[4:128].all()
    proxy.fence(warp(1), ALL)
    assert not proxy.tags.any()
    proxy.check_span(0, 128, "a bulk store")


def test_a_later_writer_of_the_same_byte_owns_it():
    proxy = SharedProxy(256)
    proxy.stored(warp(0), lanes(0), np.array([0]), 4)
    proxy.stored(warp(1), lanes(5), np.array([0]), 4)
    proxy.fence(warp(0), ALL)
    assert (proxy.tags[:4] == 1 + 32 + 5).all()


def test_an_asynchronous_write_supersedes_the_marks():
    proxy = SharedProxy(256)
    proxy.stored(warp(0), ALL, np.arange(0, 128, 4), 4)
    proxy.written_words(np.arange(8))
    assert not proxy.tags[:64].any() and proxy.tags[64:128].all()
    proxy.written_words(np.arange(64 // 8, 128 // 8))
    assert not proxy.tags.any()


@pytest.mark.parametrize(("offset", "size", "hit"), [
    (56, 8, False), (64, 1, True), (71, 1, True), (72, 4, False), (64, 16, True), (48, 16, False),
])  # fmt: skip
def test_generic_accesses_may_not_touch_a_live_barrier(offset, size, hit):
    proxy = SharedProxy(256)
    proxy.barrier_made(64)
    assert proxy.barrier_in(0, 65) and not proxy.barrier_in(72, 256)
    if hit:
        with pytest.raises(Trap) as caught:
            proxy.touched(np.array([0, offset]), size, "read")
        assert caught.value.message == (
            f"read of {size} bytes at shared offset 0x{offset:x} touches a live mbarrier object; "
            f"only mbarrier operations may, until mbarrier.inval"
        )
    else:
        proxy.touched(np.array([0, offset]), size, "read")
    proxy.barrier_ended(64)
    proxy.touched(np.array([64]), 8, "read")
