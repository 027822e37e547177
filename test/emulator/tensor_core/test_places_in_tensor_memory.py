"""Where tcgen05 instructions may reach: an illegal variant of each place is refused by its rule.

Sources: PTX ISA §9.7.16.1 (addressing), §9.7.16.7 (allocation), §9.7.16.8.1 (lanes of warps),
§9.7.16.9 (copies), §9.7.16.10.5 (data paths), §9.7.16.12 (commit).
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch
from tilewright.runtime.emulator.machine import swizzle

PLACE = "and.b32 %r20, %r0, 96; shl.b32 %r20, %r20, 16; add.u32 %r20, %r20, %r12;\n"
"""%r20: the warp's own lanes."""
WRITTEN = (
    "mov.u32 %v0, 1; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n"
    "tcgen05.wait::st.sync.aligned;\n"
)
ONE, FOUR, EIGHT = (
    "{%v0}",
    "{%v0, %v1, %v2, %v3}",
    "{" + ", ".join(f"%v{n}" for n in range(8)) + "}",
)


def at(lane: int, column: int = 0) -> str:
    return PLACE + f"add.u32 %r20, %r20, {(lane << 16) + column};\n"


def ld(shape: str, registers: str, more: str = "") -> str:
    return f"@%p1 tcgen05.ld.sync.aligned.{shape}.b32 {registers}, [%r20]{more};\n"


def st(shape: str, registers: str, more: str = "") -> str:
    zeros = "".join(f"mov.u32 %v{n}, 0; " for n in range(8))
    return zeros + f"@%p1 tcgen05.st.sync.aligned.{shape}.b32 [%r20]{more}, {registers};\n"


def cp(shape: str, lane: int, column: int = 0) -> str:
    place = f"add.u32 %r20, %r12, {(lane << 16) + column};\n"
    return place + f"@%p0 tcgen05.cp.cta_group::1.{shape} [%r20], %rd2;\n"


def alloc(to: str, columns: str) -> str:
    return f"@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{to}], {columns};\n"


def dealloc(address: str, columns: int) -> str:
    return f"@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 {address}, {columns};\n"


ACCESSES = {
    "32x32b begins at the warp's lanes": (at(16) + ld("32x32b.x1", ONE), "tmem", "got 16"),
    "16x64b begins at the warp's lanes or 16 behind": (
        at(8) + ld("16x64b.x1", ONE), "tmem", "lane 0 or 16, got 8",
    ),
    "16x256b begins at the warp's lanes or 16 behind": (
        at(31) + ld("16x256b.x1", FOUR), "tmem", "lane 0 or 16, got 31",
    ),
    "a load stays in its quarter": (at(32) + ld("32x32b.x1", ONE), "tmem", "lanes 0..31 only"),
    "there are 128 lanes": (at(128) + ld("32x32b.x1", ONE), "tmem", "got 128"),
    "a load stays in the allocation": (
        at(0, 505) + ld("32x32b.x8", EIGHT), "out-of-bounds", "columns 505..512",
    ),
    "16x256b spans eight columns": (
        at(0, 505) + ld("16x256b.x1", FOUR), "out-of-bounds", "columns 505..512",
    ),
    "packed columns are twice as many": (
        at(0, 511) + ld("32x32b.x1.pack::16b", ONE), "out-of-bounds", "columns 511..512",
    ),
    "the second half is behind the immediate": (
        at(0, 500) + ld("16x32bx2.x1", ONE, ", 12"), "out-of-bounds", "columns 512..512",
    ),
    "the second half may not lie before the allocation": (
        at(0) + ld("16x32bx2.x1", ONE, ", -1"), "out-of-bounds", "columns -1..-1",
    ),
    "all lanes name one address": (
        at(0) + "add.u32 %r20, %r20, %r0;\n" + ld("32x32b.x1", ONE), "convergence", "differs",
    ),
    "a load is of a whole warp": (
        at(0) + WRITTEN + "setp.eq.u32 %p1, %r0, 5;\n" + ld("32x32b.x1", ONE),
        "convergence", "",
    ),
    "a store begins at the warp's lanes": (at(16) + st("32x32b.x1", ONE), "tmem", "got 16"),
    "a store stays in its quarter": (at(64) + st("16x128b.x2", FOUR), "tmem", "lanes 0..31 only"),
    "a store stays in the allocation": (
        at(0, 509) + st("16x128b.x1", "{%v0, %v1}"), "out-of-bounds", "columns 509..512",
    ),
    "a store's second half is behind the immediate": (
        at(0) + st("16x32bx2.x1", ONE, ", 512"), "out-of-bounds", "columns 512..512",
    ),
}  # fmt: skip
COPIES = {
    "128x256b begins at lane 0": (cp("128x256b", 32), "tmem", "must start at lane 0, got 32"),
    "32x128b begins at lane 0": (cp("32x128b.warpx4", 16), "tmem", "must start at lane 0, got 16"),
    "4x256b begins in the first quarter": (cp("4x256b", 32), "tmem", "must start at lane 0"),
    "a copy stays in the allocation": (
        cp("128x256b", 0, 508), "out-of-bounds", "columns 508..515",
    ),
    "a narrow copy too": (cp("64x128b.warpx2::02_13", 0, 509), "out-of-bounds", "columns 509..512"),
}  # fmt: skip
ALLOCATIONS = {
    "a count is a power of two": (
        "mov.u32 %r20, 96;\n" + alloc("taddr", "%r20"), "tmem", "32..512, got 96",
    ),
    "a count is at least 32": (
        "mov.u32 %r20, 16;\n" + alloc("taddr", "%r20"), "tmem", "32..512, got 16",
    ),
    "an address of an allocation is freed": (
        "add.u32 %r20, %r12, 32;\n" + dealloc("%r20", 32), "tmem", "no live allocation",
    ),
    "no lane of it": (
        f"add.u32 %r20, %r12, {32 << 16};\n" + dealloc("%r20", 128), "tmem", "no live allocation",
    ),
    "all of an allocation is freed": (dealloc("%r12", 64), "tmem", "128 columns, got 64"),
}  # fmt: skip
COMMITS = {
    "a barrier lies at 8 bytes": ("add.u32 %r20, %r1, 4;\n", "[%r20]", "", "misaligned", ""),
    "a barrier was initialised": ("", "[%r2]", "", "barrier-protocol", ""),
    "a mask names CTAs of the cluster": (
        "", "[%r1]", ".multicast::cluster", "out-of-bounds", "rank 1",
    ),
}  # fmt: skip


def refuses(tc, body: str, category: str, said: str, columns: int = 512) -> None:
    source = tc.descriptor(0, 2048, 128, swizzle.NONE)
    trap = tc.refused(body + tc.DONE, bytes(4096), (source, source, 0), columns=columns)
    assert (trap.category, said in trap.message) == (category, True), trap.message


@pytest.mark.parametrize("rule", ACCESSES)
def test_loads_and_stores(tc, rule):
    refuses(tc, *ACCESSES[rule])


@pytest.mark.parametrize("rule", COPIES)
def test_copies(tc, rule):
    refuses(tc, *COPIES[rule])


@pytest.mark.parametrize("rule", ALLOCATIONS)
def test_allocations(tc, rule):
    body, category, said = ALLOCATIONS[rule]
    refuses(tc, body, category, said, columns=128)


@pytest.mark.parametrize(
    ("to", "category"), [("[taddr+2]", "misaligned"), ("[%r1+1048576]", "out-of-bounds")]
)
def test_the_address_of_an_allocation_is_a_word_of_shared_memory(tc, to, category):
    text = tc.kernel("").replace("[taddr], 512", f"{to}, 512")
    with pytest.raises(Trap) as caught:
        launch(text, "k", grid=1, block=128, shared_bytes=tc.SHARED_BYTES,
               params=[np.zeros(16, np.uint8), 0, np.zeros(4, np.uint32), 0, 0, 0])  # fmt: skip
    assert caught.value.category == category


@pytest.mark.parametrize("rule", COMMITS)
def test_commits(tc, rule):
    before, place, multicast, category, said = COMMITS[rule]
    mask = ", 3" if multicast else ""
    commit = f"@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster{multicast}"
    refuses(tc, before + commit + f".b64 {place}{mask};\n", category, said)


def product(tc, m: int, n: int, d: str, a: str = "%rd2", transposed: int = 0):
    idesc = tc.instruction_word("bf16", "bf16", "f32", m, n, transpose_a=transposed)
    body = tc.FALSE + tc.mma("f16", a).replace("[%r12]", d)
    source = tc.descriptor(0, 2048, 128, swizzle.NONE)
    return body + tc.DONE, (source, source, idesc)


PRODUCTS = {
    "D of 128 rows begins at lane 0": (128, 32, 16 << 16, None, "tmem", "lane 0, got 16"),
    "D of 64 rows begins at lane 0 or 16": (64, 32, 32 << 16, None, "tmem", "lane 0 or 16, got 32"),
    "D stays in the allocation": (128, 32, 488, None, "out-of-bounds", "columns 488..519"),
    "A begins at D's lane": (64, 32, 0, 16 << 16, "tmem", "same tensor memory lane, got 16 and 0"),
    "A stays in the allocation": (128, 32, 0, 508, "out-of-bounds", "columns 508..515"),
}


@pytest.mark.parametrize("rule", PRODUCTS)
def test_products(tc, rule):
    m, n, d, a, category, said = PRODUCTS[rule]
    place = f"add.u32 %r20, %r12, {d}; add.u32 %r21, %r12, {a or 0};\n"
    body, words = product(tc, m, n, "[%r20]", "%rd2" if a is None else "[%r21]")
    trap = tc.refused(place + body, bytes(16384), words)
    assert (trap.category, said in trap.message) == (category, True), trap.message


def test_operand_a_in_tensor_memory_is_k_major(tc):
    body, words = product(tc, 128, 32, "[%r12]", "[%r21]", transposed=1)
    trap = tc.refused("add.u32 %r21, %r12, 64;\n" + body, bytes(16384), words)
    assert (trap.category, "K-major" in trap.message) == ("descriptor", True)


@pytest.mark.parametrize(
    "second",
    [
        "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
        "@%p0 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r1];",
        "@%p0 tcgen05.shift.cta_group::2.down [%r12];",
        "@%p0 tcgen05.cp.cta_group::2.128x256b [%r12], %rd2;",
    ],
)
def test_a_kernel_has_one_cta_group(tc, second):
    source = tc.descriptor(0, 2048, 128, swizzle.NONE)
    trap = tc.refused(second, bytes(4096), (source, 0, 0))
    assert trap.category == "tmem", trap.message
    assert "cta_group" in trap.message


def test_values_of_16_lanes_of_the_upper_half_are_those_that_were_stored(tc):
    """Beside the refusals: lane 16 of a warp's quarter is legal for shapes of 16 lanes"""
    out = np.zeros(128, np.uint32)
    body = PLACE + "mov.u32 %v0, %r0;\n tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n"
    body += "mov.u32 %v1, 7; add.u32 %r21, %r20, 1;\n"
    body += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r21], {%v1};\n"
    body += "tcgen05.wait::st.sync.aligned; add.u32 %r20, %r20, 0x100000;\n"
    body += ld("16x64b.x1", ONE).replace("@%p1 ", "") + "tcgen05.wait::ld.sync.aligned;\n"
    body += "mul.wide.u32 %rd9, %r0, 4; add.s64 %rd9, %rd1, %rd9; st.global.u32 [%rd9], %v0;\n"
    tc.run(body, b"", out)
    lane, warp = np.arange(128) % 32, np.arange(128) // 32
    stored = 32 * warp + 16 + lane % 2 * 8 + lane // 4
    assert np.array_equal(out, np.where(lane // 2 % 2 == 0, stored, 7))
