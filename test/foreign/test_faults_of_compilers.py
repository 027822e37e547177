"""Kernels that a compiler got wrong, kept as it made them: the emulator must say so.

They compute the right numbers in most orders of events, as they do on hardware.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime import run_launch_file
from tilewright.runtime.emulator import Trap
from tilewright.runtime.launch_files.description import read_launch_file
from tilewright.runtime.launch_files.memory import make_memories

FAULTS = {
    "tilelang/faults/refilled_stage.sm_100a": ({"race", "uninitialised-read"}, 1),
    "tilelang/faults/idle_producers.sm_90a": ({"barrier-protocol"}, 1),
    "tilelang/faults/unfenced_drain.sm_90a": ({"proxy-fence"}, 1),
    "tilelang/faults/unfenced_attention.sm_90a": ({"proxy-fence"}, 1),
}
"""Categories, and seeds within which one is found."""
WAIT = r"cp\.async\.wait_(group\s+\d+|all);\s+(//[^\n]*\s+)*bar\.sync\s+0;"
CURE = r"\g<0> fence.proxy.async.shared::cta;"
CURED = ("tilelang/faults/unfenced_drain.sm_90a", "tilelang/faults/unfenced_attention.sm_90a")


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


def cured(kernel: Path, folder: Path) -> Path:
    text, count = re.subn(WAIT, CURE, kernel.with_suffix(f"{kernel.suffix}.ptx").read_text())
    assert count
    path = folder / "cured.ptx"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", CURED)
def test_with_a_proxy_fence_behind_every_wait_nothing_is_left_to_name(name, tmp_path):
    kernel = Path(__file__).parent / name
    run_launch_file(cured(kernel, tmp_path), f"{kernel}.json", 0)


def test_the_cured_product_is_right(tmp_path):
    kernel = Path(__file__).parent / CURED[0]
    found = run_launch_file(cured(kernel, tmp_path), f"{kernel}.json", 1).outputs["c"]
    tensors = make_memories(read_launch_file(Path(f"{kernel}.json")), kernel.parent)
    a, b = (tensors[each].elements().astype(np.float64) for each in "ab")
    assert np.array_equal(found, (a @ b.T).astype(np.float32))
