"""Planted faults of which schedules have room, and of what comes in the place of another."""

from __future__ import annotations

from fault import Fault

GIVEN_UP = ("test/compiler/schedule/test_given_up_schedules.py",)

ROOM = [
    Fault(
        "two-level rules: twice as many registers of sums and products leave a thread enough",
        "    if not problem.adds_products or target.adds_from_tensor_memory or held <= most:",
        "    if not problem.adds_products or target.adds_from_tensor_memory or held <= 2 * most:",
        GIVEN_UP,
    ),
    Fault(
        "two-level rules: threads that copy leave two warpgroups as many registers as TMA does",
        "    most = (COPIES_OF_GROUPS if problem.grouped else BESIDE_COPIES)[warpgroups - 2]\n",
        "    most = BESIDE_COPIES[warpgroups - 2] + 99\n",
        GIVEN_UP,
    ),
    Fault(
        "two-level rules: wide pieces of 32 bits are staged beside the sums of 256 rows",
        "    fits = columns <= STAGED_COLUMNS and problem.c_bytes <= STAGED_BYTES\n",
        "    fits = columns <= 2 * STAGED_COLUMNS\n",
        GIVEN_UP,
    ),
    Fault(
        "two-level rules: what threads hold of groups of rows takes no registers",
        "        most = min(most, _beside_groups(wide, warpgroups))\n",
        "        most = max(most, _beside_groups(wide, warpgroups))\n",
        GIVEN_UP,
    ),
]
IN_ITS_PLACE = [
    Fault(
        "driver: other passes come in the place of those that the caller names",
        "    chosen = replaceable or pipeline is preset is None\n",
        "    chosen = replaceable or preset is None\n",
        GIVEN_UP,
    ),
    Fault(
        "driver: a schedule that has no room is tried again",
        "        elif whole not in refused:\n",
        "        else:\n",
        GIVEN_UP,
    ),
    Fault(
        "kernel cache: passes that a caller names find what came in the place of the same, chosen",
        '        **({"named": True} if named else {}),\n',
        "",
        GIVEN_UP,
    ),
    Fault(
        "chosen pipelines: the next one may be the same tile with another ring",
        "        held = each.tile[:2], *shared\n",
        "        held = each, *shared\n",
        GIVEN_UP,
    ),
]
BESIDE_SUMS = [
    Fault(
        "tensor rules: what an epilogue reads takes no registers beside sums from tensor memory",
        "        most = min(most, _most_columns(COLUMNS_BESIDE[scales], problem, target))\n",
        "        most = max(most, _most_columns(COLUMNS_BESIDE[scales], problem, target))\n",
        GIVEN_UP,
    ),
    Fault(
        "chosen: what is emitted is of the schedule that has no room",
        '        found = compile_(source, **how | {"until": "cubin"} | unseen)\n',
        "        found = compile_(source, **how | unseen)\n",
        GIVEN_UP,
    ),
]
