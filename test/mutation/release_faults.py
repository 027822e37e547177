"""Planted faults in what the emulator holds single lanes of a warp to, and fences."""

from __future__ import annotations

from fault import Fault

RACES = ("test/emulator/races", "test/bugs")

IDLE = ("test/emulator/races/test_idle_reads.py",)
RELEASES = [
    Fault(
        "shadow: a proxy fence behind the issue of a copy covers what it reads later",
        "        if overwrites and unknown is not None:\n",
        "        if actor.asynchronous and unknown is None:\n"
        "            bad &= self._proxy.tags[bytes_of(index, size)] != 0\n"
        "        if overwrites and unknown is not None:\n",
        ("test/emulator/races/test_late_proxy_fences.py",),
    ),
    Fault(
        "idle-reads: a value that is used later stays excused",
        "            if any_of(mask & lanes):\n                raise trap\n",
        "            pass\n",
        IDLE,
    ),
    Fault(
        "idle-reads: a value that was used before is excused",
        "        if any(self._is_used(*each) for each in uses):\n            return False\n",
        "",
        IDLE,
    ),
    Fault(
        "idle-reads: a carry passes nothing on",
        ' and ".cc" not in program.source[pc].opcode:',
        ":",
        IDLE,
    ),
    Fault(
        "idle-reads: only the last reader of a byte may have used it",
        "[warp for warp in warps.values() if warp is not writer]",
        "[warps[who & COMPONENT_MASK]]",
        IDLE,
    ),
    Fault(
        "reads: an earlier load of a byte that was read again is forgotten",
        "        if not now and self._reads.are_forgotten(offsets):\n            return False\n",
        "",
        IDLE,
    ),
    Fault(
        "reads: boxes forget who read them before",
        "            self._boxes_forgotten.add(index)\n",
        "            pass\n",
        ("test/emulator/races/test_grains.py",),
    ),
    Fault(
        "idle-reads: what a value decides is no use of it",
        "            if flow_of(program, pc).guard in reached:\n                return None\n",
        "",
        IDLE,
    ),
    Fault(
        "idle-reads: a guard is what it is now",
        "    if looped or any(_writers(program, slot) > 1 for slot in fixed):\n",
        "    if looped:\n",
        IDLE,
    ),
    Fault(
        "lane-times: a release by one lane covers what the others did",
        "    return lanes_of_mask(warp, lone)\n",
        "    return None\n",
        RACES,
    ),
    Fault(
        "known: a wait for anything makes the lanes of a warp meet",
        "self.together = max(self.together, int(rows[KNOWN, own]))",
        "self.together = int(self.rows[KNOWN, own])",
        RACES,
    ),
    Fault(
        "warp-clock: a fence ahead of bar.warp.sync covers the other lanes for what follows it",
        "limits[first - OVER :] = np.minimum(together, self._fenced[covered, 0])",
        "limits[first - OVER :] = together",
        RACES,
    ),
    Fault(
        "reads: who releases alone has read for all lanes",
        "            lanes = lanes_of_units(read.lanes, read.cells, read.size)\n",
        "            lanes = 0\n",
        RACES,
    ),
    Fault(
        "lanes-of-bytes: lanes of one store may disagree about a value",
        "    differ = (rows[one] != rows[other]).any(axis=1)\n",
        "    differ = np.zeros(len(one), bool)\n",
        RACES,
    ),
    Fault(
        "known: what one lane acquires all lanes know",
        "        shared = {id(self.common)}\n",
        "        return self.all\n        shared = {id(self.common)}\n",
        RACES,
    ),
    Fault(
        "shadow: copies are over for all lanes when each lane has waited for its own",
        "        if any_of(own):\n            component, time = event\n",
        "        if False:\n            component, time = event\n",
        RACES,
    ),
    Fault(
        "tracker: an arrival of one lane's copies is of those of its warp",
        "op.marks.lanes = lanes if op.joins and op.stream == (CP_ASYNC, None) else None",
        "op.marks.lanes = None",
        RACES,
    ),
    Fault(
        "tracker: a barrier that one lane has made may be used by others at once",
        "self._clocks[warp].observe(made, releasing(warp), generic=True)",
        "self._clocks[warp].observe(made, generic=True)",
        RACES,
    ),
    Fault(
        "sc-fences: a fence of a narrow scope orders CTAs",
        "            if _distance(fence.cta, warp.cta) <= min(reach, fence.reach)\n",
        "",
        RACES,
    ),
    Fault(
        "sc-fences: what a read tells of the order of fences is forgotten",
        "            self._learn(warp, lanes, self._accessed.get(place, {}))\n",
        "            pass\n",
        RACES,
    ),
]

SLOTS = [
    Fault(
        "ring-fills: the barrier of a CTA alone counts one arrival of a warpgroup, too",
        "together = ctas > 1 and may_release_together(ring, target)",
        "together = may_release_together(ring, target)",
        ("test/passes/test_barrier_counts.py", "test/passes/test_phase_counts.py"),
    ),
    Fault(
        "first-fill: the loop behind the meeting loads the first steps again",
        "        fill.loop.operation.operands[0] = index_constant(left.start)\n",
        "        index_constant(left.start)\n",
        ("test/numerics/loops/test_first_fills.py",),
    ),
    Fault(
        "first-fill: threads that keep the fewest registers begin before the meeting, too",
        "or not _is_of_loads(loops[0]) or _keeps_fewest(roles[0])",
        "or not _is_of_loads(loops[0])",
        ("test/numerics/loops/test_first_fills.py",),
    ),
    Fault(
        "first-fill: steps that K has not are loaded before the meeting",
        "limit = group_steps_of(fill.loop.upperBound)\n",
        "limit = None\n",
        ("test/numerics/loops/test_first_fills.py",),
    ),
    Fault(
        "slot-reuse: K that a launch says takes all the steps that it may",
        "if steps is None or group_steps_of(op.opview.upperBound) is not None:",
        "if steps is None:",
        ("test/numerics/sizes/test_any_depth.py",),
    ),
    Fault(
        "early-loads: barriers may be fenced behind the loads",
        "if not any(isinstance(op, sm.FenceOp) for op in before[before.index(inits[-1]) :])",
        "if False",
        ("test/passes/test_early_load_rules.py",),
    ),
    Fault(
        "early-loads: a lane may wait for more slots than there are before all threads meet",
        "not 0 <= count <= slots",
        "count < 0",
        ("test/passes/test_early_load_rules.py",),
    ),
    Fault(
        "clock: what comes back by way of another cluster is lost",
        "return self.rows if self.domain is domain else self.others.get(domain.number)",
        "return self.rows if self.domain is domain else None",
        ("test/emulator/races/test_other_clusters.py",),
    ),
    Fault(
        "warp-clock: a relaxed operation passes on what is known of other clusters without a fence",
        "return Message(self.domain, rows, *known.covered.get(covered, ({}, NO_FENCES)))",
        "return Message(self.domain, rows, known.others, known.fences)",
        ("test/emulator/races/test_other_clusters.py",),
    ),
    Fault(
        "places: what a thread has released at a place is forgotten by its later relaxed store",
        "return published if earlier is None else published.continued(earlier)",
        "return published",
        ("test/emulator/races/test_release_patterns.py",),
    ),
    Fault(
        "warp-clock: a relaxed arrival of all lanes passes on nothing that one lane has fenced",
        "return self._ahead if covered is None else self._ahead | self._covering",
        "return self._ahead",
        ("test/emulator/races/test_release_patterns.py",),
    ),
    Fault(
        "known: what the fence of a lane covers is forgotten when all lanes meet",
        "        self._keep_fenced(self.by_lane)\n",
        "",
        ("test/emulator/races/test_other_clusters.py",),
    ),
    Fault(
        "warp-clock: the fence of a lane covers what all know for relaxed stores of other lanes",
        "        touched = self.known.taking(lanes)\n        for row in range(RELEASED",
        "        touched = self.known.of(lanes)\n        for row in range(RELEASED",
        ("test/emulator/races/test_lane_fences.py",),
    ),
    Fault(
        "known: a narrower fence of a lane ends what a wider one covers",
        "if _has(lanes, lane) and earlier <= reach:",
        "if _has(lanes, lane):",
        ("test/emulator/races/test_lane_fences.py",),
    ),
    Fault(
        "sc-fences: a narrower fence takes the place of a wider one",
        "{(warp, lanes, reach): fence}",
        "{(warp, lanes): fence}",
        ("test/emulator/races/test_lane_fences.py",),
    ),
    Fault(
        "sc-fences: a read behind a barrier tells nothing of fences that writers came behind",
        "            self._learn(warp, lanes, self._written.get(place, {}))\n",
        "",
        ("test/emulator/races/test_sc_fences.py",),
    ),
]
