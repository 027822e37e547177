"""Planted faults of how schedules are chosen, and of what a kernel reads ahead."""

from __future__ import annotations

from fault import Fault

NUMERICS = "test/numerics"

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
        "estimate: parts of K wait for L2 as if all GPCs had as many CTAs",
        "        fullest = ctas_at_fullest(int(at_work), size, chip)",
        "        fullest = at_work",
        ("test/compiler/schedule/test_schedule_choice_on_hopper.py",),
    ),
    Fault(
        "estimate: a GPC has parts of clusters",
        "        for each in range(size, most, size)",
        "        for each in range(1, most)",
        ("test/compiler/schedule/test_schedule_choice_on_hopper.py",),
    ),
    Fault(
        "estimate: clusters that share both operands start as soon as others",
        "    start = chip.cta_start + (chip.shared_twice if min(schedule.cluster) > 1 else 0)",
        "    start = chip.cta_start",
        ("test/compiler/schedule/test_schedule_choice_on_hopper.py",),
    ),
    Fault(
        "bands: tiles are in bands of eight, however wide they are",
        "            one = one.but(group=band_of(problem, one, target))",
        "            pass",
        ("test/compiler/schedule/test_schedule_choice_on_hopper.py",),
    ),
    Fault(
        "bands: wide tiles in turns are in bands of eight",
        "        yield grouped.but(group=band_of(seen, grouped, used))",
        "        yield grouped",
        ("test/compiler/schedule/test_schedule_choice_on_hopper.py",),
    ),
    Fault(
        "estimate: a program without roles stores a tile while it multiplies the next",
        "        return steps.start + rounds * (steps.fill + main + epilogue)",
        "        return steps.start + rounds * max(steps.fill + main, epilogue)",
        ("test/tools/test_published_elsewhere.py",),
    ),
    Fault(
        "estimate: threads that issue loads and MMAs need no time from one step to the next",
        "        each = (around + steps.turn) / ring",
        "        each = around / ring",
        ("test/tools/test_published_elsewhere.py",),
    ),
    Fault(
        "estimate: a latency of memory is as many cycles at any clock",
        "    return latency * clock / tensor_figures(target).latencies_at if clock else latency",
        "    return latency",
        ("test/tools/test_published_elsewhere.py",),
    ),
    Fault(
        "estimate: the order of tiles of a CTA each is read from nothing",
        '"ping-pong" in calls, **_raster(calls["tiling"]))',
        '"ping-pong" in calls)',
        ("test/tools/test_published_elsewhere.py",),
    ),
    Fault(
        "estimate: what is written takes no room in L2",
        "    return once_bytes(problem) - written + chip.written * written <= chip.l2_size",
        "    return once_bytes(problem) - written <= chip.l2_size",
        ("test/tools/test_published_elsewhere.py",),
    ),
    Fault(
        "persistence: one accumulator, which the next tile waits for",
        "OVERLAPPING_STAGES = 2",
        "OVERLAPPING_STAGES = 1",
        ("test/tools/test_overlapped_tiles.py",),
    ),
    Fault(
        "pairs: a chip is said to have none where another of its MMAs has",
        "in target.other_mmas if unit.pairs and not unit.products]",
        "in ()]",
        ("test/passes/test_chip_rejections.py",),
    ),
    Fault(
        "bounds: that of a sharing takes the slowest way from tile to tile for the fastest",
        "            least_us = min(least_us, *found)",
        "            least_us = max(least_us, *found)",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
]
REMEMBERED = [
    Fault(
        "kinds: groups of few rows are stored as those of many",
        '    rows = min(problem.m, TILE_ROWS_MOST) if problem.grouped == "m" else 0\n',
        "    rows = 0\n",
        ("test/compiler/schedule/test_search_kinds.py",),
    ),
    Fault(
        "stores: clusters have those of CTAs alone",
        "        lone = alone and order.cluster_size == 1  # whose",
        "        lone = alone  # whose",
        ("test/compiler/schedule/test_search_kinds.py",),
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

TILES_OF_A_KIND = [
    Fault(
        "faces: tiles of any K leave as many registers beside scales",
        '"tile_shape", (tile, depths), tile_costs_of',
        '"tile_shape", tile, tile_costs_of',
        ("test/compiler/schedule/test_search_kinds.py",),
    ),
    Fault(
        "stores: tiles of few steps have the stages of those of many",
        "(order.tile, min(STAGES_MAX, of_tile), asked)",
        "(order.tile, asked)",
        ("test/compiler/schedule/test_search_kinds.py",),
    ),
    Fault(
        "least epilogue: that of the last way to store counts, not that of the best",
        "least = min(least, stored + around + beside[one.staging is not None])",
        "least = stored + around + beside[one.staging is not None]",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
]

PARTS_OF_RESIDUALS = [
    Fault(
        "estimate: a residual costs nothing where parts of K are added over a cluster",
        "    stored += read / split_figures(target).beside\n",
        "    stored += 0\n",
        ("test/compiler/schedule/test_ahead_schedules.py",),
    ),
]

AT_ONCE = [
    Fault(
        "at once: a run is about places of the run before, not about those of all problems",
        "waiting += [asked[places] for places in run.others]",
        "waiting += run.others",
        ("test/compiler/schedule/test_vectorized.py",),
    ),
    Fault(
        "at once: tiles of equal height are estimated of the exchanged problem",
        """        problem = problem.seen_by(whole)
""",
        "",
        ("test/compiler/schedule/test_vectorized.py",),
    ),
    Fault(
        "at once: a function of one number takes that of the first problem for all",
        "        while not self.run.answer(self.values == first):\n"
        "            first = self.values[self.run.places[0]]\n",
        "",
        ("test/compiler/schedule/test_vectorized.py",),
    ),
]

TABLES = [
    Fault(
        "tables: an entry that breaks a rule is left out in silence",
        "        _warn_of_broken(tuned, target)\n",
        "",
        ("test/compiler/schedule/test_tuned_schedules.py",),
    ),
    Fault(
        "tables: groups that are the order along M are measured",
        "    best += [each for each in regrouped if broken_rule(problem, each, target) is None]",
        "    best += regrouped",
        ("test/tools/test_tune_command.py",),
    ),
]

FLOORS = [
    Fault(
        "floors: an epilogue beside which MMAs of other warpgroups run is computed alone",
        "    return stored_alone(problem, tile, target) * _computed_cycles(problem, tile, target)",
        "    return _computed_cycles(problem, tile, target)",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "floors: a part of a cluster takes all of K",
        "shared / parts, self._part_bytes[parts]\n",
        "shared / parts, self._part_bytes[1]\n",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "floors: parts of K load whole boxes, however far a tile extends past the last row",
        "max(self.along_m.hangs, self.along_n.hangs) <= FAR",
        "max(self.along_m.hangs, self.along_n.hangs) <= 1",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "floors: rows inside sectors are asked for as in the worst cluster",
        "alone = max(alone, every.unaligned_cycles * min(found))",
        "alone = max(alone, every.unaligned_cycles * max(found))",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "floors: parts of K share clusters with tiles that are not there",
        "largest_within(peers, self.along_m.even, self.along_n.even)",
        "largest_within(peers, self.along_m.most, self.along_n.most)",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "floors of rows: out-of-bounds rows are those of the fewest rows",
        "        whole = tiles == 1 or largest > size or not self.by_tma[number]\n",
        "        whole = tiles == 1 or not self.by_tma[number]\n",
        ("test/compiler/schedule/test_chosen_for_rows.py",),
    ),
    Fault(
        "floors of rows: clusters are those of the fewest rows",
        "            most=1 << min(most_tiles.bit_length(), 4) - 1,\n",
        "            most=1 << min(tiles.bit_length(), 4) - 1,\n",
        ("test/compiler/schedule/test_chosen_for_rows.py",),
    ),
    Fault(
        "at once: a second side of problems is not told",
        "        if schedule.swap not in self._sides:",
        "        if not self._sides:",
        ("test/compiler/schedule/test_vectorized.py",),
    ),
    Fault(
        "floors: no CTAs share a multiprocessor",
        "            waves = -(-rounds // self._residents(side, least_k))",
        "            waves = rounds",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "rings: the first that is looked at is taken for one that hides all latency",
        "            if main <= streamed:\n                break",
        "            break",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "at once: rules of tiles of equal height are asked of the exchanged problem",
        "            problem = problem.seen_by(schedule.of_whole_tiles)\n        return broken",
        "            pass\n        return broken",
        ("test/compiler/schedule/test_vectorized.py",),
    ),
    Fault(
        "at once: of each two numbers the smaller is taken for the larger",
        "        return Numbers(np.maximum(self.values, _values(other)), self.run)",
        "        return Numbers(np.minimum(self.values, _values(other)), self.run)",
        ("test/compiler/schedule/test_vectorized.py",),
    ),
    Fault(
        "floors: less than a step of K takes less than no time",
        "    cycles = tensor.cold_fill + max(0.0, work) + ends\n",
        "    cycles = tensor.cold_fill + work + ends\n",
        ("test/compiler/schedule/test_schedule_search.py",),
    ),
    Fault(
        "mma shape: integers have the columns of floats",
        "        or legality.tile_columns(target, m, n, problem.integers)\n",
        "        or legality.tile_columns(target, m, n)\n",
        ("test/compiler/schedule/test_exchanged_choice.py",),
    ),
    Fault(
        "warp schedules: a piece that is stored may be no divisor of a product's columns",
        "    columns = math.gcd(tile[1] // spec.products, PIECE_BYTES",
        "    columns = min(tile[1] // spec.products, PIECE_BYTES",
        ("test/compiler/schedule/test_split_choice.py",),
    ),
    Fault(
        "stagings: rings leave L1 no room for what threads copy",
        "    shared = COPYING_BYTES if leaves_l1(problem, target) else target.shared_bytes\n",
        "    shared = target.shared_bytes\n",
        ("test/compiler/schedule/test_schedules_beside_copies.py",),
    ),
    Fault(
        "wide tiles in turns: widths are offered whose pieces are 8 columns, which threads store",
        "tile.staging[0] > CORE_ROWS",
        "tile.staging[0] >= CORE_ROWS",
        ("test/compiler/schedule/test_wide_turns.py",),
    ),
]
