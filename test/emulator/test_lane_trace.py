"""Code that one lane executes often does the same as a function as one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = ".version 8.7\n.target sm_100a\n.address_size 64\n"
REGISTERS, ROUNDS = 6, 48


def block(rng: random.Random, number: int, blocks: int) -> list[str]:
    """Arithmetic between branches that are taken now and then, always forward."""
    lines = []
    for _ in range(rng.randrange(1, 9)):
        x, y, z = (rng.randrange(REGISTERS) for _ in range(3))
        lines.append(rng.choice([
            f"add.u32 %n{x}, %n{y}, %n{z};", f"xor.b32 %n{x}, %n{y}, %n{z};",
            f"shr.u32 %n{x}, %n{y}, {z};", f"add.u32 %n{x}, %n{y}, %row;",
            f"mov.b64 %w, {{%n{y}, %n{z}}}; cvt.u32.u64 %n{x}, %w;",
            f"add.u32 %t{8 * number + len(lines)}, %n{y}, 5;"
            f" mbarrier.test_wait.parity.shared.b64 %q, [bar], %phase;"
            f" xor.b32 %n{x}, %t{8 * number + len(lines)}, %n{x};"
            f" mbarrier.arrive.expect_tx.shared.b64 %w, [bar], {16 * z};"
            f" mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], {16 * z};"
            f" cvt.u32.u64 %n{(x + 1) % REGISTERS}, %w;"
            f" ASK{number}_{len(lines)}: mbarrier.try_wait.parity.shared.b64 %q, [bar], %phase;"
            f" @!%q bra ASK{number}_{len(lines)}; xor.b32 %phase, %phase, 1;",
            f"setp.lt.u32 %p{x}, %n{y}, %n{z};",
            f"@{rng.choice(['', '!'])}%p{x} bra L{rng.randrange(number + 1, blocks + 1)};",
        ]))  # fmt: skip
    return lines


def kernel(rng: random.Random) -> str:
    """Lane 7 goes ``ROUNDS`` times through the blocks and adds up what its registers hold."""
    blocks = rng.randrange(2, 7)
    body = [f"L{i}: " + "\n".join(block(rng, i, blocks)) for i in range(blocks)]
    total = "\n".join(
        f"add.u32 %sum, %sum, %n{i}; mul.lo.u32 %sum, %sum, 31;" for i in range(REGISTERS)
    )
    start = "\n".join(f"mov.u32 %n{i}, {rng.getrandbits(32)}; setp.eq.u32 %p{i}, {i % 2}, 0;"
                      for i in range(REGISTERS))  # fmt: skip
    return f"""{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .b32 %n<{REGISTERS}>, %lane, %row, %sum, %phase, %t<64>; .reg .b64 %w, %to;
        .reg .pred %p<{REGISTERS}>, %q; .shared .align 8 .b8 bar[8];
        mov.u32 %lane, %tid.x; setp.ne.u32 %q, %lane, 7; @%q bra DONE;
        mbarrier.init.shared.b64 [bar], 1;
        ld.param.u64 %to, [out]; mov.u32 %row, 0; mov.u32 %sum, 0; mov.u32 %phase, 0;
        {start}
        {chr(10).join(body)}
        L{blocks}: {total}
        st.global.u32 [%to], %sum; add.u64 %to, %to, 4;
        add.u32 %row, %row, 1; setp.lt.u32 %q, %row, {ROUNDS}; @%q bra L0;
        DONE: ret; }}"""


@pytest.mark.parametrize("seed", range(8))
def test_a_lane_computes_the_same_as_a_function_and_one_by_one(seed):
    text = kernel(random.Random(seed))
    outs = [np.zeros(ROUNDS, np.uint32) for _ in range(2)]
    how = {"grid": 1, "block": 32, "seed": seed}
    report = launch(text, "k", params=[outs[0]], **how)
    alone = launch(text, "k", params=[outs[1]], profile=True, **how)
    assert (outs[0] == outs[1]).all()
    assert report.instructions == alone.instructions


def test_a_verdict_in_a_function_names_the_instruction():
    text = f"""{HEADER}.visible .entry k() {{
        .reg .b32 %n<3>; .reg .pred %p; .shared .align 8 .b8 bar[8];
        mov.u32 %n0, %tid.x; setp.ne.u32 %p, %n0, 7; @%p bra DONE;
        mbarrier.init.shared.b64 [bar], 1; mov.u32 %n1, 0;
        AGAIN: add.u32 %n1, %n1, 1; setp.lt.u32 %p, %n1, 60; selp.u32 %n2, 0, 1048576, %p;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
        mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %n2; // too much
        bra AGAIN;
        DONE: ret; }}"""
    with pytest.raises(Trap) as caught:
        launch(text, "k", grid=1, block=32)
    assert "too much" in text.splitlines()[caught.value.line - 1]


def test_the_same_seed_gives_the_same_run_again():
    text = kernel(random.Random(3))
    runs = [launch(text, "k", grid=4, block=32, params=[np.zeros(ROUNDS, np.uint32)], check="off")
            for _ in range(2)]  # fmt: skip
    assert runs[0].as_dict() == runs[1].as_dict()
