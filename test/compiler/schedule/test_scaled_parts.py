"""Which products with block scales the choice gives parts of K."""

import pytest

from tilewright.compiler.schedule.estimates.scaled_estimate import as_plain, in_bytes
from tilewright.compiler.schedule.kinds.scaled_schedule import (
    estimates,
    mma_of_spec,
    scaled_schedule,
)
from tilewright.compiler.schedule.rules.rules import PART_K_TILES
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

B200 = find_target("sm_100a")
SPLIT = [(16, 2112, 16384), (128, 128, 16384), (256, 256, 65536)]
WHOLE = [(4096, 4096, 4096), (16, 7168, 2048), (128, 128, 256)]
ALONE = {
    "groups": {"groups": 2},
    "further outputs": {"further": ("f32",)},
    "a quantised C": {"c_dtype": "mxfp8"},
}


def spec_of(sizes, format_, **more):
    return MatmulSpec(*sizes, format_, format_, **more)


@pytest.mark.parametrize("format_", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize("sizes", SPLIT + WHOLE)
def test_few_tiles_with_a_long_k_are_split(sizes, format_):
    assert (scaled_schedule(spec_of(sizes, format_), B200).parts > 1) == (sizes in SPLIT)


@pytest.mark.parametrize("sizes", SPLIT + WHOLE)
def test_parts_have_steps_and_their_ctas_are_few(sizes):
    spec = spec_of(sizes, "mxfp8")
    problem = in_bytes(spec, mma_of_spec(spec), B200)
    for each in (one.schedule for one in estimates(spec, B200) if one.schedule.parts > 1):
        plain = as_plain(each, problem)
        steps = -(-problem.k // plain.tile[2])
        assert problem.k_tiles(plain) >= max(PART_K_TILES, each.stages)
        assert (each.parts - 1) * problem.k_tiles(plain) < steps
        assert problem.ctas(plain) <= 3 * B200.multiprocessors


def test_a_part_takes_its_share_of_k_and_the_sums_take_time():
    spec = spec_of((128, 128, 16384), "mxfp8")
    found = estimates(spec, B200)
    narrow = [each for each in found if each.schedule.tile[1] == 32]
    whole = next(each for each in narrow if each.schedule.parts == 1)
    split = next(each for each in narrow if each.schedule.parts == 16)
    assert split.multiply * 16 == pytest.approx(whole.multiply)
    assert split.store > whole.store
    assert split.accumulators == 1


@pytest.mark.parametrize("what", ALONE)
def test_what_a_split_k_cannot_store_is_not_split(what):
    spec = spec_of((128, 128, 16384), "mxfp8", **ALONE[what])
    assert not any(each.schedule.parts > 1 for each in estimates(spec, B200))
