"""What level-groups does not take, and what a hand may not write of tiles that are equally high."""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import check_program, parse_module
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir

SPEC = MatmulSpec(300, 264, 136, groups=3)
TILING = "tiling{tile=128x128x64 swap=true}"
LOADS = "tma-insertion,swizzle-selection"
EXCHANGED = f"{TILING},{LOADS}"
ROLES = f"{EXCHANGED},pipelining{{stages=2}},warp-specialization"
LEFT_OUT = "leave level-groups out"
OF_GROUPS = "must be groups of rows whose A and B are exchanged (tiling{swap=true}), got others"


def passed(spec, pipeline, target="sm_90a"):
    """The kernel that level-groups, the last of some passes, leaves."""
    twice = pipeline.count("level-groups") > 1
    wanted = {"stop_after": "assign-threads" if twice else "level-groups", "until": "mlir"}
    return compile_matmul(spec, target=target, pipeline=pipeline, **wanted).mlir


@pytest.mark.parametrize(
    ("spec", "pipeline", "target", "options", "rule"),
    [
        (MatmulSpec(300, 264, 136), EXCHANGED, "sm_90a", "", OF_GROUPS),
        (SPEC, EXCHANGED.replace(" swap=true", ""), "sm_90a", "", OF_GROUPS),
        (SPEC, EXCHANGED, "sm_100a", "", "must be for a chip whose MMAs are wgmma.mma_async"),
        (
            SPEC,
            f"{EXCHANGED},clustering{{shape=1x2 pair=false}}",
            "sm_90a",
            "",
            "must be of CTAs without a cluster, got one of [1, 2, 1]",
        ),
        (SPEC, f"{ROLES},level-groups", "sm_90a", "", "got some that are equally high already"),
        (SPEC, EXCHANGED, "sm_90a", "{unit=12}", "unit must be a multiple of 8 that divides"),
        (SPEC, EXCHANGED, "sm_90a", "{unit=24}", "that divides the tile's 128 rows, got 24"),
        (SPEC, EXCHANGED, "sm_90a", "{unit=16 box=8}", "box must be a multiple of unit, 16"),
        (SPEC, EXCHANGED, "sm_90a", "{box=48}", "that divides the tile's 128 rows, got 48"),
        (
            SPEC,
            EXCHANGED.replace("128x128x64", "128x128x128"),
            "sm_90a",
            "",
            "a box must be a K-major tile of rows of a group",
        ),
    ],
)
def test_what_level_groups_does_not_take(spec, pipeline, target, options, rule):
    with pytest.raises(CompileError) as caught:
        passed(spec, f"{pipeline},level-groups{options}", target)
    assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("written", "instead", "rule"),
    [
        ("%group#3", "%group#1", "count must be the rows of the group of the tile"),
        ("tile.level,", "", "must have tile.level, got none; add it"),
        ("tile.level,", "tile.level = 8 : i64,", "tile.level must be a unit attribute, got 8"),
    ],
)
def test_what_a_hand_may_not_write(written, instead, rule):
    text = passed(SPEC, f"{ROLES},level-groups")
    assert written in text
    assert rule in refusal(text.replace(written, instead))


OTHER = (
    '    %other_i, %other_j = "tile.cta_tile"() : () -> (index, index)\n'
    '    %other:4 = "tile.group"(%other_j, %offsets) {extent = 300 : i64, tile = 128 : i64, '
    "together = 1 : i64} : (index, memref<3xi32, 1>) -> (index, index, index, index)\n"
)


@pytest.mark.parametrize("op", ["tile.level_mma", "tile.level_load"])
def test_counts_of_a_second_group_are_not_taken_for_those_of_the_tile(op):
    """Whatever place it takes: no two reach the same MMA."""
    text = passed(SPEC, f"{ROLES},level-groups")
    at = text.index('    %group_rows = "tile.group_rows"')
    text = text[:at] + OTHER + text[at:]
    counted = re.sub(rf'("{op}"\(.*)%group#3', r"\1%other#3", text)
    assert counted != text
    assert "level: a tile must have one tile.group, got one more" in refusal(counted)


def test_rows_that_are_not_those_of_the_group_are_not_counted_by_it():
    text = passed(SPEC, f"{ROLES},level-groups")
    changed = text.replace('"tile.level_load"(%group_rows', '"tile.level_load"(%a_map')
    assert changed != text
    assert "of as many rows as the group has whose rows they take" in refusal(changed)


def test_sums_are_stored_where_the_group_of_their_mmas_reaches():
    """A second loop over tiles would store them to the rows of a group of its own."""
    text = passed(SPEC, f"{ROLES},persistence{{order=grouped group=8 ctas=2}},level-groups")
    lines = text.splitlines()
    begin = next(at for at, line in enumerate(lines) if "tile.for_each_tile" in line)
    end = next(line for line in lines if "order = " in line)
    store = next(at for at, line in enumerate(lines) if '"tile.store"' in line)
    lines[store:store] = [end, *lines[begin : begin + 5]]
    rule = "level: sums must be read where the tile.group of their MMAs reaches, got them elsewhere"
    assert rule in refusal("\n".join(lines))


def refusal(text):
    """What a kernel is refused with that was written by hand."""
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError) as caught:
        check_program(parse_module(text, "kernel.mlir"))
    return str(caught.value)


@pytest.mark.parametrize("columns", [12, 64, 128, 512])
def test_mmas_that_a_lowering_makes_narrow_are_written_as_level_ones(columns):
    text = passed(SPEC, f"{ROLES},level-groups")
    mma = r'"tile.level_mma"\((.*?), %group#3\) \{unit = 8 : i64\} : \((.*?), index\)'
    narrow = rf'"tile.narrow_mma"(\1) {{columns = {columns} : i64}} : (\2)'
    changed, count = re.subn(mma, narrow, text)
    assert count == 2
    rule = "level: MMAs must be of all columns, or as wide as tile.level_mma says, "
    assert f"{rule}got {columns} columns; write that instead" in refusal(changed)
