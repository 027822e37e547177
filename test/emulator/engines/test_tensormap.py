"""Tensor maps: validation as cuTensorMapEncodeTiled does it, and boxes against element loops."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator.copies.tensor_map import TensorMap
from tilewright.runtime.emulator.copies.tensor_map_object import decode, encode
from tilewright.runtime.emulator.errors import LaunchError, Trap
from tilewright.runtime.emulator.machine import swizzle


def bf16_map(rows=64, columns=96, box=(64, 32), **options) -> TensorMap:
    array = np.zeros((rows, columns), np.uint16)
    return TensorMap(array, "bf16", (columns, rows), (columns * 2,), box, **options)


def refused(**changes) -> str:
    arguments = dict(
        array=np.zeros((64, 96), np.uint16), dtype="bf16", dims=(96, 64), strides=(192,),
        box=(64, 32), element_strides=(1, 1),
    )  # fmt: skip
    with pytest.raises(LaunchError) as caught:
        TensorMap(**{**arguments, **changes})
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(dims=()), "tensorRank must be 1..5, got 0"),
        (
            dict(dims=(1,) * 6, strides=(16,) * 5, box=(8,) * 6, element_strides=(1,) * 6),
            "tensorRank must be 1..5, got 6",
        ),
        (dict(strides=()), "globalStrides must have 1 entries, got 0"),
        (dict(box=(64,)), "boxDim must have 2 entries, got 1"),
        (dict(element_strides=(1,)), "elementStrides must have 2 entries, got 1"),
        (dict(dims=(96, 0)), "globalDim[1] must be 1..4294967296, got 0"),
        (dict(box=(64, 257)), "boxDim[1] must be 1..256, got 257"),
        (dict(box=(0, 32)), "boxDim[0] must be 1..256, got 0"),
        (dict(element_strides=(1, 9)), "elementStrides[1] must be 1..8, got 9"),
        (dict(strides=(200,)), "globalStrides[0] must be a multiple of 16 bytes, got 200"),
        (
            dict(strides=(1 << 40,)),
            "globalStrides[0] must be below 2^40 bytes, got 1099511627776",
        ),
        (dict(box=(60, 32)), "boxDim[0] must span a multiple of 16 bytes, got 120"),
        (
            dict(swizzle="64B"),
            "boxDim[0] must span at most 64 bytes for swizzle 64B, got 128",
        ),
        (dict(swizzle=7), "swizzle must be one of none, 32B, 64B, 128B, 128B_ATOM_32B, "
         "128B_ATOM_32B_FLIP_8B, 128B_ATOM_64B, got 7"),
        (dict(dtype="uint16", oob_fill="nan"),
         "oobFill nan needs a floating point type, got uint16"),
        (dict(interleave="32B"), "interleaved layouts are not modelled, got '32B'"),
        (dict(dtype=13, dims=(95, 64)),
         "globalDim[0] of 16u4_align8b must be a multiple of 2, got 95"),
        (dict(dtype=14), "globalDim[0] of 16u4_align16b must be a multiple of 128, got 96"),
        (dict(dtype=15, dims=(128, 64)), "boxDim[0] of 16u6_align16b must be 128, got 64"),
        (dict(dtype=14, dims=(128, 64), box=(128, 32), strides=(80,)),
         "globalStrides[0] of 16u4_align16b must be a multiple of 32 bytes, got 80"),
        (dict(dtype=15, dims=(128, 64), box=(128, 32), swizzle="128B_ATOM_64B"),
         "swizzle of 16u6_align16b must be none, 128B or 128B_ATOM_32B, got 128B_ATOM_64B"),
        (dict(dtype="bf17"), "tensorDataType must be one of uint8, uint16, uint32, int32, uint64, "
         "int64, float16, float32, float64, bfloat16, float32_ftz, tfloat32, tfloat32_ftz, "
         "16u4_align8b, 16u4_align16b, 16u6_align16b, got 'bf17'"),
        (dict(l2_promotion="32B"),
         "l2Promotion must be one of none, 64B, 128B, 256B, got '32B'"),
        (dict(offset=1.5), "offset must be a sequence of integers, got [1.5]"),
        (dict(dims=(96.0, 64)), "globalDim must be a sequence of integers, got (96.0, 64)"),
        (dict(array=[1, 2]), "the tensor must be a numpy array, got list"),
    ],
)  # fmt: skip
def test_what_the_driver_refuses_is_refused(changes, message):
    assert refused(**changes) == f"tensor map: {message}"


def test_the_global_address_is_a_multiple_of_16():
    tensor_map = bf16_map()
    tensor_map.check_address(0x1000)
    with pytest.raises(LaunchError) as caught:
        tensor_map.check_address(0x1008)
    assert str(caught.value) == "tensor map: globalAddress must be a multiple of 16, got 0x1008"


def test_odd_sizes_and_overlapping_strides_are_accepted():
    array = np.zeros(4096, np.uint16)
    TensorMap(array, "bf16", (63, 17), (128,), (64, 16))
    TensorMap(array, "bf16", (64, 1000), (0,), (64, 16))


def test_an_encoded_map_tells_its_fields_and_other_bytes_are_no_map():
    made = bf16_map(swizzle="128B", element_strides=(1, 2), l2_promotion="256B", oob_fill="nan")
    data = encode(made, 0x7000)
    found, address = decode(data)
    assert (len(data), address) == (128, 0x7000)
    for name in ("dims", "strides", "box", "element_strides", "dtype", "swizzle", "oob_fill"):
        assert getattr(found, name) == getattr(made, name)
    for other in (b"\x5a" * 128, bytes(128)):
        with pytest.raises(Trap) as caught:
            decode(other)
        assert caught.value.message == "the 128 bytes at the tensor map address are no map"


@pytest.mark.parametrize(("number", "mode"), list(enumerate(swizzle.MODES)))
def test_every_swizzle_survives_encoding(number, mode):
    assert decode(encode(bf16_map(box=(16, 8), swizzle=number), 0x100))[0].swizzle is mode


def element_loop(tensor_map: TensorMap, memory: bytes, start) -> bytes:
    """The box of a load, one element at a time."""
    size = tensor_map.dtype.bytes
    steps = (1, *tensor_map.element_strides[1:])
    counts = [-(-box // step) for box, step in zip(tensor_map.box, steps, strict=True)]
    strides = (size, *tensor_map.strides)
    fill = (b"\xf7\x7f" * 4)[:size] if tensor_map.oob_fill == "nan" else bytes(size)
    out = []
    for position in itertools.product(*(range(count) for count in reversed(counts))):
        at = [s + p * e for s, p, e in zip(start, reversed(position), steps, strict=True)]
        if all(0 <= c < d for c, d in zip(at, tensor_map.dims, strict=True)):
            offset = sum(c * s for c, s in zip(at, strides, strict=True))
            out.append(memory[offset : offset + size])
        else:
            out.append(fill)
    return b"".join(out)


BOXES = [
    ("uint8", (37,), (), (16,), (1,), [(0,), (-5,), (30,), (37,), (-16,), (-20,)]),
    ("bf16", (21, 13), (48,), (16, 8), (1, 1), [(0, 0), (-3, 5), (15, -4), (-16, 0), (21, 2)]),
    ("bf16", (21, 13), (48,), (16, 8), (1, 3), [(0, 0), (2, -4), (2, 11), (-1, 1)]),
    ("f32", (9, 7, 5), (48, 352), (4, 3, 4), (1, 1, 2), [(0, 0, 0), (7, -1, 3), (-2, 5, -3)]),
    (
        "u64", (5, 3, 4, 3), (48, 160, 656), (2, 2, 3, 2), (1, 2, 1, 1),
        [(0, 0, 0, 0), (4, 1, -1, 2)],
    ),
    (
        "f16", (11, 3, 2, 3, 4), (32, 96, 208, 640), (8, 2, 2, 2, 3), (1, 1, 1, 1, 2),
        [(0, 0, 0, 0, 0), (5, -1, 1, 2, -1), (-7, 2, -1, -1, 3)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("fill", ["zero", "nan"])
@pytest.mark.parametrize(("dtype", "dims", "strides", "box", "steps", "starts"), BOXES)
def test_a_loaded_box_equals_the_element_loop(dtype, dims, strides, box, steps, starts, fill):
    array = np.random.default_rng(5).integers(0, 256, 4096, dtype=np.uint8)
    fill = "zero" if dtype in ("uint8", "u64") else fill
    tensor_map = TensorMap(array, dtype, dims, strides, box, steps, oob_fill=fill)
    for start in starts:
        got = tensor_map.load(array, start)
        assert got.shape == (tensor_map.rows, tensor_map.inner_bytes)
        assert got.tobytes() == element_loop(tensor_map, array.tobytes(), start)


@pytest.mark.parametrize(
    ("dtype", "dims", "strides", "box", "starts"),
    [
        ("bf16", (24, 13), (48,), (16, 8), [(0, 0), (15, 9), (24, 2), (3, 13)]),
        ("f32", (8, 7, 5), (48, 352), (4, 3, 4), [(0, 0, 0), (6, 5, 3)]),
        ("bf16", (21, 13), (48,), (16, 8), [(0, 0), (5, 9)]),
    ],
)
def test_a_stored_box_writes_exactly_the_elements_inside(dtype, dims, strides, box, starts):
    rng = np.random.default_rng(6)
    for start in starts:
        array = rng.integers(0, 256, 4096, dtype=np.uint8)
        expected = bytearray(array.tobytes())
        tensor_map = TensorMap(array, dtype, dims, strides, box)
        data = rng.integers(0, 256, (tensor_map.rows, tensor_map.inner_bytes), dtype=np.uint8)
        store_element_loop(tensor_map, expected, start, data.tobytes())
        tensor_map.store(array, start, data)
        assert array.tobytes() == bytes(expected)


@pytest.mark.parametrize(("dtype", "columns"), [("bf16", 21), ("f32", 9)])
def test_a_store_that_ends_in_part_of_16_bytes_is_not_modelled(dtype, columns):
    tensor_map = TensorMap(np.zeros(4096, np.uint8), dtype, (columns, 8), (64,), (8, 8))
    data = np.zeros((8, tensor_map.inner_bytes), np.uint8)
    rule = (
        rf"past the end of rows of {tensor_map.dtype.span(columns)} bytes: GPUs write the whole 16"
    )
    with pytest.raises(Trap, match=rule):
        tensor_map.store(np.zeros(4096, np.uint8), (columns - 1, 0), data)


def store_element_loop(tensor_map, memory: bytearray, start, data: bytes) -> None:
    size = tensor_map.dtype.bytes
    strides = (size, *tensor_map.strides)
    positions = itertools.product(*(range(count) for count in reversed(tensor_map.box)))
    for number, position in enumerate(positions):
        at = [s + p for s, p in zip(start, reversed(position), strict=True)]
        if all(0 <= c < d for c, d in zip(at, tensor_map.dims, strict=True)):
            offset = sum(c * s for c, s in zip(at, strides, strict=True))
            memory[offset : offset + size] = data[number * size : (number + 1) * size]


def test_a_store_refuses_negative_coordinates():
    tensor_map = bf16_map()
    with pytest.raises(Trap) as caught:
        tensor_map.store(np.zeros(12288, np.uint8), (-1, 0), np.zeros((32, 128), np.uint8))
    assert caught.value.message == "a tensor store needs coordinates >= 0, got (-1, 0)"


def test_the_box_bytes_count_traversal_steps_and_fill():
    assert bf16_map().box_bytes == 64 * 32 * 2
    assert bf16_map(box=(64, 16), element_strides=(1, 2)).box_bytes == 8 * 64 * 2
    assert bf16_map(box=(64, 16), element_strides=(2, 1)).box_bytes == 16 * 64 * 2


def test_tfloat32_rounds_to_nearest_even_and_float32_passes_bits():
    pairs = {
        0x3F801FFF: 0x3F802000, 0x3F801000: 0x3F800000, 0x3F803000: 0x3F804000,
        0x3F800FFF: 0x3F800000, 0x00000123: 0, 0x0000FFFF: 0x00010000,
        0x7F800000: 0x7F800000, 0x7FC00001: 0x7FC00001,
    }  # fmt: skip
    bits, rounded = list(pairs), list(pairs.values())
    array = np.array(bits, np.uint32)
    memory = array.view(np.uint8)
    for dtype, expected in (("tf32", rounded), ("f32", bits), ("float32_ftz", bits)):
        got = TensorMap(array, dtype, (8,), (), (8,)).load(memory, (0,))
        assert got.view(np.uint32).ravel().tolist() == expected


@pytest.mark.parametrize(("number", "mode"), list(enumerate(swizzle.MODES)))
def test_driver_numbers_name_swizzles(number, mode):
    assert bf16_map(box=(16, 8), swizzle=number).swizzle is mode


def test_a_bfloat16_array_can_be_described_as_it_is():
    array = np.arange(64, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(4, 16)
    tensor_map = TensorMap(array, "bf16", (16, 4), (32,), (16, 2))
    box = tensor_map.load(array.view(np.uint8).reshape(-1), (0, 2))
    assert np.array_equal(box.view(ml_dtypes.bfloat16), array[2:])
