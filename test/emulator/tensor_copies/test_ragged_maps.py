"""Tensor maps that describe more than the array: what counts is what a copy touches.

A ragged map describes rows of a group by two outer dimensions whose coordinates add up to 2^64
bytes: the bounds check of the rows then sits on the group's end. One constant map serves groups of
any place and length, as in Triton's `ragged_tma` and in QuACK.
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, launch

COLUMNS, ROWS, BOX = 64, 32, 16
PITCH = 2 * COLUMNS
BIG, MOST = 1 << 30, 1 << 31
GROUPS = [(0, 16), (5, 16), (5, 7), (16, 16), (31, 1), (20, 12), (3, 0)]


def ragged(array: np.ndarray, box=(COLUMNS, BOX), row: int = PITCH) -> TensorMap:
    """The form for loads and stores: starts at the array, ends wherever the coordinates say."""
    strides = (row, row, (1 << 34) - row)
    dims = (COLUMNS, BIG, MOST, MOST)
    return TensorMap(array, "bf16", dims, strides, (*box, 1, 1), swizzle="128B")


def shifted(array: np.ndarray) -> TensorMap:
    """The form with one outer dimension, whose global address lies before the array."""
    dims, strides = (COLUMNS, BIG, MOST), (PITCH, PITCH)
    return TensorMap(array, "bf16", dims, strides, (COLUMNS, BOX, 1), offset=-BIG * PITCH,
                     swizzle="128B")  # fmt: skip


def far(array: np.ndarray) -> TensorMap:
    """Strides as large as they may be: the sum of two dimensions is a multiple of 2^64."""
    dims, strides = (COLUMNS, 1 << 25, 1 << 25), (PITCH, (1 << 40) - PITCH)
    return TensorMap(array, "bf16", dims, strides, (COLUMNS, BOX, 1), swizzle="128B")


FORMS = {
    "ragged": (ragged, lambda first, count, at: (0, BIG - count + at, first + count, BIG)),
    "shifted": (shifted, lambda first, count, at: (0, BIG - count + at, first + count)),
}


def source() -> np.ndarray:
    return np.random.default_rng(2).integers(1, 1 << 15, (ROWS, COLUMNS)).astype(np.uint16)


def swizzled(image: np.ndarray) -> np.ndarray:
    """Rows of 128 bytes as swizzle 128B lays them out, and back: its own inverse."""
    units = image.reshape(-1, 8, 8)
    order = np.arange(8)[None, :] ^ (np.arange(len(units)) % 8)[:, None]
    return units[np.arange(len(units))[:, None], order].reshape(-1, 64)


def loaded(copies, tensor_map: TensorMap, coordinates, seed=0):
    out = np.zeros((BOX, COLUMNS), np.uint16)
    body = copies.load_body(len(coordinates), coordinates, out.nbytes, fill=False)
    report = copies.run(copies.with_bytes(body, tensor_map), out, tensor_map, seed=seed)
    return swizzled(out), report


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize(("first", "count"), GROUPS)
def test_a_load_sees_the_rows_of_its_group_and_zeros_behind(copies, first, count, at):
    array = source()
    got, report = loaded(copies, ragged(array), FORMS["ragged"][1](first, count, at))
    for row in range(BOX):
        inside = at + row < count
        wanted = array[first + at + row] if inside else np.zeros(COLUMNS, np.uint16)
        assert (got[row] == wanted).all(), row
    assert not report.warnings


def test_a_load_through_a_map_based_outside_of_all_arrays_is_noted(copies):
    array = source()
    got, report = loaded(copies, shifted(array), FORMS["shifted"][1](5, 7, 0))
    assert (got[:7] == array[5:12]).all() and not got[7:].any()
    assert [each.category for each in report.warnings] == ["map-base"]


def test_coordinates_times_the_largest_strides_wrap_around_too(copies):
    array = source()
    start = 1 << 24
    got, report = loaded(copies, far(array), (0, start + 4, start))
    assert (got == array[4:20]).all() and not report.warnings


STORE = """
  fence.proxy.async.shared::cta;
  bar.sync 0;
  {moves}
  @%p0 {opcode} [%rd1, {{{names}}}], [%r2];
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group 0;
"""


def stored(copies, tensor_map: TensorMap, coordinates, image: np.ndarray, opcode: str):
    rank = len(coordinates)
    names = ", ".join(f"%r{10 + axis}" for axis in range(rank))
    moves = "".join(f"mov.s32 %r{10 + axis}, {c}; " for axis, c in enumerate(coordinates))
    body = copies.COPY_IN.format(size=image.nbytes) + STORE.format(
        moves=moves, names=names, opcode=opcode.format(rank=rank)
    )
    laid_out = np.ascontiguousarray(swizzled(image))
    return copies.run(body, np.zeros(16, np.uint8), tensor_map, laid_out)


WRITE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
REDUCE = "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.xor.tile.bulk_group"


@pytest.mark.parametrize("opcode", [WRITE, REDUCE])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("first", "count"), GROUPS)
def test_a_store_or_reduction_writes_its_group_alone(copies, form, opcode, first, count):
    array = source()
    before = array.copy()
    image = np.random.default_rng(7).integers(1, 1 << 15, (BOX, COLUMNS)).astype(np.uint16)
    make, coordinates = FORMS[form]
    report = stored(copies, make(array), coordinates(first, count, 0), image, opcode)
    wanted = before.copy()
    for row in range(min(count, BOX)):
        old = before[first + row] if opcode is REDUCE else np.uint16(0)
        wanted[first + row] = image[row] ^ old
    assert (array == wanted).all() and not report.warnings


@pytest.mark.parametrize(
    ("first", "count", "at"), [(20, 13, 0), (31, 2, 0), (32, 1, 0), (28, 9, 2)]
)
def test_a_row_of_a_group_that_the_array_does_not_have_is_out_of_bounds(copies, first, count, at):
    array, coordinates = source(), FORMS["ragged"][1](first, count, at)
    body = copies.load_body(4, coordinates, 2048, fill=False)
    assert copies.refused(body, ragged(array)).category == "out-of-bounds"


def test_a_plain_map_may_be_larger_than_its_array_until_a_copy_leaves_it(copies):
    array = source()
    tensor_map = TensorMap(array, "bf16", (COLUMNS, 1 << 32), (PITCH,), (COLUMNS, BOX),
                           swizzle="128B")  # fmt: skip
    got, _ = loaded(copies, tensor_map, (0, 16))
    assert (got == array[16:]).all()
    trap = copies.refused(copies.load_body(2, (0, 17), 2048, fill=False), tensor_map)
    assert trap.category == "out-of-bounds" and "128 bytes past the end of" in trap.message


def test_a_prefetch_takes_a_ragged_map(copies):
    array = source()
    body = """mov.s32 %r10, 0; mov.s32 %r11, 1073741820; mov.s32 %r12, 9; mov.s32 %r13, 1073741824;
      @%p0 cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%rd1, {%r10, %r11, %r12, %r13}];
    """
    assert not copies.run(body, np.zeros(16, np.uint8), ragged(array)).warnings


GROUPED = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 c[128], .param .u64 ends)
{
  .reg .b32 %r<24>; .reg .b64 %rd<16>; .reg .pred %p<8>;
  .shared .align 8 .b8 bar[8];
  ld.param.u64 %rd0, [ends];
  mov.b64 %rd1, a; cvta.param.u64 %rd1, %rd1;
  mov.b64 %rd2, c; cvta.param.u64 %rd2, %rd2;
  mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, tile;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra AWAY;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  // The group of this CTA: first row and length, from the ends of the groups
  mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd0, %rd3;
  ld.global.u32 %r4, [%rd3]; ld.global.u32 %r5, [%rd3+4]; sub.u32 %r6, %r5, %r4;
  mov.u32 %r10, 0; sub.u32 %r11, 1073741824, %r6; mov.u32 %r12, %r5; mov.u32 %r13, 1073741824;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 2048;
  cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%rd1, {%r10, %r11, %r12, %r13}], [%r1];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], 0;
  @!%p7 bra WAIT;
  cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group
    [%rd2, {%r10, %r11, %r12, %r13}], [%r2];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
AWAY:
  ret;
}
"""


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_share_one_map_do_not_race(seed):
    """Each CTA copies the rows of its group, of which neighbours' boxes reach over the end"""
    array, out = source(), np.zeros((ROWS, COLUMNS), np.uint16)
    ends = np.array([0, 3, 3, 16, 20, 30], np.uint32)
    report = launch(GROUPED, "k", grid=5, block=32, shared_bytes=4096, seed=seed,
                    params=[ragged(array), ragged(out), ends])  # fmt: skip
    assert (out[:30] == array[:30]).all() and not out[30:].any() and not report.warnings
