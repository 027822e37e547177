"""Programs whose pipes don't fit together are refused at the op, whole message compared.

Each is what a pass leaves, with a line taken out, doubled or moved.
"""

import pytest
from edited_ir import (
    CLAIMS,
    PERMUTES,
    ROLES,
    STAGES,
    TMA,
    double,
    drop,
    drop_lines,
    ir_after,
    move,
    refusal,
    replace,
)

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError
from tilewright.passes.checks.pipes.pipes import check_pipes

ACQUIRE, COMMIT, WAIT, RELEASE = (
    f'"pipe.{end}"' for end in ("acquire", "commit", "wait", "release")
)
OPEN = "commit the slot after what fills it"
HELD = "release the slot after the last op that reads it"
ROWS = {
    "a ring that nobody uses": (
        ROLES,
        double('"pipe.create"'),
        "pipe.create: one way: a ring must be filled and emptied, got no use; drop it",
    ),
    "a ring that nobody uses without roles": (
        TMA,
        double('"pipe.create"'),
        "pipe.create: one way: a ring must be filled and emptied, got no use; drop it",
    ),
    "no release": (
        TMA,
        drop(RELEASE),
        "pipe.wait: pairing: must meet one pipe.release, got none before the iteration ends; "
        f"{HELD}",
    ),
    "no commit": (
        TMA,
        drop(COMMIT),
        "pipe.wait: room: a slot must be full, got no commit for it before and nobody else to make "
        "one; acquire, fill and commit it first",
    ),
    "no commit in a role": (
        ROLES,
        drop(COMMIT),
        "pipe.acquire: pairing: must meet one pipe.commit, got none before the iteration ends; "
        f"{OPEN}",
    ),
    "no commit of sums": (
        ROLES,
        drop(COMMIT, -1),
        "pipe.acquire: pairing: must meet one pipe.commit, got none before the program ends; "
        f"{OPEN}",
    ),
    "two acquires": (
        ROLES,
        double(ACQUIRE, 0),
        "pipe.acquire: pairing: the slot acquired before must be committed first, got two acquires "
        "of a ring and no pipe.commit between them; commit a slot after what fills it",
    ),
    "two commits": (
        TMA,
        double(COMMIT),
        "pipe.commit: pairing: must follow a pipe.acquire of its ring, got none; acquire a slot",
    ),
    "two releases": (
        TMA,
        double(RELEASE),
        "pipe.release: pairing: must follow a pipe.wait of its ring, got none; wait for a slot "
        "first",
    ),
    "two waits": (
        ROLES,
        double(WAIT, -1),
        "pipe.wait: pairing: at most 1 slots of the ring can be held at once, got one more and no "
        "pipe.release between them; release a slot after the last op that reads it",
    ),
    "a release before the MMA": (
        TMA,
        move(RELEASE, WAIT),
        "tile.mma: holding: reads a tile of a slot between pipe.wait and pipe.release, got one "
        "that pipe.release has closed; move it between the two",
    ),
    "a commit before the copies": (
        TMA,
        move(COMMIT, ACQUIRE),
        "pipe.commit: filling: one copy must fill each of the slot's 2 tiles, got 0 copies and 1 "
        "pipe.tile for tile 0; load every tile once between pipe.acquire and pipe.commit",
    ),
    "a copy left out": (
        TMA,
        drop('"tile.tma_load"', 1),
        "pipe.commit: filling: one copy must fill each of the slot's 2 tiles, got 0 copies and 1 "
        "pipe.tile for tile 1; load every tile once between pipe.acquire and pipe.commit",
    ),
    "a copy made twice": (
        TMA,
        double('"tile.tma_load"'),
        "pipe.commit: filling: one copy must fill each of the slot's 2 tiles, got 2 copies and 1 "
        "pipe.tile for tile 0; load every tile once between pipe.acquire and pipe.commit",
    ),
    "no MMA": (
        ROLES,
        drop('"tile.mma"'),
        "pipe.commit: filling: an MMA must have summed into the slot, got none; commit it after "
        "one",
    ),
    "fewer slots read than loaded": (
        STAGES,
        replace("%c4_4 to %c5_5 step", "%c4_4 to %c4_4 step"),
        "pipe.acquire: balance: every slot that is committed must be waited for and released, got "
        "5 commits and 4 releases; read what was loaded",
    ),
    "more slots read than loaded": (
        STAGES,
        drop_lines('"pipe.acquire"', '"pipe.commit"', 1),
        "pipe.wait: room: a slot must be full, got no commit for it before and nobody else to make "
        "one; acquire, fill and commit it first",
    ),
    "a ring that is too small": (
        f"{TMA},pipelining{{stages=3}}",
        lambda lines: [line.replace("ring<3 : i64", "ring<1 : i64") for line in lines],
        "pipe.acquire: room: a slot must be empty, got 1 of 1 full and nobody else to release one; "
        "release slots before, or give the ring more",
    ),
    "roles that count differently": (
        ROLES,
        replace("%c0 to %c5", "%c0 to %c1"),
        "pipe.wait: balance: must take the 5 slots that 'load' commits, got 1; let both count "
        "alike",
    ),
    "roles that count differently over tiles": (
        f"{ROLES},persistence",
        replace("%c0 to %c5", "%c0 to %c1"),
        "pipe.wait: balance: must take the 5 slots a tile that 'load' commits, got 1; let both "
        "count alike",
    ),
    "roles with other tiles": (
        f"{ROLES},persistence",
        replace("tiles = [3, 3]", "tiles = [3, 4]"),
        "tile.for_each_tile: balance: roles that share a ring must loop over the same tiles, got "
        'tiles tiles = [3, 4], order = "grouped", group = 8 : i64 and tiles tiles = [3, 3], order '
        "= \"grouped\", group = 8 : i64 in 'mma'; give both one loop",
    ),
    "a ring that nobody fills": (
        ROLES,
        drop_lines('"pipe.role"', "}) {agent", 1),
        "pipe.create: one way: one role must fill a ring and another empty it, or two in turns, "
        "got none to fill and 'mma' to empty it; give each its own ring",
    ),
    "a role that reads no claims": (
        CLAIMS,
        drop_lines('"pipe.role"', "}) {agent", -1),
        "pipe.create: claims: one role asks and every other reads the answers, got 0 pipe.claim "
        "and no role without a pipe.for_each_claim; give each role but one the loop",
    ),
    "a slot kept for the next tile": (
        f"{ROLES},persistence",
        drop(RELEASE, 0),
        "pipe.wait: pairing: must meet one pipe.release, got none before the iteration ends; "
        f"{HELD}",
    ),
}
WARPGROUPS = {
    "a release before the MMAs are done": (
        f"{TMA},pipelining{{stages=3}}",
        replace("pending = 1", "pending = 2"),
        "pipe.release: finishing: the MMAs that read the slot must be done, got one that may be "
        "under way; put a tile.await_mma before it, pending the MMAs issued after that one",
    ),
    "no wait for MMAs": (
        TMA,
        drop('"tile.await_mma"'),
        "pipe.release: finishing: the MMAs that read the slot must be done, got one that may be "
        "under way; put a tile.await_mma before it, pending the MMAs issued after that one",
    ),
    "a turn that is not waited for": (
        PERMUTES,
        lambda lines: drop(RELEASE, 3)(drop(WAIT, 2)(lines)),
        "pipe.wait: turns: a slot of a shared ring is waited for with a slot of !pipe.turn at "
        "hand, got none; acquire or wait for a turn before it",
    ),
    "slots of the other that are not skipped": (
        PERMUTES,
        drop('"pipe.skip"'),
        "pipe.wait: balance: must take the 5 slots a tile that 'load' commits, got 5 and 0 skipped "
        "of 2 tiles; let both count alike",
    ),
    "own slots that are skipped": (
        PERMUTES,
        move('"pipe.skip"', "^bb0(%arg3: index", 0),
        "pipe.skip: turns: 0 slots of tiles before must be skipped first, got 5; skip them before "
        "the first pipe.wait and the rest after the last",
    ),
    "a consumer with both turns": (
        PERMUTES,
        replace("turn = 1", "turn = 0"),
        "pipe.skip: turns: 0 slots of tiles before must be skipped first, got 5; skip them before "
        "the first pipe.wait and the rest after the last",
    ),
    "more slots held than the ring has": (
        PERMUTES,
        double(WAIT),
        "pipe.wait: pairing: at most 2 slots of the ring can be held at once, got one more and no "
        "pipe.release between them; release a slot after the last op that reads it",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_program_whose_pipes_do_not_fit_is_refused(name):
    passes, edit, message = ROWS[name]
    found, line = refusal(passes, edit, check=check_pipes)
    assert found == message
    assert message.partition(":")[0] in line


@pytest.mark.parametrize("name", WARPGROUPS)
def test_a_program_of_warpgroups_whose_pipes_do_not_fit_is_refused(name):
    passes, edit, message = WARPGROUPS[name]
    found, line = refusal(passes, edit, "sm_90a", check_pipes)
    assert found == message
    assert message.partition(":")[0] in line


def test_a_planned_ring_that_threads_fill_and_read_is_held_to_the_same():
    passes = "normalize,tiling,copy-insertion,pipelining{stages=2},plan-memory"
    message, line = refusal(passes, drop(RELEASE), "sm_80", check=check_pipes)
    assert '"sm.copy_ring"' in "".join(ir_after(passes, "sm_80"))
    assert message == ROWS["no release"][2]
    assert WAIT in line


def test_passes_check_the_pipes_that_they_are_given():
    lines = drop(RELEASE)(list(ir_after(TMA)))
    with pytest.raises(CompileError) as caught:
        run_passes_on_text("\n".join(lines), "kernel.mlir", "lower-to-nvvm")
    assert caught.value.message.startswith("pipe.wait: pairing: must meet one pipe.release")
