"""What one op of clusters, roles, tile loops and staged stores can know is wrong."""

import pytest
from role_texts import (
    ACC,
    COLUMNS,
    HALF,
    LONG,
    NARROW,
    PIECE,
    RING,
    ROLE_END,
    SMEM,
    WORDS,
    accumulator,
    clear,
    create,
    gathered_store,
    group_place,
    kernel,
    load,
    load_matrices,
    multicast,
    pair_mma,
    place,
    prefetch,
    read_matrices,
    read_operand,
    read_row,
    read_rows,
    reduced_store,
    staged_store,
    tile_loop,
    turn_loop,
    write_partial,
)

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            kernel(cluster="[3, 1, 1]"),
            "tile.kernel: the grid must be whole clusters, got [4, 1, 1] and [3, 1, 1]",
        ),
        (
            kernel(
                accumulator("128x128"), load("a"), load("b", LONG), pair_mma(SMEM, LONG, "128x128")
            ),
            "tile.pair_mma: a and b must have the same K, got 64 and 32",
        ),
        (
            kernel(
                accumulator("128x64"), load("a"), load("b", HALF), pair_mma(SMEM, HALF, "128x64")
            ),
            "tile.pair_mma: acc must be (128, 128), got (128, 64)",
        ),
        (
            kernel(*multicast(64, axis="k")),
            "tile.tma_multicast: axis must be 'm' or 'n', got 'k'",
        ),
        (
            kernel(*multicast(128, parts=1)),
            "tile.tma_multicast: parts must be 2 or more, got 1",
        ),
        (
            kernel(*multicast(42, parts=3)),
            "tile.tma_multicast: 128 rows are not 3 parts of whole rows, 8 at a time",
        ),
        (
            kernel(*multicast(64, swizzle="32B")),
            "tile.tma_multicast: tile and tensor map must have one swizzle, got none and 32B",
        ),
        (
            kernel(*multicast(128)),
            "tile.tma_multicast: the box must be [8, 64], got [8, 128]",
        ),
        (
            kernel(*staged_store(HALF, "[64, 64]")),
            "tile.staged_store: staging must hold 128 rows of a divisor of 64 columns, got "
            "TileLayout(mn=64, k=64, element_bytes=2, major='k', swizzle='none')",
        ),
        (
            kernel(*staged_store(NARROW, "[16, 128]")),
            "tile.staged_store: the box must be [8, 128], got [16, 128]",
        ),
        (
            kernel(*staged_store(PIECE, "[16, 128]", "columns")),
            "tile.staged_store: write must be one of ('rows', 'matrices'), got 'columns'",
        ),
        (
            kernel(*staged_store(WORDS, "[4, 128]", "matrices", "f32")),
            "tile.staged_store: matrices need 16-bit elements, 16 columns or more, got "
            "TileLayout(mn=128, k=4, element_bytes=4, major='k', swizzle='none')",
        ),
        (
            kernel(*staged_store(NARROW, "[8, 128]", "matrices")),
            "tile.staged_store: matrices need 16-bit elements, 16 columns or more, got "
            "TileLayout(mn=128, k=8, element_bytes=2, major='k', swizzle='none')",
        ),
        (
            kernel(*reduced_store(WORDS)),
            "tile.reduced_store: partials must be 128x64 of f32, got 128x4 of f32",
        ),
        (
            kernel(*reduced_store(SMEM)),
            "tile.reduced_store: partials must be 128x64 of f32, got 128x64 of bf16",
        ),
        (
            kernel(*reduced_store(COLUMNS)),
            "tile.reduced_store: partials must be rows, got major 'mn'",
        ),
        (
            kernel(*gathered_store(columns=32)),
            "tile.gathered_store: partials must be parts of 128 rows of 64 of f32, got "
            "memref<256x32xf32, 1>",
        ),
        (
            kernel(*gathered_store(rows=200)),
            "tile.gathered_store: partials must be parts of 128 rows of 64 of f32, got "
            "memref<200x64xf32, 1>",
        ),
        (
            kernel(*gathered_store(word="1x2xi32")),
            "tile.gathered_store: arrivals must be one word of i32, got memref<1x2xi32, 1>",
        ),
        (
            kernel(*gathered_store(start="one")),
            "tile.workspace: start must be one of ('any', 'zero'), got 'one'",
        ),
        (
            kernel(*tile_loop("z")),
            "tile.for_each_tile: order must be one of ('m', 'n', 'grouped', 'hilbert'), got 'z'",
        ),
        *(
            (
                kernel(*tile_loop(tiles=str(tiles))),
                f"tile.for_each_tile: tiles must be how many there are along M and N, got {tiles}",
            )
            for tiles in ([], [3], [3, 1, 1])
        ),
        (
            kernel(*tile_loop("hilbert", tiles="[2, 40000]")),
            "tile.for_each_tile: order hilbert takes at most 65536 tiles, got [2, 40000]",
        ),
        (
            kernel(*tile_loop(arguments="%m: index")),
            "tile.for_each_tile: the body must take (i, j), got ['index']",
        ),
        (
            kernel(*group_place("[3, 2]")),
            "tile.group_place: tiles must have one -1, along M or N, got [3, 2]",
        ),
        (
            kernel(*group_place("[2, -1]", "m")),
            "tile.group_place: must be in the order grouped, got 'm'",
        ),
        (
            kernel(*place(tiles="[2, 0]")),
            "tile.place: tiles must be how many there are along M and N, got [2, 0]",
        ),
        (kernel(*clear(row=128)), "tile.clear_unit: row must be below 128, got 128"),
        (kernel(*clear(tile=1)), "tile.clear_unit: tile must be below 1, got 1"),
        (
            kernel('"sm.prologue"() ({ ^bb0(%x: i32): }) : () -> ()'),
            "sm.prologue: the body must be one block without arguments",
        ),
        (
            kernel(
                '"sm.run"() ({ "sm.prologue"() ({ %n = arith.constant 0 : i32 }) : () -> ()',
                '}) {by = "lane"} : () -> ()',
            ),
            "sm.prologue: must stand in a kernel, got sm.run",
        ),
        (
            kernel(*read_row(row=32)),
            "tile.read_row: row must be the first of an MMA's of 128, got 32",
        ),
        (
            kernel(*read_row(values="vector<32xi32>")),
            "tile.read_row: must give a vector of f32, got vector<32xi32>",
        ),
        (
            kernel(*read_rows("vector<32xf32>")),
            "tile.read_rows: must give two vectors of 16 f32, or of a part of them, got "
            "vector<32xf32> and vector<32xf32>",
        ),
        (
            kernel(*read_matrices(lower="vector<8xf32>")),
            "tile.read_matrices: must give two vectors of a type, got vector<16xf32>, "
            "vector<8xf32>",
        ),
        (
            kernel(*read_matrices("vector<6xf32>", "vector<6xf32>")),
            "tile.read_matrices: must give 2, 4, 8, 16, 32, 64 values a row, got vector<6xf32>",
        ),
        (
            kernel(*read_matrices(row=16)),
            "tile.read_matrices: row must be the first of an MMA's of 128, got 16",
        ),
        (
            kernel(*load_matrices(column=4)),
            "tile.load_matrices: column must be a multiple of 8 below 64, got 4",
        ),
        (
            kernel(*load_matrices(values="vector<6xbf16>")),
            "tile.load_matrices: must give vector<4xbf16> or vector<8xbf16>, got vector<6xbf16>",
        ),
        (
            kernel(*load_matrices(tile='!tile.smem<tensor<64x64xf32>, "k", "none">')),
            "tile.load_matrices: matrices need 16-bit elements, 16 columns or more, got "
            "TileLayout(mn=64, k=64, element_bytes=4, major='k', swizzle='none')",
        ),
        (
            kernel(*prefetch(parts=2)),
            "tile.prefetch_boxes: must be one part, or some along 'm' or 'n', got 2 ''",
        ),
        (
            kernel(*prefetch(axis="k", parts=2)),
            "tile.prefetch_boxes: must be one part, or some along 'm' or 'n', got 2 'k'",
        ),
        (
            kernel(*prefetch(axis="m", parts=3)),
            "tile.prefetch_boxes: parts must divide 64 rows, got 3",
        ),
        (
            kernel(*prefetch(tile="f32")),
            "tile.prefetch_boxes: tile must be one of operands, got f32",
        ),
        (
            kernel('"sm.early"() ({ %n = arith.constant 0 : i32 }) {warp = 32 : i64} : () -> ()'),
            "sm.early: warp must be below 32, got 32",
        ),
        (
            kernel('"sm.early"() ({ ^bb0(%x: i32): }) {warp = 0 : i64} : () -> ()'),
            "sm.early: the body must be one block without arguments",
        ),
        (
            kernel(*read_operand(axes="mn")),
            "tile.read_operand: axes must be one of ('', 'm', 'n'), got 'mn'",
        ),
        (
            kernel(*read_operand(axes="")),
            "tile.read_operand: the source must have rank 0 for '', got memref<64xbf16, 1>",
        ),
        (
            kernel(*read_operand(values="bf16")),
            "tile.read_operand: values must be a vector of bf16 for 'n', got bf16",
        ),
        (
            kernel(*read_operand(axes="m")),
            "tile.read_operand: values must be bf16 for 'm', got vector<2xbf16>",
        ),
        (
            kernel(*read_operand(values="vector<2xf32>")),
            "tile.read_operand: values must be a vector of bf16 for 'n', got vector<2xf32>",
        ),
        (
            kernel(*write_partial(first=15)),
            "tile.write_partial: must take some of 16 values, got 2 from 15 on",
        ),
        (
            kernel(*write_partial(width=3)),
            "tile.write_partial: width must divide 4, got 3",
        ),
        (
            kernel(*write_partial(memory=COLUMNS)),
            f"tile.write_partial: memory must be of one tile of rows, got !pipe.slot<[{COLUMNS}]>",
        ),
        (kernel(*place(group=0)), "tile.place: group must be 1 to 2147483647, got 0"),
        (kernel(*place(group=2**31)), "tile.place: group must be 1 to 2147483647, got 2147483648"),
        (
            kernel(*place(group=4)),
            "tile.place: group must be 8 where order is not 'grouped', got 4",
        ),
        (
            kernel(*place(order="z")),
            "tile.place: order must be one of ('m', 'n', 'grouped', 'hilbert'), got 'z'",
        ),
        (
            kernel(create(f"!pipe.ring<2 : i64, [{SMEM}, {ACC}]>")),
            "pipe.create: the payload must be shared-memory tiles, one accumulator, claims or "
            "turns",
        ),
        (
            kernel(create(RING), f'%s = "pipe.wait"(%r) : ({RING}) -> !pipe.slot<[{HALF}]>'),
            f"pipe.wait: must give a slot of {RING}, got !pipe.slot<[{HALF}]>",
        ),
        (
            kernel('"pipe.role"() ({', ROLE_END.replace("1 : i64", "0 : i64")),
            "pipe.role: warps must be at least 1, got 0",
        ),
        (
            kernel('"pipe.set_registers"() {count = 100 : i64} : () -> ()'),
            "pipe.set_registers: count must be 24 to 256 in steps of 8, got 100",
        ),
        (
            kernel('"pipe.set_registers"() {count = 264 : i64} : () -> ()'),
            "pipe.set_registers: count must be 24 to 256 in steps of 8, got 264",
        ),
        (
            kernel(create(RING), f'"pipe.skip"(%r) {{slots = 0 : i64}} : ({RING}) -> ()'),
            "pipe.skip: slots must be 1 to 2147483647, got 0",
        ),
        (
            kernel(*turn_loop(2)),
            "pipe.for_each_turn: turn must be below 2, got 2",
        ),
        (
            kernel(*turn_loop(0, "z")),
            "pipe.for_each_turn: order must be one of ('m', 'n', 'grouped', 'hilbert'), got 'z'",
        ),
        (
            kernel('"tile.await_mma"() {pending = -1 : i64} : () -> ()'),
            "tile.await_mma: pending must be at least 0, got -1",
        ),
    ],
)
def test_an_op_that_does_not_verify_is_refused_with_its_rule(tmp_path, text, message):
    path = tmp_path / "m.mlir"
    path.write_text(text)
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, str(path), "swizzle-selection{force=none}")
    assert caught.value.message == message
    assert caught.value.location.startswith(f"{path}:")
