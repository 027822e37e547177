"""Which tiles and parts of K f32 by nine products takes where C has few tiles."""

import pytest

from tilewright.compiler.schedule.kinds.split_wgmma import narrow_tiles, parts_of
from tilewright.compiler.schedule.kinds.warp_schedule import candidates, warp_schedule
from tilewright.compiler.schedule.search.choice import target_for
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import DTYPES
from tilewright.dialects.target import find_target

NINE = "bf16x9"
CHOSEN = {
    (1, 4096, 4096): "tile=64x8x32 mma=wgmma.mma_async+bf16x9 swap=true} parts=4 over=grid",
    (16, 4096, 4096): "tile=64x16x32 mma=wgmma.mma_async+bf16x9 swap=true} parts=4 over=grid",
    (64, 4096, 4096): "tile=64x64x32 mma=wgmma.mma_async+bf16x9} parts=4 over=grid",
    (128, 128, 16384): "tile=64x64x32 mma=wgmma.mma_async+bf16x9} parts=32 over=grid",
    (4096, 4096, 4096): "tile=128x128x32 mma=wgmma.mma_async+bf16x9",
}
ALONE = {
    "groups": {"groups": 2},
    "a stack": {"batch": 3},
    "two products": {"products": 2},
    "any M": {"dynamic_m": True},
    "further outputs": {"further": ("f32",)},
}


def spec_of(*sizes, **more):
    return MatmulSpec(*sizes, NINE, NINE, "f32", **more)


@pytest.mark.parametrize("sizes", CHOSEN)
def test_what_an_h200_found_fastest_is_chosen(sizes):
    spec = spec_of(*sizes)
    text = warp_schedule(spec, target_for(spec, "sm_90a")).pipeline()
    tiling, *parts = CHOSEN[sizes].split("} ")
    assert f"tiling{{{tiling}" in text
    assert "".join(parts) in text
    assert ("split-k" in text) == bool(parts)


@pytest.mark.parametrize("what", ALONE)
def test_other_products_of_few_rows_are_not_exchanged(what):
    spec = spec_of(8, 512, 512, **ALONE[what])
    found = candidates(spec, target_for(spec, "sm_90a"))
    assert found and not any(schedule.swap for schedule, _ in found)


@pytest.mark.parametrize(("rows", "columns"), [(1, 8), (8, 8), (9, 16), (32, 32), (33, None)])
def test_a_narrow_tile_has_room_for_the_rows(rows, columns):
    found = narrow_tiles(spec_of(rows, 512, 512))
    assert found == ([] if columns is None else [(64, columns), (128, columns)])


@pytest.mark.parametrize("chip", ["sm_100a", "sm_80"])
def test_other_chips_exchange_nothing(chip):
    spec = spec_of(8, 512, 512)
    assert not any(schedule.swap for schedule, _ in candidates(spec, target_for(spec, chip)))


def test_parts_have_steps():
    spec = spec_of(1, 4096, 4096)
    target = target_for(spec, "sm_90a").using("wgmma.mma_async+bf16x9")
    found = parts_of(spec, (64, 8, 32), target, swap=True)
    assert found == [1, 2, 3, 4, 6, 8]
    assert parts_of(spec_of(1, 4096, 320), (64, 8, 32), target, swap=True) == [1]


@pytest.mark.parametrize(("k", "parts"), [(160, [1]), (3200, [1, 2, 3, 4, 6, 8, 12])])
def test_terms_of_f32_have_k_in_parts_of_many_steps_whatever_n_is(k, parts):
    spec = MatmulSpec(64, 4096 if k == 160 else 96, k, a_dtype="3xtf32", b_dtype="3xtf32")
    assert parts_of(spec, (64, 64, 32), find_target("sm_90a")) == parts


@pytest.mark.parametrize("c_dtype", ["f32", "f16", "e4m3"])
def test_whole_pieces_are_the_columns_of_two_products(c_dtype):
    """Of which a tile of 96 columns has 48 each."""
    spec = MatmulSpec(1120, 1328, 512, NINE, NINE, c_dtype, products=2)
    every = candidates(spec, target_for(spec, "sm_90a"))
    found = [each for each, _ in every if each.columns]
    assert {each.tile[1] // 2 for each in found} >= {48, 64}
    for each in found:
        assert each.tile[1] // 2 % each.columns == 0
        assert each.columns * DTYPES[c_dtype].bytes in (16, 32, 64, 128)
