"""Tensor loads in small kernels (PTX ISA, "cp.async.bulk.tensor", global to shared)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap
from tilewright.runtime.emulator.machine import swizzle


def expected_image(tensor_map: TensorMap, source: np.ndarray, start, image: bytes) -> bytes:
    """Shared memory after a load, byte by byte: pitch, address XOR, fill, gaps kept."""
    size = tensor_map.dtype.bytes
    dims, box = tensor_map.dims, tensor_map.box
    strides = (size, *tensor_map.strides)
    mode = tensor_map.swizzle
    pitch = box[0] * size if mode is swizzle.NONE else mode.span
    raw, result = source.tobytes(), bytearray(image)
    rows = [()]
    for axis in range(1, len(dims)):
        rows = [(*outer, j) for j in range(box[axis]) for outer in rows]
    for number, row in enumerate(rows):
        for i in range(box[0]):
            at = [start[0] + i, *(s + j for s, j in zip(start[1:], row, strict=True))]
            inside = all(0 <= c < d for c, d in zip(at, dims, strict=True))
            offset = sum(c * s for c, s in zip(at, strides, strict=True))
            value = raw[offset : offset + size] if inside else bytes(size)
            for byte in range(size):
                logical = 0x800 + number * pitch + i * size + byte
                result[mode.apply(logical) - 0x800] = value[byte]
    return bytes(result)


LOADS = [
    ("none", (40, 24), (16, 16), (0, 0)),
    ("none", (40, 24), (8, 24), (8, 0)),
    ("32B", (40, 24), (16, 16), (8, -5)),
    ("64B", (40, 24), (32, 16), (-8, 12)),
    ("128B", (72, 40), (64, 32), (16, 9)),
    ("128B", (72, 40), (32, 16), (64, 30)),
    ("64B", (72, 40), (8, 16), (8, 1)),
    ("128B_ATOM_32B", (72, 40), (64, 32), (8, 8)),
    ("128B_ATOM_32B_FLIP_8B", (72, 40), (64, 16), (0, 3)),
    ("128B_ATOM_64B", (72, 40), (64, 16), (0, 0)),
    ("128B", (72, 40), (64, 8), (80, 0)),
    ("32B", (24, 6, 5), (16, 4, 3), (8, 3, -1)),
    ("128B", (24, 6, 5, 3), (16, 2, 3, 2), (8, 3, -1, 2)),
    ("none", (16, 6, 5, 3, 2), (8, 2, 3, 2, 2), (8, 3, -1, 2, 1)),
    ("none", (96,), (64,), (48,)),
]


@pytest.mark.parametrize(("mode", "dims", "box", "start"), LOADS)
def test_a_loaded_tile_lies_where_the_address_function_says(copies, mode, dims, box, start):
    rng = np.random.default_rng(3)
    padded = [-(-dims[0] // 8) * 8 * 2]
    for dim in dims[1:-1]:
        padded.append(padded[-1] * dim + 32)
    strides = padded[: len(dims) - 1]
    source = rng.integers(1, 256, (dims[-1] + 1) * padded[-1] * 2, dtype=np.uint8)
    tensor_map = TensorMap(source, "bf16", dims, strides, box, swizzle=mode)
    span = tensor_map.inner_bytes if mode == "none" else tensor_map.swizzle.span
    size = -(-tensor_map.rows * span // 128) * 128
    image = rng.integers(1, 256, size, dtype=np.uint8)
    out = np.zeros(size, np.uint8)
    body = copies.with_bytes(copies.load_body(len(dims), start, size, fill=True), tensor_map)
    report = copies.run(body, out, tensor_map, image)
    assert out.tobytes() == expected_image(tensor_map, source, start, image.tobytes())
    assert report.engines["tma load bytes"] == tensor_map.box_bytes


@pytest.mark.parametrize("x", [-1, 1, 4, 60])
def test_a_load_that_starts_inside_16_bytes_stops_as_on_an_h200(copies, x):
    source = np.zeros((40, 72), np.uint16)
    tensor_map = TensorMap(source, "bf16", (72, 40), (144,), (64, 16), swizzle="128B")
    trap = copies.refused(copies.load_body(2, (x, 0), 2048, fill=False), tensor_map)
    assert trap.category == "tma"
    assert trap.message == (
        f"coordinate 0 must be a multiple of 16 bytes, got {x} elements of 2: an H200 stops"
        " there as at an illegal instruction; start at the multiple before"
    )


@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
@pytest.mark.parametrize("seed", range(3))
def test_both_destination_spaces_reach_the_own_cta(copies, space, seed):
    source, tensor_map = copies.small_map()
    out = np.zeros((16, 64), np.uint16)
    body = copies.with_bytes(copies.load_body(2, (0, 8), 2048, fill=False, space=space), tensor_map)
    copies.run(body, out, tensor_map, seed=seed)
    assert np.array_equal(out, source[8:24])


def test_a_destination_must_be_aligned_to_128_bytes(copies):
    _, tensor_map = copies.small_map()
    body = copies.load_body(2, (0, 0), 2048, fill=False).replace("[%r2], [%rd1", "[%r2+64], [%rd1")
    trap = copies.refused(body, tensor_map)
    assert trap.category == "misaligned"
    assert trap.message == "a tensor load: shared address 0x840 must be a multiple of 128"


def test_a_box_must_fit_the_shared_memory(copies):
    _, tensor_map = copies.small_map()
    body = copies.load_body(2, (0, 0), 2048, fill=False)
    body = body.replace("[%r2], [%rd1", "[%r2+31744], [%rd1")
    trap = copies.refused(body, tensor_map)
    assert trap.category == "out-of-bounds"
    assert trap.message == (
        "a tensor load: 2048 bytes at shared offset 0x8400 are not inside the CTA's shared memory "
        "0x400..0x8800"
    )


def test_a_box_may_not_cover_a_live_barrier(copies):
    _, tensor_map = copies.small_map()
    body = copies.load_body(2, (0, 0), 2048, fill=False)
    body = "@%p0 mbarrier.init.shared::cta.b64 [%r2+512], 1;\n" + body
    trap = copies.refused(body, tensor_map)
    assert trap.message == (
        "a tensor load covers shared offsets 0x800..0x1000, where a live mbarrier lies"
    )


def test_the_rank_of_map_and_instruction_must_agree(copies):
    _, tensor_map = copies.small_map()
    trap = copies.refused(copies.load_body(3, (0, 0, 0), 2048, fill=False), tensor_map)
    assert trap.message == "the tensor map has rank 2, the instruction .3d"


def test_an_address_without_a_map_traps(copies):
    _, tensor_map = copies.small_map()
    body = "  ld.param.u64 %rd1, [other];\n" + copies.load_body(2, (0, 0), 2048, fill=False)
    trap = copies.refused(body, tensor_map, other=np.zeros(128, np.uint8))
    assert trap.message == "the 128 bytes at the tensor map address are no map"


def test_a_map_in_shared_memory_traps(copies):
    _, tensor_map = copies.small_map()
    body = "  cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1;\n"
    trap = copies.refused(body + copies.load_body(2, (0, 0), 2048, fill=False), tensor_map)
    assert trap.category == "address-space"
    assert trap.message.startswith(
        "a tensor map must lie in parameter, constant or global memory, got the shared address"
    )


def test_too_few_expected_bytes_are_noticed(copies):
    _, tensor_map = copies.small_map()
    body = copies.load_body(2, (0, 0), 2048, fill=False)
    body = copies.with_bytes(body, tensor_map).replace("[%r1], 2048", "[%r1], 1024")
    trap = copies.refused(body, tensor_map)
    assert trap.category == "barrier-protocol"
    assert "1024 bytes more were delivered than expected" in trap.message


def test_too_many_expected_bytes_deadlock_with_the_count(copies):
    _, tensor_map = copies.small_map()
    body = copies.with_bytes(copies.load_body(2, (0, 0), 2048, fill=False), tensor_map)
    trap = copies.refused(body.replace("[%r1], 2048", "[%r1], 4096"), tensor_map)
    assert trap.category == "deadlock"
    assert "(phase 0, parity 0, pending 0 of 1, tx 2048)" in trap.message


def test_reading_a_tile_before_its_wait_is_an_uninitialised_read_or_wrong_in_some_schedule(copies):
    _, tensor_map = copies.small_map()
    body = copies.with_bytes(copies.load_body(2, (0, 0), 2048, fill=False), tensor_map)
    body = body.replace(copies.WAIT, "")
    seen = set()
    for seed in range(12):
        out = np.zeros(2048, np.uint8)
        try:
            copies.run(body, out, tensor_map, seed=seed)
        except Trap as trap:
            seen.add(trap.category)
    assert "uninitialised-read" in seen


def test_a_load_in_flight_when_the_cta_exits_traps_in_some_schedule(copies):
    _, tensor_map = copies.small_map()
    body = copies.with_bytes(copies.load_body(2, (0, 0), 2048, fill=False), tensor_map)
    body = body[: body.index("WAIT:")].replace("@%p0 mbarrier.arrive.expect_tx", "// ")
    categories = set()
    for seed in range(12):
        try:
            copies.run(body, np.zeros(16, np.uint8), tensor_map, seed=seed)
        except Trap as trap:
            categories.add(trap.category)
    assert "exited-cta" in categories <= {"exited-cta", "barrier-protocol"}


def test_a_map_over_a_slice_reaches_the_slice_only(copies):
    whole = np.random.default_rng(4).integers(1, 1 << 15, (32, 96)).astype(np.uint16)
    part = whole[:, :64]
    out = np.zeros((16, 64), np.uint16)
    inside = TensorMap(part, "bf16", (64, 32), (192,), (64, 16))
    body = copies.with_bytes(copies.load_body(2, (0, 8), 2048, fill=False), inside)
    copies.run(body, out, inside)
    assert np.array_equal(out, part[8:24])
    wider = TensorMap(part, "bf16", (72, 31), (192,), (64, 16))
    trap = copies.refused(copies.load_body(2, (8, 8), 2048, fill=False), wider)
    assert trap.category == "out-of-bounds"
    assert trap.message == "the tensor map reaches bytes between the array's elements"


def test_im2col_of_the_width_alone_is_unmodelled(copies):
    _, tensor_map = copies.small_map()
    body = copies.load_body(2, (0, 0), 2048, fill=False).replace(".tile.", ".im2col::w.")
    trap = copies.refused(body, tensor_map)
    assert trap.message.startswith("mode .im2col::w of 2 dimensions")


def test_prefetches_are_checked_hints(copies):
    _, tensor_map = copies.small_map()
    body = """
      prefetch.tensormap [%rd1];
      mov.s32 %r10, 0; mov.s32 %r11, -5;
      @%p0 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r10, %r11}];
      @%p0 cp.async.bulk.prefetch.L2.global [%rd2], 16;
    """
    copies.run(body, np.zeros(16, np.uint8), tensor_map)


def test_a_prefetch_of_a_parameter_takes_an_address_of_it_and_no_generic_one(copies):
    _, tensor_map = copies.small_map()
    of_parameter = "cvta.to.param.u64 %rd5, %rd1; prefetch.param.tensormap [%rd5];"
    copies.run(of_parameter, np.zeros(16, np.uint8), tensor_map)
    trap = copies.refused("prefetch.param.tensormap [%rd1];", tensor_map)
    assert trap.category == "address-space" and "is a generic address" in trap.message


def test_cache_hints_are_accepted(copies):
    source, tensor_map = copies.small_map()
    out = np.zeros((16, 64), np.uint16)
    body = copies.load_body(2, (0, 0), 2048, fill=False)
    body = body.replace("complete_tx::bytes", "complete_tx::bytes.L2::cache_hint")
    body = body.replace("}}], [%r1];", "}}], [%r1], %rd5;")
    body = "mov.b64 %rd5, 0x14F0000000000000;\n" + copies.with_bytes(body, tensor_map)
    copies.run(body, out, tensor_map)
    assert np.array_equal(out, source[:16])
