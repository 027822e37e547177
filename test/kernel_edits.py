"""Kernels with a line changed, each with the passes before and behind: what all of them refuse."""

from edited_ir import (
    PERMUTES,
    ROLES,
    TMA,
    double,
    drop,
    drop_lines,
    insert,
    move,
    replace,
)

TILING = "normalize,tiling"
LOOPS = f"{ROLES},persistence"
STAGED = PERMUTES.replace("tma-insertion", "tma-insertion,epilogue-staging")
MULTICAST = f"{TMA},clustering{{shape=2x1 pair=false}}"
WHOLE = f"{TMA},swizzle-selection"


def everywhere(old, new):
    return lambda lines: [line.replace(old, new) for line in lines]


def both(first, second):
    return lambda lines: second(first(lines))


FAR = insert("tile.accumulator", "%far = arith.constant 4294967296 : index")
SEVEN = insert("tile.accumulator", "%three = arith.constant 3 : index")
EMPTY = ("scf.for %z = %c0 to %c1 step %c1 {", "}")
ROLE = (
    '"pipe.role"() ({',
    "%q = arith.constant 0 : index",
    '}) {agent = "more", warps = 1 : i64} : () -> ()',
)

RULES = {
    "another dialect": (
        TILING,
        insert("tile.load", '%m = "memref.alloca"() : () -> memref<4xf32>'),
    ),
    "an odd attribute": (TMA, replace("{index = 0", "{odd = 1, index = 0")),
    "an odd attribute of a place beside roles": (
        ROLES,
        replace('"tile.cta_tile"()', '"tile.cta_tile"() {odd = 1}'),
    ),
    "an odd attribute of a ring beside roles": (
        ROLES,
        replace('"pipe.create"()', '"pipe.create"() {tiles = [1, 1]}'),
    ),
    "an unsigned loop": (TILING, replace("scf.for %arg3", "scf.for unsigned %arg3")),
    "fast arithmetic": (TILING, replace("arith.truncf %arg3", "arith.truncf %arg3 downward")),
    "a ring in a loop": (TMA, move('"pipe.create"', "scf.for")),
    "a loop that stands still": (TILING, replace("step %c1", "step %c0")),
    "a loop without an iteration": (TILING, replace("%c0 to %c5", "%c5 to %c5")),
    "a sum that starts with more": (TILING, replace("= %c0 to", "= %c1 to")),
    "a sum of which the start is not known": (
        TILING,
        replace("cmpi ne, %arg3, %c0", "cmpi ne, %0#0, %c0"),
    ),
    "an index that is no sum": (
        TILING,
        both(
            insert("tile.load", "%d = arith.muli %0#0, %arg3 : index", before=True),
            replace("(%arg0, %0#0, %arg3", "(%arg0, %0#0, %d"),
        ),
    ),
    "a loop out of reach": (TILING, both(FAR, replace("%c0 to %c5", "%c0 to %far"))),
    "a grid that does not cover C": (TILING, replace("grid = [3, 3, 1]", "grid = [3, 2, 1]")),
    "a deep grid": (TILING, replace("grid = [3, 3, 1]", "grid = [3, 3, 2]")),
    "too many threads": (TILING, replace("threads = 128", "threads = 256")),
    "threads that no role has": (ROLES, replace("threads = 192", "threads = 224")),
    "an epilogue of one warp": (ROLES, replace("warps = 4", "warps = 1")),
    "roles of one name": (ROLES, replace('agent = "mma"', 'agent = "load"')),
    "a role in a role": (ROLES, insert("pipe.wait", "\n".join(ROLE))),
    "an op beside roles": (
        ROLES,
        insert("tile.cta_tile", '"tile.await_mma"() {pending = 0 : i64} : () -> ()'),
    ),
    "sums of no MMA": (
        TILING,
        insert(
            "tile.accumulator", '%s = "tile.accumulator"() : () -> !tile.acc<tensor<128x128xf32>>'
        ),
    ),
    "no store": (TILING, drop_lines('"tile.store"', "})")),
    "no MMA": (TILING, drop('"tile.mma"')),
    "a store before the MMAs": (TILING, lambda lines: move_store(lines, "%c5 =", 0)),
    "a store in the loop": (TILING, lambda lines: move_store(lines, '"tile.mma"', 0)),
    "names in another order": (TILING, replace('["a", "b", "c"]', '["b", "a", "c"]')),
    "operands swapped": (TILING, replace("(%1, %2, %3, %4)", "(%1, %3, %2, %4)")),
    "two ways to tiles": (
        LOOPS,
        insert("pipe.create", '%p:2 = "tile.cta_tile"() : () -> (index, index)'),
    ),
    "a grid of a tile loop with rows": (LOOPS, replace("grid = [9, 1, 1]", "grid = [3, 3, 1]")),
    "a group of none": (LOOPS, replace("group = 8", "group = 0")),
    "loops over other tiles": (LOOPS, replace("tiles = [3, 3]", "tiles = [4, 3]", 1)),
    "tiles that do not cover C": (LOOPS, everywhere("tiles = [3, 3]", "tiles = [2, 3]")),
    "a multicast to too few": (
        MULTICAST,
        everywhere("cluster = [2, 1, 1], grid = [4", "cluster = [4, 1, 1], grid = [4"),
    ),
    "a multicast of what differs": (
        MULTICAST,
        lambda lines: [
            line.replace("%3#1", "%3#0") if "multicast" in line else line for line in lines
        ],
    ),
    "copies by threads in a cluster": (
        TILING,
        everywhere("cluster = [1, 1, 1]", "cluster = [3, 1, 1]"),
    ),
    "a column-major C": (
        TILING,
        everywhere("memref<300x264xbf16, 1>", "memref<300x264xbf16, strided<[1, 300]>, 1>"),
    ),
    "a view in another space": (
        TILING,
        everywhere("memref<264x320xbf16, 1>", "memref<264x320xbf16, 3>"),
    ),
    "a tile of another major": (
        TILING,
        everywhere("memref<264x320xbf16, 1>", "memref<264x320xbf16, strided<[1, 264]>, 1>"),
    ),
    "a map of another view": (TMA, everywhere("[320, 300], [640]", "[640, 150], [1280]")),
    "sums of another type": (
        TILING,
        lambda lines: [
            line.replace("x128xf32", "x128xf16").replace("%arg3: f32", "%arg3: f16")
            if "truncf" not in line
            else "%2 = arith.constant 1.0 : bf16"
            for line in lines
        ],
    ),
    "tiles that no MMA takes": (
        TILING,
        both(everywhere("128x128", "136x136"), everywhere("128x64", "136x64")),
    ),
    "a store of another place": (TILING, replace("%0#0, %0#1) ({", "%0#1, %0#0) ({")),
    "a store to an operand": (
        TILING,
        lambda lines: [
            line.replace("%arg2", "%arg0").replace("300x264", "300x320")
            if "tile.store" in line or "}) : " in line
            else line
            for line in lines
        ],
    ),
    "an epilogue of outside values": (
        TILING,
        both(
            insert("tile.accumulator", "%out = arith.constant 1.0 : f32"),
            replace("truncf %arg3", "truncf %out"),
        ),
    ),
    "a loop that carries": (
        TILING,
        both(
            replace(
                "scf.for %arg3 = %c0 to %c5 step %c1 {",
                "%q = scf.for %arg3 = %c0 to %c5 step %c1 iter_args(%h = %c0) -> (index) {",
            ),
            insert('"tile.mma"', "scf.yield %h : index"),
        ),
    ),
}

PASSES = {
    "a tile of two MMAs": (TILING, double('"tile.mma"'), "tma-insertion"),
    "a ring with two places": (TMA, lambda lines: twice(lines), "pipelining"),
    "a loop in the loop": (TMA, insert('"pipe.release"', "\n".join(EMPTY)), "pipelining"),
    "a part of a loop from 1 on": (
        TILING,
        both(replace("= %c0 to", "= %c1 to"), replace("ne, %arg3, %c0", "ne, %arg3, %c1")),
        "split-k",
    ),
    "a part of another step": (TILING, replace("%0#0, %arg3", "%0#0, %c1"), "split-k"),
    "a part with another start": (TILING, replace("cmpi ne", "cmpi sgt"), "split-k"),
    "parts of a part of K": (
        TILING,
        both(SEVEN, replace("%c0 to %c5", "%c0 to %three")),
        "split-k",
    ),
    "a pair of other tiles": (TMA, replace("%3#1, %arg3", "%3#0, %arg3"), "clustering"),
}

WARPGROUPS = {
    "a third role": (
        LOOPS,
        both(insert("}) {agent", "\n".join(ROLE), -1), replace("threads = 160", "threads = 192")),
        "ping-pong",
    ),
    "a consumer that stores nothing": (PERMUTES, drop_lines('"tile.store"', "})"), ""),
    "sums of both consumers": (LOOPS, lambda lines: shared_sums(lines), "ping-pong"),
}


def move_store(lines, after, number):
    start = next(at for at, line in enumerate(lines) if '"tile.store"' in line)
    store = [line.replace("%arg3", "%x").replace("%2", "%y") for line in lines[start : start + 5]]
    rest = lines[:start] + lines[start + 5 :]
    at = [at for at, line in enumerate(rest) if after in line][number]
    return [*rest[: at + 1], *store, *rest[at + 1 :]]


def twice(lines):
    start = next(at for at, line in enumerate(lines) if "scf.for" in line)
    end = next(at for at in range(start, len(lines)) if lines[at] == "    }")
    return [*lines[: end + 1], *lines[start:]]


def shared_sums(lines):
    """The accumulator outside of its role."""
    at = next(at for at, line in enumerate(lines) if '"tile.accumulator"' in line)
    name, _, made = lines[at].strip().partition(" = ")
    rest = lines[:at] + [line.replace(f"({name},", "(%sums,") for line in lines[at + 1 :]]
    first = next(at for at, line in enumerate(rest) if '"pipe.create"' in line)
    return [*rest[:first], f"%sums = {made}", *rest[first:]]
