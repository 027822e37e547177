"""The other side of the zoo: kernels that are right raise nothing, whatever the order of events."""

import pytest
from bug_zoo.bases import Matmul

from tilewright.compiler.presets import PRESETS

SEEDS = range(20)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_right_and_raise_nothing(preset):
    tile = 128 if preset.startswith("v") or preset >= "kernel5" else 64
    kernel = Matmul(preset, (tile + 8, tile + 8, 136))
    for seed in SEEDS:
        report, passed = kernel.run(kernel.ptx, seed)
        assert passed and not report.warnings, f"seed {seed}"
