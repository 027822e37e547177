"""What accesses take: requests and sectors of global memory, passes of engines, operations."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, launch
from tilewright.runtime.emulator.observe.bank_conflicts import matrix_passes, row_passes
from tilewright.runtime.emulator.observe.global_requests import split_requests
from tilewright.runtime.emulator.observe.operations import unit_of

HEADER = """.version 8.8\n.target sm_100a\n.address_size 64
.extern .shared .align 1024 .b8 cells[];"""
KERNEL = (
    HEADER
    + """.visible .entry k(.param .u64 from) {{
  .reg .pred %p; .reg .b32 %tid, %at, %x<9>; .reg .b64 %from, %w<4>; .reg .f32 %f<4>;
  ld.param.u64 %from, [from]; mov.u32 %tid, %tid.x; mov.u32 %at, cells;
  {body}
  ret; }}"""
)


def profile_of(body: str, threads: int = 32, size: int = 4096):
    source = np.arange(size // 4, dtype=np.uint32)
    text = KERNEL.format(body=body)
    how = dict(grid=1, block=threads, shared_bytes=8192, params=[source], profile=True)
    return launch(text, "k", **how).profile


# -- global memory ---------------------------------------------------------------------------


def brute_force(starts, sizes, together):
    """Byte by byte: sectors and sizes of requests, of each group of pieces."""
    groups = [range(len(starts))] if together else [[i] for i in range(len(starts))]
    sectors, by_size = 0, Counter()
    for group in groups:
        touched = {starts[i] + byte for i in group for byte in range(sizes[i])}
        sectors += len({byte // 32 for byte in touched})
        for count in Counter(byte // 128 for byte in touched).values():
            by_size[next(size for size in (16, 32, 64, 128) if count <= size)] += 1
    return sectors, by_size


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_requests_and_sectors_are_those_of_the_bytes(together, seed):
    rng = np.random.default_rng([seed, together])
    starts = 1024 + rng.integers(0, 64 << seed, 24)
    sizes = rng.integers(0, 8 << seed, 24)
    asked = split_requests(starts.astype(np.uint64), sizes, together)
    assert (asked.sectors, asked.by_size()) == brute_force(starts, sizes, together)


@pytest.mark.parametrize(
    ("stride", "sectors", "sizes"),
    [
        (4, 4, {128: 1}),
        (8, 8, {64: 2}),
        (32, 32, {16: 8}),
        (128, 32, {16: 32}),
        (0, 1, {16: 1}),
    ],
)
def test_a_stride_of_loads_has_its_sectors(stride, sectors, sizes):
    body = f"mad.wide.u32 %w0, %tid, {stride}, %from; ld.global.u32 %x0, [%w0];"
    profile = profile_of(body)
    (found,) = profile.requests
    assert (found.direction, found.executions, found.asked_bytes) == ("read", 1, 128)
    assert found.sectors == sectors and found.sizes == Counter(sizes)
    assert profile.totals().unique_read_sectors == sectors


def test_what_is_read_again_is_asked_again_but_not_new():
    body = "mad.wide.u32 %w0, %tid, 4, %from;" + "ld.global.u32 %x0, [%w0];" * 3
    totals = profile_of(body, threads=64).totals()
    assert (totals.sectors, totals.unique_read_sectors) == (3 * 8, 8)
    assert totals.unique_written_sectors == 0


def test_copies_of_threads_have_requests_and_passes():
    body = """mad.wide.u32 %w0, %tid, 16, %from; mad.lo.u32 %x0, %tid, 128, %at;
      cp.async.cg.shared.global [%x0], [%w0], 16; cp.async.wait_all;"""
    profile = profile_of(body)
    (asked,), (banks,) = profile.requests, profile.conflicts
    assert (asked.sectors, asked.sizes) == (16, Counter({128: 4}))
    assert (banks.passes, banks.least_passes, banks.worst_ways) == (32, 4, 8)


def box_profile(columns: int, rows: int, swizzle: str, tensor_columns: int):
    tensor = np.zeros((64, tensor_columns), np.uint16)
    form = dict(strides=[2 * tensor_columns], box=[columns, rows], swizzle=swizzle)
    source = TensorMap(tensor, "bf16", [tensor_columns, 64], **form)
    text = (
        HEADER
        + f""".visible .entry k(.param .align 64 .b8 map[128]) {{
      .reg .pred %p; .reg .b32 %tid, %at, %zero; .reg .b64 %map;
      mov.b64 %map, map; cvta.param.u64 %map, %map; mov.u32 %at, cells; mov.u32 %tid, %tid.x;
      mov.u32 %zero, 0; setp.ne.u32 %p, %tid, 0; @%p bra END;
      mbarrier.init.shared::cta.b64 [%at], 1;
      fence.proxy.async.shared::cta;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%at], {2 * columns * rows};
      cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
        [%at+1024], [%map, {{%zero, %zero}}], [%at];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%at], 0; @!%p bra W; END: ret; }}"""
    )
    how = dict(grid=1, block=32, shared_bytes=32768, params=[source], profile=True)
    return launch(text, "k", **how).profile


@pytest.mark.parametrize(
    ("columns", "swizzle", "sectors", "passes"),
    [(8, "none", 1, 1), (16, "32B", 1, 1), (64, "128B", 4, 1), (128, "none", 8, 2)],
)
def test_a_box_asks_and_is_written_row_by_row(columns, swizzle, sectors, passes):
    profile = box_profile(columns, 32, swizzle, 256)
    (asked,), (banks,) = profile.requests, profile.conflicts
    assert asked.asked_bytes == 32 * 2 * columns and asked.sectors == 32 * sectors
    assert asked.sizes.total() == 32 * passes
    assert banks.passes == 32 * passes
    assert banks.least_passes == 32 * 2 * columns // 128


def test_what_lies_outside_a_tensor_is_not_asked_for():
    (asked,) = box_profile(64, 64, "128B", 40).requests
    assert asked.asked_bytes == 64 * 80


# -- the tensor core's reads -----------------------------------------------------------------


@pytest.mark.parametrize(("pitch", "ways"), [(16, 1), (128, 8), (144, 1), (32, 2), (64, 4)])
def test_matrices_of_an_operand_conflict_by_the_pitch_of_their_rows(pitch, ways):
    words = np.arange(16)[:, None] * pitch // 8 + np.arange(4)
    assert matrix_passes(words) == (4, 4 * ways, ways)


def test_rows_of_an_engine_take_a_pass_for_128_bytes():
    assert row_passes(4096, 256) == (256, 32, 8)
    assert row_passes(4096, 32) == (32, 32, 1)
    assert row_passes(512, 2) == (4, 4, 1)


# -- operations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opcode", "unit"),
    [
        ("fma.rn.f32", ("threads", "f32", 2)),
        ("fma.rn.ftz.f32x2", ("threads", "f32", 4)),
        ("mul.rn.bf16x2", ("threads", "bf16", 2)),
        ("add.f64", ("threads", "f64", 1)),
        ("mad.lo.u32", None),
        ("ld.global.f32", None),
        ("tcgen05.mma.cta_group::1.kind::f8f6f4", ("tensor core", "f8f6f4", None)),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", ("tensor core", "bf16", None)),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ("tensor core", "tf32", None)),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", ("tensor core", "f16", None)),
        (
            "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32",
            ("tensor core", "bf16", None),
        ),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32", ("tensor core", "s8", None)),
        ("dp4a.u32.s32", ("threads", "u8", 8)),
    ],
)
def test_an_opcode_has_its_unit(opcode, unit):
    assert unit_of(opcode) == unit


def test_only_lanes_that_take_part_are_counted():
    body = """setp.lt.u32 %p, %tid, 5; mov.f32 %f0, 0f3F800000;
      @%p fma.rn.f32 %f1, %f0, %f0, %f0; add.f32 %f1, %f0, %f0;"""
    assert profile_of(body).operations == {("threads", "f32"): 5 * 2 + 32}


def test_tensor_cores_count_two_for_each_product():
    zeros = "{%x1, %x2, %x3, %x4}, {%x1, %x2}, {%f0, %f1, %f2, %f3}"
    body = f"""mov.b32 %x1, 0; mov.b32 %x2, 0; mov.b32 %x3, 0; mov.b32 %x4, 0;
      mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
      mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%f0, %f1, %f2, %f3}}, {zeros};"""
    found = profile_of(body, threads=64).operations
    assert found == {("tensor core", "bf16"): 2 * 2 * 16 * 8 * 16}
