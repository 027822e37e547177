"""Planted faults of what threads share."""

from __future__ import annotations

from fault import Fault

LANES = "test/numerics/test_lane_kernels.py"

THREADS = [
    Fault(
        "emulator: a thread sees how often registers are named while another one counts",
        "        found = Counter[int]()\n        for pc in range(len(program.source)):\n",
        "        found = program.mentions = Counter[int]()\n"
        "        for pc in range(len(program.source)):\n",
        ("test/emulator/test_stretches.py",),
    ),
    Fault(
        "lane-fma: neighbours beyond K count",
        "        return arith.select(self.inside, value, zero)\n",
        "        return value\n",
        (LANES,),
    ),
    Fault(
        "thread-sums: parts of other warps are read before all are there",
        "    team.meet()\n    with build.when(build.less(team.thread % lanes, WARP_LANES)):\n",
        "    with build.when(build.less(team.thread % lanes, WARP_LANES)):\n",
        (LANES,),
    ),
    Fault(
        "thread-sums: the next tile's parts are written while this one's are read",
        "KernelOp):  # the next tile's are written there\n        team.meet()\n",
        "KernelOp):\n        pass\n",
        (LANES,),
    ),
]

STARTS = [
    Fault(
        "prologue: threads that wait for barriers begin before these are initialised",
        "    return rings.cluster.size > 1 or any(_slots(rings)) or",
        "    return rings.cluster.size > 1 or",
        ("test/passes/test_starts.py",),
    ),
]
