"""What the schedule choice knows of scales of single columns, 1x128 of B, on Hopper."""

from dataclasses import replace

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.usefixtures("no_tables")


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((4096, 7168, 16384), (256, 128)),
        ((4096, 7168, 2048), (256, 128)),
        ((4096, 4096, 7168), (256, 128)),
        ((4096, 14336, 4096), (256, 128)),
        ((8192, 8192, 8192), (256, 112)),
        ((4096, 24576, 1536), (256, 112)),
        ((4096, 32768, 512), (128, 128)),
    ],
)
def test_scales_of_single_columns_have_the_tiles_that_an_h200_was_fastest_with(shape, tile):
    """Tiles of 128 rows were 3 to 13 % slower than those of 256, but with a short K."""
    spec = MatmulSpec(*shape, "e4m3", "e4m3", a_scales="1x128", b_scales="1x128")
    assert choose_schedule(spec, target_for(spec, "sm_90a")).tile[:2] == tile


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("shape", "c_dtype"),
    [
        ((4096, 7168, 2048), "bf16"),
        ((2048, 5120, 5120), "bf16"),
        ((8192, 8192, 8192), "bf16"),
        ((4096, 4096, 7168), "f32"),
    ],
)
def test_scales_of_single_columns_alone_become_those_of_rows(shape, c_dtype, chip):
    """A thread has two rows of each 64, and a quarter of the columns."""
    spec = MatmulSpec(*shape, "e4m3", "e4m3", c_dtype, a_scales="128x128", b_scales="1x128")
    assert choose_schedule(spec, target_for(spec, chip)).swap
    spec = replace(spec, a_scales="1x128", b_scales="128x128")
    assert not choose_schedule(spec, target_for(spec, chip)).swap


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("shape", "rows", "c_dtype", "groups"),
    [
        ((4096, 11008, 2064), "128x128", "bf16", 0),
        ((16385, 7168, 2064), "128x128", "bf16", 0),
        ((16385, 4104, 2064), "128x128", "f32", 0),
        ((6000, 14336, 4096), "1x128", "f32", 0),
        ((4096, 11008, 2064), "1x128", "bf16", 16),
        ((4096, 2048, 7168), "1x128", "bf16", 4),
        ((3000, 4320, 6096), "1x128", "f16", 2),
    ],
)
def test_kernels_with_scales_of_single_columns_do_not_spill(shape, rows, c_dtype, groups):
    """ptxas reports what it spills, which is an error."""
    scales = {"a_scales": rows, "b_scales": "1x128"}
    spec = MatmulSpec(*shape, "e4m3", "e4m3", c_dtype, groups=groups, **scales)
    compiled = compile_matmul(spec, target="sm_90a")
    assert compiled.assembled is not None and not compiled.assembled.serialized


def test_groups_with_a_wide_result_do_not_spill():
    scales = {"a_scales": "1x128", "b_scales": "128x128"}
    spec = MatmulSpec(3000, 7184, 2640, "e4m3", "e4m3", "f32", groups=2, **scales)
    assert compile_matmul(spec, target="sm_90a").assembled is not None
