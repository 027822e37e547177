"""Descriptors of slots' tiles: what a hand edit of them breaks is refused where it stands."""

import pytest
from edited_ir import ROLES, change, ir_after, place, refusal

PASSES = f"{ROLES},pipes-to-barriers"
BASE = '"sm.base_descriptor"'


def everywhere(text, new):
    """The type of a descriptor stands where it is made and where it is read."""
    return lambda lines: [line.replace(text, new) for line in lines]


def by_address(lines):
    """The MMA's A as the producer has it: a tile of the slot."""
    at = place(lines, '"sm.operand"', 0)
    name, slot = lines[at].split(" = ")[0], lines[at].split("(")[1].split(",")[0]
    types = lines[at].split(" : (")[1]
    held, tile = types.split(", !sm.descriptor")[0], types.rpartition(" -> ")[2]
    line = f'{name} = "pipe.tile"({slot}) {{index = 0 : i64}} : ({held}) -> {tile}'
    return [*lines[:at], line, *lines[at + 1 :]]


STRIDES = "sm.base_descriptor: lbo, sbo and swizzle must be (2048, 128, 'none') as the tile lies, "
# A 128x64 bf16 tile without a swizzle: a core has 8 rows of 16 bytes, and 128 rows are 16 cores.
ROWS = {
    "lbo": (everywhere("lbo = 2048", "lbo = 4096"), f"{STRIDES}got (4096, 128, 'none')"),
    "sbo": (everywhere("sbo = 128", "sbo = 256"), f"{STRIDES}got (2048, 256, 'none')"),
    "a tile that the slots lack": (
        change("sm.base_descriptor", "tile", 2),
        "sm.base_descriptor: tile must be one of shared memory in the slots, got 2 of !pipe.slot",
    ),
    "version": (
        everywhere("version = 1", "version = 0"),
        "sm.base_descriptor: version: must be 1 on sm_100a, got 0; write it",
    ),
    "a tile without descriptor": (
        by_address,
        "tile.mma: operands: must be given by sm.operand, got a tile's address; use it",
    ),
}


def test_both_tiles_of_a_slot_have_a_base_and_the_mma_reads_them():
    lines = ir_after(PASSES)
    assert sum(BASE in line for line in lines) == 2
    assert sum('"sm.operand"' in line for line in lines) == 2


@pytest.mark.parametrize("name", ROWS)
def test_a_descriptor_that_does_not_fit_its_tile_is_refused(name):
    edit, message = ROWS[name]
    found, line = refusal(PASSES, edit, then="select-instructions")
    assert found.startswith(message)
    assert found.partition(":")[0] in line
