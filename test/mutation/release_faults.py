"""Planted faults in what the emulator holds single lanes of a warp to."""

from __future__ import annotations

from fault import Fault

RACES = ("test/emulator/races", "test/bugs")

RELEASES = [
    Fault(
        "lane-times: a release by one lane covers what the others did",
        "    return lanes_apart(warp, lone)\n",
        "    return None\n",
        RACES,
    ),
    Fault(
        "warp-clock: a wait for anything makes the lanes of a warp meet",
        "self.together = max(self.together, int(message.rows[KNOWN, self.own]))",
        "self.together = self.time",
        RACES,
    ),
    Fault(
        "warp-clock: a fence ahead of bar.warp.sync covers the other lanes for what follows it",
        "limits[first - OVER :] = np.minimum(self.together, self._fenced[covered, 0])",
        "limits[first - OVER :] = self.together",
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
]
