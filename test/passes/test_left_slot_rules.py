"""What slot-reuse does not take, and what a hand may not write of slots that are left."""

from pathlib import Path

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError
from tilewright.dialects.reused_places import ReusedPlace, find_reused_place

KERNEL = (Path(__file__).parent / "slot_reuse" / "residual.mlir").read_text()
STAGED = "tma-insertion,swizzle-selection,epilogue-staging{columns=16 ahead=2}"
ROLES = f"{STAGED},pipelining{{stages=4}},warp-specialization"
OWN = f"{ROLES.replace('ahead=2', 'ahead=4')},slot-reuse"
REFUSED = {
    f"{STAGED},slot-reuse": "needs a load role, got none; run warp-specialization first",
    f"{ROLES},persistence{{ctas=2}},slot-reuse": "needs one tile a CTA, got a loop over tiles",
    f"{ROLES.replace(',pipelining', ',clustering{shape=2x1 pair=false},pipelining')},slot-reuse": (
        "needs a CTA without a cluster, got one of [2, 1, 1]"
    ),
    f"{ROLES.replace(' ahead=2', '')},slot-reuse": (
        "pieces must be of one operand as large as C, ahead of the store "
        "(epilogue-staging{ahead}), got 0 operands"
    ),
    f"{ROLES},slot-reuse,slot-reuse": "got pieces in such slots already",
    f"{OWN},slot-reuse": "got pieces in such slots already",
}


def moved(text):
    """The load role drains and loads before its steps."""
    lines = text.splitlines()
    late = [line for line in lines if "pipe.drain" in line or "tile.load_ahead" in line]
    rest = [line for line in lines if line not in late]
    begin = max(number for number, line in enumerate(rest) if "scf.for" in line)
    return "\n".join([*rest[:begin], *late, *rest[begin:]])


def inside(text):
    """The load role drains and loads in each of its steps."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if "pipe.drain" in line)
    end = lines.pop(at - 1)
    return "\n".join([*lines[: at + 1], end, *lines[at + 1 :]])


LOADED_LATE = (
    "ahead: a role of a CTA with one tile and no cluster loads into slots that are left, "
    "after what fills them, got another; give pieces a ring"
)
FEW = "!pipe.ring<3 : i64, [!tile.smem<tensor<128x16"
BY_HAND = {
    "another number of slots": (
        lambda text: text.replace("{slots = 1 : i64}", "{slots = 2 : i64}"),
        "ahead: 1 slots must be left for 4 pieces, got 2 for 4; drain as many",
    ),
    "more than the ring has": (
        lambda text: text.replace("{slots = 1 : i64}", "{slots = 5 : i64}"),
        "slots must be from 1 to the ring's 4, got 5",
    ),
    "a smaller ring": (
        lambda text: text.replace("!pipe.ring<4 : i64, [!tile.smem<tensor<128x16", FEW),
        "ahead: 1 slots must be left for 4 pieces, got 1 for 3; drain as many",
    ),
    "steps behind it": (
        moved,
        LOADED_LATE,
    ),
    "in every step": (
        inside,
        LOADED_LATE,
    ),
    "a cluster": (
        lambda text: text.replace("cluster = [1, 1, 1]", "cluster = [2, 1, 1]"),
        LOADED_LATE,
    ),
}


def test_another_role_loads_all_pieces_into_slots_of_their_own_or_none():
    text = run_passes_on_text(KERNEL, "kernel.mlir", OWN, long=True)
    few = text.replace("!pipe.ring<4 : i64, [!tile.smem<tensor<128x16", FEW)
    assert few != text
    with pytest.raises(CompileError, match="ahead: must stand beside the store and before it"):
        run_passes_on_text(few, "kernel.mlir", "swizzle-selection")


@pytest.mark.parametrize("passes", REFUSED)
def test_other_kernels_are_refused(passes):
    with pytest.raises(CompileError) as error:
        run_passes_on_text(KERNEL, "kernel.mlir", passes, target="sm_90a")
    assert "slot-reuse: " in str(error.value) and REFUSED[passes] in str(error.value)


def test_pieces_that_fit_no_slots_are_refused():
    wide = KERNEL.replace("%r: !c", "%r: !r").replace("(!c) -> bf16", "(!r) -> f32")
    wide = wide.replace("arith.extf %e : bf16 to f32", "arith.addf %e, %e : f32")
    text = wide.replace("!ta =", "!r = memref<256x256xf32, 1>\n!ta =")
    passes = f"{ROLES.replace('stages=4', 'stages=1')},slot-reuse"
    with pytest.raises(CompileError, match="must fit slots of A or B that have been read"):
        run_passes_on_text(text, "kernel.mlir", passes, target="sm_90a")


@pytest.mark.parametrize("name", BY_HAND)
def test_slots_that_are_not_left_are_refused(name):
    change, wanted = BY_HAND[name]
    passes = f"{ROLES},slot-reuse"
    text = run_passes_on_text(KERNEL, "kernel.mlir", passes, target="sm_90a", long=True)
    assert change(text) != text
    with pytest.raises(CompileError) as error:
        run_passes_on_text(change(text), "kernel.mlir", "assign-threads")
    assert wanted in str(error.value)


def test_pieces_in_other_slots_than_those_that_are_left_are_refused():
    passes = f"{ROLES},slot-reuse,assign-threads,plan-memory"
    text = run_passes_on_text(KERNEL, "kernel.mlir", passes, target="sm_90a", long=True)
    memory = '"sm.slot_memory"() {offsets = [0], slots = 4 : i64}'
    for place, wanted in (
        (16384, "lie where slot 0 is left, at byte 0, got 16384; move them"),
        (
            98304,
            "in slots of operands must lie in those of one of them, got bytes 98304 to 114687",
        ),
    ):
        changed = text.replace(memory, memory.replace("[0]", f"[{place}]"))
        assert changed != text
        with pytest.raises(CompileError) as error:
            run_passes_on_text(changed, "kernel.mlir", "expand-loops")
        assert f"sm.slot_memory: apart: pieces {wanted}" in str(error.value)


@pytest.mark.parametrize(
    ("slot_bytes", "stages", "steps", "bytes_", "wanted"),
    [
        ([16, 32], 4, 64, 64, ReusedPlace(1, 0, 2)),  # two of B's slots, not all of A's
        ([16, 32], 4, 66, 64, ReusedPlace(1, 2, 2)),
        ([16, 32], 4, 67, 64, ReusedPlace(1, 0, 3)),  # they would wrap around: one more is left out
        ([16, 32], 4, 3, 32, None),  # a slot that nobody has read
        ([16, 32], 2, 9, 64, None),  # slots 1 and 0 do not follow each other
        ([16, 16], 4, 64, 80, None),
    ],
)
def test_pieces_lie_where_the_fewest_slots_must_be_left(slot_bytes, stages, steps, bytes_, wanted):
    assert find_reused_place(slot_bytes, stages, steps, bytes_) == wanted
