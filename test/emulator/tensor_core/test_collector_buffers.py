"""Collector buffers of tcgen05.mma (PTX ISA §9.7.16.10.9): a product that reads an operand from one
finds there what an earlier product has filled in, or is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

M, N = 128, 64
OTHER_A = "add.s64 %rd2, %rd2, 2;\n"
"""A starts 32 bytes, one step along K, further."""
DISCARD = ""
CHANGED = """
  @%p0 st.shared.u32 [%r2], 7; fence.proxy.async.shared::cta; bar.sync 0;
"""


def operands(tc) -> tuple:
    """A [M, 64] and B [N, 64], the bytes of shared memory, and the three descriptors."""
    rng = np.random.default_rng(5)
    a, b = tc.random_matrix(rng, M, 64, "bf16"), tc.random_matrix(rng, N, 64, "bf16")
    image = bytearray(24576)
    adesc = tc.place_operand(image, a, swizzle.B128, False, 0)
    bdesc = tc.place_operand(image, b, swizzle.B128, False, 16384)
    return a, b, image, adesc, bdesc, tc.instruction_word("bf16", "bf16", "f32", M, N)


def products(tc, *steps: str) -> str:
    """Products one behind the other; a step is a usage, or text between two products."""
    body, add = "", tc.FALSE
    for step in steps:
        if step and not step.startswith(("a::", "b")):
            body += step
            continue
        usage = f".collector::{step}" if step else ""
        product = tc.mma("f16")
        if step.startswith("b"):
            product = product.replace(".mma.", ".mma.ws.")
        body += add + product.replace("kind::f16", f"kind::f16{usage}")
        add = tc.TRUE
    return body


RIGHT = {
    "filled and used": ("a::fill", "a::use", "a::use", "a::lastuse"),
    "filled again": ("a::fill", "a::lastuse", "a::fill", "a::use"),
    "never used": ("a::fill", OTHER_A, "a::fill", DISCARD, DISCARD),
    "another operand filled in": ("a::fill", OTHER_A, "a::fill", "a::use"),
    "B of two buffers": ("b1::fill", "b3::fill", "b1::use", "b3::lastuse", "b1::use"),
    "another buffer's contents discarded": ("b1::fill", "b0::discard", "b1::use"),
}
WRONG = {
    "never filled": (("a::use",), "no valid fill"),
    "behind a product that keeps nothing": (("a::fill", DISCARD, "a::use"), "no valid fill"),
    "behind its last use": (("a::fill", "a::lastuse", "a::use"), "no valid fill"),
    "discarded": (("a::fill", "a::discard", "a::lastuse"), "no valid fill"),
    "another operand": (("a::fill", OTHER_A, "a::use"), "another operand"),
    "another buffer": (("b1::fill", "b2::use"), "no valid fill"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_valid_buffer_changes_nothing(tc, name):
    a, b, image, *words = operands(tc)
    load, out = tc.dump_d(M, N)
    steps = RIGHT[name]
    tc.run(products(tc, *steps) + tc.DONE + load, image, out, *words)
    before = steps.index(OTHER_A) if OTHER_A in steps else len(steps)
    count, behind = before, len(steps) - before - 1 if OTHER_A in steps else 0
    wanted = count * tc.product(a[:, :16], b[:, :16])
    wanted += behind * tc.product(a[:, 16:32], b[:, :16])
    np.testing.assert_array_equal(tc.read_d(out, M, N).view(np.float32), wanted)


@pytest.mark.parametrize("name", WRONG)
def test_a_buffer_without_the_operand_is_refused(tc, name):
    _, _, image, *words = operands(tc)
    steps, why = WRONG[name]
    for seed in range(3):
        trap = tc.refused(products(tc, *steps) + tc.DONE, image, words, seed=seed)
        assert trap.category == "protocol" and why in trap.message


def test_a_buffer_does_not_follow_what_memory_holds_now(tc):
    _, _, image, *words = operands(tc)
    body = products(tc, "a::fill") + tc.DONE + CHANGED
    body += tc.TRUE + tc.mma("f16").replace("kind::f16", "kind::f16.collector::a::use")
    again = tc.DONE.replace("W", "V").replace("[%r1], 0", "[%r1], 1")
    trap = tc.refused(body + again, image, words)
    assert trap.category == "protocol" and "memory has changed" in trap.message
