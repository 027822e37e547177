"""Canonical operand layouts and data paths of tcgen05.mma (PTX ISA, tcgen05 layouts)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.errors import Trap
from tilewright.runtime.emulator.machine import swizzle
from tilewright.runtime.emulator.tensor import tensor_core
from tilewright.runtime.emulator.tensor.descriptor import SharedDescriptor, check_major

SPAN_MODES = (swizzle.B32, swizzle.B64, swizzle.B128)


def tuple_layout_offset(mode, transposed, size, leading, stride, r, k):
    """Byte offset from the ISA's canonical layouts, written as nested (shape):(stride) tuples."""
    t = 16 // size
    lead, strd = leading // size, stride // size
    wide = mode.span // 16
    if not transposed and mode is swizzle.NONE:  # ((8,m),(T,2k)):((1T,SBO),(1,LBO))
        return size * (r % 8 * t + r // 8 * strd + k % t + k // t * lead)
    if not transposed:  # ((8,m),(T,2k)):((W T,SBO),(1,T))
        return size * (r % 8 * wide * t + r // 8 * strd + k % t + k // t * t)
    if mode is swizzle.NONE:  # ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
        return size * (r % t + r // t * strd + k % 8 * t + k // 8 * lead)
    group = 4 if mode is swizzle.B128_ATOM_32B else 8
    # ((T,W,m),(8,k)):((1,T,LBO),(WT,SBO))
    inner = r % t + r // t % wide * t + r // (t * wide) * lead
    return size * (inner + k % group * wide * t + k // group * strd)


CASES = [
    (mode, transposed, size, type_name)
    for transposed in (False, True)
    for mode in (swizzle.NONE, *SPAN_MODES)
    for size, type_name in ((2, "bf16"), (2, "f16"))
] + [
    (swizzle.B128_ATOM_32B, True, 4, "tf32"),
    *((mode, False, 4, "tf32") for mode in (swizzle.NONE, *SPAN_MODES)),
]


def strides_for(mode, transposed, rows, k, size):
    """Leading and stride bytes of a padded tile: distinct, so that swapped fields are seen."""
    if mode is swizzle.NONE:
        return (rows // 8 * 128 + 64 * 16, 128) if not transposed else (rows * size * 8, 144)
    if not transposed:
        return 16, 8 * mode.span
    group = 4 if mode is swizzle.B128_ATOM_32B else 8
    return k // group * group * mode.span + 2048, group * mode.span


@pytest.mark.parametrize("start", [0x400, 0x2420, 0x8010])
@pytest.mark.parametrize(
    ("mode", "transposed", "size", "type_name"),
    CASES,
    ids=[f"{m.name}-{'mn' if t else 'k'}-{n}" for m, t, s, n in CASES],
)
def test_the_gathered_operand_is_the_matrix_placed_element_by_element(
    mode, transposed, size, type_name, start
):
    rows, k = 64, 32 // size
    leading, stride = strides_for(mode, transposed, rows, k, size)
    memory = np.random.default_rng(start).integers(0, 256, 1 << 17, dtype=np.uint8)
    expected = np.empty((rows, k), np.float32)
    for r in range(rows):
        for column in range(k):
            offset = tuple_layout_offset(mode, transposed, size, leading, stride, r, column)
            at = mode.apply(start + offset)
            expected[r, column] = decode_element(memory[at : at + size].tobytes(), type_name)
    descriptor = SharedDescriptor(start, leading, stride, 0, mode)
    layout = tensor_core.operand_layout(descriptor, rows, k, size * 8, transposed, "A")
    plan = tensor_core.gather_plan(layout)
    words = memory.view(np.uint64)[plan.words + start // 8]
    got = tensor_core.operand_matrix(words, layout, type_name)
    np.testing.assert_array_equal(got, expected)
    assert plan.low >= -1024 and start + plan.high <= memory.size


def decode_element(raw: bytes, type_name: str) -> np.float32:
    if type_name == "f16":
        return np.float32(np.frombuffer(raw, np.float16)[0])
    if type_name == "bf16":
        return np.frombuffer(b"\0\0" + raw, np.float32)[0]
    word = int.from_bytes(raw, "little") & ~0x1FFF
    return np.frombuffer(word.to_bytes(4, "little"), np.float32)[0]


def test_the_n_major_worked_element_lies_at_9372():
    descriptor = SharedDescriptor(0, 8192, 1024, 0, swizzle.B128)
    layout = tensor_core.operand_layout(descriptor, 128, 16, 16, True, "B")
    logical = tensor_core.logical_offsets(layout, np.array(70), np.array(9))
    assert int(logical) == 9356
    assert swizzle.B128.apply(int(logical)) == 9372


def test_a_start_offset_with_matching_base_offset_reads_tile_relative_swizzles():
    start, base = 0x400 + 3 * 128, 3
    descriptor = SharedDescriptor(start, 16, 1024, base, swizzle.B128)
    layout = tensor_core.operand_layout(descriptor, 16, 16, 16, False, "A")
    words = tensor_core.gather_plan(layout).words
    for r in range(16):
        logical = start + r * 128
        physical = logical ^ ((((logical >> 7) - base) % 8) << 4)
        assert words[r, 0] * 8 + start == physical


@pytest.mark.parametrize("rebase", [1024, 5 * 1024])
def test_plans_are_shared_by_starts_that_differ_by_whole_patterns(rebase):
    first = SharedDescriptor(0x420, 16, 1024, 0, swizzle.B128)
    second = SharedDescriptor(0x420 + rebase, 16, 1024, 0, swizzle.B128)
    layouts = [tensor_core.operand_layout(d, 64, 16, 16, False, "A") for d in (first, second)]
    assert layouts[0] == layouts[1]


@pytest.mark.parametrize(
    ("mode", "bits", "message"),
    [
        (
            swizzle.B128,
            32,
            "operand B: a transposed 32-bit matrix must use swizzle 128B_ATOM_32B, got 128B",
        ),
        (
            swizzle.B128_ATOM_32B,
            16,
            "operand B: a transposed 16-bit matrix cannot use swizzle 128B_ATOM_32B",
        ),
    ],
)
def test_transposed_operands_refuse_swizzles_the_table_excludes(mode, bits, message):
    with pytest.raises(Trap) as caught:
        check_major(mode, bits, True, "B")
    assert caught.value.message == message


def place(layout, n, i, j):
    """(cta, lane, column) of D[i][j], from the closed formulas of the data-path layouts."""
    return {
        "A": (i // 128, i % 128, j),
        "B": (i // 64, i % 64 + 64 * (j // (n // 2)), j % (n // 2)),
        "C": (i // 64, 32 * (i % 64 // 16) + i % 16, j),
        "D": (0, i, j),
        "E": (0, i + 64 * (j // (n // 2)), j % (n // 2)),
        "F": (0, 32 * (i // 16) + i % 16, j),
        "G": (0, i + 32 * (j // (n // 4)), j % (n // 4)),
    }[layout]


ROWS = {"A": 256, "B": 128, "C": 128, "D": 128, "E": 64, "F": 64, "G": 32}


@pytest.mark.parametrize("layout", ROWS)
@pytest.mark.parametrize("n", [64, 256])
def test_data_path_blocks_cover_the_matrix_at_the_formulas_places(layout, n):
    rows = ROWS[layout]
    matrix = np.arange(rows * n).reshape(rows, n)
    memory = np.full((2, 128, 512), -1)
    for block in tensor_core.data_path(layout, n):
        part = matrix[block.rows, block.columns]
        columns = slice(block.first_column, block.first_column + part.shape[1])
        memory[block.cta, block.lanes, columns] = part
    for i in range(rows):
        for j in range(n):
            assert memory[place(layout, n, i, j)] == matrix[i, j]
    assert (memory >= 0).sum() == rows * n


def test_worked_data_path_elements():
    assert place("B", 256, 100, 200) == (1, 100, 72)
    assert place("F", 64, 37, 5) == (0, 69, 5)


@pytest.mark.parametrize(
    ("m", "group", "layout"), [(128, 1, "D"), (64, 1, "F"), (256, 2, "A"), (128, 2, "B")]
)
def test_dense_operations_use_these_data_paths(m, group, layout):
    assert tensor_core.dense_layout(m, group) == layout


def test_accumulate_scales_the_old_value_only():
    old = np.array([[8.0, -3.0]], np.float32)
    product = np.array([[1.0, 0.5]], np.float32)
    tensor_core.accumulate(old.view(np.uint32), product, "f32", True, scale=2)
    np.testing.assert_array_equal(old, [[3.0, -0.25]])
    tensor_core.accumulate(old.view(np.uint32), product, "f32", False, scale=2)
    np.testing.assert_array_equal(old, product)


def test_an_f16_accumulator_lives_in_the_low_half_of_its_word():
    old = np.array([[0xABCD0000 | int(np.float16(1.5).view(np.uint16))]], np.uint32)
    tensor_core.accumulate(old, np.array([[2.0]], np.float32), "f16", True)
    assert old[0, 0] == 0xABCD0000 | int(np.float16(3.5).view(np.uint16))
