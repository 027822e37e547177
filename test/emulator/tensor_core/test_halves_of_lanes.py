"""Accumulators of M=64 have 16 lanes of each 32: two may share columns (PTX ISA §9.7.16.10.5)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator.machine import swizzle

WIDE, NARROW = 32, 16
SECOND_PHASE = """
L:
  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], 1;
  @!%p7 bra L;
"""


def two_products(tc, second_lane: int):
    """N=32 at lane 0 and N=16 at `second_lane` of the same columns, with no wait between them."""
    rng = np.random.default_rng(5)
    a, b = tc.random_matrix(rng, 64, 16, "bf16"), tc.random_matrix(rng, WIDE, 16, "bf16")
    image = bytearray(12288)
    words = [
        tc.place_operand(image, a, swizzle.NONE, False, 0),
        tc.place_operand(image, b, swizzle.NONE, False, 8192),
        tc.instruction_word("bf16", "bf16", "f32", 64, WIDE),
    ]
    narrow = tc.instruction_word("bf16", "bf16", "f32", 64, NARROW)
    second = tc.mma("f16").replace("%r11", "%r20").replace("[%r12]", "[%r21]")
    body = f"mov.u32 %r20, {narrow}; add.u32 %r21, %r12, {second_lane << 16};\n" + tc.FALSE
    return a, b, image, words, body + tc.mma("f16") + second + tc.DONE


@pytest.mark.parametrize("seed", range(3))
def test_accumulators_in_both_halves_of_the_lanes_need_no_wait_between_them(tc, seed):
    a, b, image, words, body = two_products(tc, 16)
    load, out = tc.dump_d(64, WIDE)
    tc.run(body + load, image, out, *words, seed=seed)
    np.testing.assert_array_equal(tc.read_d(out, 64, WIDE).view(np.float32), tc.product(a, b))
    load, out = tc.dump_d(64, NARROW)
    tc.run(body + load.replace("%r14, %r12", "%r14, %r21"), image, out, *words, seed=seed)
    wanted = tc.product(a, b)[:, :NARROW]
    np.testing.assert_array_equal(tc.read_d(out, 64, NARROW).view(np.float32), wanted)


def test_accumulators_of_different_shapes_in_the_same_lanes_need_one(tc):
    _, _, image, words, body = two_products(tc, 0)
    trap = tc.refused(body, image, words)
    assert (trap.category, "columns 0..15" in trap.message) == ("missing-wait", True)


def test_reading_beside_an_accumulator_in_the_other_half_needs_no_wait(tc):
    """The load of lanes 16 to 31 follows while the product of lanes 0 to 15 may be under way"""
    _, _, image, words, body = two_products(tc, 16)
    load, out = tc.dump("16x64b.x4", 4, 1, 8), np.zeros(512, np.uint32)
    upper = load.replace("%r14, %r12", "%r14, %r21")
    later = "bar.sync 0;\n" + tc.mma("f16") + tc.COMMIT  # no warp may lag two phases
    tc.run(body + later + upper + SECOND_PHASE, image, out, *words)
