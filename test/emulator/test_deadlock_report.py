"""What a deadlock report says: who waits for what, how much is missing, and for whom."""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator import Deadlock, launch
from tilewright.runtime.emulator.machine import scheduler

NAMES = {
    "barriers": [
        {"name": "full", "offset_bytes": 0, "count": 2},
        {"name": "empty", "offset_bytes": 16, "count": 1},
    ],
    "roles": [
        {"name": "producer", "first_warp": 0, "warps": 1},
        {"name": "consumer", "first_warp": 1, "warps": 1},
    ],
}
# full[1] lies at byte 8 and waits for bytes too; warp 0 fills it once, then waits for ever.
KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry k() {
  .reg .pred %first, %zero, %done; .reg .b32 %tid, %at;
  mov.u32 %tid, %tid.x; mov.u32 %at, dynamic;
  setp.eq.u32 %zero, %tid, 0; setp.lt.u32 %first, %tid, 32;
  @%zero mbarrier.init.shared::cta.b64 [%at+8], 1;
  @%zero mbarrier.init.shared::cta.b64 [%at+16], 3;
  bar.sync 0;
  @!%first bra CONSUMER;
  @%zero mbarrier.arrive.shared::cta.b64 _, [%at+8];
EMPTY:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%at+16], 0;
  @!%done bra EMPTY;
  ret;
CONSUMER:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%at+8], 0;
  @!%done bra CONSUMER;
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%at+8], 2;
FULL:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%at+8], 1;
  @!%done bra FULL;
  mbarrier.arrive.shared::cta.b64 _, [%at+16];
  ret;
}"""


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(KERNEL.splitlines(), 1) if text in line)


def stuck(kernel: str = KERNEL, **options) -> Deadlock:
    with pytest.raises(Deadlock) as caught:
        launch(kernel, "k", grid=1, block=64, shared_bytes=1024, **options)
    return caught.value


@pytest.mark.parametrize("seed", range(4))
def test_an_agent_names_its_barrier_and_what_is_missing(seed):
    producer, consumer = stuck(names=NAMES, seed=seed).as_dict()["agents"]
    assert (producer["warp"], producer["role"], consumer["role"]) == (0, "producer", "consumer")
    assert consumer["ptx_line"] == line_of("%done, [%at+8], 1;")
    assert consumer["waits_for"] == {
        "kind": "mbarrier",
        "name": "full[1]",
        "address": "0x408",
        "cta": [0, 0, 0],
        "asked": "parity 1",
        "phase": 1,
        "parity": 1,
        "arrivals_expected": 1,
        "arrivals_missing": 1,
        "bytes_missing": 64,
        "text": "waits for parity 1 of mbarrier 0x408 (phase 1, parity 1, pending 1 of 1, tx 64)",
    }
    assert producer["waits_for"]["name"] == "empty"
    assert producer["waits_for"]["arrivals_missing"] == 3


def test_the_guilty_are_those_that_signalled_before():
    _, consumer = stuck(names=NAMES).as_dict()["agents"]
    arrival = {
        "cta": [0, 0, 0],
        "warp": 0,
        "role": "producer",
        "state": f"waits at ptx:{line_of('[%at+16], 0;')}",
        "agent": "thread",
        "ptx_line": line_of("mbarrier.arrive.shared::cta.b64 _, [%at+8]"),
        "ptx_text": "@%zero mbarrier.arrive.shared::cta.b64 _, [%at+8]",
        "times": 1,
    }
    assert arrival in consumer["expected_from"]
    assert consumer["last_signal"]["ptx_line"] == line_of("mbarrier.expect_tx")
    assert consumer["last_signal"]["times"] == 32


def test_instructions_that_never_ran_are_named_where_nobody_signalled():
    producer, _ = stuck().as_dict()["agents"]
    assert producer["last_signal"] is None
    assert producer["expected_from"] == [
        {
            "agent": "nobody yet",
            "ptx_line": line_of("_, [%at+16]"),
            "ptx_text": "mbarrier.arrive.shared::cta.b64 _, [%at+16]",
            "times": 0,
        }
    ]


def test_the_words_say_the_same():
    words = stuck(names=NAMES).message
    arrive, wait = line_of("_, [%at+8]"), line_of("[%at+16], 0;")
    assert "mbarrier full[1] at 0x408 of cta (0,0,0): 1 of 1 arrivals and 64 bytes" in words
    assert (
        f"expected: cta (0,0,0) warp 0 (producer) ptx:{arrive} `@%zero mbarrier.arrive.shared"
        f"::cta.b64 _, [%at+8]` (1 so far), which waits at ptx:{wait}" in words
    )
    never = line_of("_, [%at+16]")
    assert f"expected: perhaps the instruction at ptx:{never}" in words


def test_a_named_barrier_waits_for_the_warps_that_are_elsewhere():
    kernel = KERNEL.replace("EMPTY:", "bar.sync 5;\nEMPTY:")
    producer, _ = stuck(kernel, names=NAMES).as_dict()["agents"]
    assert producer["waits_for"]["threads_missing"] == 32
    (missing,) = producer["expected_from"]
    assert (missing["warp"], missing["role"]) == (1, "consumer")
    assert missing["state"].startswith("waits at ptx:")


def test_without_names_the_address_stands_alone():
    producer, _ = stuck().as_dict()["agents"]
    assert (producer["role"], producer["waits_for"]["name"]) == (None, None)
    assert producer["waits_for"]["address"] == "0x410"


def test_an_endless_loop_is_reported_with_who_can_run(monkeypatch):
    monkeypatch.setattr(scheduler, "LIVELOCK_STEPS", 5000)
    kernel = KERNEL.replace("EMPTY:", "SPIN: bra SPIN;\nEMPTY:")
    report = stuck(kernel, names=NAMES).as_dict()
    assert "an endless loop" in report["verdict"]
    spinning, waiting = report["agents"]
    assert (spinning["waits_for"], spinning["ptx_text"]) == (None, "bra SPIN")
    assert waiting["waits_for"]["name"] == "full[1]"
    assert "can run" in {each["state"] for each in waiting["expected_from"]}


def test_lanes_that_wait_for_their_warp_name_the_others():
    """Lane 0 of warp 0 waits for the barrier, lanes 1-31 for lane 0"""
    kernel = KERNEL.replace("EMPTY:", "@!%zero bra JOIN;\nEMPTY:").replace(
        "bra EMPTY;\n", "bra EMPTY;\nJOIN:\n  bar.warp.sync -1;\n"
    )
    report = stuck(kernel, names=NAMES).as_dict()
    waiting, others, _ = sorted(report["agents"], key=lambda agent: (agent["warp"], agent["lanes"]))
    assert waiting["waits_for"]["name"] == "empty"
    assert (others["lanes"], others["waits_for"]["kind"]) == ("1-31", "convergence")
    (missing,) = others["expected_from"]
    line = next(n for n, text in enumerate(kernel.splitlines(), 1) if "[%at+16], 0;" in text)
    assert (missing["lanes"], missing["state"]) == ("0", f"waits at ptx:{line}")


def first_line(deadlock: Deadlock) -> str:
    return str(deadlock).partition("\n")[0]


def test_the_first_line_names_waiter_barrier_and_who_is_missing():
    wait, arrive = line_of("%done, [%at+16], 0;"), line_of("_, [%at+16]")
    for seed in range(4):
        assert first_line(stuck(names=NAMES, seed=seed)) == (
            f"ptx:{wait}: error: kernel k, cta (0,0,0), warp 0, lanes 0-31:"
            " `mbarrier.try_wait.parity.shared::cta.b64 %done, [%at+16], 0`: deadlock:"
            " cta (0,0,0) warp 0 (producer) waits for mbarrier empty at 0x410 of cta (0,0,0), where"
            " 3 of 3 arrivals and 0 bytes are missing, which nobody has signalled:"
            f" ptx:{arrive} has never run; every thread waits and nothing is under way that could"
            " wake one"
        )


def test_a_signaller_that_has_exited_comes_first():
    kernel = KERNEL.replace("EMPTY:\n", "ret;\nEMPTY:\n")
    line = first_line(stuck(kernel, names=NAMES))
    assert "warp 1 (consumer) waits for mbarrier full[1] at 0x408" in line
    arrive = line_of("mbarrier.arrive.shared::cta.b64 _, [%at+8]")
    assert f"from cta (0,0,0) warp 0 (producer) (ptx:{arrive}), which has exited;" in line


def test_what_other_ctas_tell_alike_is_counted():
    with pytest.raises(Deadlock) as caught:
        launch(KERNEL, "k", grid=3, block=64, shared_bytes=1024, cluster=3, names=NAMES)
    lines = caught.value.message.splitlines()[1:]
    assert sum("waits for parity" in line for line in lines) == 2
    assert sum(line.startswith("  mbarrier full[1]") for line in lines) == 1
    assert sum(line.endswith("(and 2 more alike)") for line in lines) == 4
    assert len(caught.value.as_dict()["agents"]) == 6
