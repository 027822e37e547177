"""Wrong uses of tcgen05 instructions, and what they are called (PTX ISA, tcgen05)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch


def test_a_load_before_the_commit_is_waited_for_traps(tc):
    _, _, image, *words = tc.accumulating_case()
    body = tc.FALSE + tc.mma("f16") + tc.COMMIT + tc.dump_d(128, 32)[0]
    categories = {tc.refused(body, image, words, seed).category for seed in range(6)}
    assert categories <= {"missing-wait", "uninitialised-read"}


def test_accumulating_onto_columns_nobody_wrote_traps(tc):
    _, _, image, *words = tc.accumulating_case()
    trap = tc.refused(tc.TRUE + tc.mma("f16") + tc.DONE, image, words)
    assert trap.category == "uninitialised-read"
    assert trap.message.startswith("tcgen05.mma accumulator: tensor memory lane 0 column ")
    assert trap.message.endswith(" was never written") and "tcgen05.mma" in trap.text


def test_an_operand_nobody_wrote_traps(tc):
    _, _, image, adesc, bdesc, word = tc.accumulating_case()
    away = bdesc + (32768 >> 4)
    trap = tc.refused(tc.FALSE + tc.mma("f16") + tc.DONE, image, (adesc, away, word))
    assert trap.category == "uninitialised-read"
    assert trap.message == "tcgen05.mma operand B reads shared offset 0xc800, never written"


def test_an_operand_outside_the_shared_memory_traps(tc):
    _, _, image, adesc, bdesc, word = tc.accumulating_case()
    away = adesc + (60000 >> 4)
    trap = tc.refused(tc.FALSE + tc.mma("f16") + tc.DONE, image, (away, bdesc, word))
    assert trap.category == "out-of-bounds"
    assert trap.message.startswith("tcgen05.mma operand A covers shared offsets 0x")


def test_an_operand_without_proxy_fence_traps_with_the_writer(tc):
    _, _, image, *words = tc.accumulating_case()
    body = tc.kernel(tc.FALSE + tc.mma("f16") + tc.DONE)
    body = body.replace("fence.proxy.async.shared::cta;", "")
    padded = np.frombuffer(bytes(image), np.uint8)
    with pytest.raises(Trap) as caught:
        launch(body, "k", grid=1, block=128, shared_bytes=tc.SHARED_BYTES,
               params=[padded, len(padded), np.zeros(4, np.uint32), *words])  # fmt: skip
    assert caught.value.category == "proxy-fence"
    assert caught.value.message.startswith(
        "tcgen05.mma operand A of shared offset 0x800 of cta (0, 0, 0) is ordered behind the write "
        "by warp 0 lane 0 of cta (0, 0, 0) (ptx:"
    )


def test_several_issuing_lanes_trap(tc):
    _, _, image, *words = tc.accumulating_case()
    body = tc.FALSE + tc.mma("f16").replace("@%p0", "@%p1") + tc.COMMIT
    trap = tc.refused(body, image, words)
    assert (trap.category, trap.message) == (
        "convergence",
        "tcgen05.mma is issued by one thread, got 32 active lanes: each of them would issue its "
        "own operation",
    )


def test_a_bad_descriptor_traps_at_the_mma(tc):
    _, _, image, adesc, bdesc, word = tc.accumulating_case()
    trap = tc.refused(tc.FALSE + tc.mma("f16"), image, (adesc, bdesc, word | 1 << 23))
    assert trap.category == "descriptor" and "reserved at bit 23" in trap.message


def test_columns_outside_the_allocation_trap(tc):
    _, _, image, adesc, bdesc, _ = tc.accumulating_case()
    word = tc.instruction_word("bf16", "bf16", "f32", 128, 256)
    trap = tc.refused(tc.FALSE + tc.mma("f16"), image, (adesc, bdesc, word), columns=128)
    assert trap.category == "out-of-bounds"
    assert trap.message.startswith("tcgen05.mma accumulator: columns ")


def test_a_warp_may_not_touch_the_lanes_of_another(tc):
    body = "add.u32 %r12, %r12, 0x400000;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r12];\n"
    trap = tc.refused(body)
    assert trap.category in ("tmem", "uninitialised-read")
    body = "@%p1 bra SKIP;\n" + body + "SKIP:\n"
    trap = tc.refused(body)
    assert trap.category == "tmem"
    assert "lanes " in trap.message and "must start at lane" in trap.message


def test_lanes_of_the_first_quarter_mean_the_warps_own_and_are_told(tc):
    """As DeepGEMM and TileLang address them: every warp gives the allocation's address"""
    body = (
        """mov.b32 %v0, %r0; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {%v0};
tcgen05.wait::st.sync.aligned; mov.b32 %v0, 0;
"""
        + tc.LANE_BASE
        + """add.u32 %r14, %r12, %r13;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r14]; tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd9, %r0, 4; add.s64 %rd9, %rd1, %rd9; st.global.u32 [%rd9], %v0;
"""
    )
    out = np.zeros(128, np.uint32)
    report = tc.run(body, b"", out)
    assert out.tolist() == list(range(128))
    assert [each.category for each in report.warnings] == ["quarter"]


def test_reading_columns_nobody_wrote_traps(tc):
    body = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    body += "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%v0}, [%r14];\n"
    trap = tc.refused(body + "st.global.u32 [%rd1], %v0;\n")
    assert trap.category == "uninitialised-read"


def test_a_store_not_waited_for_may_not_be_loaded(tc):
    body = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n mov.u32 %v0, 1;\n"
    body += "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r14], {%v0};\n"
    trap = tc.refused(body + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r14];\n")
    assert trap.category == "missing-wait"
    assert trap.message.endswith("tcgen05.wait::st first")


def test_an_mma_may_not_overwrite_columns_whose_load_is_not_waited_for(tc):
    _, _, image, *words = tc.accumulating_case()
    lines = tc.dump("32x32b.x8", 8, 1, 0).splitlines(keepends=True)
    load = "".join(x for x in lines if "wait::ld" not in x and "st.global" not in x)
    body = tc.FALSE + tc.mma("f16") + tc.DONE + load
    body += "tcgen05.fence::before_thread_sync;\n bar.sync 0;\n" + tc.mma("f16")
    trap = tc.refused(body, image, words)
    assert trap.category == "missing-wait"
    assert trap.message.endswith("tcgen05.wait::ld first")


def test_an_exited_lane_makes_warp_wide_instructions_undefined(tc):
    body = "setp.eq.u32 %p4, %r0, 5;\n@%p4 exit;\n" + tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    trap = tc.refused(body + "tcgen05.wait::ld.sync.aligned;\n")
    assert (trap.category, trap.message) == (
        "convergence",
        "tcgen05.wait::ld needs all 32 threads of the warp, lanes 5 are not alive",
    )


def test_an_empty_commit_arrives_and_is_counted(tc):
    out = np.zeros(16, np.uint32)
    report = tc.run(tc.DONE, b"", out)
    assert report.engines["empty commits"] == 1
    (warning,) = report.warnings
    assert (warning.category, "has issued nothing" in warning.message) == ("empty-commit", True)


def test_a_leaked_allocation_traps_at_exit(tc):
    text = tc.kernel("").replace("@%p1 tcgen05.dealloc", "@%p0 bra END;\nEND: //")
    with pytest.raises(Trap) as caught:
        launch(text, "k", grid=1, block=128, shared_bytes=tc.SHARED_BYTES,
               params=[np.zeros(16, np.uint8), 0, np.zeros(4, np.uint32), 0, 0, 0])  # fmt: skip
    assert caught.value.category == "tmem"
    assert caught.value.message == (
        "the CTA exits with tensor memory columns 0..511 allocated; tcgen05.dealloc them first"
    )


def test_dealloc_twice_traps(tc):
    trap = tc.refused("@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r12, 512;\n")
    assert (trap.category, trap.message) == (
        "tmem",
        "tcgen05.dealloc of 0x00000000, which is no live allocation",
    )


def test_alloc_after_relinquish_traps(tc):
    alloc = "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;\n"
    trap = tc.refused(alloc, columns=64)
    assert trap.message == "tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same CTA"


@pytest.mark.parametrize("seed", range(2))
def test_another_warp_gives_up_the_permit_behind_the_alloc(tc, seed):
    text = tc.kernel("")
    own = "  @%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
    other = own.replace("@%p1", "@!%p1")
    launched = {"grid": 1, "block": 128, "shared_bytes": tc.SHARED_BYTES, "seed": seed,
                "params": [np.zeros(16, np.uint8), 0, np.zeros(4, np.uint32), 0, 0, 0]}  # fmt: skip
    with pytest.raises(Trap) as caught:
        launch(text.replace(own, other), "k", **launched)
    assert caught.value.category == "tmem"
    assert "relinquish_alloc_permit" in caught.value.message
    launch(text.replace(own, "").replace("ld.shared.u32 %r12", other + "ld.shared.u32 %r12"),
           "k", **launched)  # fmt: skip


def test_an_alloc_that_can_never_be_served_is_a_deadlock(tc):
    alloc = "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 512;\n"
    text = tc.kernel("").replace("@%p1 tcgen05.relinquish_alloc_permit", alloc + "@%p1 tcgen05.reli"
                              "nquish_alloc_permit")  # fmt: skip
    with pytest.raises(Trap) as caught:
        launch(text, "k", grid=1, block=128, shared_bytes=tc.SHARED_BYTES,
               params=[np.zeros(16, np.uint8), 0, np.zeros(4, np.uint32), 0, 0, 0])  # fmt: skip
    assert caught.value.category == "deadlock"
    assert "waits until that many tensor memory columns are free" in caught.value.message


def test_first_addresses_differ_between_odd_seeds_and_are_0_with_even_ones(tc):
    out, seen = np.zeros(128, np.uint32), []
    for seed in range(16):
        store = "mul.wide.u32 %rd9, %r0, 4; add.s64 %rd9, %rd1, %rd9; st.global.u32 [%rd9], %r12;"
        tc.run(store, b"", out, columns=128, seed=seed)
        seen.append(int(out[0]))
    assert set(seen[::2]) == {0}
    assert set(seen) <= {0, 128, 256, 384} and len(set(seen[1::2])) > 1


OVERWRITTEN = """mov.b32 %v0, %r0; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r14], {{%v0}};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v1}}, [%r14];
{use} mov.b32 %v0, 7; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r14], {{%v0}};
tcgen05.wait::st.sync.aligned;
"""


def test_a_load_must_be_waited_for_or_its_result_used_before_its_lanes_are_replaced(tc):
    """PTX ISA §9.7.16.6.4.5: a true dependency on a register orders what follows it"""
    place = tc.LANE_BASE + "add.u32 %r14, %r12, %r13;\n"
    tc.run(place + OVERWRITTEN.format(use="add.u32 %r20, %v1, 1;"), b"", np.zeros(1, np.uint32))
    trap = tc.refused(place + OVERWRITTEN.format(use="add.u32 %r20, %r12, 1;"))
    assert (trap.category, "tcgen05.wait::ld first" in trap.message) == ("missing-wait", True)
