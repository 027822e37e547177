"""Rows and matrices with gaps between them: read and written in place by every prefix, and what
lies between them left alone (`check_matmul` looks)."""

import pytest

from tilewright.compiler.spec import MatmulSpec

BOTH = ["sm_90a", "sm_100a"]
SIZES = {"m": 129, "n": 40, "k": 72}
# Of whole units of 16 bytes, as TMA takes them, and of others.
UNITS = {"lda": 88, "ldb": 80, "ldc": 48}
ODD = {"lda": 73, "ldb": 77, "ldc": 41}
LADDER = (
    "tiling{tile=64x16x32}",
    "tma-insertion",
    "swizzle-selection",
    "epilogue-staging",
    "clustering{shape=2x1}",
    "pipelining{stages=2}",
    "warp-specialization",
    "persistence{ctas=4}",
)


@pytest.mark.sweep(4)
@pytest.mark.array(1, passes=[1, 2, 4, 5, 7, 8], target=BOTH)
def test_every_prefix_steps_by_the_leading_dimension(check_matmul, passes, target):
    spec = MatmulSpec(**SIZES, **UNITS, c_dtype="f16", a_dtype="f16", b_dtype="f16")
    compiled, _ = check_matmul(spec, pipeline=",".join(LADDER[:passes]), target=target)
    strides = [each["strides"] for each in compiled.manifest["tensors"]]
    assert strides == [[88, 1], [80, 1], [48, 1]]
    maps = [each["kind"] for each in compiled.manifest["parameters"]].count("tensor_map")
    assert maps == (0 if passes < 2 else 2 if passes < 4 else 3)


@pytest.mark.array(1, gaps=[UNITS, ODD], target=["sm_80", *BOTH], dtype=["bf16", "tf32"])
def test_default_schedules_take_leading_dimensions(check_matmul, gaps, target, dtype):
    spec = MatmulSpec(65, 40, 72, **gaps, a_dtype=dtype, b_dtype=dtype)
    check_matmul(spec, target=target)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", BOTH)
def test_rows_along_m_and_n_have_gaps_too(check_matmul, target):
    majors = {"a_major": "m", "b_major": "n"}
    compiled, _ = check_matmul(MatmulSpec(**SIZES, **majors, lda=136, ldb=41), target=target)
    strides = [each["strides"] for each in compiled.manifest["tensors"]]
    assert strides == [[1, 136], [1, 41], [40, 1]]


@pytest.mark.array(1, target=BOTH, step=[129 * 88 + 8, 129 * 88 + 3])
def test_matrices_have_gaps_between_them(check_matmul, target, step):
    gaps = {"lda": 88, "stride_a": step, "ldc": 48, "stride_c": 130 * 48}
    check_matmul(MatmulSpec(**SIZES, **gaps, batch=2), target=target)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", BOTH)
def test_rows_of_all_matrices_may_take_turns(check_matmul, target):
    """As heads of attention do: the matrices are nearer to each other than their rows."""
    heads = {"lda": 3 * 72, "stride_a": 72, "ldb": 3 * 72, "stride_b": 72}
    heads |= {"ldc": 3 * 40, "stride_c": 40}
    check_matmul(MatmulSpec(**SIZES, **heads, batch=3), target=target)


@pytest.mark.parametrize("unit", ["fma", "s1"])
def test_products_without_tma_take_leading_dimensions(check_matmul, unit):
    dtype = "f32" if unit == "fma" else "bf16"
    spec = MatmulSpec(7, 10, 20, dtype, dtype, dtype, lda=23, ldb=24, ldc=19)
    check_matmul(spec, target="sm_80", preset="puzzle-async" if unit == "fma" else "s1")
