"""Faults in what the emulator holds exits, lanes and loads to, and in rules of whole kernels."""

from fault import Fault

RACES = "test/emulator/races"
ORDERS = [
    Fault(
        "exits: who knows that a commit's operations are over knows all of its arrivals",
        "note(target, ARRIVAL, (clock.component, time), op.line, commit=commit)",
        "note(target, ARRIVAL, meant.event or (clock.component, time), op.line, commit=commit)",
        (f"{RACES}/test_exits.py", "test/bugs"),
    ),
    Fault(
        "exits: a peer's memory may be reached for before it has started",
        "if not any(happened[warp.own] for warp in warps):",
        "if False and not any(happened[warp.own] for warp in warps):",
        (f"{RACES}/test_exits.py",),
    ),
    Fault(
        "lanes: whatever waits for all lanes orders what they write",
        "            self.receive(warp, FULL, self.send(warp), FULL)\n",
        "            warp.launch.events.converged(warp, mask)\n"
        "            self.receive(warp, FULL, self.send(warp), FULL)\n",
        (f"{RACES}/test_lanes.py",),
    ),
    Fault(
        "clock: a proxy fence covers nothing that another cluster has written",
        "            if ASYNC_GLOBAL in rows:\n                known.others",
        "            if False:\n                known.others",
        (f"{RACES}/test_proxy_fences.py",),
    ),
    Fault(
        "kernels: agents may ask for more registers than there are",
        "    if asked > warps * given:",
        "    if asked > 2 * warps * given:",
        ("test/passes/test_launch_rules.py",),
    ),
    Fault(
        "scales: elements behind any extent are left out",
        "    if op.extent.value != k:",
        "    if op.extent.value < 0:",
        ("test/passes/test_scale_rules.py",),
    ),
]
