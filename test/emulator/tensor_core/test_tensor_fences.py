"""tcgen05.fence between warps (PTX ISA §9.7.16.6.3 and §9.7.16.6.4)."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap
from tilewright.runtime.emulator.checks.fences.tensor_fences import Fences
from tilewright.runtime.emulator.tensor.spans import Access, Span

BEFORE, AFTER = "tcgen05.fence::before_thread_sync;\n", "tcgen05.fence::after_thread_sync;\n"
RELAX = (".try_wait.parity", ".try_wait.parity.relaxed.cluster")
BARRIER = "bar.sync 0;\n"
RELAXED_BARRIER = """
mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [hand];
H: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p7, [hand], 0;
@!%p7 bra H;
"""
HAND = ".shared .align 8 .b8 hand[8];\n@%p0 mbarrier.init.shared::cta.b64 [hand], 128;\n" + BARRIER


def turn(tc, *, before=BEFORE, after=AFTER, first_after=AFTER, relaxed=True) -> str:
    """mma, all warps load D, mma again into the same columns, all warps load again."""
    wait = tc.WAIT.replace(AFTER.strip(), "")
    first = wait.replace(*RELAX) if relaxed else wait
    load = tc.dump("32x32b.x8", 8, 4, 8)
    second = (
        wait.replace("W:", "W2:")
        .replace("bra W", "bra W2")
        .replace("%p7, [%r1], 0", "%p7, [%r1], 1")
    )
    return (
        HAND + tc.FALSE + tc.mma("f16") + tc.COMMIT + first + first_after + load + before
        + (RELAXED_BARRIER if relaxed else BARRIER)
        + after + tc.mma("f16") + tc.COMMIT + second + AFTER + load
    )  # fmt: skip


def case(tc):
    _, _, image, *words = tc.accumulating_case()
    return image, np.zeros(4 * 8 * 128, np.uint32), words


@pytest.mark.parametrize("seed", range(4))
def test_fences_on_both_sides_order_a_load_before_the_next_mma(tc, seed):
    image, out, words = case(tc)
    assert not tc.run(turn(tc), image, out, *words, seed=seed).warnings


MISSING = [
    ("before", "before", "tcgen05.mma of tensor memory columns 0..31 follows the tcgen05.ld of"),
    ("first_after", "after", "tcgen05.ld of tensor memory columns 0..7 follows the tcgen05.mma"),
]


@pytest.mark.parametrize(("missing", "side", "message"), MISSING)
def test_a_missing_fence_around_relaxed_barriers_is_found(tc, missing, side, message):
    """Found unless a warp leaves an earlier barrier only after the accesses are complete"""
    found = []
    for seed in range(8):
        image, out, words = case(tc)
        try:
            tc.run(turn(tc, **{missing: ""}), image, out, *words, seed=seed)
        except Trap as trap:
            found.append(trap)
    assert found
    assert {trap.category for trap in found} == {"missing-fence"}
    assert all(trap.message.startswith(message) for trap in found)
    assert all(f"without tcgen05.fence::{side}_thread_sync" in trap.message for trap in found)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("before", "tcgen05.mma follows the tcgen05.ld of another warp (ptx:"),
        ("first_after", "tcgen05.ld follows the tcgen05.mma of another warp (ptx:"),
    ],
)
def test_release_and_acquire_do_instead_but_are_a_suspicion(tc, missing, message, seed):
    image, out, words = case(tc)
    text = turn(tc, **{missing: ""}, relaxed=False)
    warnings = tc.run(text, image, out, *words, seed=seed).warnings
    assert {each.category for each in warnings} == {"unfenced"}
    assert all(f": {message}" in each.message for each in warnings)
    assert all(each.message.endswith("relying on release and acquire") for each in warnings)


def test_release_does_not_do_for_a_load_that_is_not_waited_for(tc):
    image, _, words = case(tc)
    text = turn(tc, before="", relaxed=False).replace("tcgen05.wait::ld.sync.aligned;", "")
    text = re.sub(r"st.global.u32 \[%rd9\+\d+\], %v\d+;\n", "", text)
    assert tc.refused(text, image, words, 0).category == "missing-wait"


def test_an_older_fence_does_not_do_for_a_later_load(tc):
    """Found where the issuing warp has fenced before the others' loads were published"""
    found = set()
    for seed in range(12):
        image, out, words = case(tc)
        try:
            tc.run(turn(tc, after=""), image, out, *words, seed=seed)
        except Trap as trap:
            found.add(trap.category)
    assert found == {"missing-fence"}


def test_an_access_that_was_released_does_not_join_a_later_one_beside_it():
    """Two accumulators in turn: the release of the first one counts although the second is new"""
    said = []
    fences, reader = Fences(lambda *each: said.append(each)), (0, 1)
    for column in (0, 32):
        load = Access("tcgen05.ld", Span(0, 32, column, column + 32), 7, 1, reads=True)
        fences.completed(load, published=False, event=None)
        if column == 0:
            fences.released(reader)
    fences.acquired((0, 5))
    other = SimpleNamespace(cta=SimpleNamespace(rank=0), index=5)
    fences.require(Span(0, 128, 0, 32), other, "tcgen05.mma", reads=False)
    assert [category for category, _ in said] == ["unfenced"]
    with pytest.raises(Trap):
        fences.require(Span(0, 128, 32, 64), other, "tcgen05.mma", reads=False)
