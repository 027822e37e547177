"""Planted faults: a text that stands once in the sources, and what takes its place.

They are addressed by their text, so that a file may move. `tests` is where they should be found:
what `run.py` runs of the default suite, in this order, until a test fails.
"""

from __future__ import annotations

from asm_faults import ASMS
from bundle_faults import BUNDLES
from cluster_faults import CLUSTERS
from collective_faults import COLLECTIVES
from coverage_faults import LEFT_OUT
from depth_faults import DEPTHS
from emulator_faults import EMULATOR
from exit_faults import EXITS
from fault import Fault
from gpu_faults import NAMES
from graph_faults import GRAPHS, RECIPES
from group_faults import GROUPS, LEVEL, OF_ANY_ROWS
from input_faults import INPUTS
from keeping_faults import KEEPING
from lane_faults import LANES
from launch_faults import LAUNCHES
from meeting_faults import MEETINGS
from order_faults import ORDERS
from release_faults import RELEASES
from row_faults import BANDS, ROWS
from scale_faults import BLOCKWISE, QUANTISED
from shift_faults import SHIFTS
from shipped_faults import SHIPPED
from silicon_faults import SILICON
from split_faults import SPLIT_TILES
from sum_faults import SUMS
from thread_faults import STARTS, THREADS
from turned_faults import TURNED
from undefined_faults import UNDEFINED

NUMERICS = "test/numerics"
PREFIXES = f"{NUMERICS}/test_prefixes.py"
HOPPER = f"{NUMERICS}/test_hopper_prefixes.py"

LAYOUTS_AND_FRONT_END = [
    Fault(
        "layout: SBO and LBO of MN-major tiles without swizzle are exchanged",
        "            return along_rows, along_contiguous",
        "            return along_contiguous, along_rows",
        (PREFIXES, HOPPER),
    ),
    Fault(
        "layout: a chunk counts as many bytes as its columns, not its rows",
        "        return self.rows * self.span_bytes\n",
        "        return self.contiguous * self.span_bytes\n",
        (PREFIXES,),
    ),
    Fault(
        "trace-operand: a transposed operand keeps its major",
        "axes = tuple(user.axes[order.index(dim)] for dim in range(len(order)))",
        "axes = user.axes",
        (f"{NUMERICS}/test_sources.py",),
    ),
    Fault(
        "gather-epilogue: a transposed side operand is read as it lies",
        "source = [axes[order.index(i)] for i in range(len(axes))]",
        "source = list(axes)",
        (f"{NUMERICS}/epilogues/test_side_operands.py",),
    ),
]
PASSES = [
    Fault(
        "tiling: the last, ragged K step is left out",
        "steps = _index(tiles_along(operands.depth, k))",
        "steps = _index(max(1, operands.depth // k))",
        (PREFIXES,),
    ),
    Fault(
        "tensor-maps: a multicast part has the rows of the whole tile",
        "if scales else [whole.box[0], whole.box[1] // parts]",
        "if scales else [whole.box[0], whole.box[1]]",
        (f"{NUMERICS}/test_hopper_presets.py", f"{NUMERICS}/loops/test_wide_clusters.py"),
    ),
    Fault(
        "swizzle-selection: maps of plain copies keep their old swizzle",
        "    map_.set_type(type_)\n",
        "    del type_\n",
        (PREFIXES,),
    ),
    Fault(
        "epilogue-staging: the pieces of a tile go to the place of its mirror image",
        'where = {"to": to, "staging": staging, "i": store.i, "j": store.j}',
        'where = {"to": to, "staging": staging, "i": store.j, "j": store.i}',
        (PREFIXES,),
    ),
    Fault(
        "clustering: a pair's CTAs start at the same half of B",
        "                index = arith.addi(arith.muli(load.i, index_constant(2)), rank)",
        "                index = arith.muli(load.i, index_constant(2))",
        (PREFIXES, f"{NUMERICS}/test_presets.py"),
    ),
    Fault(
        "pipelining: the prologue fills one slot too few for the loop",
        "        distance = index_constant(ahead * steps.step)",
        "        distance = index_constant((ahead - 1) * steps.step)",
        (PREFIXES, f"{NUMERICS}/loops/test_ring_depths.py"),
    ),
    Fault(
        "pipelining: a slot is released while the MMA of its step may run",
        "        _set_pending(late, 1)\n",
        "        _set_pending(late, 2)\n",
        (HOPPER,),
    ),
    Fault(
        "warp-specialization: the accumulator is handed back before it is stored",
        "ReleaseOp(ring=ring, loc=store.location, ip=ir.InsertionPoint.after(stores[-1]))",
        "ReleaseOp(ring=ring, loc=store.location, ip=ir.InsertionPoint(stores[0]))",
        (f"{NUMERICS}/loops/test_tile_loops.py", PREFIXES),
    ),
    Fault(
        "persistence: the tiles along M and N are exchanged",
        'how = {"tiles": integers(tiles), "order": order, "group": group}',
        'how = {"tiles": integers(tiles[::-1]), "order": order, "group": group}',
        (f"{NUMERICS}/loops/test_tile_loops.py",),
    ),
    Fault(
        "split-k: the parts start one K step after each other",
        "        first = arith.muli(rank, index_constant(each))",
        "        first = arith.muli(rank, index_constant(1))",
        (f"{NUMERICS}/loops/test_split_k.py",),
    ),
    Fault(
        "ping-pong: the first consumer keeps its place in the ring after its tile",
        "with ir.InsertionPoint.at_block_begin(body) if turn else ir.InsertionPoint(body):",
        "with ir.InsertionPoint.at_block_begin(body):",
        (f"{NUMERICS}/loops/test_ping_pong.py",),
    ),
]
LOWERING = [
    Fault(
        "instruction descriptor: B counts as K-major",
        '        | b.operand_code << 10\n        | (majors[0] == "mn") << 15\n'
        '        | (majors[1] == "mn") << 16\n',
        '        | b.operand_code << 10\n        | (majors[0] == "mn") << 15\n        | 0 << 16\n',
        (PREFIXES,),
    ),
    Fault(
        "shared-memory descriptor: the K slices of an MMA do not advance",
        "    moved = _low_word(op, descriptor) + encode_bytes(offset.value)",
        "    moved = _low_word(op, descriptor)",
        (PREFIXES,),
    ),
    Fault(
        "tcgen05.mma: the first MMA of a tile adds to what is there",
        "sm.MmaOp.of(sums, a_tile, b_tile, accumulate, **fields | of_part, **offsets)",
        "sm.MmaOp.of(sums, a_tile, b_tile, build.true(), **fields | of_part, **offsets)",
        (PREFIXES,),
    ),
    Fault(
        "wgmma: a warpgroup reads the first one's rows of A",
        "encode_bytes(layout.offset(layout.mn // warpgroups, 0))",
        "encode_bytes(layout.offset(0, 0))",
        (HOPPER,),
    ),
    Fault(
        "wgmma: no wgmma.fence before the first of a group",
        "    nvvm.wgmma_fence_aligned()\n",
        "    pass\n",
        (HOPPER,),
    ),
    Fault(
        "pipes: a pair's barrier expects the bytes of one CTA",
        "    pair, ctas = rings.cluster.pair, 2 if rings.cluster.pair else 1\n",
        "    pair, ctas = rings.cluster.pair, 1\n",
        (PREFIXES, f"{NUMERICS}/test_presets.py"),
    ),
    Fault(
        "pipes: copies of a slot are published while the newest run",
        "    sm.CpAsyncWaitOp.of(pending=newest)\n",
        "    sm.CpAsyncWaitOp.of(pending=newest + 1)\n",
        (f"{NUMERICS}/loops/test_ring_depths.py",),
    ),
    Fault(
        "copies: parts of a unit lie one byte apart",
        "    return unit + part % in_unit * size",
        "    return unit + part % in_unit",
        (f"{NUMERICS}/loops/test_ring_depths.py",),
    ),
    Fault(
        "operands: threads swizzle by the line after next",
        "    line = arith.andi(within // 128, build.constant(mask))",
        "    line = arith.andi(within // 256, build.constant(mask))",
        (PREFIXES,),
    ),
    Fault(
        "operands: a multicast part starts at the tile's first row of global memory",
        "    row = _first_row(op) + part * part_rows",
        "    row = _first_row(op)",
        (f"{NUMERICS}/loops/test_wide_clusters.py",),
    ),
    Fault(
        "rows: columns past the edge of C are written",
        '    with build.when(None if is_whole(op, "j") else build.less(column, columns)):',
        '    with build.when(None if is_whole(op, "j") else build.less(column, columns + width)):',
        (PREFIXES,),
    ),
    Fault(
        "expand-loops: a buffer is written while its last store reads it",
        "        sm.BulkWaitOp.of(pending=ring.type.stages - 1)",
        "        sm.BulkWaitOp.of(pending=ring.type.stages)",
        (PREFIXES, f"{NUMERICS}/epilogues/test_staged_stores.py"),
    ),
    Fault(
        "pieces: stmatrix exchanges the second and third of four matrices",
        "    row = op.row + lane % ROWS + matrix_row(origins, number)",
        "    row = op.row + lane % ROWS + number // 2 * ROWS",
        (f"{NUMERICS}/epilogues/test_staged_stores.py",),
    ),
    Fault(
        "expand-reduction: the parts of a cluster with several tiles are taken from neighbours",
        "    behind = [part * m * n for part in range(split)]",
        "    behind = [part for part in range(split)]",
        (f"{NUMERICS}/loops/test_split_k.py", f"{NUMERICS}/loops/test_split_clusters.py"),
    ),
    Fault(
        "claims: a claimed cluster is counted along the wrong axis",
        "    return along_m + along_n * tiles",
        "    return along_m + along_n",
        (f"{NUMERICS}/loops/test_tile_loops.py",),
    ),
    Fault(
        "cluster: a pair's release does not reach who fills the odd CTA",
        "return self.senders(rank) | (self.senders(rank ^ 1) if self.pair else 0)",
        "return self.senders(rank)",
        (f"{NUMERICS}/test_presets.py", PREFIXES),
    ),
    Fault(
        "clearing: eight rows too few are cleared of what lay there",
        " + op.row.value * layout.span_bytes\n",
        " + (op.row.value + 8) * layout.span_bytes\n",
        (f"{NUMERICS}/sizes/test_few_rows.py",),
    ),
    Fault(
        "tiles: the last, lower group of tiles counts as a whole one",
        "    height = arith.minui(build.constant(m) - first, build.constant(group))",
        "    height = build.constant(group)",
        (f"{NUMERICS}/loops/test_tile_loops.py",),
    ),
    Fault(
        "shifted-copies: the end of the tensor is not loaded again",
        "        beyond = _over(end, UNITS * UNIT_BYTES, self.limit)",
        "        beyond = _over(end, UNITS * UNIT_BYTES, self.limit + 2 * UNIT_BYTES)",
        (f"{NUMERICS}/sizes/test_shifted_copies.py",),
    ),
    Fault(
        "special-functions: tanh of small values takes the wrong constant",
        "TANH_OVER_X = (1.0, -0.3333326,",
        "TANH_OVER_X = (1.0, -0.3333526,",
        (f"{NUMERICS}/test_torch_modules.py",),
    ),
    Fault(
        "accumulator: lanes 16 to 31 of an MMA of 64 rows read the first columns",
        "    return build.constant(op.offset.value, build.i64()) if apart else None",
        "    return build.constant(0, build.i64()) if apart else None",
        (PREFIXES,),
    ),
    Fault(
        "rows: the two rows of a thread are exchanged",
        "for own in rows.values()]",
        "for own in reversed(rows.values())]",
        (HOPPER,),
    ),
    Fault(
        "plan: an empty barrier counts one warp of those that read the accumulator",
        "        count = _consumer_warps(ring) * (2 if cluster.pair else 1)",
        "        count = 2 if cluster.pair else 1",
        (f"{NUMERICS}/loops/test_tile_loops.py", PREFIXES),
    ),
]
EXCHANGED = [
    Fault(
        "expand-reduction: sums of exchanged operands are all written to the thread's first row",
        'where = {"memory": self.memory, "row": start + behind, "column": row}',
        'where = {"memory": self.memory, "row": start, "column": row}',
        (f"{NUMERICS}/test_exchanged_operands.py",),
    ),
    Fault(
        "pieces: all columns that stmatrix transposes go where the first do",
        "* ROWS + lane % ROWS + op.column.value\n        unit",
        "* ROWS + lane % ROWS\n        unit",
        (f"{NUMERICS}/test_exchanged_operands.py",),
    ),
    Fault(
        "tiled-swap: rows of C stay rows of the sums for what epilogues read",
        'EXCHANGED = {"": "", "m": "n", "n": "m", "mn": "mn"}',
        'EXCHANGED = {"": "", "m": "m", "n": "n", "mn": "mn"}',
        (f"{NUMERICS}/epilogues/test_exchanged_epilogues.py",),
    ),
    Fault(
        "pieces: neighbours are read together where a column of C ends between them",
        "    each = math.gcd(width, columns)",
        "    each = width",
        (f"{NUMERICS}/epilogues/test_exchanged_epilogues.py",),
    ),
]
WEIGHTS = [
    Fault(
        "widened words: the sign of s8 is lost in bf16",
        '    return _difference(arith.ori(low, magic), arith.ori(sign, magic), "bf16")',
        '    return _difference(arith.ori(low, magic), magic, "bf16")',
        (f"{NUMERICS}/weights/test_weights.py",),
    ),
    Fault(
        "group scales: a tile's first step multiplies by the scales of the next one",
        "            with build.when(begins(op)):\n                _ask(reads, slots, step)\n",
        "            with build.when(begins(op)):\n                _ask(reads, slots, step + 1)\n",
        (f"{NUMERICS}/weights/test_weights.py",),
    ),
    Fault(
        "weights: the second half of an MMA's K is read from the first",
        "for half in (0, HALF_K)]",
        "for half in (0, 0)]",
        (f"{NUMERICS}/weights/test_weights.py",),
    ),
]
STORED_APART = [
    Fault(
        "stores apart: each warpgroup stores the first one's rows of a piece",
        "        row, buffer = row + first, buffer + first * layout.span_bytes",
        "        row = row + first",
        (f"{NUMERICS}/epilogues/test_stores_apart.py",),
    ),
]
READ_AHEAD = [
    Fault(
        "reads ahead: all pairs of a thread take the columns of its first",
        "        within = _copy(op.start, copies) + (_copy(op.column, copies) + columns)",
        "        within = _copy(op.start, copies) + _copy(op.column, copies)",
        (f"{NUMERICS}/epilogues/test_reads_ahead.py",),
    ),
    Fault(
        "pieces ahead: matrices are handed to the pairs in another order",
        "                hold(element, pairs[number])",
        "                hold(element, pairs[-1 - number])",
        (f"{NUMERICS}/epilogues/test_loads_ahead.py",),
    ),
    Fault(
        "marks: the start is stored before the grids in front have ended",
        "        with ir.InsertionPoint.after(allowed), build.when(one):",
        "        with ir.InsertionPoint(op), build.when(one):",
        (f"{NUMERICS}/loops/test_marks.py",),
    ),
    Fault(
        "early loads: the second step asks for the tiles of the first again",
        "                values[counter] = index_constant(number)",
        "                values[counter] = index_constant(known[0])",
        (f"{NUMERICS}/loops/test_early_loads.py",),
    ),
]
CHOICE = [
    Fault(
        "bounds: that of a sharing takes the slowest way from tile to tile for the fastest",
        "            least_us = min(least_us, *found)",
        "            least_us = max(least_us, *found)",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
]
EXCHANGES = [
    Fault(
        "shared layers: ranks multiply what they hold where something was to be exchanged",
        "    return all(list(cuts) in known and _are_plain(cuts) for cuts in of_dims)",
        "    return all(_are_plain(cuts) for cuts in of_dims)",
        ("test/compiler/calls/test_shared_layer.py",),
    ),
]
FIRST_WAVES = [
    Fault(
        "bounds: the first wave of a stack touches as many columns of tiles as of one matrix",
        "columns = min(tiles / of_m, self.of_n)",
        "columns = min(tiles / self.of_m, self.of_n)",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
]
PRECISION = [
    Fault(
        "split-words: the low part of B is left out",
        "PRODUCTS = (((LOW, HIGH), (HIGH, LOW), (HIGH, HIGH)),)",
        "PRODUCTS = (((LOW, HIGH), (HIGH, HIGH)),)",
        (f"{NUMERICS}/f32/test_split_f32.py",),
    ),
    Fault(
        "split-words: what is left of an element is that of its high part",
        "left = arith.subf(value, llvm.bitcast(value.type, high))",
        "left = llvm.bitcast(value.type, high)",
        (f"{NUMERICS}/f32/test_split_f32.py",),
    ),
    Fault(
        "split-words: the last parts of bf16x9 are not multiplied",
        "    ((THIRD, FIRST), (SECOND, SECOND), (FIRST, THIRD)),\n",
        "    ((SECOND, SECOND),),\n",
        (f"{NUMERICS}/f32/test_nine_products.py",),
    ),
    Fault(
        "bf16-parts: what is left of an element is not made larger",
        "LEFT = 2.0**SHIFT\n",
        "LEFT = 2.0 ** (SHIFT - 1)\n",
        (f"{NUMERICS}/f32/test_nine_products.py",),
    ),
    Fault(
        "bf16-parts: an infinite operand has parts like a number",
        "        value = arith.mulf(left, build.f32(LEFT))\n        pieces.append(value)\n",
        "        value = arith.mulf(left, build.f32(LEFT))\n        pieces.append(value)\n"
        "    pieces[0] = llvm.bitcast(f32, word)\n",
        (f"{NUMERICS}/f32/test_nine_products.py",),
    ),
]
FAULTS = [
    *LAYOUTS_AND_FRONT_END,
    *PASSES,
    *LOWERING,
    *EMULATOR,
    *QUANTISED,
    *GROUPS,
    *EXCHANGED,
    *WEIGHTS,
    *ROWS,
    *READ_AHEAD,
    *CHOICE,
    *PRECISION,
    *BLOCKWISE,
    *GRAPHS,
    *TURNED,
    *THREADS,
    *ORDERS,
    *SPLIT_TILES,
    *LAUNCHES,
    *LANES,
    *RELEASES,
    *ASMS,
    *MEETINGS,
    *BANDS,
    *INPUTS,
    *UNDEFINED,
    *COLLECTIVES,
    *RECIPES,
    *SILICON,
    *CLUSTERS,
    *OF_ANY_ROWS,
    *STARTS,
    *SUMS,
    *BUNDLES,
    *SHIFTS,
    *LEVEL,
    *NAMES,
    *STORED_APART,
    *FIRST_WAVES,
    *EXCHANGES,
    *EXITS,
    *DEPTHS,
    *LEFT_OUT,
    *SHIPPED,
    *KEEPING,
]
