"""Schedules for chips whose warps multiply by themselves: they are legal, and the largest pay."""

import math

import pytest

from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.schedule.warp_schedule import candidates, is_by_warps
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects import legality
from tilewright.dialects.dtypes import DTYPES
from tilewright.dialects.target import TARGETS

CHIPS = [chip for chip, target in TARGETS.items() if is_by_warps(target)]
SHAPES = [(1, 1, 1), (16, 4096, 4096), (300, 5000, 1100), (4096, 4096, 4096)]


def test_these_chips_multiply_by_warps():
    assert CHIPS == ["sm_80", "sm_86", "sm_89", "sm_120a"]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", ["bf16", "tf32", "s8"])
def test_every_candidate_is_a_tile_that_the_chip_can_hold(chip, dtype):
    target, type_ = TARGETS[chip], DTYPES[dtype]
    types = (dtype, dtype, type_.result, type_.accumulator)
    for shape in SHAPES:
        for schedule, spent in candidates(MatmulSpec(*shape, *types), target):
            m, n, k = schedule.tile
            assert spent > 0
            assert legality.warp_grid(target, m, n, schedule.warps) is None
            assert legality.tile_depth(target, k, type_.k_per_mma, dtype) is None
            ring = schedule.stages * (m + n) * k * type_.bytes
            assert ring + legality.RESERVED_BYTES <= target.shared_bytes


@pytest.mark.parametrize("chip", CHIPS)
def test_large_matmuls_take_large_tiles_and_few_rows_take_few(chip):
    large, _ = candidates(MatmulSpec(8192, 8192, 8192), TARGETS[chip])[0]
    small, _ = candidates(MatmulSpec(16, 512, 4096), TARGETS[chip])[0]
    assert math.prod(large.tile[:2]) >= 128 * 128
    assert math.prod(small.tile[:2]) < math.prod(large.tile[:2])


def test_the_default_pipeline_copies_by_threads():
    assert "copy-insertion" in choose_pipeline(MatmulSpec(512, 512, 512), "sm_80")
