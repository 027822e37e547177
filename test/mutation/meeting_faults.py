"""Faults of lanes that meet by a membermask, and of scopes that leave others out."""

from __future__ import annotations

from fault import Fault

MEETINGS = [
    Fault(
        "warp-exchange: lanes meet others at instructions of any kind",
        "            if reason.exchange.kind == self.kind and any_of(lanes):",
        "            if any_of(lanes):",
        ("test/emulator/core/test_warp.py",),
    ),
    Fault(
        "warp-exchange: who waits elsewhere is told the values of his own side",
        "        party.exchange.receive(warp, lanes, values, members)",
        "        party.exchange.receive(warp, lanes, values, lanes)",
        ("test/emulator/core/test_warp.py",),
    ),
    Fault(
        "reaches: a copy that reduces is strong for atomic operations",
        "        weak = (who < 0) & self.mixes(lines, asynchronous)\n",
        "        weak = np.zeros(who.shape, bool)\n",
        ("test/emulator/races/test_mixed_proxies.py",),
    ),
    Fault(
        "tensor-map-proxy: the scope of an acquire may leave the other CTA out",
        '    for order, scope in (("release", writer.scope), ("acquire", acquired)):\n',
        '    for order, scope in (("release", writer.scope),):\n',
        ("test/emulator/tensor_copies/test_device_tensor_maps.py",),
    ),
    Fault(
        "tensor-map-proxy: a narrow acquire undoes the wider one before it",
        "        reach = max(scope, before, key=_reach) if known == data else scope\n",
        "        reach = scope\n",
        ("test/emulator/tensor_copies/test_device_tensor_maps.py",),
    ),
    Fault(
        "proxy: what another CTA has stored counts as written by cp.async",
        "        self._written_late(offsets, size, AFAR)\n",
        "        self._written_late(offsets, size, CLOCKED)\n",
        ("test/emulator/races/test_proxy_fences.py",),
    ),
    Fault(
        "reaches: an access of a narrow scope is strong for every CTA",
        "        return self._lines.get(line, ELSEWHERE) < distance",
        "        return False",
        ("test/emulator/races/test_scopes.py",),
    ),
    Fault(
        "releases: an arrival need not come behind a wait for the phase before",
        "            if component < len(happened) and happened[component] >= time:",
        "            if True:",
        ("test/emulator/races/test_early_mbarrier_arrivals.py",),
    ),
    Fault(
        "earlier-writes: sums need an order behind the last of those who added alone",
        "        return (last,) if self.marks is None or actor.strong else (last, self.marks)",
        "        return (last,)",
        ("test/emulator/races/test_sums_of_several.py",),
    ),
    Fault(
        "earlier-writes: who draws a ticket has not observed those before",
        "            self.marks.put(index, size, 0, 0, 0)",
        "            pass",
        ("test/emulator/races/test_sums_of_several.py",),
    ),
    Fault(
        "shadow: sums in shared memory need an order behind the last of those who added alone",
        "            self._earlier.note(self._writes, self._lanes, index, size, who)\n",
        "            pass\n",
        ("test/emulator/races/test_sums_of_several.py",),
    ),
]
