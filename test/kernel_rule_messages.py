"""What is said of each kernel of kernel_edits, with the op at the head of its line."""

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
        "tile.load: indices: tiles of 64 must end at 2147483648 or before, got 0 to 4294967295, of "
        "which one ends at 274877906944; multiply in parts, or shorten the loop"
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
        "tile.mma: shapes: must be tiles that MMAs of sm_100a cover, got 136x136x64 of bf16; take "
        "other tiles"
    ),
    "a store of another place": (
        "tile.store: tiles: must store to the M place of its tile, got another index; store there"
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
