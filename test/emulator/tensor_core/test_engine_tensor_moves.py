"""tcgen05.ld, st and cp in small kernels (PTX ISA, tcgen05 data movement)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

ROUND_TRIPS = [
    ("32x32b", 1, 8, lambda t, r: (t, r)),
    ("16x64b", 1, 8, lambda t, r: (t % 2 * 8 + t // 4, 2 * r + t // 2 % 2)),
    ("16x128b", 2, 4, lambda t, r: (t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4)),
    (
        "16x256b", 4, 2,
        lambda t, r: (t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "per", "number", "place", "half"),
    [(*case, half) for case in ROUND_TRIPS for half in ((0, 16) if "16x" in case[0] else (0,))],
)
def test_every_shape_stores_where_32x32b_loads(tc, shape, per, number, place, half):
    registers = per * number
    columns = max(place(t, r)[1] for t in range(32) for r in range(registers)) + 1
    names = ", ".join(f"%v{i}" for i in range(registers))
    values = "".join(f"mad.lo.u32 %v{r}, %r0, 100, {r};\n" for r in range(registers))
    clear = "".join(f"mov.u32 %v{r}, 77777;\n" for r in range(columns)) if columns <= 16 else ""
    wide = ", ".join(f"%v{i}" for i in range(columns))
    body = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n" + clear
    body += f"tcgen05.st.sync.aligned.32x32b.x{columns}.b32 [%r14], {{{wide}}};\n"
    body += "tcgen05.wait::st.sync.aligned;\n" + values
    body += f"add.u32 %r15, %r14, {half << 16};\n"
    body += f"tcgen05.st.sync.aligned.{shape}.x{number}.b32 [%r15], {{{names}}};\n"
    body += "tcgen05.wait::st.sync.aligned;\n" + tc.dump(f"32x32b.x{columns}", columns, 1, 0)
    out = np.zeros(columns * 128, np.uint32)
    tc.run(body, b"", out)
    expected = np.full((columns, 128), 77777, np.uint32)
    for thread in range(128):
        w, t = divmod(thread, 32)
        for r in range(registers):
            lane, column = place(t, r)
            expected[column, 32 * w + half + lane] = thread * 100 + r
    assert np.array_equal(out.reshape(columns, 128), expected)


def test_split_halves_of_16x32bx2_are_an_immediate_apart(tc):
    body = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    body += "mov.u32 %v0, 5; mov.u32 %v1, 5; mov.u32 %v2, 5; mov.u32 %v3, 5; mov.u32 %v4, 5;"
    body += "mov.u32 %v5, 5; mov.u32 %v6, 5; mov.u32 %v7, 5;\n"
    names = ", ".join(f"%v{i}" for i in range(8))
    body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r14], {{{names}}};\n"
    body += "tcgen05.wait::st.sync.aligned;\n"
    body += "mad.lo.u32 %v0, %r0, 10, 100; mad.lo.u32 %v1, %r0, 10, 101;\n"
    body += "tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r14], 4, {%v0, %v1};\n"
    body += "tcgen05.wait::st.sync.aligned;\n" + tc.dump("32x32b.x8", 8, 1, 0)
    out = np.zeros(8 * 128, np.uint32)
    tc.run(body, b"", out)
    expected = np.full((8, 128), 5, np.uint32)
    for thread in range(128):
        w, t = divmod(thread, 32)
        for r in range(2):
            expected[r + 4 * (t // 16), 32 * w + t % 16] = thread * 10 + 100 + r
    assert np.array_equal(out.reshape(8, 128), expected)


def test_packed_accesses_take_the_low_halves_of_two_columns(tc):
    body = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    body += "mad.lo.u32 %v0, %r0, 0x10001, 0x00070003; add.u32 %v1, %v0, 0x00100010;\n"
    body += "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r14], {%v0, %v1};\n"
    body += "tcgen05.wait::st.sync.aligned;\n"
    body += tc.dump("32x32b.x4", 4, 1, 0)
    body += "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%v0, %v1}, [%r14];\n"
    body += "tcgen05.wait::ld.sync.aligned;\n"
    body += "st.global.u32 [%rd9+2048], %v0; st.global.u32 [%rd9+2560], %v1;\n"
    out = np.zeros(6 * 128, np.uint32)
    tc.run(body, b"", out)
    t = np.arange(128)
    columns = out.reshape(6, 128)
    for column, low in enumerate((3, 7, 0x13, 0x17)):
        assert np.array_equal(columns[column], t + low)
    assert np.array_equal(columns[4], t * 0x10001 + 0x00070003)
    assert np.array_equal(columns[5], t * 0x10001 + 0x00170013)


def test_packed_halves_of_16x32bx2_start_an_immediate_apart(tc):
    """Register r holds columns 2r and 2r + 1, of threads 16 to 31 from the immediate on."""
    body = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    body += "".join(f"mov.u32 %v{i}, 5; " for i in range(8))
    names = ", ".join(f"%v{i}" for i in range(8))
    body += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r14], {{{names}}};\n"
    body += "tcgen05.wait::st.sync.aligned;\n"
    body += "mad.lo.u32 %v0, %r0, 0x10001, 0x00070003; add.u32 %v1, %v0, 0x00100010;\n"
    body += "tcgen05.st.sync.aligned.16x32bx2.x2.unpack::16b.b32 [%r14], 4, {%v0, %v1};\n"
    body += "tcgen05.wait::st.sync.aligned;\n" + tc.dump("32x32b.x8", 8, 1, 0)
    body += "tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32 {%v0, %v1}, [%r14], 4;\n"
    body += "tcgen05.wait::ld.sync.aligned;\n"
    body += "st.global.u32 [%rd9+4096], %v0; st.global.u32 [%rd9+4608], %v1;\n"
    out = np.zeros(10 * 128, np.uint32)
    tc.run(body, b"", out)
    found = out.reshape(10, 128)
    expected = np.full((8, 128), 5, np.uint32)
    for thread in range(128):
        warp, t = divmod(thread, 32)
        for column, low in enumerate((3, 7, 0x13, 0x17)):
            expected[column + 4 * (t // 16), 32 * warp + t % 16] = thread + low
    assert np.array_equal(found[:8], expected)
    threads = np.arange(128)
    assert np.array_equal(found[8], threads * 0x10001 + 0x00070003)
    assert np.array_equal(found[9], threads * 0x10001 + 0x00170013)


COPIES = [
    ("128x256b", 128, 8, lambda r: [r]),
    ("128x128b", 128, 4, lambda r: [r]),
    ("4x256b", 4, 8, lambda r: [32 * r]),
    ("64x128b.warpx2::02_13", 64, 4, lambda r: [r, r + 64]),
    ("64x128b.warpx2::01_23", 64, 4, lambda r: [r % 32 + r // 32 * 64, r % 32 + r // 32 * 64 + 32]),
    ("32x128b.warpx4", 32, 4, lambda r: [r, r + 32, r + 64, r + 96]),
]


@pytest.mark.parametrize(("shape", "rows", "columns", "lanes"), COPIES)
def test_copies_from_shared_memory_fill_the_named_lanes(tc, shape, rows, columns, lanes):
    rng = np.random.default_rng(rows)
    matrix = rng.integers(1, 1 << 32, (rows, columns), dtype=np.uint32)
    image = bytearray(4096)
    chunk = -(-rows // 8) * 128
    for r in range(rows):
        for c in range(columns):
            at = r % 8 * 16 + r // 8 * 128 + c % 4 * 4 + c // 4 * chunk
            image[at : at + 4] = matrix[r, c].tobytes()
    clear = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    clear += "".join(f"mov.u32 %v{i}, 9;\n" for i in range(8))
    names = ", ".join(f"%v{i}" for i in range(8))
    clear += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r14], {{{names}}};\n"
    clear += "tcgen05.wait::st.sync.aligned;\n tcgen05.fence::before_thread_sync;\n bar.sync 0;\n"
    clear += "tcgen05.fence::after_thread_sync;\n"
    body = clear + f"@%p0 tcgen05.cp.cta_group::1.{shape} [%r12], %rd2;\n" + tc.COMMIT
    body += tc.WAIT + tc.dump("32x32b.x8", 8, 1, 0)
    out = np.zeros(8 * 128, np.uint32)
    tc.run(body, image, out, tc.descriptor(0, chunk, 128, swizzle.NONE))
    expected = np.full((8, 128), 9, np.uint32)
    for r in range(rows):
        for lane in lanes(r):
            expected[:columns, lane] = matrix[r]
    assert np.array_equal(out.reshape(8, 128), expected)
