"""Products with block scales that are refused: kinds, specs, and kernels that cannot be."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

pytestmark = pytest.mark.pairwise
REFUSALS = {
    "sm_100a": "tile.scaled_mma: shapes: block scales with 64 rows a CTA are for 2-CTA MMAs, got a "
    "CTA alone; run clustering{shape=2x1 pair=true}",
    "sm_120a": "tile.scaled_matmul: tile M must be a multiple of 128 up to 256 with block scales, "
    "got 64",
}


@pytest.mark.parametrize("target", ["sm_100a", "sm_120a"])
def test_rows_of_half_a_block_scaled_mma_are_refused_without_a_pair(target):
    spec = MatmulSpec(64, 64, 128, "mxfp8", "mxfp8")
    with pytest.raises(CompileError) as caught:
        compile_matmul(spec, pipeline="tiling{tile=64x64x128}", target=target)
    assert str(caught.value) == f"error: {REFUSALS[target]}"


@pytest.mark.parametrize(
    ("dtypes", "kind", "message"),
    [
        (
            ("mxfp4", "mxfp4"),
            "f8f6f4",
            "tiling: option kind must be auto, mxf4 or mxf4nvf4 or mxf8f6f4, got 'f8f6f4'",
        ),
        (
            ("mxfp4", "mxfp8"),
            "mxf4",
            "tile.scaled_matmul: tiling: kind must be one that takes the operands and scales, "
            "mxf8f6f4, got mxf4; leave it out",
        ),
        (
            ("bf16", "bf16"),
            "mxf4",
            "tile.matmul: tiling: kind is for operands with block scales, got mxf4; leave it out",
        ),
    ],
)
def test_a_kind_that_does_not_take_the_operands_is_refused(dtypes, kind, message):
    with pytest.raises(CompileError) as caught:
        compile_matmul(MatmulSpec(64, 64, 128, *dtypes), pipeline=f"tiling{{kind={kind}}}")
    assert str(caught.value) == f"error: {message}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"b_dtype": "bf16"},
            "a_dtype and b_dtype must both have block scales, or none, got mxfp8 and bf16",
        ),
        (
            {"b_dtype": "nvfp4"},
            "a_dtype and b_dtype must have scales of one type, one for as many elements, got "
            "mxfp8 and nvfp4",
        ),
        (
            {"k": 80},
            "k must be a multiple of the 32 elements that share a scale in mxfp8, got 80; pad K",
        ),
        (
            {"b_dtype": "mxfp8_1x128", "k": 96},
            "k must be a multiple of the 128 elements that share a scale in mxfp8_1x128, got 96; "
            "pad K",
        ),
        (
            {"a_dtype": "mxfp4", "b_dtype": "mxfp4", "b_major": "n"},
            "b_major must be 'k' for mxfp4, whose elements share bytes, got 'n'; transpose it "
            "before the kernel",
        ),
    ],
)
def test_specs_that_no_kernel_multiplies_are_refused(fields, message):
    given = {"m": 64, "n": 64, "k": 128, "a_dtype": "mxfp8", "b_dtype": "mxfp8", **fields}
    with pytest.raises(CompileError) as caught:
        MatmulSpec(**given)
    assert str(caught.value) == f"error: spec: {message}"


@pytest.mark.parametrize(
    ("format_", "k", "options", "message"),
    [
        (
            "mxfp8",
            128,
            {"target": "sm_90a", "pipeline": "tiling"},
            "tiling: wgmma.mma_async of sm_90a takes no block scales, sm_100a or sm_120a does; "
            "multiply operands without scales, or compile for that",
        ),
        (
            "mxfp4_1x16",
            128,
            {"target": "sm_120a", "pipeline": "tiling"},
            "tiling: mma.sync of sm_120a takes ue8m0 by 16 from PTX 9.1 on, kernels are of PTX "
            "8.8; scale by 32, or by ue4m3",
        ),
        (
            "mxfp8",
            128,
            {"pipeline": "tiling{tile=192x64x128}"},
            "tile M must be 64, or a multiple of 128 up to 256 with block scales, got 192",
        ),
        (
            "mxfp8",
            128,
            {"pipeline": "tiling{tile=128x48x128}"},
            "tile N must be a multiple of 32 up to 256 with block scales, got 48",
        ),
    ],
)
def test_kernels_that_cannot_be_are_refused(check_matmul, format_, k, options, message):
    with pytest.raises(CompileError) as caught:
        check_matmul(MatmulSpec(64, 64, k, format_, format_), **options)
    assert str(caught.value) == f"error: tile.scaled_matmul: {message}"
