"""Texts of kernels with one op of clusters, roles, tile loops or staged stores."""

VIEW = "memref<256x128xbf16, 1>"
SMEM = '!tile.smem<tensor<128x64xbf16>, "k", "none">'
HALF = '!tile.smem<tensor<64x64xbf16>, "k", "none">'
LONG = '!tile.smem<tensor<128x32xbf16>, "k", "none">'
WORDS = '!tile.smem<tensor<128x4xf32>, "k", "none">'
COLUMNS = '!tile.smem<tensor<128x64xf32>, "mn", "none">'
ACC = "!tile.acc<tensor<128x64xf32>>"
RING = f"!pipe.ring<1 : i64, [{SMEM}]>"
ROLE_END = '}) {agent = "load", warps = 1 : i64} : () -> ()'


def kernel(*ops, cluster="[1, 1, 1]", grid="[4, 1, 1]"):
    body = "\n  ".join(ops)
    return f"""
"tile.kernel"() ({{
^bb0(%v: {VIEW}):
  %i, %j = "tile.cta_tile"() : () -> (index, index)
  %true = arith.constant true
  {body}
}}) {{arg_names = ["v"], cluster = {cluster}, grid = {grid}, sym_name = "f", threads = 128 : i64}}
  : () -> ()
"""


def create(ring, name="r"):
    return f'%{name} = "pipe.create"() : () -> {ring}'


def load(name, smem=SMEM):
    return f'%{name} = "tile.load"(%v, %i, %j) : ({VIEW}, index, index) -> {smem}'


def accumulator(shape):
    return f'%acc = "tile.accumulator"() : () -> !tile.acc<tensor<{shape}xf32>>'


def pair_mma(a, b, shape):
    types = f"!tile.acc<tensor<{shape}xf32>>, {a}, {b}, i1"
    return f'"tile.pair_mma"(%acc, %a, %b, %true) : ({types}) -> ()'


def multicast(box, axis="n", parts=2, swizzle="none"):
    map_type = f'!tile.map<bf16, [128, 256], [256], [8, {box}], "{swizzle}">'
    return (
        create(RING),
        f'%s = "pipe.acquire"(%r) : ({RING}) -> !pipe.slot<[{SMEM}]>',
        f'%t = "pipe.tile"(%s) {{index = 0 : i64}} : (!pipe.slot<[{SMEM}]>) -> {SMEM}',
        f'%m = "tile.tensor_map"(%v) : ({VIEW}) -> {map_type}',
        f'"tile.tma_multicast"(%m, %t, %i, %j) {{axis = "{axis}", parts = {parts} : i64}}'
        f" : ({map_type}, {SMEM}, index, index) -> ()",
    )


def staged_store(piece, box, write="rows", element="bf16"):
    ring = f"!pipe.ring<2 : i64, [{piece}]>"
    map_type = f'!tile.map<{element}, [128, 256], [512], {box}, "none">'
    value = "%x" if element == "f32" else "%y"
    truncate = "" if element == "f32" else "%y = arith.truncf %x : f32 to bf16"
    return (
        accumulator("128x64"),
        create(ring),
        f'%m = "tile.tensor_map"(%v) : ({VIEW}) -> {map_type}',
        f'"tile.staged_store"(%acc, %m, %r, %i, %j) ({{ ^bb0(%x: f32): {truncate}',
        f'"tile.yield"({value}) : ({element}) -> () }}) {{write = "{write}"}}',
        f": ({ACC}, {map_type}, {ring}, index, index) -> ()",
    )


def reduced_store(partials):
    ring = f"!pipe.ring<1 : i64, [{partials}]>"
    return (
        accumulator("128x64"),
        create(ring),
        '"tile.reduced_store"(%acc, %r, %v, %i, %j) ({ ^bb0(%x: f32):',
        "%y = arith.truncf %x : f32 to bf16",
        f'"tile.yield"(%y) : (bf16) -> () }}) : ({ACC}, {ring}, {VIEW}, index, index) -> ()',
    )


def gathered_store(rows=256, columns=64, word="1x1xi32", start="any"):
    partials, arrivals = f"memref<{rows}x{columns}xf32, 1>", f"memref<{word}, 1>"
    return (
        accumulator("128x64"),
        f'%p = "tile.workspace"() {{start = "{start}"}} : () -> {partials}',
        f'%w = "tile.workspace"() {{start = "zero"}} : () -> {arrivals}',
        '"tile.gathered_store"(%acc, %p, %w, %v, %i, %j) ({ ^bb0(%x: f32):',
        "%y = arith.truncf %x : f32 to bf16",
        f'"tile.yield"(%y) : (bf16) -> () }}) : ({ACC}, {partials}, {arrivals}, {VIEW}, '
        "index, index) -> ()",
    )


def place(tiles="[2, 2]", order="m", group=8):
    how = f'{{tiles = {tiles}, order = "{order}", group = {group} : i64}}'
    number = "%n = arith.constant 0 : i32"
    return number, f'%x, %y = "tile.place"(%n) {how} : (i32) -> (index, index)'


def group_place(tiles="[-1, 2]", order="grouped"):
    cut = "tile = 64 : i64, together = 1 : i64, extent = 9 : i64"
    how = f'{{tiles = {tiles}, order = "{order}", group = 8 : i64, {cut}}}'
    types = f"(i32, i32, {VIEW}, i32, i32) -> (index, index)"
    number = "%n = arith.constant 0 : i32"
    return number, f'%x, %y = "tile.group_place"(%n, %n, %v, %n, %n) {how} : {types}'


def clear(row=64, tile=0):
    slot = f"!pipe.slot<[{SMEM}]>"
    return (
        f'%m = "sm.slot_memory"() {{offsets = [0], slots = 1 : i64}} : () -> {slot}',
        "%n = arith.constant 0 : i32",
        f'"tile.clear_unit"(%m, %n, %n) {{row = {row} : i64, tile = {tile} : i64}}'
        f" : ({slot}, i32, i32) -> ()",
    )


def read_row(row=0, values="vector<32xf32>"):
    return (
        f'%acc = "tile.accumulator"() : () -> {ACC}',
        "%n = arith.constant 0 : i32",
        f'%x = "tile.read_row"(%acc, %n, %n) {{row = {row} : i64}} : ({ACC}, i32, i32) -> {values}',
    )


def read_rows(values="vector<16xf32>"):
    return (
        f'%acc = "tile.accumulator"() : () -> {ACC}',
        f'%x, %y = "tile.read_rows"(%acc) {{row = 0 : i64}} : ({ACC}) -> ({values}, {values})',
    )


def read_matrices(upper="vector<16xf32>", lower="vector<16xf32>", row=0):
    return (
        f'%acc = "tile.accumulator"() : () -> {ACC}',
        "%n = arith.constant 0 : i32",
        f'%x, %y = "tile.read_matrices"(%acc, %n, %n) {{row = {row} : i64}}'
        f" : ({ACC}, i32, i32) -> ({upper}, {lower})",
    )


def write_partial(memory=WORDS, first=0, width=2):
    slot = f"!pipe.slot<[{memory}]>"
    part = f"{{behind = 0 : i64, first = {first} : i64, width = {width} : i64}}"
    return (
        f'%m = "sm.slot_memory"() {{offsets = [0], slots = 1 : i64}} : () -> {slot}',
        "%n = arith.constant 0 : i32",
        "%x = arith.constant dense<0.0> : vector<16xf32>",
        f'"tile.write_partial"(%x, %m, %n, %n) {part} : (vector<16xf32>, {slot}, i32, i32) -> ()',
    )


def prefetch(axis="", parts=1, tile='!tile.smem<tensor<64x64xbf16>, "k", "128B">'):
    map_ = '!tile.map<bf16, [64, 64], [128], [64, 64], "128B">'
    told = f'{{axis = "{axis}", parts = {parts} : i64, tile = {tile}}}'
    return (
        f"%map = builtin.unrealized_conversion_cast to {map_}",
        f'"tile.prefetch_boxes"(%map, %i, %j) {told} : ({map_}, index, index) -> ()',
    )


def load_matrices(
    column=0, values="vector<8xbf16>", tile='!tile.smem<tensor<64x64xbf16>, "k", "128B">'
):
    return (
        f"%piece = builtin.unrealized_conversion_cast to {tile}",
        "%n = arith.constant 0 : i32",
        f'%values = "tile.load_matrices"(%piece, %n) {{column = {column} : i64}}',
        f": ({tile}, i32) -> {values}",
    )


def read_operand(axes="n", values="vector<2xbf16>"):
    view = "memref<64xbf16, 1>"
    return (
        f"%vector = builtin.unrealized_conversion_cast to {view}",
        "%n = arith.constant 0 : i32",
        f'%values = "tile.read_operand"(%vector, %n, %n, %true) {{axes = "{axes}"}}',
        f": ({view}, i32, i32, i1) -> {values}",
    )


def tile_loop(order="m", arguments="%m: index, %n: index", tiles="[1, 1]"):
    return (
        f'"tile.for_each_tile"() ({{ ^bb0({arguments}): %c = arith.constant 1 : index }})',
        f'{{group = 8 : i64, order = "{order}", tiles = {tiles}}} : () -> ()',
    )


def turn_loop(turn, order="m"):
    loop, attributes = tile_loop(order)
    turns = f"{{turn = {turn} : i64, turns = 2 : i64, "
    return loop.replace("tile.for_each_tile", "pipe.for_each_turn"), turns + attributes[1:]


NARROW = '!tile.smem<tensor<128x8xbf16>, "k", "none">'
PIECE = '!tile.smem<tensor<128x16xbf16>, "k", "none">'
