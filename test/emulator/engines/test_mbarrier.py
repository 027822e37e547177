"""The mbarrier object (PTX ISA, "mbarrier"): phases, counts, transactions, and what it refuses."""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator.errors import Trap
from tilewright.runtime.emulator.machine.mbarrier import MAX_COUNT, Mbarrier, pending_count


def refused(call, *args, **options) -> str:
    with pytest.raises(Trap) as caught:
        call(*args, **options)
    assert caught.value.category == "barrier-protocol"
    return caught.value.message


def complete(barrier: Mbarrier) -> None:
    """One whole phase, observed by thread 0."""
    phase = barrier.phase
    for _ in range(barrier.expected):
        barrier.arrive()
    assert barrier.test_parity(phase & 1, 0)


def test_parity_answers_follow_the_immediately_preceding_phase():
    barrier = Mbarrier(0x400, 1)
    for completed in range(5):
        waiting_for = completed & 1
        assert not Mbarrier.test_parity(barrier, waiting_for, 100 + completed)
        assert barrier.test_parity(1 - waiting_for, 200 + completed)
        complete(barrier)


def test_a_phase_needs_every_arrival():
    barrier = Mbarrier(0x400, 3)
    barrier.arrive()
    barrier.arrive()
    assert (barrier.phase, barrier.pending) == (0, 1)
    barrier.arrive()
    assert (barrier.phase, barrier.pending) == (1, 3)


def test_a_phase_needs_every_byte():
    barrier = Mbarrier(0x400, 1)
    barrier.arrive(expect=96)
    barrier.complete_tx(64)
    assert (barrier.phase, barrier.pending, barrier.tx) == (0, 0, 32)
    barrier.complete_tx(32)
    assert (barrier.phase, barrier.pending, barrier.tx) == (1, 1, 0)


def test_bytes_may_be_delivered_before_they_are_expected():
    barrier = Mbarrier(0x400, 1)
    barrier.complete_tx(128)
    assert (barrier.phase, barrier.tx) == (0, -128)
    barrier.arrive(expect=128)
    assert (barrier.phase, barrier.tx) == (1, 0)


def test_expect_tx_alone_keeps_a_phase_open():
    barrier = Mbarrier(0x400, 1)
    barrier.expect_tx(16)
    barrier.arrive()
    assert barrier.phase == 0
    barrier.complete_tx(16)
    assert barrier.phase == 1


def test_arrive_drop_lowers_the_count_of_later_phases():
    barrier = Mbarrier(0x400, 3)
    barrier.arrive(drop=True)
    barrier.arrive(2)
    assert (barrier.phase, barrier.expected, barrier.pending) == (1, 2, 2)


def test_a_token_names_its_phase_and_holds_the_pending_count_before_the_arrival():
    barrier = Mbarrier(0x400, 2)
    token = barrier.arrive()
    assert pending_count(token) == 2
    assert not barrier.test(token)
    assert pending_count(barrier.arrive()) == 1
    assert barrier.test(token)


def test_a_token_two_phases_old_is_refused():
    barrier = Mbarrier(0x400, 1)
    token = barrier.arrive()
    assert barrier.test_parity(0, 0)
    complete(barrier)
    assert refused(barrier.test, token) == (
        "a wait may ask about the current or the preceding phase, got phase 0 of mbarrier 0x400 "
        "(phase 2, parity 0, pending 1 of 1, tx 0); the waiter lags 2 phases"
    )


def test_a_parity_waiter_that_comes_back_two_phases_late_is_refused():
    barrier = Mbarrier(0x400, 1)
    assert not barrier.test_parity(0, 7)
    complete(barrier)
    complete(barrier)
    assert refused(barrier.test_parity, 0, 7) == (
        "a wait may ask about the current or the preceding phase, got phase 0 of mbarrier 0x400 "
        "(phase 2, parity 0, pending 1 of 1, tx 0); the waiter lags 2 phases"
    )


def test_threads_that_are_answered_together_with_others_wait_no_more():
    barrier = Mbarrier(0x400, 1)
    assert not barrier.test_parity(0, 1, 2)
    complete(barrier)
    assert barrier.test_parity(0, 0, 1, 2)
    complete(barrier)
    assert not barrier.test_parity(0, 1, 2)


def test_an_arrival_needs_the_preceding_phase_to_have_been_waited_for():
    barrier = Mbarrier(0x400, 1)
    barrier.arrive()
    assert refused(barrier.arrive) == (
        "phase 0 of mbarrier 0x400 (phase 1, parity 1, pending 1 of 1, tx 0) was waited for by no "
        "thread before this arrival at phase 1; PTX ISA §9.7.13.15.4 wants a test_wait or try_wait"
        " that has returned True in between"
    )


def test_an_early_arrival_that_is_tolerated_is_told_of():
    told = []
    barrier = Mbarrier(0x400, 2, tolerate=told.append)
    barrier.arrive(2)
    barrier.arrive()
    assert len(told) == 1 and "waited for by no thread before this arrival at phase 1" in told[0]
    assert barrier.test_parity(0, 0)
    barrier.arrive()
    assert len(told) == 1 and barrier.test_parity(1, 0)


def test_no_phase_completes_behind_one_that_nobody_has_waited_for():
    barrier = Mbarrier(0x400, 1, tolerate=lambda text: None)
    barrier.arrive()
    assert refused(barrier.arrive) == (
        "phase 0 of mbarrier 0x400 (phase 2, parity 0, pending 1 of 1, tx 0) was waited for by no "
        "thread, and lies two back now"
    )


def test_an_arrival_beyond_the_pending_count_is_refused():
    barrier = Mbarrier(0x400, 2)
    barrier.arrive(2, expect=64)
    assert refused(barrier.arrive) == (
        "arrival of 1 exceeds the pending count of mbarrier 0x400 "
        "(phase 0, parity 0, pending 0 of 2, tx 64)"
    )


def test_more_bytes_than_expected_are_refused_when_all_arrivals_are_in():
    barrier = Mbarrier(0x400, 1)
    barrier.complete_tx(256)
    assert refused(barrier.arrive, expect=128) == (
        "all arrivals are in and 128 bytes more were delivered than expected at mbarrier 0x400 "
        "(phase 0, parity 0, pending 0 of 1, tx -128)"
    )


def test_the_transaction_count_has_twenty_bits_and_a_sign():
    barrier = Mbarrier(0x400, 1)
    barrier.expect_tx(MAX_COUNT)
    assert refused(barrier.expect_tx, 1) == (
        f"tx-count must stay within +-1048575, got 1048576 for {barrier.describe()}"
    )
    barrier = Mbarrier(0x400, 1)
    assert refused(barrier.complete_tx, MAX_COUNT + 1) == (
        f"tx-count must stay within +-1048575, got -1048576 for {barrier.describe()}"
    )


@pytest.mark.parametrize("count", [0, -1, MAX_COUNT + 1])
def test_counts_outside_the_legal_range_are_refused(count):
    message = f"must be 1..1048575, got {count}"
    assert refused(Mbarrier, 0x400, count) == f"arrival count of mbarrier.init {message}"
    assert refused(Mbarrier(0x400, 4).arrive, count) == f"arrival count {message}"


def test_no_complete_may_not_be_the_last_arrival():
    barrier = Mbarrier(0x400, 2)
    barrier.arrive(no_complete=True)
    assert refused(barrier.arrive, no_complete=True) == (
        "arrive.noComplete would complete the phase of mbarrier 0x400 "
        "(phase 0, parity 0, pending 1 of 2, tx 0)"
    )


@pytest.mark.parametrize("parity", [2, 3, 7, 0xFFFFFFFF])
def test_of_a_parity_bit_0_is_read(parity):
    barrier, same = Mbarrier(0x400, 1), Mbarrier(0x400, 1)
    for each in (barrier, same):
        each.arrive()
    assert barrier.test_parity(parity, 0) is same.test_parity(parity % 2, 0)
