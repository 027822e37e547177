"""Which products with narrow weights go by wgmma or tcgen05.mma, and which by mma.sync."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.kinds.swapped_weight_schedule import (
    SwappedWeightSchedule,
    swapped_weight_schedules,
)
from tilewright.compiler.schedule.kinds.weight_schedule import fits_registers, weight_schedule
from tilewright.compiler.schedule.search.choice import target_for
from tilewright.compiler.spec import MatmulSpec


def spec_of(m, weights="s4", group=128, n=4096, k=4096, **more):
    groups = {"group_size": group, "scale_dtype": "bf16"} if group else {}
    return MatmulSpec(m, n, k, "bf16", weights, more.pop("c", "bf16"), **groups, **more)


def is_transposed(spec, chip="sm_90a"):
    return isinstance(weight_schedule(spec, target_for(spec, chip)), SwappedWeightSchedule)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(("weights", "group"), [("s4", 128), ("s8", 4096), ("e4m3", 0)])
def test_many_rows_go_by_exchanged_operands_and_few_by_mma_sync(weights, group, chip):
    assert not any(is_transposed(spec_of(m, weights, group), chip) for m in (1, 16, 32))
    assert all(is_transposed(spec_of(m, weights, group), chip) for m in (100, 128, 500, 4096))


def test_groups_of_32_whose_products_threads_would_add_are_for_mma_sync_on_blackwell():
    """A product of 32 of K takes longer to read than to make."""
    assert not is_transposed(spec_of(4096, "s4", 32), "sm_100a")


@pytest.mark.parametrize(("group", "most"), [(0, 256), (128, 192)])
def test_a_tile_takes_the_columns_that_tensor_memory_has(group, most):
    spec = spec_of(4096, "s4", group)
    found = list(swapped_weight_schedules(spec, target_for(spec, "sm_100a")))
    assert max(each.tile[1] for each in found) == most
    for each in found:
        products, part = (2, min(each.tile[2], 128)) if group else (1, each.tile[2])
        assert products * each.tile[1] + part <= 512


@pytest.mark.parametrize("chip", ["sm_89", "sm_120a"])
def test_chips_without_either_keep_mma_sync(chip):
    assert not is_transposed(spec_of(4096), chip)


@pytest.mark.parametrize(
    "fields",
    [
        {"dynamic_m": True, "least_m": 1, "most_m": 2048},
        {"further": ("bf16",)},
        {"beside": ("bf16",)},
    ],
    ids=str,
)
def test_what_exchanged_operands_serve_badly_or_not_at_all_is_for_mma_sync(fields):
    assert not is_transposed(spec_of(1024, **fields))


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(("weights", "group"), [("s4", 128), ("s8", 0)])
def test_what_is_as_large_as_c_comes_ahead_by_tma_on_blackwell(weights, group, dtype):
    spec = spec_of(1024, weights, group, beside=(dtype,))
    chosen = weight_schedule(spec, target_for(spec, "sm_100a"))
    assert isinstance(chosen, SwappedWeightSchedule) and chosen.staged
    assert "epilogue-staging{columns=32 ahead=2}" in chosen.pipeline()


@pytest.mark.parametrize("fields", [{"dynamic_m": True}, {"n": 4100}], ids=str)
def test_what_tma_cannot_bring_ahead_is_for_mma_sync(fields):
    assert not is_transposed(spec_of(1024, beside=("bf16",), **fields), "sm_100a")


@pytest.mark.parametrize("weights", ["s4", "u4"])
def test_scales_of_many_groups_in_a_step_leave_registers_to_sums(weights):
    """ptxas spilled 64x256x256 with groups of 32, and 64x256x512 with 64."""
    zeros = {"zero_points": True} if weights == "u4" else {}
    for group in (32, 64):
        spec = spec_of(512, weights, group, 4096, 1024, **zeros)
        assert fits_registers(spec, (64, 256, 4 * group), 8)
        assert not fits_registers(spec, (64, 256, 8 * group), 8)
        assert fits_registers(spec, (64, 128, 8 * group), 8)


def test_groups_of_32_of_many_rows_compile_without_spills():
    compile_matmul(spec_of(512, "s4", 32, 4096, 1024), target="sm_100a")


def test_rows_that_tma_does_not_address_are_for_mma_sync():
    assert not is_transposed(spec_of(1024, "s8", 0, k=4100))


def test_any_m_may_be_said_at_a_launch():
    assert is_transposed(spec_of(1024, dynamic_m=True))


def test_an_m_that_one_tile_covers_may_be_said_at_a_launch():
    spec = spec_of(128, n=28672, dynamic_m=True, least_m=1, most_m=128)
    chosen = weight_schedule(spec, target_for(spec, "sm_90a"))
    assert isinstance(chosen, SwappedWeightSchedule)
    assert chosen.tile[1] >= 128
    assert (chosen.parts, chosen.persistent) == (1, False)


@pytest.mark.sweep(8)
@pytest.mark.parametrize(("weights", "group"), [("u4", 32), ("s4", 1024), ("e4m3", 0), ("s8", 64)])
@pytest.mark.parametrize("m", [72, 1000])
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
def test_the_chosen_schedule_compiles_without_spills(weights, group, m, chip):
    zeros = {"zero_points": True} if weights == "u4" else {}
    spec = spec_of(m, weights, group, 4096, 1024, **zeros)
    if (chip, group) != ("sm_100a", 32):
        assert is_transposed(spec, chip)
    compile_matmul(spec, target=chip)
