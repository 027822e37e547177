"""Straight code that only computes: equal instructions run as one, and nobody can tell."""

from __future__ import annotations

import random
from collections import Counter
from threading import Thread

import numpy as np
import pytest

from tilewright.runtime.emulator import launch
from tilewright.runtime.emulator.host.programs import load_program
from tilewright.runtime.emulator.ptx import lanewise, mentions

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
NARROW, WIDE = 6, 3
MASK = (1 << 32) - 1


def straight_code(rng: random.Random, length: int) -> list[tuple]:
    """Instructions on few registers, so that most results are read or overwritten at once."""
    operations = ("add", "xor", "shl", "mov", "pack", "unpack")

    def operands(kind: str) -> tuple[int, ...]:
        a, b, c = (rng.randrange(NARROW) for _ in range(3))
        wide, other = rng.randrange(WIDE), rng.sample(range(NARROW), 2)
        return {"pack": (wide, a, b), "unpack": (*other, wide)}.get(kind, (a, b, c))

    return [(kind, *operands(kind)) for kind in rng.choices(operations, k=length)]


def as_ptx(kind: str, x: int, y: int, z: int) -> str:
    return {
        "add": f"add.u32 %n{x}, %n{y}, %n{z};",
        "xor": f"xor.b32 %n{x}, %n{y}, %n{z};",
        "shl": f"shl.b32 %n{x}, %n{y}, {z + 1};",
        "mov": f"mov.b32 %n{x}, %n{y};",
        "pack": f"mov.b64 %w{x}, {{%n{y}, %n{z}}};",
        "unpack": f"mov.b64 {{%n{x}, %n{y}}}, %w{z};",
    }[kind]


def step(narrow: list[int], wide: list[int], kind: str, x: int, y: int, z: int) -> None:
    """What the PTX ISA says that one thread does."""
    if kind == "pack":
        wide[x] = narrow[z] << 32 | narrow[y]
    elif kind == "unpack":
        narrow[x], narrow[y] = wide[z] & MASK, wide[z] >> 32
    else:
        a, b = narrow[y], narrow[z]
        results = {"add": a + b, "xor": a ^ b, "shl": a << z + 1, "mov": a}
        narrow[x] = results[kind] & MASK


def kernel(code: list[tuple], entry: int) -> str:
    """Lanes from 20 on jump to instruction `entry`; the sum of all registers is stored."""
    lines = [as_ptx(*each) for each in code]
    lines.insert(entry, "INSIDE:")
    start = [f"mad.lo.u32 %n{i}, %lane, {i + 3}, {i};" for i in range(NARROW)]
    start += [f"mul.wide.u32 %w{i}, %lane, {0x12345678 + i};" for i in range(WIDE)]
    total = [f"add.u32 %n0, %n0, %n{i};" for i in range(1, NARROW)]
    total += [f"cvt.u32.u64 %n1, %w{i}; add.u32 %n0, %n0, %n1;" for i in range(WIDE)]
    body = "\n".join([*start, "@%p bra INSIDE;", *lines, *total])
    return f"""{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .b32 %n<{NARROW}>, %lane; .reg .b64 %w<{WIDE}>, %at; .reg .pred %p;
        mov.u32 %lane, %tid.x; setp.ge.u32 %p, %lane, 20;
        {body}
        ld.param.u64 %at, [out]; mad.wide.u32 %at, %lane, 4, %at; st.global.u32 [%at], %n0; ret; }}
        """


def expected(code: list[tuple], lane: int) -> int:
    narrow = [lane * (i + 3) + i for i in range(NARROW)]
    wide = [lane * (0x12345678 + i) for i in range(WIDE)]
    for each in code:
        step(narrow, wide, *each)
    return (sum(narrow) + sum(each & MASK for each in wide)) & MASK


@pytest.fixture(params=[lanewise.OFTEN, 1])
def often(request, monkeypatch):
    """Results are handed on directly from the first time on, or not yet."""
    monkeypatch.setattr(lanewise, "OFTEN", request.param)


@pytest.mark.parametrize("threads", [20, 32])
@pytest.mark.parametrize("seed", range(8))
def test_a_stretch_gives_what_its_instructions_give_one_by_one(seed, threads, often):
    """20 threads are not a whole warp, 32 part at the branch and those behind it start inside."""
    code = straight_code(random.Random(seed), 60)
    out = np.zeros(threads, np.uint32)
    launch(kernel(code, 30), "k", grid=1, block=threads, params=[out], seed=seed)
    assert out.tolist() == [expected(code if t < 20 else code[30:], t) for t in range(threads)]


@pytest.mark.parametrize("seed", range(4))
def test_a_whole_warp_runs_a_stretch_and_counts_its_instructions(seed, often):
    code = straight_code(random.Random(seed), 60)
    out = np.zeros(32, np.uint32)
    text = kernel(code, 0).replace("@%p bra INSIDE;", "")
    report = launch(text, "k", grid=1, block=32, params=[out], seed=seed)
    assert out.tolist() == [expected(code, lane) for lane in range(32)]
    counted = Counter(kind for kind, *_ in code)
    assert report.instructions["xor.b32"] == counted["xor"]
    assert report.instructions["shl.b32"] == counted["shl"]


@pytest.mark.parametrize("seed", range(3))
def test_warps_take_turns_alike_with_and_without_an_observer(seed):
    """A profile sees each instruction; four warps race for places in an order that seeds fix."""
    code = straight_code(random.Random(seed), 200)
    text = kernel(code, 0).replace("@%p bra INSIDE;", "")
    race = "ld.param.u64 %at, [out]; atom.global.add.u32 %n0, [%at+512], 1;"
    text = text.replace("ld.param.u64 %at, [out];", race)
    outs = [np.zeros(129, np.uint32) for _ in range(2)]
    for out, profile in zip(outs, (False, True), strict=True):
        launch(text, "k", grid=1, block=128, params=[out], seed=seed, profile=profile)
    assert outs[0].tolist() == outs[1].tolist()
    assert sorted(outs[0][:128].tolist()) == list(range(128))


def kernel_of_one_lane(code: list[tuple], rounds: int) -> str:
    """Lane 5 alone goes through the code several times, and meets nobody on the way."""
    lines = "\n".join(as_ptx(*each) for each in code)
    total = "\n".join(f"add.u32 %sum, %sum, %n{i};" for i in range(NARROW))
    start = "\n".join(f"mov.u32 %n{i}, {i + 7};" for i in range(NARROW))
    start += "\n".join(f"mov.u64 %w{i}, {i + 0x123456789};" for i in range(WIDE))
    return f"""{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .b32 %n<{NARROW}>, %lane, %sum, %round; .reg .b64 %w<{WIDE}>, %at; .reg .pred %p;
        mov.u32 %lane, %tid.x; mov.u32 %sum, %lane; mov.u32 %round, 0;
        setp.ne.u32 %p, %lane, 5; @%p bra DONE; {start}
        AGAIN: {lines}
        selp.b32 %n0, %n1, %n2, %p; cvt.u16.u32 %h, %round; cvt.u32.u16 %n1, %h;
        add.u32 %round, %round, 1; setp.lt.u32 %p, %round, {rounds}; {total}
        @%p bra AGAIN;
        DONE: ld.param.u64 %at, [out]; mad.wide.u32 %at, %lane, 4, %at;
        mov.u32 %lane, %ctaid.x; mad.wide.u32 %at, %lane, 128, %at;
        st.global.u32 [%at], %sum; ret; }}
        """.replace(".reg .pred %p;", ".reg .pred %p; .reg .b16 %h;")


def expected_of_one_lane(code: list[tuple], rounds: int) -> int:
    narrow, wide = [i + 7 for i in range(NARROW)], [i + 0x123456789 for i in range(WIDE)]
    total = 5
    for number in range(rounds):
        for each in code:
            step(narrow, wide, *each)
        narrow[0] = narrow[1] if number else narrow[2]
        narrow[1] = number
        total += sum(narrow)
    return total & MASK


@pytest.mark.parametrize("rounds", [2, 40])
@pytest.mark.parametrize("seed", range(3))
def test_what_one_lane_computes_again_and_again_is_what_its_instructions_give(seed, rounds):
    """Three CTAs compute the same, of which two recall it; the other lanes keep their registers."""
    code = straight_code(random.Random(seed), 24)
    outs = [np.zeros((3, 32), np.uint32) for _ in range(2)]
    for out, profile in zip(outs, (False, True), strict=True):
        text = kernel_of_one_lane(code, rounds)
        report = launch(text, "k", grid=3, block=32, params=[out], seed=seed, profile=profile)
        alone = expected_of_one_lane(code, rounds)
        assert out.tolist() == [[alone if lane == 5 else lane for lane in range(32)]] * 3
        assert report.instructions["selp.b32"] == 3 * rounds


def sums_of_lanes(count: int) -> str:
    """As many sums, of which only the last is stored."""
    sums = " ".join(f"add.u32 %n{i}, %lane, %lane;" for i in range(count))
    return f"""{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .b32 %n<{count}>, %lane; .reg .b64 %at; ld.param.u64 %at, [out]; mov.u32 %lane, %tid.x;
        {sums} st.global.u32 [%at], %n{count - 1}; ret; }}
        """


def test_a_thread_that_shares_a_program_sees_which_registers_are_read_later(monkeypatch):
    """Also one that asks while another thread counts who names which register."""
    text = sums_of_lanes(lanewise.LEAST_SAVED + 4)

    def decoded():
        program = load_program.__wrapped__(text, "k")
        ((first, stretch),) = [each for each in enumerate(program.stretches) if each[1] is not None]
        return program, range(first, stretch.end)

    alone = mentions.outside(*decoded())
    assert len(alone) == 1
    shared, named, others, seen = decoded(), mentions.named_slots, [], []

    def named_slots(program, pc):
        if not others:
            others.append(Thread(target=lambda: seen.append(mentions.outside(*shared))))
            others[0].start()
            others[0].join()
        return named(program, pc)

    monkeypatch.setattr(mentions, "named_slots", named_slots)
    assert mentions.outside(*shared) == alone
    assert seen == [alone]
