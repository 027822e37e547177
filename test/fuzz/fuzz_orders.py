"""Hold the emulator's race check to the axioms of the PTX memory model.

    python test/fuzz/fuzz_orders.py --count 500 [--start 0]

Each seed draws a kernel that hands data on by flags, fences, mbarriers and barriers of random
orders and scopes, right and wrong ones (`random_orders`). Where the axioms (`memory_axioms`) order
its two accesses the emulator must say nothing, else it must stop it. What differs is printed; exit
status 1.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np
from random_orders import drawn

from tilewright.runtime.emulator import Trap, launch


class Verdict(NamedTuple):
    ordered: bool
    stopped: list[bool]
    text: str

    @property
    def differs(self) -> bool:
        return any(stopped == self.ordered for stopped in self.stopped)


def judge(seed: int, orders: range = range(2)) -> Verdict | None:
    """By the axioms and by the emulator; None of what the axioms leave to the order of events."""
    made = drawn(seed)
    if made is None:
        return None
    kernel, one, other = made
    ordered = kernel.execution.ordered(one, other)
    if kernel.execution.is_mixed() or ordered != kernel.execution.ordered(
        one, other, reads_before=True
    ):
        return None
    text = kernel.text()
    return Verdict(ordered, [_is_stopped(text, order) for order in orders], text)


def _is_stopped(text: str, seed: int) -> bool:
    params = [np.zeros(64, np.uint32) for _ in range(3)]
    try:
        launch(text, "k", grid=4, block=64, cluster=2, params=params, seed=seed)
    except Trap as trap:
        assert trap.category in ("race", "uninitialised-read"), trap
        return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.start, options.start + options.count)
    judged = {seed: verdict for seed in seeds if (verdict := judge(seed))}
    differ = {seed: verdict for seed, verdict in judged.items() if verdict.differs}
    for seed, verdict in differ.items():
        print(f"seed {seed}: ordered {verdict.ordered}, stopped {verdict.stopped}\n{verdict.text}")
    races = sum(not verdict.ordered for verdict in judged.values())
    print(f"{len(judged)} kernels, {races} of them with a race, {len(differ)} judged otherwise")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
