"""What `expand-loops` writes of tiles, and kernels that say something else and are refused."""

import re

import pytest
from edited_ir import ROLES, change, drop, drop_lines, insert, place, refusal, replace

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

TILES = "tiling{tile=128x64x64}"
TMA = f"normalize,{TILES},tma-insertion"
PIPELINES = {
    "copies": ("", 1),
    "stores": (",tma-insertion", 1),
    "staged stores": (",tma-insertion,epilogue-staging", 1),
    "a loop": (",tma-insertion,persistence{ctas=2}", 1),
    "claims": (",tma-insertion,warp-specialization,persistence{scheduler=clc}", 1),
    "clusters": (",tma-insertion,clustering{shape=2x1},persistence{ctas=4}", 2),
}


def everywhere(old, new):
    return lambda lines: [each.replace(old, new) for each in lines]


def expanded(m, n, name, target="sm_100a"):
    text = TILES + PIPELINES[name][0]
    return compile_matmul(
        MatmulSpec(m, n, 96), target=target, pipeline=text, until="mlir", stop_after="expand-loops"
    ).mlir


def wholes(text, op):
    """What each op of that name says."""
    parts = [part.partition("\n    }")[0] for part in text.split(f'"{op}"')[1:]]
    return [re.findall(r'whole = "(\w+)"', part)[0] for part in parts]


@pytest.mark.parametrize("shape", [(300, 128), (256, 136), (384, 64)])
@pytest.mark.parametrize("name", PIPELINES)
def test_tiles_that_no_edge_cuts_are_said_to_be_whole(name, shape):
    (m, n), cluster = shape, PIPELINES[name][1]
    text = expanded(m, n, name)
    rows = "i" if m % (128 * cluster) == 0 else ""
    columns = "j" if n % 64 == 0 else ""
    if name == "staged stores":
        assert set(wholes(text, "tile.apply_epilogue")) == {rows + columns or "none"}
        return
    assert set(wholes(text, "tile.write_row")) == {columns or "none"}
    assert ("scf.if" in text) == (not rows)  # around the write, for the thread's row
    if name == "copies":  # of a and b, whose 96 columns are one and a half tiles
        assert wholes(text, "tile.copy") == [rows or "none", "i" if columns else "none"]


def test_copies_of_scales_say_how_many_rows_and_blocks_share_one():
    """And are held to it: repeated otherwise they would be those of others."""
    spec = MatmulSpec(200, 300, 256, "mxfp8_1x128", "mxfp8_128x128")
    options = {"pipeline": "tiling{tile=128x64x128}", "until": "mlir"}
    text = compile_matmul(spec, stop_after="expand-loops", **options).mlir
    found = re.findall(r"shared = \[([^]]*)\]", text)
    assert [re.findall(r"\d+", each) for each in found] == [["1", "4"], ["128", "4"]]
    wrong = text.replace("shared = [1,", "shared = [2,")
    with pytest.raises(CompileError, match=r"shared: must be \[1, 4\] rows and blocks that share"):
        run_passes_on_text(wrong, "k.mlir", "pipes-to-barriers")


@pytest.mark.parametrize(
    ("passes", "edit", "message"),
    [
        (
            f"normalize,{TILES}",
            replace('whole = "j"', 'whole = "ij"'),
            "tile.copy: whole: tiles of 128 by i must all lie in the 300 of the view, got 'ij' "
            "where one hangs over; take i out",
        ),
        (
            f"normalize,{TILES}",
            replace('whole = "j"', 'whole = "k"'),
            "tile.copy: whole: must be one of ('none', 'i', 'j', 'ij'), got 'k'",
        ),
        (
            f"normalize,{TILES}",
            replace('{whole = "j"}', ""),
            "tile.copy: whole: must be one of ('none', 'i', 'j', 'ij'), got none of them",
        ),
        *(
            (
                f"{TMA},epilogue-staging",
                change(name, "extents", extents),
                f"{name}: extents: must be those of a tile of C, [128, 64], "
                f"got {extents}; say those",
            )
            for name, extents in (
                ("tile.tma_store", "[128, 32]"),
                ("tile.tma_store", "[64, 64]"),
            )
        ),
        (
            f"{TMA},epilogue-staging",
            replace("extents = [128, 64]", "extents = [128, 63]"),
            "tile.apply_epilogue: extents: must be those of a tile of C, [128, 64], got [128, 63]; "
            "say those",
        ),
        (
            f"{TMA},epilogue-staging",
            replace('whole = "none"', 'whole = "j"'),
            "tile.apply_epilogue: whole: tiles of 64 by j must all lie in the 264 of the view, got "
            "'j' where one hangs over; take j out",
        ),
        (
            TMA,
            replace('whole = "none"', 'whole = "j"'),
            "tile.write_row: whole: tiles of 64 by j must all lie in the 264 of the view, got 'j' "
            "where one hangs over; take j out",
        ),
        (
            TMA,
            replace('whole = "none"', 'whole = "ij"'),
            "tile.write_row: whole must be 'none' or 'j', got 'ij'",
        ),
        (
            f"{TMA},epilogue-staging",
            replace('whole = "none"', 'whole = "all"'),
            "tile.apply_epilogue: whole must be one of ('none', 'i', 'j', 'ij'), got 'all'",
        ),
        (
            f"{TMA},warp-specialization,persistence",
            change("tile.place", "tiles", "[4, 5]", number=1),
            "tile.place: tiles: all roles must walk the same tiles, got another tiles than the "
            "first loop's; give all of them one",
        ),
        (
            TMA,
            lambda lines: [
                each.replace("[320, 300], [640]", "[640, 150], [1280]") for each in lines
            ],
            "tile.tma_load: views: the tensor map of memref<300x320xbf16, 1> must have dims [320, "
            "300] and strides [640] of bf16, got [640, 150] and [1280] of bf16",
        ),
        (
            ROLES,
            drop('"tile.mma"'),
            "tile.kernel: sums: a kernel must multiply, got no MMA; give it one",
        ),
        (
            ROLES,
            replace("threads = 192", "threads = 224"),
            "tile.kernel: roles: threads must be those of the 6 warps of its roles, got 224; make "
            "it 192",
        ),
        (
            ROLES,
            replace('agent = "load"', 'agent = "mma"'),
            "sm.warps: roles: must have names of their own, got ['epilogue', 'mma', 'mma']; rename "
            "it",
        ),
        (
            f"{TMA},epilogue-staging",
            insert("arith.truncf", '"sm.converge"() : () -> ()'),
            "sm.converge: epilogue: must be an op on one element (docs/passes/normalize.md), got "
            "sm.converge; move it out",
        ),
        (
            TMA,
            drop_lines('"tile.write_row"', "})"),
            "tile.write_row: written: all 32 values must be taken, got none that takes 0; take "
            "each",
        ),
        (
            TMA,
            replace("behind = 8 : i64, first = 8", "behind = 16 : i64, first = 8"),
            "tile.write_row: written: value 8 lies 8 after the thread's first, "
            "got 16; say where it lies",
        ),
        (
            f"{TMA},epilogue-staging",
            replace("first = 2 :", "first = 1 :"),
            "tile.apply_epilogue: written: value 1 lies [0, 1] after the thread's first, got "
            "[8, 0]; say where it lies",
        ),
        (
            f"{TMA},epilogue-staging",
            drop('"tile.tma_store"'),
            "tile.kernel: written: each output must be stored to, got no store to output 0; store "
            "it",
        ),
        (
            f"{TMA},epilogue-staging",
            lambda lines: [
                re.sub(r'("tile.tma_store"\(%\w+, %\w+), ([%\w#]+), ([%\w#]+)', r"\1, \3, \2", each)
                for each in lines
            ],
            "tile.tma_store: tiles: must store to the M place of its tile, got another index; "
            "store there",
        ),
        (
            f"{TMA},epilogue-staging",
            lambda lines: [
                each.replace("[264, 300], [528]", "[264, 200], [528]") for each in lines
            ],
            "tile.tma_store: views: the tensor map of memref<300x264xbf16, 1> must have dims [264, "
            "300] and strides [528] of bf16, got [264, 200] and [528] of bf16",
        ),
        (
            f"{TMA},clustering{{shape=2x1}},persistence",
            change("tile.place", "tiles", "[3, 5]"),
            "tile.place: tiles: must be whole clusters of 2x1, got [3, 5]; round them up",
        ),
    ],
)
def test_a_kernel_that_says_what_its_indices_do_not_is_refused_at_the_op(passes, edit, message):
    found, line = refusal(f"{passes},expand-loops", edit)
    assert found == message
    assert message.partition(":")[0] in line


def of_all_slots(lines):
    """A tile of the memory of all slots of a ring, where it was one of a slot."""
    memory = lines[place(lines, '"sm.slot_memory"', 0)].partition(" = ")[0].strip()
    at = place(lines, '"pipe.tile"', -1)
    return [*lines[:at], re.sub(r'tile"\(%\w+\)', f'tile"({memory})', lines[at]), *lines[at + 1 :]]


@pytest.mark.parametrize(
    ("passes", "edit", "message"),
    [
        (
            f"{TMA},pipes-to-barriers",
            everywhere("[320, 300], [640]", "[640, 150], [1280]"),
            "tile.load_boxes: views: the tensor map of memref<300x320xbf16, 1> must have dims "
            "[320, 300] and strides [640] of bf16, got [640, 150] and [1280] of bf16",
        ),
        (
            f"{TMA},clustering{{shape=2x1 pair=false}},pipes-to-barriers",
            everywhere("[320, 264], [640]", "[320, 200], [640]"),
            "tile.multicast_boxes: views: the tensor map of memref<264x320xbf16, 1> must have dims "
            "[320, 264] and strides [640] of bf16, got [320, 200] and [640] of bf16",
        ),
        (
            f"{TMA},epilogue-staging,expand-loops",
            everywhere('[528], [64, 128], "128B"', '[528], [64, 128], "none"'),
            "tile.tma_store: tile and tensor map must have one swizzle, got 128B and none",
        ),
        (
            f"{TMA},epilogue-staging,expand-loops",
            everywhere('tensor<128x64xbf16>, "k", "128B"', 'tensor<128x64xbf16>, "k", "linear"'),
            "tile.write_matrices: matrices need 16-bit elements, 16 columns or more, got "
            "TileLayout(mn=128, k=64, element_bytes=2, major='k', swizzle='linear')",
        ),
    ],
)
def test_maps_and_buffers_of_loops_and_stores_are_held_to_what_they_are_of(passes, edit, message):
    assert refusal(passes, edit)[0] == message


def test_one_of_several_pieces_that_is_not_stored_is_refused():
    passes = f"{TMA.replace('128x64x64', '128x128x64')},epilogue-staging,expand-loops"
    found, _ = refusal(passes, drop('"tile.tma_store"'), target="sm_90a")
    assert found == (
        "tile.write_matrices: written: a buffer that is written must be stored, got nobody that "
        "reads it; store it"
    )


@pytest.mark.parametrize("level", ["plan-memory", "expand-loops", "pipes-to-barriers"])
def test_a_tile_of_no_slot_at_hand_is_refused_at_every_level(level):
    found, line = refusal(f"{TMA},pipelining{{stages=2}},{level}", of_all_slots)
    assert found == (
        "pipe.tile: slots: must be a tile of a slot of pipe.acquire, pipe.wait, sm.slot, got one "
        "of sm.slot_memory; take it from there"
    )
    assert "pipe.tile" in line


def test_tiles_without_an_extent_lie_nowhere():
    text = expanded(256, 128, "stores")
    edited = text.replace("arith.constant 64 : i32", "arith.constant 0 : i32")
    assert edited != text
    rule = "whole: the place of a tile must begin with|whole: tiles of 0 by j must all lie in"
    with pytest.raises(CompileError, match=rule):
        run_passes_on_text(edited, "k.mlir", "select-instructions")


def test_a_kernel_may_compare_more_than_it_has_to():
    text = expanded(256, 128, "stores")
    edited = text.replace('whole = "j"', 'whole = "none"')
    assert edited != text
    counts = [
        run_passes_on_text(each, "k.mlir", "select-instructions").count("cmpi ult")
        for each in (text, edited)
    ]
    assert counts[0] < counts[1]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            replace("behind = [8, 0]", "behind = [8, 8]"),
            "tile.write_matrices: outputs must be pairs that lie [[0, 0], [8, 0], [0, 8], [8, 8]] "
            "behind the first row and column, got [2] neighbours [[0, 0], [8, 8], [0, 8], [8, 8]] "
            "behind",
        ),
        (
            change("tile.write_matrices", "column", "24"),
            "tile.write_matrices: column must begin 16 of the buffer's 32, got 24",
        ),
        (
            replace("behind = [0, 0]", "behind = [0]"),
            "tile.apply_epilogue: behind must be rows and columns, got [0]",
        ),
        (
            replace("first = 0 : i64, whole", "first = 15 : i64, whole"),
            "tile.apply_epilogue: outputs must be of 16 values, got 2 from 15 on",
        ),
        (
            change("tile.read_fragment", "row", "32"),
            "tile.read_fragment: row must be below the 32 that a warp has of each 128, got 32; "
            "read those of another MMA",
        ),
        (
            change("tile.read_fragment", "row", "8"),
            "tile.read_fragment: row must be the first of an MMA's of 128, got 8",
        ),
    ],
)
def test_a_write_of_a_piece_that_reaches_beyond_it_is_refused_at_the_op(edit, message):
    passes = f"{TMA},epilogue-staging{{columns=32}},expand-loops"
    assert refusal(passes, edit, then="pipes-to-barriers,select-instructions")[0] == message


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            change("tile.part_place", "bytes", "12"),
            "tile.part_place: bytes must be one of (1, 2, 4, 8, 16) that divides the 64 of a row, "
            "got 12",
        ),
        (
            lambda lines: [line.replace("vector<4xi32>", "vector<4xf32>") for line in lines],
            "tile.write_words: words must be integers of (1, 2, 4, 8, 16) bytes together, and "
            "divide the 528 of a row, got vector<4xf32>",
        ),
    ],
)
def test_words_that_no_thread_can_move_at_once_are_refused_at_the_op(edit, message):
    passes = "normalize,tiling{tile=128x64x32},copy-insertion,epilogue-staging{columns=32}"
    assert refusal(f"{passes},expand-loops", edit, "sm_80")[0] == message
