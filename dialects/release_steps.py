"""When wgmma consumers release a slot: one step late, or in the same step.

A step late nobody waits for MMAs before the next ones are issued. Threads that add products wait
for each of them anyway, and need the slot no longer. It then is loaded a step sooner: two-level
sums of 192x128 took 5 to 7 % less on an H200, those of 128x160 to 128x224 up to 4 %.
"""

from __future__ import annotations

from .held_registers import ATOM_ROWS
from .mma_units import WGMMA_ADDED
from .target import Target

THREE_WARPGROUPS = 3


def releases_late(target: Target, m: int, n: int, row_scales: bool, column_scales: bool) -> bool:
    """Whether the slot of a tile's MMAs that threads wait for is released one step late; so it is
    where they don't add products.

    So it is, too, where warpgroups of 64 rows each take turns for scales of columns, and where
    three of them have scales: these were 1 to 5 % slower on an H200 when loads ran further ahead.
    """
    if target.mma.name != WGMMA_ADDED.name:
        return True
    warpgroups = target.mma_warpgroups(m, n) or 1
    several = warpgroups > 1 and m == warpgroups * ATOM_ROWS
    three = row_scales and warpgroups == THREE_WARPGROUPS
    return several and (column_scales or three)
