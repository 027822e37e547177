"""Bulk async-groups are per thread; sources stay busy until waited for (PTX ISA §9.7.9.25.3)."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap

SEEDS = range(8)
PATTERN = (np.arange(512) % 251 + 1).astype(np.uint8)
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r3], 256; "
COMMIT = "cp.async.bulk.commit_group; "
REUSE = "st.shared.u32 [%r3+128], %r0; "


def two_stores(copies) -> str:
    """One thread stores 256 bytes twice, a group each, from two buffers."""
    lines = []
    for offset in (0, 256):
        lines += [
            f"  add.s64 %rd3, %rd0, {offset}; add.u32 %r3, %r2, {offset};",
            f"  @%p0 {STORE}",
            f"  @%p0 {COMMIT}",
        ]
    filled = copies.COPY_IN.format(size=512) + "fence.proxy.async.shared::cta; bar.sync 0;"
    return filled + "\n".join(lines)


def refused(copies, body, seed):
    _, tensor_map = copies.small_map()
    return copies.refused(
        two_stores(copies) + body, tensor_map, out=np.zeros(1024, np.uint8),
        other=np.arange(512, dtype=np.uint8), seed=seed,
    )  # fmt: skip


def run(copies, body, seed, out=None):
    _, tensor_map = copies.small_map()
    out = np.zeros(1024, np.uint8) if out is None else out
    copies.run(two_stores(copies) + body, out, tensor_map, PATTERN.copy(), seed)
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "wait",
    [
        "",
        "@%p0 cp.async.bulk.wait_group.read 1;",
        "@%p0 cp.async.bulk.wait_group 2;",
        "@!%p0 cp.async.bulk.wait_group.read 0;",
    ],
)
def test_a_source_that_nobody_waited_for_is_not_overwritten(copies, wait, seed):
    """No wait, too few groups, or the wrong thread"""
    trap = refused(copies, wait + "bar.sync 0;" + REUSE, seed)
    assert trap.category == "bulk-group"
    assert trap.message.startswith("a store of 4 bytes writes shared offsets 0x900..0xa00, which")
    assert trap.message.endswith("that thread must cp.async.bulk.wait_group.read first")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("wait", ["wait_group.read 1", "wait_group 1", "wait_group.read 0"])
def test_the_older_source_is_free_when_only_the_newest_group_is_pending(copies, wait, seed):
    body = f"""@%p0 cp.async.bulk.{wait}; bar.sync 0; st.shared.u32 [%r2], 3; bar.sync 0;
      @%p0 cp.async.bulk.wait_group 0;"""
    out = run(copies, body, seed)
    assert np.array_equal(out[:512], PATTERN)


EXIT = re.compile(
    r"ptx:\d+: the CTA exits while this bulk store of warp 0 lane 0 may still read its shared"
    r" memory; cp\.async\.bulk\.wait_group\.read 0 first"
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "wait",
    ["", "@%p0 cp.async.bulk.wait_group.read 1;", "@!%p0 cp.async.bulk.wait_group.read 0;"],
)
def test_a_block_may_not_exit_before_its_sources_are_read(copies, wait, seed):
    """No wait, one group too few, or the wrong thread"""
    trap = refused(copies, wait, seed)
    assert trap.category == "bulk-group" and EXIT.match(trap.message)
    assert "--check shipped" in trap.message


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("wait", ["wait_group.read 0", "wait_group 0"])
def test_a_block_that_has_waited_may_exit(copies, wait, seed):
    out = run(copies, f"@%p0 cp.async.bulk.{wait};", seed)
    assert np.array_equal(out[:512], PATTERN)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_libraries_ship_is_only_told_of_where_it_is_asked_for(copies, seed):
    """DeepGEMM's kernels exit so. The memory is kept: the stores still find what they copy."""
    _, tensor_map = copies.small_map()
    out = np.zeros(1024, np.uint8)
    stores = two_stores(copies)
    report = copies.run(stores, out, tensor_map, PATTERN.copy(), seed, check="shipped")
    (warning,) = report.warnings
    assert warning.category == "bulk-group" and EXIT.fullmatch(warning.message)
    assert np.array_equal(out[:512], PATTERN)


def test_reading_is_over_before_the_result_is_visible(copies):
    """wait_group.read promises only the source; wait_group the result too"""
    look = "@%p0 ld.global.u32 %r5, [%rd0]; @%p0 st.global.u32 [%rd0+768], %r5;"
    for seed in range(12):
        body = f"@%p0 cp.async.bulk.wait_group 0; {look}"
        assert int(run(copies, body, seed)[768]) == 1
        with pytest.raises(Trap) as caught:
            run(copies, body.replace("wait_group", "wait_group.read"), seed)
        assert caught.value.category == "race"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tensor_store_keeps_its_source_busy_too(copies, seed):
    _, tensor_map = copies.small_map()
    body = copies.store_body().replace(
        "@%p0 cp.async.bulk.wait_group 0;", "bar.sync 0; st.shared.u32 [%r2+512], %r0;"
    )
    trap = copies.refused(body, tensor_map, other=np.ones((16, 64), np.uint16), seed=seed)
    assert trap.category == "bulk-group"


@pytest.mark.parametrize("swizzle", ["none", "128B"])
@pytest.mark.parametrize("corner", [(40, 20), (0, 28), (56, 0), (64, 0), (0, 32)])
def test_a_store_box_is_cut_at_the_tensors_edges(copies, corner, swizzle):
    """§9.7.9.27.1.2: elements outside the tensor are dropped"""
    x, y = corner
    target = np.full((32, 64), 0xAAAA, np.uint16)
    image = np.random.default_rng(7).integers(0, 1 << 15, (16, 64)).astype(np.uint16)
    inner = 64
    expected = target.copy()
    part = image[: max(0, 32 - y), : max(0, 64 - x)]
    expected[y : y + 16, x : x + inner] = part[:16]
    shared = image.copy()
    if swizzle == "128B":
        chunks = image.reshape(16, 8, 8)
        rows = np.arange(16)[:, None]
        shared = np.empty_like(chunks)
        shared[rows, np.arange(8)[None, :] ^ rows % 8] = chunks
        shared = shared.reshape(16, 64)
    tensor_map = TensorMap(target, "bf16", (64, 32), (128,), (inner, 16), swizzle=swizzle)
    copies.run(copies.store_body(x, y), np.zeros(16, np.uint8), tensor_map, shared, 3)
    assert np.array_equal(target, expected)
