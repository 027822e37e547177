"""Tensor memory: allocation rules and the register maps of tcgen05.ld/st (PTX ISA, tcgen05)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch
from tilewright.runtime.emulator.errors import Trap
from tilewright.runtime.emulator.tensor.tensor_memory import SHAPES, TensorMemory, register_map


def refused(call, *args) -> tuple[str, str]:
    with pytest.raises(Trap) as caught:
        call(*args)
    return caught.value.category, caught.value.message


def place(shape: str, t: int, r: int, split: int) -> tuple[int, int]:
    """(lane, column) of register r of thread t, read off the ISA's fragment figures."""
    if shape == "32x32b":
        return t, r
    if shape == "16x64b":
        return (t % 2) * 8 + t // 4, 2 * r + (t // 2) % 2
    if shape == "16x128b":
        q, h = divmod(r, 2)
        return t // 4 + 8 * h, 4 * q + t % 4
    if shape == "16x256b":
        q, rest = divmod(r, 4)
        h, c = divmod(rest, 2)
        return t // 4 + 8 * h, 8 * q + 2 * (t % 4) + c
    return (t, r) if t < 16 else (t - 16, split + r)


@pytest.mark.parametrize("split", [4, 64])
@pytest.mark.parametrize("number", [1, 2, 8])
@pytest.mark.parametrize("shape", SHAPES)
def test_register_maps_follow_the_figures_and_touch_each_word_once(shape, number, split):
    registers = SHAPES[shape].registers * number
    lanes, columns = register_map(shape, registers, max(split, number))
    seen = set()
    for r in range(registers):
        for t in range(32):
            got = int(lanes[r, t]), int(columns[r, t])
            assert got == place(shape, t, r, max(split, number))
            seen.add(got)
    assert len(seen) == registers * 32


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b"])
def test_a_shape_covers_its_named_rectangle(shape, number):
    registers = SHAPES[shape].registers * number
    lanes, columns = register_map(shape, registers)
    assert set(lanes.ravel().tolist()) == set(range(SHAPES[shape].lanes))
    assert set(columns.ravel().tolist()) == set(range(SHAPES[shape].columns * number))


def test_the_16x256b_fragment_is_the_m16n8_accumulator_fragment():
    lanes, columns = register_map("16x256b", 4)
    for t in range(32):
        g, q = divmod(t, 4)
        expected = [(g, 2 * q), (g, 2 * q + 1), (g + 8, 2 * q), (g + 8, 2 * q + 1)]
        assert [(int(lanes[r, t]), int(columns[r, t])) for r in range(4)] == expected


@pytest.mark.parametrize("columns", [0, 16, 48, 96, 384, 1024])
def test_allocations_are_powers_of_two_from_32_to_512(columns):
    assert refused(TensorMemory().allocate, columns) == (
        "tmem",
        f"tcgen05.alloc: the columns must be a power of two in 32..512, got {columns}",
    )


def test_allocations_do_not_overlap_and_block_when_nothing_is_free():
    memory = TensorMemory()
    first, second = memory.allocate(256), memory.allocate(256)
    assert {first, second} == {0, 256}
    assert memory.allocate(32) is None
    memory.deallocate(first, 256)
    assert memory.allocate(128) in (first, first + 128)


def test_any_legal_place_may_be_picked():
    assert TensorMemory(pick=max).allocate(128) == 384


def test_sizes_may_not_increase():
    memory = TensorMemory()
    memory.allocate(64)
    assert refused(memory.allocate, 128) == (
        "tmem",
        "tcgen05.alloc: the columns of successive allocations may not increase, got 128 after 64",
    )


def test_nothing_is_allocated_after_relinquish():
    memory = TensorMemory()
    memory.relinquish()
    assert refused(memory.allocate, 32) == (
        "tmem",
        "tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same CTA",
    )


def test_only_whole_live_allocations_are_freed_and_once():
    memory = TensorMemory(pick=max)
    address = memory.allocate(128)
    assert refused(memory.deallocate, address + 32, 128)[1] == (
        "tcgen05.dealloc of 0x000001a0, which is no live allocation"
    )
    assert refused(memory.deallocate, address, 64)[1] == (
        "tcgen05.dealloc of 0x00000180: allocated with 128 columns, got 64"
    )
    memory.deallocate(address, 128)
    assert refused(memory.deallocate, address, 128)[1] == (
        "tcgen05.dealloc of 0x00000180, which is no live allocation"
    )


def test_columns_must_lie_inside_one_allocation():
    memory = TensorMemory()
    assert refused(memory.check_columns, 0, 1, "tcgen05.ld") == (
        "out-of-bounds",
        "tcgen05.ld: columns 0..0 are not inside an allocation (nothing is allocated)",
    )
    memory.allocate(64)
    memory.allocate(32)
    memory.check_columns(0, 64, "tcgen05.ld")
    memory.check_columns(64, 32, "tcgen05.ld")
    assert refused(memory.check_columns, 60, 8, "tcgen05.ld")[1] == (
        "tcgen05.ld: columns 60..67 are not inside an allocation (allocated: 0..63, 64..95)"
    )


def test_unwritten_words_are_not_read_and_a_fresh_allocation_is_unwritten():
    memory = TensorMemory()
    memory.allocate(32)
    lanes, columns = np.array([[3, 4]]), np.array([[5, 5]])
    memory.scatter(lanes[:, :1], columns[:, :1], np.array([[77]], np.uint32))
    assert memory.gather(lanes[:, :1], columns[:, :1], "tcgen05.ld")[0, 0] == 77
    assert refused(memory.gather, lanes, columns, "tcgen05.ld") == (
        "uninitialised-read",
        "tcgen05.ld: tensor memory lane 4 column 5 was never written",
    )
    memory.deallocate(0, 32)
    memory.allocate(32)
    assert refused(memory.gather, lanes[:, :1], columns[:, :1], "tcgen05.ld")[1] == (
        "tcgen05.ld: tensor memory lane 3 column 5 was never written"
    )


TWO_GROUPS = """.version 8.8\n.target sm_100a\n.address_size 64
.visible .entry k() { .shared .b32 s; .reg .b32 %r0; .reg .pred %p0;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32; ld.shared.b32 %r0, [s];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32; ret;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; ret; }"""


def test_instructions_of_both_groups_are_refused_where_nobody_reaches_them():
    """§9.7.16.7.1; ptxas refuses them, too"""
    launch(TWO_GROUPS.replace("::2", "::1"), "k", grid=1, block=32)
    rule = "all tcgen05 instructions of a kernel must use the same .cta_group, got 2 after 1"
    assert refused(lambda: launch(TWO_GROUPS, "k", grid=1, block=32)) == ("tmem", rule)
