"""Planted faults of layouts, of the front end, and of the passes of a schedule."""

from __future__ import annotations

from fault import Fault

NUMERICS = "test/numerics"
PREFIXES = f"{NUMERICS}/test_prefixes.py"
HOPPER = f"{NUMERICS}/test_hopper_prefixes.py"

LAYOUTS_AND_FRONT_END = [
    Fault(
        "walks: an op comes after those that it holds",
        "            at -= 1\n        ordered.insert(at, op)\n",
        "            break\n        ordered.append(op)\n",
        ("test/passes/test_walks.py",),
    ),
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
    Fault(
        "epilogue-staging: rows of a piece without a swizzle may be an even number of units",
        "and units % 2 == 1",
        "and units > 0",
        ("test/passes/test_rung_rejections.py",),
    ),
]
