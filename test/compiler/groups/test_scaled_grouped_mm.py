"""`tilewright.scaled_grouped_mm`, torch's signature, against dequantized operands in float64."""

from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F

from tilewright import scaled_grouped_mm
from tilewright.dialects.errors import OptionError

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(11)
ROWS, N, K = 96, 48, 64
ENDS = [10, 10, 41, 96]
GROUPS = len(ENDS)
OFFS = torch.tensor(ENDS, dtype=torch.int32)
PARTS = list(pairwise([0, *ENDS]))
ROW, TENSOR = F.ScalingType.RowWise, F.ScalingType.TensorWise


def floats(*shape, dtype=torch.float8_e4m3fn):
    return torch.randn(shape, generator=GENERATOR).to(dtype)


def factors(*shape):
    return torch.rand(shape, generator=GENERATOR) + 0.1


A, B = floats(ROWS, K), floats(GROUPS, N, K, dtype=torch.float8_e5m2)
OF_A, OF_B = factors(ROWS), factors(GROUPS, N)
BOTH_WAYS = [("sm_90a", True), ("sm_90a", False), ("sm_100a", False)]


def is_near(found, wanted, bits=17):
    return torch.allclose(found.double(), wanted, rtol=2.0**-bits, atol=2.0**-bits)


def wanted_rows(of_b=OF_B):
    scaled = [(A[begin:end].double() * OF_A[begin:end, None]) for begin, end in PARTS]
    return torch.cat([rows @ (B[g].double() * of_b[g][:, None]).T for g, rows in enumerate(scaled)])


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("target", "fast"), BOTH_WAYS)
def test_rows_of_a_and_columns_of_each_matrix_have_factors(target, fast):
    how = {"offs": OFFS, "target": target, "use_fast_accum": fast}
    found = scaled_grouped_mm(A, B.mT, OF_A, ROW, OF_B, ROW, output_dtype=torch.float32, **how)
    assert is_near(found, wanted_rows())
    narrow = scaled_grouped_mm(A, B.mT, [OF_A], [ROW], [OF_B], [ROW], **how)
    assert narrow.dtype == torch.bfloat16 and torch.equal(narrow, found.bfloat16())


def test_grouped_columns_and_stacks_have_factors():
    how = {"output_dtype": "f32", "target": "sm_90a", "use_fast_accum": True}
    found = scaled_grouped_mm(B, A.T, OF_B, ROW, OF_A, ROW, offs=OFFS, **how)
    assert is_near(found.T, wanted_rows())
    stack, of_stack = A.reshape(GROUPS, -1, K), OF_A.reshape(GROUPS, -1)
    for fast in (True, False):
        how["use_fast_accum"] = fast
        found = scaled_grouped_mm(stack, B.mT, of_stack, ROW, OF_B, ROW, **how)
        left, right = stack.double() * of_stack[..., None], B.double() * OF_B[..., None]
        assert is_near(found, left @ right.mT)


def test_groups_of_k_have_factors_each():
    left, right = floats(16, ROWS), floats(24, ROWS)
    of_left, of_right = factors(GROUPS * 16), factors(GROUPS * 24)
    found = scaled_grouped_mm(
        left, right.T, of_left, ROW, of_right, ROW, offs=OFFS, output_dtype="f32", target="sm_100a"
    )
    for g, (begin, end) in enumerate(PARTS):
        sums = left[:, begin:end].double() @ right[:, begin:end].double().T
        both = of_left.reshape(GROUPS, 16, 1)[g] * of_right.reshape(GROUPS, 1, 24)[g]
        assert is_near(found[g], sums * both)


def test_tiles_of_equal_height_have_the_factors_of_their_rows_and_group():
    pipeline = (
        "tiling{tile=64x64x128 swap=true},tma-insertion,swizzle-selection,"
        "epilogue-staging{columns=32 buffers=2},pipelining{stages=2},warp-specialization,"
        "persistence{order=grouped group=8 ctas=2},level-groups"
    )
    how = {"offs": OFFS, "target": "sm_90a", "use_fast_accum": True, "pipeline": pipeline}
    found = scaled_grouped_mm(A, B.mT, OF_A, ROW, OF_B, ROW, output_dtype="f32", **how)
    assert is_near(found, wanted_rows())


def test_tensors_have_one_factor_or_one_for_each_matrix():
    how = {"offs": OFFS, "output_dtype": "f32", "target": "sm_90a", "use_fast_accum": True}
    for of_b in (torch.tensor([3.0]), factors(GROUPS)):
        found = scaled_grouped_mm(A, B.mT, OF_A, ROW, of_b, TENSOR, **how)
        assert is_near(found, wanted_rows(of_b.expand(GROUPS)[:, None].expand(GROUPS, N)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale_a": OF_A[1:]}, "scale_a must be [96] for RowWise, got [95]"),
        ({"scale_b": OF_B[1:]}, "scale_b must be [4, 48] for RowWise, got [3, 48]"),
        ({"scale_b": OF_B.double()}, "scale_b must be float32, got torch.float64"),
        (
            {"scale_recipe_a": TENSOR},
            "scale_a must be one number for TensorWise, got [96]",
        ),
        (
            {"scale_b": OF_B[:3, 0], "scale_recipe_b": TENSOR},
            "scale_b must be one number or [4] for TensorWise, got [3]",
        ),
        (
            {"scale_recipe_b": F.ScalingType.BlockWise1x32},
            "both operands must have scales of blocks, got ['RowWise'] and ['BlockWise1x32']",
        ),
        (
            {"scale_a": [OF_A, OF_A]},
            "scale_a must have a recipe each, and at most a swizzle, got 2 ",
        ),
        (
            {"swizzle_a": F.SwizzleType.SWIZZLE_32_4_4},
            "swizzle_a must be NO_SWIZZLE or None, got SWIZZLE_32_4_4",
        ),
        ({"contraction_dim": [1]}, "contraction_dim must be (), got [1]"),
        ({"bias": OF_B}, "bias must be None, got one; add it by an epilogue of grouped_mm"),
        ({"mat_a": A[0]}, "mat_a and mat_b must have 2 or 3 dims, got [64] and [4, 64, 48]"),
        ({"mat_b": A.T, "offs": None}, "offs must be given where K is grouped, got None"),
        ({"target": "sm_89"}, "use_fast_accum must be True on sm_89, whose sums of 8-bit floats "),
    ],
)
def test_what_a_recipe_does_not_have_is_refused(change, message):
    given = {"mat_a": A, "mat_b": B.mT, "scale_a": OF_A, "scale_b": OF_B, "offs": OFFS}
    given |= {"scale_recipe_a": ROW, "scale_recipe_b": ROW}
    with pytest.raises(OptionError) as refused:
        scaled_grouped_mm(**(given | change))
    assert str(refused.value).startswith(f"error: scaled_grouped_mm: {message}")


def test_groups_of_k_of_8_bits_are_refused_where_no_mma_reads_them():
    with pytest.raises(OptionError, match="K must not be grouped for e4m3 on sm_90a, which reads "):
        scaled_grouped_mm(
            A.T, A, factors(GROUPS * K), ROW, factors(GROUPS * K), ROW, offs=OFFS, target="sm_90a"
        )
