"""Memory plans that cannot be are refused at the op; each is what `plan-memory` leaves, changed."""

import re

import pytest
from edited_ir import PERMUTES, ROLES, change, drop, insert, ir_after, refusal, replace

from tilewright.compiler.levels import level_of
from tilewright.compiler.pipeline import (
    parse_module,
    parse_pipeline,
    run_passes,
    run_passes_on_text,
)
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context, make_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir
from tilewright.passes.base import TARGET_ATTRIBUTE, PassLog
from tilewright.passes.checks.memory import check_memory

TILING = "normalize,tiling"
PLAN = f"{ROLES},plan-memory"
SIZE, COLUMNS = '"sm.shared_memory"', '"sm.columns"'


def first(text, lines):
    return next(line for line in lines if text in line)


def share_barriers(line):
    """A ring that takes its first barriers for both."""
    return re.sub(r'"sm.ring"\((%\w+), %\w+,', r'"sm.ring"(\1, \1,', line)


def of_an_argument(lines):
    """A ring whose slots would be those of an operand in global memory."""
    name, type_ = re.search(r"\^bb0\((%\w+): (memref<[^>]*>)", first("^bb0(", lines)).groups()
    planned = first('"sm.slot_memory"', lines)
    memory, slot = planned.split(" = ")[0].strip(), planned.split(" -> ")[1].strip()
    return [
        line.replace(f"{memory})", f"{name})").replace(f"{slot}) ->", f"{type_}) ->")
        if line == first('"sm.ring"(', lines)
        else line
        for line in lines
    ]


ROWS = {
    "more than a CTA can have": (
        change("sm.shared_memory", "bytes", 232449),
        "sm.shared_memory: inside: a CTA can have 232448 bytes, got 232449; use fewer slots",
    ),
    "less than is used": (
        change("sm.shared_memory", "bytes", 1024),
        "sm.tensor_memory: inside: must end by byte 1024, got 65588; ask for more bytes",
    ),
    "two sizes": (
        insert(SIZE, '"sm.shared_memory"() {bytes = 8 : i64} : () -> ()'),
        "sm.shared_memory: place: a CTA has one, got a second; drop it",
    ),
    "a size in a role": (
        lambda lines: insert('"sm.team"', first(SIZE, lines), 1)(lines),
        "sm.shared_memory: place: must stand in the kernel itself, got it inside another op",
    ),
    "tiles over tiles": (
        change("sm.slot_memory", "offsets", "[0, 1024]"),
        "sm.slot_memory: apart: bytes below 32768 are taken, got byte 1024; move it",
    ),
    "barriers over barriers": (
        change("sm.barriers", "offset", 65536, number=1),
        "sm.barriers: apart: bytes below 65552 are taken, got byte 65536; move it",
    ),
    "columns over columns": (
        lambda lines: insert(COLUMNS, first(COLUMNS, lines).replace("%", "%x", 1))(lines),
        "sm.columns: apart: columns below 128 are taken, got column 0; move it",
    ),
    "columns that are not allocated": (
        change("sm.columns", "first", 64),
        "sm.columns: must lie in the 128 columns of the allocation, got 64 to 192",
    ),
    "fewer columns than an accumulator has": (
        change("sm.columns", "each", 64),
        "sm.columns: inside: !tile.acc<tensor<128x128xf32>> must have 128 columns, got 64 each; "
        "give it as many",
    ),
    "shared columns of one place": (
        change("sm.columns", "slots", "1 : i64, shared_columns = 64"),
        "sm.columns: shared_columns must be some columns of 2 slots, got 64 of 1 x 128",
    ),
    "columns that tcgen05.alloc does not take": (
        change("sm.tensor_memory", "columns", 96),
        "sm.tensor_memory: columns must be a power of two from 32 to 512, got 96",
    ),
    "a tile off its swizzle pattern": (
        change("sm.slot_memory", "offsets", "[16, 49152]"),
        "sm.slot_memory: offset must be a multiple of 1024, got 16",
    ),
    "a tile without a place": (
        change("sm.slot_memory", "offsets", "[0]"),
        "sm.slot_memory: must have 2 offsets, got [0]",
    ),
    "a barrier off its word": (
        change("sm.barriers", "offset", 65540),
        "sm.barriers: offset must be a multiple of 8, got 65540",
    ),
    "a phase without an arrival": (
        change("sm.barriers", "arrivals", 0),
        "sm.barriers: arrivals must be 1 to 1048575, got 0",
    ),
    "no slot": (
        change("sm.slot_memory", "slots", 0),
        "sm.slot_memory: slots must be at least 1, got 0",
    ),
    "slots that the ring does not have": (
        change("sm.slot_memory", "slots", 3),
        "sm.ring: all parts must have 2 slots, got [2, 3]",
    ),
    "slots that are no memory's of the CTA": (
        of_an_argument,
        "sm.ring: memory must be that of an op with slots, got memref<300x320xbf16, 1>",
    ),
    "more slots under way than there are": (
        change("sm.ring", "under_way", 2),
        "sm.ring: under_way must be below the 2 slots, got 2",
    ),
}


ROWS |= {
    "a ring without a place": (
        insert(COLUMNS, '%left = "pipe.create"() : () -> !pipe.ring<1 : i64, [!pipe.turn]>'),
        "pipe.create: place: must have one in a planned kernel, got none; plan it, too",
    ),
    "no size": (
        drop(SIZE),
        "sm.tensor_memory: place: a plan must say how many bytes it takes, got no sm.shared_memory",
    ),
    "two barriers of a name": (
        replace('label = "accumulator.full"', 'label = "operands.full"'),
        "sm.barriers: place: labels must differ, got two 'operands.full'; rename one",
    ),
    "one barrier for full and empty": (
        lambda lines: [share_barriers(line) for line in lines],
        "sm.barriers: apart: must be for one ring, got more; give each its own",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_plan_that_memory_cannot_hold_is_refused(name):
    edit, message = ROWS[name]
    found, line = refusal(PLAN, edit)
    assert found == message
    assert message.partition(":")[0] in line


SHARE = change("sm.columns", "slots", "2 : i64, shared_columns = 64")


def test_two_slots_of_a_ring_share_no_columns():
    message, _ = refusal(f"{ROLES},persistence,plan-memory", SHARE)
    assert message == "sm.ring: all parts must have 2 slots, got [1, 2]"


def test_sums_of_no_ring_share_no_columns():
    more = change("sm.tensor_memory", "columns", 256)
    message, _ = refusal(f"{TILING},assign-threads,plan-memory", lambda lines: more(SHARE(lines)))
    rule = "sm.columns: apart: shared_columns must be of a ring of one slot"
    assert message == f"{rule}, got an accumulator in no ring; drop it"


def test_memory_is_planned_once():
    message, _ = refusal(PLAN, list, then="plan-memory")
    assert message == "tile.kernel: plan-memory: memory is planned already; run it once"


def test_a_plan_may_be_moved_by_hand_where_there_is_room():
    lines = change("sm.slot_memory", "offsets", "[32768, 0]")(list(ir_after(PLAN)))
    with make_context():
        module = parse_module("\n".join(lines), "kernel.mlir")
        check_memory(module)
    assert "32768" in run_passes_on_text("\n".join(lines), "kernel.mlir", "select-instructions")


@pytest.mark.parametrize("passes", [TILING, ROLES])
def test_the_lowering_goes_on_from_a_printed_plan(passes):
    text = "\n".join(ir_after(f"{passes},plan-memory"))
    with make_context():
        assert level_of(parse_module(text, "kernel.mlir")) == "plan-memory"
    source = "\n".join(ir_after(passes))
    whole = run_passes_on_text(source, "kernel.mlir", "lower-to-nvvm")
    assert run_passes_on_text(text, "kernel.mlir", "lower-to-nvvm") == whole


def test_turns_have_barriers_and_no_memory():
    text = "\n".join(ir_after(f"{PERMUTES},plan-memory", "sm_90a"))
    assert text.count('"sm.turns"') == len(re.findall(r'label = "turns\d*\.full"', text)) > 0


STAGED = (
    "normalize,tiling{tile=64x32x32},tma-insertion,swizzle-selection,"
    "epilogue-staging{columns=16 buffers=2},assign-threads,plan-memory"
)


def planned_stores():
    """C goes by TMA, rows of the other output are no whole units of 16 bytes: threads store it."""
    with lent_context(), ir.Location.unknown():
        spec = MatmulSpec(70, 60, 72, c_dtype="f32", further=("f16",))
        module = ir.Module.parse(spec.mlir_text())
        module.operation.attributes[TARGET_ATTRIBUTE] = ir.StringAttr.get("sm_120a")
        run_passes(module, parse_pipeline(STAGED), PassLog())
        return str(module)


def test_buffers_of_threads_lie_in_operands_and_not_where_tma_still_reads():
    text = planned_stores()
    places = re.findall(r'"sm.slot_memory"\(\) \{offsets = (\[[\d, ]+\])', text)
    (of_tma,) = {each for each in places if "," not in each} - {"[0]"}
    assert len(places) == 3 and any(each.startswith("[0,") for each in places)
    for passes in (None, "expand-loops", "expand-loops,pipes-to-barriers"):
        planned = run_passes_on_text(text, "kernel.mlir", passes) if passes else text
        with make_context():
            check_memory(parse_module(planned, "kernel.mlir"))
            moved = planned.replace(f"offsets = {of_tma}", "offsets = [0]")
            with pytest.raises(CompileError, match="apart: bytes below"):
                check_memory(parse_module(moved, "kernel.mlir"))
