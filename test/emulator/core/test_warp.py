"""shfl, vote, match, redux, elect (PTX ISA §9.7.9.6, §9.7.13.9–§9.7.13.14)."""

from __future__ import annotations

import numpy as np
import pytest


def shuffle(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """(source lane, in range): the pseudo-code of PTX ISA §9.7.9.6."""
    bound, segment = c & 31, c >> 8 & 31
    b &= 31
    highest = lane & segment | bound & ~segment & 31
    lowest = lane & segment
    if mode == "up":
        source, inside = lane - b, lane - b >= highest
    elif mode == "down":
        source, inside = lane + b, lane + b <= highest
    elif mode == "bfly":
        source, inside = lane ^ b, (lane ^ b) <= highest
    else:
        source = lowest | b & ~segment & 31
        inside = source <= highest
    return source if inside else lane, inside


@pytest.mark.parametrize("b", [0, 1, 5, 16, 31])
@pytest.mark.parametrize(
    "mode, c",
    [
        ("up", 0),
        ("down", 31),
        ("bfly", 31),
        ("idx", 31),
        ("up", 0x1800),
        ("down", 0x181F),
        ("bfly", 0x101F),
        ("idx", 0x1C1F),
    ],
)
def test_shuffles_follow_the_pseudo_code(execute, integers, mode, b, c):
    a = integers(32, 1)
    value = execute(f"shfl.sync.{mode}.b32 %d|%p, %a, {b}, {c}, -1;", a, out=np.uint32)
    flag = execute(
        f"shfl.sync.{mode}.b32 %t0|%p, %a, {b}, {c}, -1; selp.u32 %d, 1, 0, %p;", a, out=np.uint32
    )
    for lane in range(32):
        source, inside = shuffle(mode, lane, b, c)
        assert value[lane] == a[source] and flag[lane] == inside


def test_shuffle_lanes_by_register(execute, integers):
    a, b = integers(32, 1), np.random.default_rng(0).integers(0, 32, 32, np.uint32)
    got = execute("shfl.sync.idx.b32 %d, %a, %b, 31, 0xffffffff;", a, b, out=np.uint32)
    assert got.tolist() == a[b].tolist()


@pytest.mark.parametrize("condition, votes", [("lt", range(5)), ("lt", range(32)), ("ge", [])])
def test_votes(execute, condition, votes):
    """PTX ISA §9.7.13.9 vote.sync"""
    limit = {5: 5, 32: 32, 0: 99}[len(list(votes))]
    bits = sum(1 << lane for lane in votes)
    test = f"setp.{condition}.u32 %p, %lane, {limit};"
    got = execute(f"{test} vote.sync.ballot.b32 %d, %p, -1;", out=np.uint32)
    assert got.tolist() == [bits] * 32
    for mode, wanted in (
        ("all", bits == 0xFFFFFFFF),
        ("any", bits != 0),
        ("uni", bits in (0, 0xFFFFFFFF)),
    ):
        got = execute(
            f"{test} vote.sync.{mode}.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;", out=np.uint32
        )
        assert got.tolist() == [int(wanted)] * 32


def test_a_vote_counts_only_the_members(execute):
    got = execute(
        """setp.lt.u32 %p, %lane, 8; mov.u32 %d, 77; setp.lt.u32 %q, %lane, 4;
                     @%p vote.sync.ballot.b32 %d, !%q, 0xFF;""",
        out=np.uint32,
    )
    assert got.tolist() == [0xF0] * 8 + [77] * 24


@pytest.mark.parametrize("bits", [32, 64])
def test_match(execute, bits):
    """PTX ISA §9.7.13.10 match.sync"""
    a = np.random.default_rng(1).integers(0, 4, 32, f"u{bits // 8}")
    got = execute(f"match.any.sync.b{bits} %d, %a, -1;", a, out=np.uint32)
    wanted = [sum(1 << k for k in range(32) if a[k] == x) for x in a]
    assert got.tolist() == wanted
    got = execute(f"match.all.sync.b{bits} %d|%p, %a, -1; @!%p mov.u32 %d, 9;", a, out=np.uint32)
    assert got.tolist() == [9] * 32
    a[:] = 3
    got = execute(f"match.all.sync.b{bits} %d|%p, %a, -1; @!%p mov.u32 %d, 9;", a, out=np.uint32)
    assert got.tolist() == [0xFFFFFFFF] * 32


@pytest.mark.parametrize(
    "text, function",
    [
        ("add.u32", lambda v: sum(v) & 0xFFFFFFFF),
        ("min.u32", min),
        ("max.u32", max),
        ("and.b32", lambda v: np.bitwise_and.reduce(v)),
        ("or.b32", lambda v: np.bitwise_or.reduce(v)),
        ("xor.b32", lambda v: np.bitwise_xor.reduce(v)),
    ],
)
def test_reductions(execute, integers, text, function):
    """PTX ISA §9.7.13.12 redux.sync"""
    a = integers(32, 5)
    got = execute(f"redux.sync.{text} %d, %a, -1;", a, out=np.uint32)
    assert got.tolist() == [int(function(a.tolist()))] * 32


def test_signed_and_float_reductions(execute, integers, as_signed):
    a = integers(32, 6)
    got = execute("redux.sync.min.s32 %d, %a, -1;", a, out=np.uint32)
    assert as_signed(int(got[0]), 32) == min(as_signed(x, 32) for x in a.tolist())
    f = np.random.default_rng(2).normal(size=32).astype(np.float32)
    assert execute("redux.sync.max.f32 %d, %a, -1;", f, out=np.float32)[3] == f.max()
    assert execute("redux.sync.min.abs.f32 %d, %a, -1;", f, out=np.float32)[3] == np.abs(f).min()


def test_elect_picks_one_lane_of_the_members(execute):
    """PTX ISA §9.7.13.14 elect.sync"""
    got = execute("elect.sync %d|%p, -1; @%p add.u32 %d, %d, 100;", out=np.uint32)
    assert got.tolist() == [100] + [0] * 31
    got = execute(
        """setp.ge.u32 %q, %lane, 9; mov.u32 %d, 55;
                     @%q elect.sync %d|%p, 0xFFFFFE00;""",
        out=np.uint32,
    )
    assert got.tolist() == [55] * 9 + [9] * 23


def test_members_wait_for_each_other_across_a_branch(execute):
    """The lanes arrive at the same instruction from a divergent path one after the other"""
    got = execute(
        """setp.lt.u32 %p, %lane, 16; mov.u32 %t0, 1; @%p bra J; mov.u32 %t0, 2;
                     J: redux.sync.add.u32 %d, %t0, -1;""",
        out=np.uint32,
    )
    assert got.tolist() == [48] * 32


def test_groups_with_different_masks_execute_apart(execute):
    got = execute(
        """setp.lt.u32 %p, %lane, 16; selp.u32 %t0, 0xFFFF, 0xFFFF0000, %p;
                     redux.sync.add.u32 %d, %lane, %t0;""",
        out=np.uint32,
    )
    assert got.tolist() == [120] * 16 + [376] * 16


def test_a_member_that_never_comes_is_a_convergence_error(trap_of):
    trap = trap_of(
        "setp.lt.u32 %p, %lane, 16; @%p bar.warp.sync -1; @!%p vote.sync.any.pred %q, %p, -1;"
    )
    assert trap.category == "convergence"
    assert "all live lanes of the membermask 0xffffffff must execute `bar.warp" in trap.message


BOTH_SIDES = """setp.lt.u32 %p, %lane, {first}; mov.u32 %d, 7; @%p bra LEFT;
    {right} bra.uni OUT; LEFT: {left} OUT: {end}"""
"""Lanes below `first` execute `left`, the others `right`."""


@pytest.mark.parametrize("first", [1, 16, 31])
def test_two_sides_of_a_branch_meet_by_their_membermask(execute, integers, first):
    """§9.7.13.2: "a bar.warp.sync with the same membermask value", not the same instruction"""
    a = integers(32, 3)
    shared = ".shared .b32 all[32]; mov.u32 %t1, all; mad.lo.u32 %t2, %lane, 4, %t1;"
    mirror = "sub.u32 %t3, 31, %lane; mad.lo.u32 %t3, %t3, 4, %t1;"
    meet = "st.shared.b32 [%t2], %a; bar.warp.sync -1; ld.shared.b32 %d, [%t3];"
    sides = BOTH_SIDES.format(first=first, left=meet, right=meet, end="")
    assert execute(shared + mirror + sides, a, out=np.uint32).tolist() == a[::-1].tolist()


def test_two_sides_of_a_branch_tell_each_other_values(execute, integers):
    a = integers(32, 4)
    sides = BOTH_SIDES.format(
        first=11,
        left="redux.sync.max.u32 %d, %a, -1; shfl.sync.bfly.b32 %d, %d, 0, 31, -1;",
        right="add.u32 %t0, %a, 0; redux.sync.max.u32 %d, %t0, -1;"
        "shfl.sync.bfly.b32 %d, %t0, 16, 31, -1;",
        end="",
    )
    wanted = [a.max()] * 11 + [
        a[lane ^ 16] if lane ^ 16 >= 11 else a.max() for lane in range(11, 32)
    ]
    assert execute(sides, a, out=np.uint32).tolist() == wanted
    vote = "setp.gt.u32 %q, %lane, {0}; vote.sync.ballot.b32 %d, %q, -1;"
    sides = BOTH_SIDES.format(first=8, left=vote.format(5), right=vote.format(29), end="")
    assert execute(sides, out=np.uint32).tolist() == [0xC00000C0] * 32
    match = "{0} match.any.sync.b32 %d, %t0, -1;"
    sides = BOTH_SIDES.format(
        first=3,
        left=match.format("mov.u32 %t0, 5;"),
        right=match.format("and.b32 %t0, %lane, 5;"),
        end="",
    )
    with_five = 0b111 | sum(1 << lane for lane in range(3, 32) if lane & 5 == 5)
    assert execute(sides, out=np.uint32)[0] == with_five


def test_one_lane_is_elected_of_two_sides(execute):
    elect = "elect.sync %d|%q, -1; selp.u32 %d, 100, %d, %q;"
    sides = BOTH_SIDES.format(first=5, left=elect, right=elect, end="")
    assert execute(sides, out=np.uint32).tolist() == [100] + [0] * 31


def test_members_that_are_complete_do_not_wait_for_those_of_another_membermask(execute):
    """Lanes 0 to 15 meet, and let lane 31 go on, for which lanes 16 to 30 wait"""
    got = execute(
        """.shared .align 8 .b64 full; mov.u32 %t1, full; mov.u32 %d, 0;
        setp.eq.u32 %p, %lane, 0; @%p mbarrier.init.shared.b64 [%t1], 1; bar.warp.sync -1;
        setp.lt.u32 %q, %lane, 16; selp.u32 %t0, 0xFFFF, 0xFFFF0000, %q;
        setp.eq.u32 %q, %lane, 31; @%q bra WAIT;
        MEET: bar.warp.sync %t0; @!%p bra OUT; mbarrier.arrive.shared.b64 _, [%t1]; bra OUT;
        WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%t1], 0; @!%q bra WAIT; bra MEET;
        OUT: mov.u32 %d, %lane;""",
        out=np.uint32,
    )
    assert got.tolist() == list(range(32))


@pytest.mark.parametrize(
    "left, right",
    [
        ("bar.warp.sync -1;", "bar.warp.sync 0xFFFF0000; vote.sync.any.pred %q, %p, -1;"),
        ("vote.sync.any.pred %q, %p, -1;", "vote.sync.all.pred %q, %p, -1;"),
        ("shfl.sync.bfly.b32 %d, %d, 1, 31, -1;", "shfl.sync.idx.b32 %d, %d, 1, 31, -1;"),
    ],
    ids=["other masks", "other votes", "other shuffles"],
)
def test_sides_with_other_qualifiers_or_masks_do_not_meet(trap_of, left, right):
    trap = trap_of(BOTH_SIDES.format(first=16, left=left, right=right, end=""))
    assert trap.category == "convergence"


def test_a_lane_outside_its_own_mask_is_a_convergence_error(trap_of):
    trap = trap_of("setp.eq.u32 %p, 0, 0; vote.sync.ballot.b32 %d, %p, 0xFF;")
    assert trap.category == "convergence"
    assert trap.message == "lanes 8-31 execute with membermask 0x000000ff, which does not name them"


def test_shuffles_outside_of_their_mask_run_where_libraries_do(execute, trap_of, integers):
    body, a = "shfl.sync.bfly.b32 %d, %a, 2, 31, 0xFFFF;", integers(32, 1)
    trap = trap_of(body, a)
    assert trap.category == "convergence" and "check=shipped" in trap.message
    got = execute(body, a, out=np.uint32, check="shipped")
    assert got.tolist() == a[np.arange(32) ^ 2].tolist()  # as on an H200
    trap = trap_of(f"setp.lt.u32 %p, %lane, 16; @!%p {body} @%p {body}", a, check="shipped")
    assert trap.category == "convergence"  # an illegal instruction there


def test_exited_lanes_are_not_waited_for(execute):
    got = execute(
        """mov.u32 %d, 0; setp.ge.u32 %p, %lane, 30; @%p bra OUT;
                     setp.eq.u32 %q, %lane, 31; bar.warp.sync 0x3FFFFFFF;
                     OUT: bar.warp.sync -1; activemask.b32 %d;""",
        out=np.uint32,
    )
    assert got.tolist() == [0xFFFFFFFF] * 32
