"""Kernels whose threads are assigned otherwise than the rules say are refused at the op.

Each is what `assign-threads` leaves, with a line taken out, put in or changed.
"""

import pytest
from edited_ir import ROLES, STAGES, drop, insert, ir_after, refusal, replace

from tilewright.compiler.levels import level_of
from tilewright.compiler.pipeline import parse_module, run_passes_on_text
from tilewright.dialects.context import make_context

TEAMS = f"{ROLES},assign-threads"
REGION, END = '"sm.run"() ({', '}) {by = "lane"} : () -> ()'
AWAIT = '"tile.await_mma"() {pending = 0 : i64} : () -> ()'
PUT = "put it in a region of that, or none for 'team'"


def without_first_region(lines):
    return drop(END)(drop(REGION)(lines))


def again_around_converge(lines):
    return insert('"sm.converge"', END)(insert('"sm.converge"', REGION, before=True)(lines))


def again_around_acquire(lines):
    return insert('"pipe.commit"', END)(insert('"pipe.acquire"', REGION, before=True)(lines))


ROWS = {
    "another CTA than the rule's": (
        replace('by = "lane"', 'by = "issuer"'),
        f"pipe.acquire: threads: is for 'lane', got it where 'issuer' runs; {PUT}",
    ),
    "one lane's op for all": (
        without_first_region,
        f"pipe.acquire: threads: is for 'lane', got it where 'team' runs; {PUT}",
    ),
    "all threads' op for one lane": (
        insert('"pipe.commit"', AWAIT),
        f"tile.await_mma: threads: is for 'team', got it where 'lane' runs; {PUT}",
    ),
    "unknown threads": (
        replace('by = "lane"', 'by = "thread"'),
        "sm.run: by must be one of ('warp', 'warpgroup', 'lane', 'issuer', 'first'), got 'thread'",
    ),
    "a lane of a lane": (
        again_around_acquire,
        "sm.run: 'lane' must stand where more threads run, got it in 'lane'",
    ),
    "lanes that cannot meet": (
        again_around_converge,
        "sm.converge: all lanes of a warp must meet, got it in 'lane'",
    ),
    "warps of two roles": (
        replace("first = 4", "first = 3"),
        "sm.warps: roles: must follow each other, here from warp 4 on with barrier 2, got warp 3 "
        "and barrier 2; number them in order",
    ),
    "threads without a number": (
        drop('"sm.team"'),
        "tile.kernel: a team's program must begin with sm.team, got tile.tensor_map; run "
        "assign-threads",
    ),
    "warps whose threads have no number": (
        drop('"sm.team"', 1),
        "sm.warps: a team's program must begin with sm.team, got pipe.wait; run assign-threads",
    ),
    "numbers that come too late": (
        insert('"sm.run"', '%t:3 = "sm.team"() : () -> (i32, i32, i1)', before=True),
        "sm.team: must come first in its sm.warps, got sm.team before it",
    ),
    "numbers of no team": (
        insert(REGION, '%t:3 = "sm.team"() : () -> (i32, i32, i1)'),
        "sm.team: must stand in one of ('tile.kernel', 'sm.warps'), got it in sm.run",
    ),
    "warps that no CTA has": (
        replace("first = 4", "first = 32"),
        "sm.warps: warps must be 1 or more of the 32 of a CTA, got 1 from warp 32 on",
    ),
    "a named barrier that no CTA has": (
        replace("barrier = 1 ", "barrier = 16 "),
        "sm.warps: barrier must be 1 to 15, got 16",
    ),
    "an attribute that nobody reads": (
        replace('by = "lane"', 'by = "lane", to = 3'),
        "sm.run: attributes: nothing reads 'to'; take it off the op",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_threads_that_cannot_run_an_op_are_refused(name):
    edit, message = ROWS[name]
    found, line = refusal(TEAMS, edit)
    assert found == message
    assert message.partition(":")[0] in line


def test_threads_are_assigned_once():
    message, _ = refusal(TEAMS, list, then="assign-threads")
    assert message == ("tile.kernel: assign-threads: threads are assigned already; run it once")


def test_a_kernel_has_a_named_barrier_for_each_role():
    role = '"pipe.role"() ({\n^bb0:\n}) {agent = "%d", warps = 1 : i64} : () -> ()'
    more = "\n".join(role % number for number in range(13))

    def edit(lines):
        return replace("threads = 192", f"threads = {192 + 13 * 32}")(
            insert('agent = "mma"', more)(lines)
        )

    message, _ = refusal(ROLES, edit, then="assign-threads")
    assert message == (
        "pipe.role: assign-threads: a kernel has up to 15 roles, a named barrier each, got 16; "
        "join some"
    )


@pytest.mark.parametrize("passes", [TEAMS, f"{STAGES},assign-threads"])
def test_the_lowering_goes_on_from_printed_text(passes):
    text = "\n".join(ir_after(passes))
    with make_context():
        assert level_of(parse_module(text, "kernel.mlir")) == "assign-threads"
    whole = run_passes_on_text(
        "\n".join(ir_after(passes.removesuffix(",assign-threads"))), "kernel.mlir", "lower-to-nvvm"
    )
    assert run_passes_on_text(text, "kernel.mlir", "lower-to-nvvm") == whole
