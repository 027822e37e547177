"""Swizzles as address functions (PTX ISA, "Swizzling Modes" of the tensor copies)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

CHUNK_TABLES = {
    # physical 16-byte chunk of logical chunks 0..7 of each line, as the ISA's tables print them
    "32B": [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]],
    "64B": [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 0, 3, 2, 5, 4, 7, 6],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [3, 2, 1, 0, 7, 6, 5, 4],
    ],
    "128B": [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 0, 3, 2, 5, 4, 7, 6],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [3, 2, 1, 0, 7, 6, 5, 4],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [5, 4, 7, 6, 1, 0, 3, 2],
        [6, 7, 4, 5, 2, 3, 0, 1],
        [7, 6, 5, 4, 3, 2, 1, 0],
    ],
    "128B_ATOM_32B": [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [6, 7, 4, 5, 2, 3, 0, 1],
    ],
    "128B_ATOM_64B": [[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3]],
}
BY_NAME = {mode.name: mode for mode in swizzle.MODES}


@pytest.mark.parametrize("name", CHUNK_TABLES)
def test_every_byte_moves_as_the_chunk_table_says(name):
    table = CHUNK_TABLES[name]
    for address in range(4096):
        line, chunk, byte = address // 128, address // 16 % 8, address % 16
        expected = line * 128 + table[line % len(table)][chunk] * 16 + byte
        assert BY_NAME[name].apply(address) == expected


def test_flip_mode_exchanges_eight_byte_halves_on_odd_lines():
    mode = swizzle.B128_ATOM_32B_FLIP_8B
    for address in range(2048):
        moved = swizzle.B128_ATOM_32B.apply(address)
        odd = address // 128 % 2 == 1
        expected = moved + (8 if moved % 16 < 8 else -8) if odd else moved
        assert mode.apply(address) == expected


@pytest.mark.parametrize("mode", swizzle.MODES, ids=lambda mode: mode.name)
def test_a_swizzle_is_a_permutation_of_each_line_and_repeats_with_its_period(mode):
    addresses = np.arange(8192)
    moved = mode.apply(addresses)
    assert np.array_equal(moved // 128, addresses // 128)
    assert np.array_equal(np.sort(moved), addresses)
    assert np.array_equal(moved[mode.period :] - mode.period, moved[: -mode.period])


@pytest.mark.parametrize(
    ("mode", "row", "k", "physical"),
    [
        (swizzle.B128, 3, 10, 420),
        (swizzle.B128, 9, 10, 1156),
        (swizzle.B64, 3, 10, 196),
        (swizzle.B64, 9, 10, 596),
        (swizzle.B32, 3, 10, 116),
        (swizzle.B32, 5, 10, 164),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_worked_bf16_elements_land_where_the_examples_say(mode, row, k, physical):
    assert mode.apply(row * mode.span + 2 * k) == physical


def test_base_offset_moves_the_start_of_the_pattern_in_lines():
    for base in range(8):
        for address in range(2048):
            expected = address ^ ((((address >> 7) - base) % 8) << 4)
            assert swizzle.B128.apply(address, base) == expected
