"""Schedules for chips whose warps multiply by themselves: they are legal, and the largest pay."""

import math

import pytest

from tilewright.compiler.driver import choose_pipeline, compile_matmul
from tilewright.compiler.schedule.kinds.warp_schedule import candidates, is_by_warps
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
            pieces = 2 * m * (schedule.columns or 0) * DTYPES[types[2]].bytes
            assert ring + pieces + legality.RESERVED_BYTES <= target.shared_bytes


@pytest.mark.parametrize("chip", CHIPS)
def test_large_matmuls_take_large_tiles_and_few_rows_take_few(chip):
    large, _ = candidates(MatmulSpec(8192, 8192, 8192), TARGETS[chip])[0]
    small, _ = candidates(MatmulSpec(16, 512, 4096), TARGETS[chip])[0]
    assert math.prod(large.tile[:2]) >= 128 * 128
    assert math.prod(small.tile[:2]) < math.prod(large.tile[:2])


def passes_of(spec, chip):
    """The names of the passes of the default pipeline."""
    return [text.partition("{")[0] for text in choose_pipeline(spec, chip).split(",")]


def test_tma_loads_for_a_role_where_it_can_and_threads_copy_elsewhere():
    by_threads = ["tiling", "copy-insertion", "swizzle-selection", "epilogue-staging", "pipelining"]
    by_tma = ["tiling", "tma-insertion", *by_threads[2:], "warp-specialization"]
    assert passes_of(MatmulSpec(512, 512, 512), "sm_80") == by_threads
    assert passes_of(MatmulSpec(512, 512, 512), "sm_120a") == by_tma
    assert passes_of(MatmulSpec(512, 512, 510), "sm_120a") == by_threads


def test_rows_of_c_that_are_no_pairs_or_units_are_stored_as_threads_have_them():
    assert "epilogue-staging" not in passes_of(MatmulSpec(512, 511, 512), "sm_80")
    assert "epilogue-staging" in passes_of(MatmulSpec(512, 510, 512), "sm_80")
    assert "epilogue-staging" not in passes_of(MatmulSpec(512, 510, 512), "sm_120a")


def test_many_tiles_along_m_are_taken_in_groups():
    assert "order=grouped" in choose_pipeline(MatmulSpec(8192, 8192, 1024), "sm_80")
    assert "order" not in choose_pipeline(MatmulSpec(512, 8192, 1024), "sm_80")


def test_buffers_that_tma_stores_fit_beside_a_ring_that_threads_fill():
    """TMA can't address B, whose rows are 513 elements apart, but it stores C."""
    spec = MatmulSpec(64, 8192, 512, c_dtype="f32", ldb=513)
    compile_matmul(spec, target="sm_120a", until="mlir")
