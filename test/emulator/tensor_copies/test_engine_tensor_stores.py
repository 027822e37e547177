"""Tensor stores, reductions, bulk copies and groups in small kernels (PTX ISA, bulk copies)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap, launch


@pytest.mark.parametrize("mode", ["none", "128B", "128B_ATOM_64B"])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (24, 20), (56, 3), (64, 0)])
@pytest.mark.parametrize("read", ["", ".read"])
def test_a_stored_tile_is_unswizzled_and_clipped(copies, mode, x, y, read):
    target, tensor_map = copies.small_map(swizzle=mode)
    expected = target.copy()
    image = np.random.default_rng(8).integers(1, 1 << 15, (16, 64)).astype(np.uint16)
    for row in range(16):
        for column in range(64):
            at = tensor_map.swizzle.apply(0x800 + row * 128 + column * 2) - 0x800
            if y + row < 32 and x + column < 64:
                expected[y + row, x + column] = image.reshape(-1)[at // 2]
    copies.run(copies.store_body(x, y, read=read), np.zeros(16, np.uint8), tensor_map, image)
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("seed", range(4))
def test_every_lane_may_store_the_same_box(copies, seed):
    """As the CuTe DSL stores: the bytes keep their value from the second store on"""
    target, tensor_map = copies.small_map()
    image = np.random.default_rng(8).integers(1, 1 << 15, (16, 64)).astype(np.uint16)
    body = copies.store_body().replace("@%p0 cp.async", "cp.async")
    assert body.count("@%p0 cp.async") == 0 and body.count("cp.async.bulk.tensor") == 1
    copies.run(body, np.zeros(16, np.uint8), tensor_map, image, seed)
    assert np.array_equal(target[:16, :64], image)


def test_a_store_without_the_writers_proxy_fence_traps_with_the_writer(copies):
    _, tensor_map = copies.small_map()
    image = np.ones((16, 64), np.uint16)
    body = copies.store_body().replace("fence.proxy.async.shared::cta;", "")
    trap = copies.refused(body, tensor_map, other=image)
    assert trap.category == "proxy-fence"
    assert trap.message.startswith(
        "a tensor store of shared offset 0x800 of cta (0, 0, 0) is ordered behind the write by "
        "warp 0 lane 0 of cta (0, 0, 0) (ptx:"
    )


def test_a_fence_by_another_thread_than_the_writer_is_not_enough(copies):
    _, tensor_map = copies.small_map()
    image = np.ones((16, 64), np.uint16)
    body = copies.store_body().replace("fence.proxy", "@%p0 fence.proxy")
    trap = copies.refused(body, tensor_map, other=image)
    assert (trap.category, "the write by warp 0 lane 1 of cta" in trap.message) == (
        "proxy-fence",
        True,
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_store_reads_its_source_though_the_block_has_exited(copies, seed):
    body = copies.store_body()
    waited, late = copies.small_map(), copies.small_map()
    unwaited = body.replace("@%p0 cp.async.bulk.wait_group 0;", "")
    for text, (target, tensor_map) in ((body, waited), (unwaited, late)):
        source = np.arange(1024, dtype=np.uint16).reshape(16, 64)
        report = copies.run(text, np.zeros(16, np.uint8), tensor_map, source, seed, "shipped")
        assert [each.category for each in report.warnings] == ["bulk-group"] * (text != body)
        assert target.any()
    assert np.array_equal(waited[0], late[0])


def test_a_store_at_negative_coordinates_traps(copies):
    _, tensor_map = copies.small_map()
    trap = copies.refused(copies.store_body(x=-8), tensor_map, other=np.ones((16, 64), np.uint16))
    assert trap.message == "a tensor store needs coordinates >= 0, got (-8, 0)"


def test_a_read_only_tensor_is_not_stored_to(copies):
    target, _ = copies.small_map()
    target.flags.writeable = False
    tensor_map = TensorMap(target, "bf16", (64, 32), (128,), (64, 16))
    trap = copies.refused(copies.store_body(), tensor_map, other=np.ones((16, 64), np.uint16))
    assert trap.category == "read-only"


REDUCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_combine_with_the_tensor(copies, name):
    rng = np.random.default_rng(9)
    target = rng.integers(-(1 << 30), 1 << 30, (16, 32)).astype(np.int32)
    image = rng.integers(-(1 << 30), 1 << 30, (8, 32)).astype(np.int32)
    expected = target.copy()
    expected[4:12] = REDUCTIONS[name](target[4:12], image)
    tensor_map = TensorMap(target, "int32", (32, 16), (128,), (32, 8))
    opcode = f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{name}.tile.bulk_group"
    body = copies.store_body(0, 4, opcode, size=1024)
    copies.run(body, np.zeros(16, np.uint8), tensor_map, image)
    assert np.array_equal(target, expected)


def test_a_float_reduction_adds_in_the_element_type(copies):
    target = np.linspace(-3, 3, 512, dtype=np.float32).reshape(16, 32)
    image = np.linspace(7, 9, 256, dtype=np.float32).reshape(8, 32)
    expected = target.copy()
    expected[:8] += image
    tensor_map = TensorMap(target, "f32", (32, 16), (128,), (32, 8))
    opcode = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
    body = copies.store_body(0, 0, opcode, size=1024)
    copies.run(body, np.zeros(16, np.uint8), tensor_map, image)
    assert np.array_equal(target, expected)


BULK_LOAD = """
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 512;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r2], [%rd2], {size}, [%r1];
"""


def test_a_bulk_copy_moves_bytes_both_ways(copies):
    _, tensor_map = copies.small_map()
    source = np.random.default_rng(1).integers(0, 256, 512, dtype=np.uint8)
    out = np.zeros(768, np.uint8)
    body = (
        BULK_LOAD.format(size=512)
        + copies.WAIT
        + """
      @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 256;
      @%p0 cp.async.bulk.commit_group;
      add.s64 %rd3, %rd0, 512;
      add.u32 %r3, %r2, 256;
      @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r3], 256;
      @%p0 cp.async.bulk.commit_group;
      @%p0 cp.async.bulk.wait_group 1;
      @%p0 ld.global.u32 %r5, [%rd0];
      @%p0 st.global.u32 [%rd0+256], %r5;
      @%p0 cp.async.bulk.wait_group 0;
    """
    )
    for seed in range(4):
        out[:] = 0
        copies.run(body, out, tensor_map, source, seed)
        assert np.array_equal(out[:256], source[:256])
        assert np.array_equal(out[256:260], source[:4])
        assert np.array_equal(out[512:], source[256:])


@pytest.mark.parametrize(
    ("change", "category", "message"),
    [
        (("512, [%r1];", "500, [%r1];"), "misaligned",
         "the size of a bulk copy must be a multiple of 16, got 500"),
        (("[%r2], [%rd2]", "[%r2+8], [%rd2]"), "misaligned",
         "a bulk copy: shared address 0x808 must be a multiple of 16"),
        (("[%rd2], 512", "[%rd2+8], 256"), "misaligned", None),
        (("[%rd2], 512", "[%rd2+256], 512"), "out-of-bounds", None),
    ],
)  # fmt: skip
def test_bulk_copies_check_sizes_and_addresses(copies, change, category, message):
    _, tensor_map = copies.small_map()
    body = BULK_LOAD.format(size=512)
    assert change[0] in body
    trap = copies.refused(body.replace(*change), tensor_map, other=np.zeros(512, np.uint8))
    assert trap.category == category
    assert message is None or trap.message == message


OUTSIDE = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128]) {
  .reg .b32 %r<9>; .reg .b64 %rd0; .reg .pred %p0; .shared .align 128 .b8 tile[1024];
  mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
  mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 128, %r1;
  @GUARD st.shared.v4.b32 [%r2], {%r0, %r0, %r0, %r0};
  fence.proxy.async.shared::cta; bar.warp.sync -1;
  @%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd0, {X, Y}], [%r1];
  @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0; ret; }
"""


def store_outside(x: int, y: int, rows: int) -> np.ndarray:
    """An 8x32 box of an 8x4 tensor, of which so many rows of four words were written"""
    target = np.full((8, 8), 99, np.uint32)
    tensor_map = TensorMap(target, "uint32", (4, 8), (32,), (32, 8))
    text = OUTSIDE.replace("X", str(x)).replace("Y", str(y))
    text = text.replace("@GUARD", "@%p1").replace(".reg .pred %p0;", ".reg .pred %p<2>;")
    text = text.replace("mov.u32 %r1, tile;", f"mov.u32 %r1, tile; setp.lt.u32 %p1, %r0, {rows};")
    launch(text, "k", grid=1, block=32, params=[tensor_map])
    return target


@pytest.mark.parametrize(("x", "y", "rows"), [(0, 0, 8), (0, 3, 5), (0, 8, 0), (64, 0, 0)])
def test_what_a_store_drops_needs_no_writing(x, y, rows):
    target = store_outside(x, y, rows)
    wanted = np.full((8, 8), 99)
    wanted[y:, :4] = np.arange(8)[: max(8 - y, 0), None]
    assert np.array_equal(target, wanted if not x else np.full((8, 8), 99))


@pytest.mark.parametrize(("x", "y", "rows"), [(0, 0, 7), (0, 3, 4), (0, 7, 0)])
def test_what_it_stores_needs_to_be_written(x, y, rows):
    with pytest.raises(Trap, match=r"a tensor store reads shared offset .*, never written"):
        store_outside(x, y, rows)
