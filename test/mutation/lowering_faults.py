"""Planted faults of the lowering, from descriptors to what threads read and store."""

from __future__ import annotations

from fault import Fault

NUMERICS = "test/numerics"
PREFIXES = f"{NUMERICS}/test_prefixes.py"
HOPPER = f"{NUMERICS}/test_hopper_prefixes.py"

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
        "    nvvm.wgmma_fence()\n",
        "    pass\n",
        (HOPPER,),
    ),
    Fault(
        "pipes: a pair's barrier expects the bytes of one CTA",
        "    ctas = 2 if pair else 1\n",
        "    ctas = 1\n",
        (PREFIXES, f"{NUMERICS}/test_presets.py"),
    ),
    Fault(
        "pipes: copies of a slot are published while the newest run",
        "    sm.CpAsyncWaitOp.of(pending=newest)\n",
        "    sm.CpAsyncWaitOp.of(pending=newest + 1)\n",
        (f"{NUMERICS}/loops/test_ring_depths.py",),
    ),
    Fault(
        "copies: threads copy eights alone of parts that no number near eight divides",
        "    emit([_part(team.thread, index * team.threads, in_row) "
        "for index in range(whole, each)])\n",
        "",
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
        "arith.andi(start // BANK_LINE_BYTES, build.constant(mask))",
        "arith.andi(start // (2 * BANK_LINE_BYTES), build.constant(mask))",
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
        "        sm.BulkWaitOp.of(pending=stages - 1)",
        "        sm.BulkWaitOp.of(pending=stages)",
        (PREFIXES, f"{NUMERICS}/epilogues/test_staged_stores.py"),
    ),
    Fault(
        "expand-loops: of outputs stored together one alone goes on to its next buffer",
        "    for ring in rings:\n        NextBufferOp(staging=ring)",
        "    for ring in rings[:1]:\n        NextBufferOp(staging=ring)",
        (f"{NUMERICS}/epilogues/test_several_outputs.py",),
    ),
    Fault(
        "pieces: stmatrix exchanges the second and third of four matrices",
        "row + lane % ROWS + matrix_row(MATRICES, number))",
        "row + lane % ROWS + number // 2 * ROWS)",
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
OWN_SLOTS = [
    Fault(
        "positions: every warpgroup has the slot of the first one",
        "return [Team.of(op).thread // WARPGROUP_THREADS, _load(at.phase)]",
        "return [build.constant(0), _load(at.phase)]",
        (f"{NUMERICS}/epilogues/test_loads_ahead.py",),
    ),
    Fault(
        "normal tails: the pole is that of the number before its factor",
        "literal(tail.pole / scale)",
        "literal(tail.pole)",
        (f"{NUMERICS}/epilogues/test_fast_functions.py",),
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
SHARED_LANES = [
    Fault(
        "stores apart: warpgroups that share lanes of tensor memory store by themselves",
        '    if target.adds_from_tensor_memory:\n        return "rows of a warpgroup',
        '    if False:\n        return "rows of a warpgroup',
        (f"{NUMERICS}/epilogues/test_stores_apart.py",),
    ),
]
LEFT_SLOTS = [
    Fault(
        "pieces by steps: each step brings the one behind its own",
        "as_i32(loading.induction_variable) - start)",
        "as_i32(loading.induction_variable) - (start - 1))",
        (f"{NUMERICS}/epilogues/test_loads_ahead.py",),
    ),
    Fault(
        "pieces by steps: another role may load some, whose slots nobody frees",
        "    return one and load.ring.type.stages == load.pieces.value",
        "    return one",
        ("test/passes/test_left_slot_rules.py",),
    ),
    Fault(
        "pipes: a drain waits for one slot less",
        "    with build.loop(build.constant(0), op.slots.value, 1):",
        "    with build.loop(build.constant(0), op.slots.value - 1, 1):",
        ("test/backend/test_ptx_golden.py",),
    ),
    Fault(
        "left places: slots that nobody has read may be left, too",
        "    if steps < stages:\n        return None\n",
        "",
        ("test/passes/test_left_slot_rules.py",),
    ),
]
ROTATIONS = [
    Fault(
        "rotated steps: behind the last comes none",
        "    return build.as_index(arith.select(build.less(step, steps), step, step - steps))",
        "    return build.as_index(step)",
        (f"{NUMERICS}/loops/test_rotated_steps.py",),
    ),
    Fault(
        "rotation: CTAs of a cluster may begin with different steps",
        "    if together % extent:",
        "    if False:",
        ("test/passes/test_rotation_rules.py",),
    ),
    Fault(
        "skip-zeros: the step that comes last may be another than that with the end of K",
        "        for step in walk(kernel, RotatedStepOp):",
        "        for step in ():",
        ("test/passes/test_rotation_rules.py",),
    ),
    Fault(
        "k-rotation: places along N count, whichever axis is named",
        "    axis = AXES.index(along)\n",
        "    axis = 1\n",
        ("test/passes/test_rotation_rules.py",),
    ),
    Fault(
        "rotation: more CTAs of a chosen cluster than begin alike",
        "max(TOGETHER, schedule.cluster[axis])",
        "TOGETHER",
        (f"{NUMERICS}/loops/test_rotated_steps.py",),
    ),
    Fault(
        "rotated_step: counts may have more than 32 bits",
        "if not 1 <= value <= NUMBER_MAX:",
        "if value < 1:",
        ("test/passes/test_rotation_rules.py",),
    ),
]
