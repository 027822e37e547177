"""Planted faults in the emulator: what it would miss, and what it would get wrong."""

from __future__ import annotations

from fault import Fault

CORE = "test/emulator/tensor_core"
FOREIGN = "test/emulator/foreign_instructions"
RACES = ("test/emulator/races", "test/bugs")

EMULATOR = [
    Fault(
        "delays: no warp is held between accesses to global memory",
        "            self._asked.add(warp)\n            return SWITCH\n",
        "            return SWITCH\n",
        ("test/emulator/test_delays.py",),
    ),
    Fault(
        "mbarrier: a phase ends before its bytes have come",
        "        if self.tx == 0:\n            self.phase += 1",
        "        if self.tx >= 0:\n            self.phase += 1",
        ("test/emulator/engines/test_mbarrier.py", "test/bugs"),
    ),
    Fault(
        "mbarrier: more arrivals than are pending are taken",
        "        if count > self.pending:\n",
        "        if count > self.expected:\n",
        ("test/emulator/engines/test_mbarrier.py", "test/bugs"),
    ),
    Fault(
        "proxy: copies replace words that nobody fenced",
        '            self._proxy.check_words(words, "an asynchronous write replaces")\n',
        "",
        RACES,
    ),
    Fault(
        "proxy: operands in words that nobody fenced are read",
        "        tags = self.tags.reshape(-1, 8)[words]\n        if any_of(tags):",
        "        tags = self.tags.reshape(-1, 8)[words]\n        if False:",
        ("test/emulator/engines/test_proxy.py", *RACES),
    ),
    Fault(
        "swizzle: the base offset of a descriptor does not count",
        "        line = (address >> 7) - base_offset",
        "        line = address >> 7",
        ("test/emulator/engines/test_swizzle.py", "test/emulator/engines/test_layouts.py", CORE),
    ),
    Fault(
        "tensor-map: tf32 elements are cut off and not rounded",
        "    rounded = (words + (0x0FFF + ((words >> 13) & 1))) & 0xFFFFE000",
        "    rounded = words & 0xFFFFE000",
        ("test/emulator/engines/test_tensormap.py", "test/emulator/tensor_copies"),
    ),
    Fault(
        "box-copy: the rows of a narrow box lie close together",
        "    row = np.arange(rows)[:, None] * pitch\n",
        "    row = np.arange(rows)[:, None] * inner_bytes\n",
        ("test/emulator/tensor_copies",),
    ),
    Fault(
        "descriptor: sums in f16 of bf16 operands are taken",
        '    if descriptor.kind == "f16" and descriptor.accumulator == "f16" and names != {"f16"}:',
        '    if descriptor.kind == "f16" and descriptor.accumulator == "f16" and not names:',
        ("test/emulator/engines/test_descriptor.py", CORE),
    ),
    Fault(
        "tensor-core: a negated product counts as it is",
        "    return 0 - product if descriptor.negate_a != descriptor.negate_b else product",
        "    return product",
        (CORE,),
    ),
    Fault(
        "tensor-memory: what was never written may be read",
        "        whole = self.written[lanes, columns] == WRITTEN",
        "        whole = self.written[lanes, columns] >= 0",
        ("test/emulator/engines/test_tensor_memory.py", CORE),
    ),
    Fault(
        "tensor-fences: the reader needs no fence",
        'return "after" if self.after.get(warp, _NEVER) < past.published else None',
        "return None",
        (f"{CORE}/test_tensor_fences.py", "test/bugs"),
    ),
    Fault(
        "wgmma-registers: registers may change without wgmma.fence",
        "        if type(value) is Pending or self._is_fenced(slot, value):",
        "        if type(value) is not Pending or self._is_fenced(slot, value):",
        (FOREIGN, "test/bugs"),
    ),
    Fault(
        "named-barrier: it opens a warp early",
        "        if not self.arrived or self.arrived < self.needed:",
        "        if not self.arrived or self.arrived + 32 < self.needed:",
        ("test/emulator/core/test_barrier.py",),
    ),
    Fault(
        "races: an engine's read is ordered by what only threads know",
        "visible = actor.rows[ASYNC if actor.asynchronous else KNOWN]\n        by_words",
        "visible = actor.rows[KNOWN]\n        by_words",
        RACES,
    ),
    Fault(
        "boxes: a box that operands read in part is no suspicion",
        "        self.unread[words] = True\n",
        "        self.unread[words] = False\n",
        ("test/emulator/tensor_copies", "test/emulator/test_warnings.py", "test/bugs"),
    ),
    Fault(
        "shf: a clamped shift by 32 is one by 31",
        "amount = c & np.uint32(31) if wrap else np.minimum(c, np.uint32(32))",
        "amount = c & np.uint32(31) if wrap else np.minimum(c, np.uint32(31))",
        ("test/emulator/core/test_logic.py",),
    ),
    Fault(
        "cvt: the last of the bits that are cut off a 64-bit integer does not count",
        "    sticky = (magnitude & np.uint64(0x7FF) != 0)",
        "    sticky = (magnitude & np.uint64(0x7FE) != 0)",
        ("test/emulator/core/test_convert.py",),
    ),
    Fault(
        "shfl: a segment ends where the warp ends",
        "    highest = lowest | bounds & ~segment",
        "    highest = bounds",
        ("test/emulator/core/test_warp.py", "test/emulator/silicon"),
    ),
    Fault(
        "stmatrix: a transposed matrix is written as it is",
        "    return _as_words(halves.T, 8)",
        "    return _as_words(halves, 8)",
        ("test/emulator/core/test_matrix.py",),
    ),
    Fault(
        "tcgen05.ld: packed halves of 16x32bx2 start at twice their place",
        "columns = 2 * columns - (form.half_split * (np.arange(32) >= 16))",
        "columns = 2 * columns",
        (CORE, "test/emulator/engines/test_tensor_memory.py"),
    ),
    Fault(
        "sparse-metadata: a chunk of four starts two further",
        "    return (inside + chunks * (2 if single else 4)).reshape(len(codes), -1)",
        "    return (inside + chunks * 2).reshape(len(codes), -1)",
        (FOREIGN, CORE),
    ),
    Fault(
        "clusterlaunchcontrol: a response names the cluster, not its first CTA",
        "            x, y, z = (i * n for i, n in zip(cluster, self.launch.cluster, strict=True))",
        "            x, y, z = cluster",
        ("test/emulator/clusters",),
    ),
    Fault(
        "preferred cluster: %cluster_ctaid counts in clusters of the smaller shape",
        "for index, cluster in zip(warp.cta.index, warp.cta.cluster.shape, strict=True)",
        "for index, cluster in zip(warp.cta.index, warp.launch.cluster, strict=True)",
        ("test/emulator/clusters/test_preferred_clusters.py",),
    ),
    Fault(
        "preferred cluster: smaller clusters count from 0 in each",
        "        x, y, z = (i * count + j for i, count, j in zip(index, per, inside, strict=True))",
        "        x, y, z = inside",
        ("test/emulator/clusters/test_preferred_clusters.py",),
    ),
    Fault(
        "atom: lanes at one address all see the first one's result",
        "        old[one] = values[here]\n",
        "        old[one] = values[slice(0, 1)]\n",
        ("test/emulator/core/test_atomics.py", "test/emulator/test_wide_atomics.py"),
    ),
    Fault(
        "bulk-copy: copies from global memory into any state space",
        '    if spaces in (["shared::cluster", "global"], ["shared::cta", "global"]):',
        '    if len(spaces) == 2 and spaces[1] == "global":',
        ("test/fuzz/test_ptx_rules.py",),
    ),
]
