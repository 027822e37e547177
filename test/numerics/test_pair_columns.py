"""2-CTA MMAs whose N is no multiple of 32: each CTA has an odd number of 8 rows of B."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

N32 = "a pair needs N a multiple of 32, got 48"


def passes(tile="128x48x64", options="", cluster="shape=2x1 pair=true", staged=False):
    staging = ",epilogue-staging{columns=16}" if staged else ""
    return (
        f"tiling{{tile={tile}{options}}},tma-insertion,swizzle-selection{staging},"
        f"clustering{{{cluster}}},pipelining{{stages=2}},warp-specialization,persistence"
    )


@pytest.mark.array(
    1,
    tile=("128x48x64", "256x16x32", "128x240x16"),
    shape=("2x1", "4x1", "2x3"),
    staged=(False, True),
    dtype=("bf16", "f16"),
)
def test_halves_of_b_are_any_number_of_eight_rows(check_matmul, tile, shape, staged, dtype):
    """The last tiles are ragged; four CTAs along M share each half of B."""
    spec = MatmulSpec(200, 104, 48, dtype, dtype, "f32")
    pipeline = passes(tile, cluster=f"shape={shape} pair=true", staged=staged)
    compiled, report = check_matmul(spec, pipeline=pipeline, seed=1)
    assert compiled.manifest["schedule"]["pair"] and not report.warnings


def test_few_rows_of_groups_are_columns_of_a_pair(check_matmul):
    spec = MatmulSpec(70, 136, 48, groups=3)
    check_matmul(spec, pipeline=passes(options=" swap=true"), seed=3)


@pytest.mark.parametrize(
    ("fields", "tile"),
    [
        ({"a_dtype": "e4m3", "b_dtype": "e4m3"}, "128x48x64"),
        ({"a_dtype": "s8", "b_dtype": "s8", "acc_dtype": "s32"}, "128x48x64"),
        ({"b_major": "n"}, "128x48x64"),
        ({}, "64x48x64"),
    ],
)
def test_others_need_halves_of_sixteen_rows(fields, tile):
    with pytest.raises(CompileError, match=N32):
        compile_matmul(MatmulSpec(256, 96, 64, **fields), pipeline=passes(tile))


def test_nobody_has_such_pairs_unasked():
    compiled = compile_matmul(MatmulSpec(256, 96, 64), pipeline=passes(cluster="shape=2x1"))
    assert not compiled.manifest["schedule"]["pair"]
    assert any(f"no 2-CTA MMAs: {N32}" in remark for remark in compiled.remarks)
