"""Kernels that a compiler got wrong, kept as it made them: the emulator must say so.

They compute the right numbers in most orders of events, as they do on hardware.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import Trap

FAULTS = {
    "tilelang/faults/refilled_stage.sm_100a": ({"race", "uninitialised-read"}, 1),
    "tilelang/faults/idle_producers.sm_90a": ({"deadlock"}, 60),
}
"""Categories, and seeds within which one is found."""


def verdict(kernel: Path, seed: int) -> str | None:
    try:
        run_launch_file(f"{kernel}.ptx", f"{kernel}.json", seed)
    except Trap as trap:
        return trap.category
    return None


@pytest.mark.parametrize("name", list(FAULTS))
def test_the_fault_is_found(name):
    categories, seeds = FAULTS[name]
    kernel = Path(__file__).parent / name
    found = next(filter(None, (verdict(kernel, seed) for seed in range(seeds))), None)
    assert found in categories
