"""Bulk reductions, masked bulk stores, st.bulk, and asynchronous stores to global memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

NUMPY = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "b32": np.uint32,
    "b64": np.uint64,
}  # fmt: skip
FUNCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
    "inc": lambda old, new: np.where(old >= new, 0, old + 1),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - 1),
}  # fmt: skip
COPY_IN = """
  ld.global.v4.b32 {{%r0,%r1,%r2,%r3}}, [%rd10]; mad.lo.u32 %r9, %lane, 16, {to};
  st.shared.v4.b32 [%r9], {{%r0,%r1,%r2,%r3}};
"""
BEGIN = """
  mad.wide.u32 %rd10, %lane, 16, %rd0; setp.eq.u32 %p0, %lane, 0;
""" + COPY_IN.format(to="%tile") + "fence.proxy.async.shared::cta; bar.sync 0;"  # fmt: skip
STORE = """
  @%p0 {opcode} [%rd1], [%tile], 512{rest};
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group 0;
"""


def random_pair(type_: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of 512 bytes; floats whose sums are exact, integers of every size."""
    rng, dtype = np.random.default_rng(seed), np.dtype(NUMPY[type_])
    count = 512 // dtype.itemsize
    if type_[0] in "fb" and type_ not in ("b32", "b64"):
        return tuple((rng.integers(-8, 9, count) / 4).astype(dtype) for _ in range(2))
    return tuple(np.frombuffer(rng.bytes(512), dtype).copy() for _ in range(2))


GLOBAL = [
    *[("add", t) for t in ("u32", "s32", "u64", "f32", "f64", "f16", "bf16")],
    *[(op, t) for op in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "bf16")],
    *[(op, t) for op in ("and", "or", "xor") for t in ("b32", "b64")],
    ("inc", "u32"),
    ("dec", "u32"),
]


@pytest.mark.parametrize("operation, type_", GLOBAL)
def test_a_bulk_reduction_into_global_memory(run, operation, type_):
    source, target = random_pair(type_, 1)
    if operation in ("inc", "dec"):
        target[::3] = source[::3]
        target[1::3] = 0
    wanted = FUNCTIONS[operation](target, source).astype(target.dtype)
    noftz = ".noftz" if operation == "add" and type_ in ("f16", "bf16") else ""
    opcode = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}{noftz}.{type_}"
    run(BEGIN + STORE.format(opcode=opcode, rest=""), source, target)
    assert target.tobytes() == wanted.tobytes()


SHARED = [("add", "u32"), ("add", "s32"), ("add", "u64"), ("min", "s32"), ("max", "u32"),
          ("xor", "b32"), ("inc", "u32"), ("dec", "u32")]  # fmt: skip


@pytest.mark.parametrize("operation, type_", SHARED)
def test_a_bulk_reduction_into_shared_memory_completes_a_transaction(run, operation, type_):
    source, target = random_pair(type_, 2)
    wanted = FUNCTIONS[operation](target, source).astype(target.dtype)
    opcode = f"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation}.{type_}"  # noqa: E501
    run(
        "add.u32 %r20, %tile, 1024; mad.wide.u32 %rd10, %lane, 16, %rd1;"
        + COPY_IN.format(to="%r20")
        + BEGIN
        + f"""
        @%p0 mbarrier.init.shared::cta.b64 [%bar], 1;
        @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;
        @%p0 {opcode} [%r20], [%tile], 512, [%bar];
        bar.sync 0;
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%bar], 0;
        @!%p1 bra WAIT;
        mad.lo.u32 %r9, %lane, 16, %r20; mad.wide.u32 %rd10, %lane, 16, %rd1;
        ld.shared.v4.b32 {{%r0,%r1,%r2,%r3}}, [%r9];
        st.global.v4.b32 [%rd10], {{%r0,%r1,%r2,%r3}};""",
        source,
        target,
    )
    assert target.tobytes() == wanted.tobytes()


def test_a_masked_bulk_store_replaces_some_bytes_of_each_16(run):
    source, target = (np.random.default_rng(3).integers(0, 256, (2, 512))).astype(np.uint8)
    chosen = (0xA3C1 >> np.arange(512) % 16) & 1
    wanted = np.where(chosen, source, target)
    opcode = "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask"
    body = "mov.b16 %h0, 0xA3C1; mov.b64 %rd9, 0;" + STORE.format(opcode=opcode, rest=", %rd9, %h0")
    run(BEGIN + body, source, target)
    assert target.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_asynchronous_stores_and_additions_reach_global_memory(run, seed):
    out, total = np.zeros(32, np.uint32), np.full(4, 7, np.uint64)
    run(
        """mad.wide.u32 %rd10, %lane, 4, %rd0; mul.lo.u32 %r0, %lane, 3;
        st.async.release.gpu.global.b32 [%rd10], %r0;
        and.b32 %r1, %lane, 3; mad.wide.u32 %rd11, %r1, 8, %rd1; cvt.u64.u32 %rd12, %lane;
        red.async.mmio.release.sys.global.add.u64 [%rd11], %rd12;""",
        out,
        total,
        seed=seed,
    )
    assert out.tolist() == [3 * lane for lane in range(32)]
    assert total.tolist() == [7 + sum(range(first, 32, 4)) for first in range(4)]


@pytest.mark.parametrize(
    "store", ["st.bulk.weak.shared::cta [%r1], 264, 0;",
              "cvt.u64.u32 %rd3, %r1; cvta.shared.u64 %rd3, %rd3; mov.b64 %rd4, 264;"
              "st.bulk.weak [%rd3], %rd4, 0;"]
)  # fmt: skip
def test_a_bulk_fill_writes_zeros(run, store):
    source = np.random.default_rng(4).integers(1, 256, 512, dtype=np.uint8)
    out = np.zeros(512, np.uint8)
    body = f"""setp.eq.u32 %p2, %lane, 5; add.u32 %r1, %tile, 8; @!%p2 bra DONE; {store}
      DONE: bar.warp.sync -1; mad.wide.u32 %rd11, %lane, 16, %rd1;
      ld.shared.v4.b32 {{%r0,%r1,%r2,%r3}}, [%r9]; st.global.v4.b32 [%rd11], {{%r0,%r1,%r2,%r3}};"""
    run(BEGIN + body, source, out)
    wanted = source.copy()
    wanted[8:272] = 0
    assert out.tobytes() == wanted.tobytes()


REFUSALS = [
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd0], [%tile], 16;",
     "unmodelled", ".noftz"),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd0], [%tile], 16;",
     "unmodelled", "9.7.9.25.4.2"),
    ("st.bulk.shared::cta [%tile], 12, 0;", "misaligned", "multiple of 8, got 12"),
    ("st.bulk.shared::cta [%tile], 16, 1;", "operand", "must be 0, got 1"),
    ("st.async.release.gpu.global.b32 [%rd0+512], %lane;", "out-of-bounds", "past the end"),
    ("red.async.release.gpu.global.min.s64 [%rd0], %rd1;", "unmodelled", "9.7.13.7"),
]  # fmt: skip


@pytest.mark.parametrize("text, category, part", REFUSALS)
def test_illegal_late_stores_are_refused(trapped, text, category, part):
    trap = trapped(text, np.zeros(512, np.uint8))
    assert (trap.category, part in str(trap)) == (category, True), str(trap)


@pytest.mark.parametrize(
    "signal", ["st.async.release.gpu.global.b32 [%rd1], 1;",
               "red.async.release.gpu.global.add.u32 [%rd1], 1;"]
)  # fmt: skip
def test_a_late_store_releases_what_its_thread_has_written(run, signal):
    data, flag, out = (np.zeros(count, np.uint32) for count in (1, 1, 1))
    run(
        f"""setp.eq.u32 %p0, %lane, 0; setp.eq.u32 %p1, %lane, 32; mov.b32 %r0, 77;
        @!%p0 bra OTHER; st.global.b32 [%rd0], %r0; {signal} bra END;
        OTHER: @!%p1 bra END;
        WAIT: ld.acquire.gpu.global.b32 %r1, [%rd1]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;
        ld.global.b32 %r2, [%rd0]; st.global.b32 [%rd2], %r2;
        END: bar.sync 0;""",
        data,
        flag,
        out,
        threads=64,
    )
    assert (flag[0], out[0]) == (1, 77)


def test_masked_bulk_stores_of_other_bytes_do_not_race(run):
    source, target = np.arange(512, dtype=np.uint32).astype(np.uint8), np.zeros(512, np.uint8)
    opcode = "cp.async.bulk.global.shared::cta.bulk_group.cp_mask"
    store = f"{opcode} [%rd1], [%tile], 512, %h0;"
    body = f"""setp.eq.u32 %p3, %lane, 1; @%p0 mov.b16 %h0, 0x00FF; @%p3 mov.b16 %h0, 0xFF00;
      @%p0 {store} @%p3 {store} cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
    run(BEGIN + body, source, target)
    assert target.tobytes() == source.tobytes()
