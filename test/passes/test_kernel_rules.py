"""What passes and the lowering take for granted of a kernel is refused where it is not so.

Each program is what a pass leaves, with a line changed; the whole message is compared.
"""

import pytest
from edited_ir import (
    ROLES,
    TMA,
    TURNS,
    double,
    drop,
    drop_lines,
    insert,
    ir_after,
    move,
    refusal,
    replace,
)

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

TILING = "normalize,tiling"
LOOPS = f"{ROLES},persistence"
STAGED = TURNS.replace("tma-insertion", "tma-insertion,epilogue-staging")
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
    "a consumer that stores nothing": (TURNS, drop_lines('"tile.store"', "})"), ""),
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


MESSAGES = {
    "another dialect": (
        "memref.alloca: ops: a kernel holds ops of tile and pipe, scf.for, and arith.constant, "
        "addi, subi, muli and cmpi, got another; take it out of the kernel"
    ),
    "an odd attribute": ("pipe.tile: attributes: nothing reads 'odd'; take it off the op"),
    "an odd attribute of a place beside roles": (
        "tile.cta_tile: attributes: nothing reads 'odd'; take it off the op"
    ),
    "an odd attribute of a ring beside roles": (
        "pipe.create: attributes: nothing reads 'tiles'; take it off the op"
    ),
    "an unsigned loop": ("scf.for: attributes: nothing reads 'unsignedCmp'; take it off the op"),
    "fast arithmetic": (
        "arith.truncf: epilogue: rounds to nearest even, got a rounding mode; take it off"
    ),
    "a ring in a loop": (
        "pipe.create: handles: must stand outside of loops, got one in a loop; move it up"
    ),
    "a loop that stands still": (
        "scf.for: loops: must have constant bounds, a positive step and an iteration, got 0 to 5 "
        "step 0; make them constants"
    ),
    "a loop without an iteration": (
        "scf.for: loops: must have constant bounds, a positive step and an iteration, got 5 to 5 "
        "step 1; make them constants"
    ),
    "a sum that starts with more": (
        "tile.mma: sums: the first MMA of a tile must have accumulate false, got one that adds to"
        " what is not there; compare the loop's counter with its lower bound"
    ),
    "a sum of which the start is not known": (
        "tile.mma: sums: the first MMA of a tile must have accumulate false, got one that is not "
        "known; compare the loop's counter with its lower bound"
    ),
    "an index that is no sum": (
        "tile.load: indices: must be sums and products by constants of counters and places, got "
        "another; compute them by arith.addi, subi and muli"
    ),
    "a loop out of reach": (
        "tile.load: indices: tiles of 64 must start below 2147483648, got 0 to 4294967295; "
        "shorten the loop"
    ),
    "a grid that does not cover C": (
        "tile.store: tiles: 3 tiles of 128 must cover c along N, got 2; launch more CTAs, or loop"
        " over more tiles"
    ),
    "a deep grid": (
        "tile.store: grid: a tile.gathered_store sums the parts of a grid, got tile.store and 2 "
        "CTAs along z"
    ),
    "too many threads": (
        "tile.kernel: roles: must have 4 warps from a multiple of 4 on, got 8 from warp 0 on; "
        "change its warps or its place"
    ),
    "threads that no role has": (
        "tile.kernel: roles: threads must be those of the 6 warps of its roles, got 224; make it "
        "192"
    ),
    "an epilogue of one warp": (
        "pipe.role: roles: must have 4 warps from a multiple of 4 on, got 1 from warp 0 on; "
        "change its warps or its place"
    ),
    "roles of one name": (
        "pipe.role: roles: must have names of their own, got ['epilogue', 'load', 'load']; rename"
        " it"
    ),
    "a role in a role": (
        "pipe.role: roles: must stand in the kernel, got one inside another op; move it"
    ),
    "an op beside roles": (
        "tile.await_mma: roles: nothing may act beside roles, got this op; move it into one"
    ),
    "sums of no MMA": (
        "tile.accumulator: sums: an MMA must sum into it, got none that does; drop it"
    ),
    "no store": (
        "tile.kernel: sums: a kernel must multiply and store, got 1 MMAs and 0 stores; give it both"
    ),
    "no MMA": ("tile.accumulator: sums: an MMA must sum into it, got none that does; drop it"),
    "a store before the MMAs": (
        "tile.store: sums: must follow the MMAs that it stores, got none before it; move it"
    ),
    "a store in the loop": (
        "tile.store: sums: must stand after the loop over K, got a store in it; move it"
    ),
    "names in another order": (
        "tile.kernel: views: must be named a, b, what the epilogue reads, c, got ['b', 'a', 'c'];"
        " rename them"
    ),
    "operands swapped": (
        "tile.mma: views: must take a's tiles from a and b's from b, got a from b; swap them"
    ),
    "two ways to tiles": (
        "tile.kernel: tiles: the program must have one tile.cta_tile or loops over tiles, got 1 "
        "and 3; take one of the two"
    ),
    "a grid of a tile loop with rows": (
        "tile.kernel: tiles: the grid must be one row of clusters, 3x1, got 3x3; change the grid"
    ),
    "a group of none": "tile.for_each_tile: group must be 1 to 2147483647, got 0",
    "loops over other tiles": (
        "tile.for_each_tile: tiles: all roles must walk the same tiles, got another tiles than "
        "the first loop's; give all of them one"
    ),
    "tiles that do not cover C": (
        "tile.store: tiles: 3 tiles of 128 must cover c along M, got 2; launch more CTAs, or loop"
        " over more tiles"
    ),
    "a multicast to too few": (
        "tile.tma_multicast: cluster: the parts must be the 4 CTAs of a line along m, got 2"
    ),
    "a multicast of what differs": (
        "tile.tma_multicast: cluster: CTAs along m must need the same tile, got an index that "
        "differs between them; load it for each"
    ),
    "copies by threads in a cluster": (
        "tile.load: cluster: tiles in no pipe are waited for by their own CTA, got clusters of "
        "3x1; load into a pipe"
    ),
    "a column-major C": (
        "tile.kernel: views: c must have rows whose elements lie side by side, apart from others, "
        "got memref<300x264xbf16, strided<[1, 300]>, 1>"
    ),
    "a view in another space": (
        "tile.kernel: views: b must be in memory space 1, got memref<264x320xbf16, 3>"
    ),
    "a tile of another major": (
        "tile.load: views: the tile's contiguous axis must be the view's, got 'k' of "
        "memref<264x320xbf16, strided<[1, 264]>, 1>"
    ),
    "a map of another view": (
        "tile.tma_load: views: the tensor map of memref<300x320xbf16, 1> must have dims [320, "
        "300] and strides [640] of bf16, got [640, 150] and [1280] of bf16"
    ),
    "sums of another type": ("tile.mma: shapes: must sum in f32, got f16"),
    "tiles that no MMA takes": (
        "tile.mma: shapes: no MMA of sm_100a covers 136x136x64 of bf16; take other tiles"
    ),
    "a store of another place": (
        "tile.store: tiles: must store to the M place of its tile, got another index; fix it"
    ),
    "a store to an operand": (
        "tile.store: views: must store to c, the last view, got another; swap it"
    ),
    "an epilogue of outside values": (
        "arith.truncf: epilogue: must compute from its own values, got one from outside; move it in"
    ),
    "a loop that carries": (
        "scf.for: loops: must not carry values, got 1; keep sums in a tile.accumulator"
    ),
    "a tile of two MMAs": (
        "tile.load: tma-insertion: a tile must be loaded for one MMA, got 2 that read it; load it"
        " for each"
    ),
    "a ring with two places": (
        "pipe.create: pipelining: must be filled and emptied at one place in one loop, got 2 "
        "pipe.acquire, 2 pipe.commit, 2 pipe.wait, 2 pipe.release in 2 blocks; give each place a "
        "ring of its own"
    ),
    "a loop in the loop": (
        "scf.for: pipelining: must not stand in the loop that fills a ring, got one; move it"
    ),
    "a part of a loop from 1 on": (
        "scf.for: split-k: must count from 0 in steps of 1, got 1 by 1; renumber it"
    ),
    "a part of another step": (
        "tile.load: split-k: must load step k of K in iteration k, got another; index it by the "
        "loop"
    ),
    "a part with another start": (
        "tile.mma: split-k: must stand in the loop over K and accumulate where its counter is not"
        " 0, got another place or flag; write it so"
    ),
    "parts of a part of K": (
        "tile.load: split-k: steps past the loop's end must load zeros, got a loop that ends at "
        "192 of 320; take parts that divide its 3 steps"
    ),
    "a pair of other tiles": (
        "tile.tma_load: clustering: a pair must need the same tile of b, got an index that "
        "differs along M; drop pair=true"
    ),
    "a third role": (
        "tile.kernel: ping-pong: needs a consumer and a load role and no other, got consumer, "
        "load, more; run warp-specialization first"
    ),
    "a consumer that stores nothing": (
        "pipe.role: sums: an agent must store the sums that it holds, got no store"
    ),
    "sums of both consumers": (
        "tile.mma: ping-pong: each consumer has sums of its own, got a shared accumulator; move it"
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_kernel_that_passes_cannot_take_for_granted_is_refused(name):
    passes, edit = RULES[name]
    message, line = refusal(passes, edit)
    assert message == MESSAGES[name]
    assert message.partition(":")[0] in line


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_refuses_what_it_cannot_rewrite(name):
    passes, edit, then = PASSES[name]
    message, _ = refusal(passes, edit, then=then)
    assert message == MESSAGES[name]


@pytest.mark.parametrize("name", WARPGROUPS)
def test_a_pass_refuses_what_two_consumers_cannot_share(name):
    passes, edit, then = WARPGROUPS[name]
    message, _ = refusal(passes, edit, "sm_90a", then=then)
    assert message == MESSAGES[name]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cluster = [1, 1, 1]", 'cluster = "x"'),
        ("cluster = [1, 1, 1]", "cluster = [0, 1, 1]"),
        ("threads = 128", 'threads = "x"'),
        ("tensor<128x64xbf16>", "tensor<128xbf16>"),
        ("tensor<128x64xbf16>", "tensor<*xbf16>"),
        ("xbf16", "xi4"),
        ("xbf16", "xindex"),
        ('tile.target = "sm_100a"', "tile.target = 3"),
    ],
)
def test_attributes_and_types_of_another_form_are_refused(old, new):
    text = "\n".join(ir_after(TILING)).replace(old, new)
    with pytest.raises(CompileError):
        run_passes_on_text(text, "kernel.mlir", "tma-insertion")
