"""Planted faults where results get scales of blocks, and where products are added with theirs."""

from __future__ import annotations

from fault import Fault

NUMERICS = "test/numerics"
SCALES = f"{NUMERICS}/scales/test_blockwise_scales.py"
PRODUCTS = f"{NUMERICS}/test_products_in_tensor_memory.py"

QUANTISED = [
    Fault(
        "expand-quantized: a word has the scales of a row's blocks the other way round",
        "self._store(_vector(own), number)",
        "self._store(_vector(own[::-1]), number)",
        (f"{NUMERICS}/scales/test_quantized_outputs.py",),
    ),
    Fault(
        "quantized: a row's scales lie in the line of the atom behind its own",
        "op.row % rows // LINES * SCALE_ATOM_BLOCKS",
        "op.row % rows // LINES * LINE_BYTES",
        (f"{NUMERICS}/scales/test_quantized_outputs.py",),
    ),
    Fault(
        "quantized: scales of powers of two are always rounded down",
        "exponent = arith.shrui(bits + element.carry(op.rounding.value), fraction)",
        "exponent = arith.shrui(bits, fraction)",
        ("test/compiler/scales/test_matmul_quantized.py",),
    ),
]
BLOCKWISE = [
    Fault(
        "tcgen05-added: the first CTA of a pair multiplies before the second has its operands",
        "        build.barrier_wait(ready, phase % 2, in_cluster=True)\n",
        "",
        (PRODUCTS,),
    ),
    Fault(
        "tcgen05-added: the second CTA of a pair is not told that a product is made",
        "        _multiply(scope, which, issue, scope.place.mask(True, []))",
        "        _multiply(scope, which, issue, None)",
        (PRODUCTS,),
    ),
    Fault(
        "plan: warps that load the tiles of groups count as one reader of a claim",
        "        total += ctas * (_agent_warps(op) if who == TEAM else 1)",
        "        total += ctas * (_agent_warps(op) if who == TEAM and _agent_warps(op) > 4 else 1)",
        (PRODUCTS,),
    ),
    Fault(
        "block-scales: threads read the scales of a vector's first rows for all of theirs",
        "            pointer = build.shared_at(first + line * SCALE_BYTES)\n",
        "            pointer = build.shared_at(first + line % 8 * SCALE_BYTES)\n",
        (SCALES,),
    ),
    Fault(
        "block-factors: a step asks for its own scales instead of those of the next",
        "        each.ask(1)\n",
        "        each.ask(0)\n",
        (SCALES,),
    ),
    Fault(
        "block-factors: all rows of a warpgroup have the scales of its first 64",
        "return rows[atom * ATOM_M + row], columns[column]",
        "return rows[row], columns[column]",
        (SCALES,),
    ),
    Fault(
        "block-scales: 64 columns of a tile that begins within 128 share the next block's scale",
        "build.less(start % BLOCKWISE + inside, BLOCKWISE)",
        "build.less(start % BLOCKWISE + inside, BLOCKWISE // 2)",
        (SCALES,),
    ),
    Fault(
        "rings: a warp releases scales in shared memory that other lanes may still read",
        "return any(isinstance(tile, SmemType) and tile.layout.is_vector for tile in tiles)",
        "return False and any(isinstance(tile, SmemType) for tile in tiles)",
        (SCALES,),
    ),
    Fault(
        "multiplying-turns: a warpgroup gives the turn to itself",
        "        following = self.own + 1\n",
        "        following = self.own + 0\n",
        (SCALES,),
    ),
    Fault(
        "split-k: MMAs with block scales of every part end K as those of the first one",
        "(*SCALED_MMAS, *BLOCKWISE_MMAS, WeightMmaOp)",
        "(*BLOCKWISE_MMAS, WeightMmaOp)",
        ("test/numerics/scales/test_scaled_parts.py",),
    ),
    Fault(
        "tiling: exchanged operands keep the forms of each other's scales",
        "reversed(forms.values())",
        "forms.values()",
        ("test/numerics/scales/test_exchanged_scales.py",),
    ),
    Fault(
        "added-wgmma: every 64 rows of a warpgroup are the product of its first",
        "[empty], zero, atom, separate_last",
        "[empty], zero, 0, separate_last",
        (SCALES,),
    ),
    Fault(
        "added-tcgen05: the product of a step is multiplied by the scales of the next one",
        "            _add(scope, op.acc, number + (-1))\n    _keep(held, scales)\n",
        "            _keep(held, scales)\n            _add(scope, op.acc, number + (-1))\n"
        "    _keep(held, scales)\n",
        (SCALES, PRODUCTS),
    ),
    Fault(
        "added-tcgen05: MMAs write to a product that others still read",
        '    team.meet()\n    build.fence("tcgen05_after")\n    number: ir.Value',
        '    build.fence("tcgen05_after")\n    number: ir.Value',
        (SCALES, PRODUCTS),
    ),
    Fault(
        "places: two warpgroups have the same rows of a product",
        "thread // WARPGROUP_THREADS * (m // 8)",
        "thread // WARPGROUP_THREADS * 0",
        (SCALES, PRODUCTS),
    ),
    Fault(
        "held-factors: a scale is held for 16 columns whose scales are of 128 lines",
        "number // side.width for number",
        "number // (2 * side.width) for number",
        (PRODUCTS,),
    ),
]

SHARED = [
    Fault(
        "shared-columns: an even tile is read from its first column on, which it does not share",
        "    return arith.select(equal(odd, 1), start, last - start)\n",
        "    return start\n",
        (f"{NUMERICS}/scales/test_shared_columns.py",),
    ),
    Fault(
        "shared-columns: sums are released a piece too early",
        "    return -(-shared // each)\n",
        "    return max(1, shared // each)\n",
        (f"{NUMERICS}/scales/test_shared_columns.py", "test/passes/expand_loops"),
    ),
    Fault(
        "pipes: a slot of two places always lies in the first",
        "        return self.slot(parity if in_turn else index)\n",
        "        return self.slot(index)\n",
        (f"{NUMERICS}/scales/test_shared_columns.py", "test/passes/pipes_to_barriers"),
    ),
    Fault(
        "rings: two slots of a ring may share columns, each of which holds a tile",
        "{1 if shared_of(owner) else planned.value}",
        "{ring.stages if shared_of(owner) else planned.value}",
        ("test/passes/test_memory_plan.py",),
    ),
]
