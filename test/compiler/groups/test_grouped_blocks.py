"""`tilewright.scaled_grouped_mm` with scales of blocks, against dequantized operands in float64."""

from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F

from tilewright import scaled_grouped_mm
from tilewright.dialects.errors import OptionError
from tilewright.runtime.group_sizes import rows_of_atoms
from tilewright.scales import dequantize, quantize, to_blocked

pytestmark = pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
GENERATOR = torch.Generator().manual_seed(17)
ROWS, N, K = 150, 24, 256
ENDS = [0, 10, 139, 150]
GROUPS = len(ENDS)
OFFS = torch.tensor(ENDS, dtype=torch.int32)
PARTS = list(pairwise([0, *ENDS]))
A = torch.randn(ROWS, K, generator=GENERATOR)
B = torch.randn(GROUPS, N, K, generator=GENERATOR)
SWIZZLED, PLAIN = F.SwizzleType.SWIZZLE_32_4_4, F.SwizzleType.NO_SWIZZLE
BY_32, BY_16 = F.ScalingType.BlockWise1x32, F.ScalingType.BlockWise1x16
BY_128, BY_MATRIX = F.ScalingType.BlockWise1x128, F.ScalingType.BlockWise128x128
TENSOR = F.ScalingType.TensorWise
FORMATS = {"mxfp8": BY_32, "mxfp4": BY_32, "nvfp4": BY_16}


def numbers(made, format_):
    return torch.as_tensor(dequantize(made.data, made.scales, format_))


def wanted_rows(a, stack):
    return torch.cat([a[begin:end] @ stack[g].T for g, (begin, end) in enumerate(PARTS)])


def is_near(found, wanted, bits=17):
    return torch.allclose(found.double(), wanted, rtol=2.0**-bits, atol=2.0**-bits * K)


def blocked_by_group(scales, spare=0):
    """As torch asks for the scales of grouped rows: each group blocked by itself."""
    parts = [to_blocked(scales[begin:end]) for begin, end in PARTS if begin < end]
    whole = torch.cat([each.view(torch.uint8).reshape(-1) for each in parts])
    atoms = 128 * scales.shape[1]
    whole = torch.cat([whole, torch.full((spare * atoms,), 255, dtype=torch.uint8)])
    return whole.reshape(-1, scales.shape[1]).view(scales.dtype)


def sides(format_, swizzled, spare=0):
    """Operands, scales, and what they are worth."""
    a, b = quantize(A, format_), [quantize(each, format_) for each in B]
    data = torch.stack([each.data.view(torch.uint8) for each in b]).view(b[0].data.dtype)
    of_b = [to_blocked(each.scales) if swizzled else each.scales for each in b]
    of_b = torch.stack([each.view(torch.uint8) for each in of_b]).view(b[0].scales.dtype)
    of_b = of_b.reshape(GROUPS, -1) if swizzled else of_b
    of_a = blocked_by_group(a.scales, spare) if swizzled else a.scales
    wanted = wanted_rows(numbers(a, format_), [numbers(each, format_) for each in b])
    return a.data, data.mT, of_a, of_b, wanted


@pytest.mark.sweep(3)
@pytest.mark.parametrize("swizzle", [SWIZZLED, PLAIN])
@pytest.mark.parametrize("format_", FORMATS)
def test_scales_of_blocks_lie_blocked_for_each_group_or_row_by_row(format_, swizzle):
    recipe = FORMATS[format_]
    a, b, of_a, of_b, wanted = sides(format_, swizzle is SWIZZLED)
    how = {"swizzle_a": swizzle, "swizzle_b": swizzle, "offs": OFFS, "target": "sm_100a"}
    found = scaled_grouped_mm(a, b, of_a, recipe, of_b, recipe, output_dtype="f32", **how)
    assert is_near(found, wanted)


def test_scales_are_as_many_as_their_groups_need_or_more():
    """The kernel takes as many as any offsets may need: fewer are copied, more are left."""
    for spare in (0, 1, 9):
        a, b, of_a, of_b, wanted = sides("mxfp8", True, spare)
        how = {"swizzle_a": SWIZZLED, "swizzle_b": SWIZZLED, "offs": OFFS, "target": "sm_100a"}
        found = scaled_grouped_mm(a, b, of_a, BY_32, of_b, BY_32, output_dtype="f32", **how)
        assert is_near(found, wanted)
    assert rows_of_atoms(ROWS, GROUPS) // 128 == 5


def test_factors_of_tensors_and_groups_stand_beside_scales_of_blocks():
    a, b, of_a, of_b, wanted = sides("nvfp4", True)
    by_group = torch.rand(GROUPS, generator=GENERATOR) + 0.5
    found = scaled_grouped_mm(
        a,
        b,
        [of_a, torch.tensor(0.5)],
        [BY_16, TENSOR],
        [of_b, by_group],
        [BY_16, TENSOR],
        swizzle_a=[SWIZZLED],
        swizzle_b=[SWIZZLED, PLAIN],
        offs=OFFS,
        output_dtype="f32",
    )
    each = torch.cat([by_group[g].expand(end - begin) for g, (begin, end) in enumerate(PARTS)])
    assert is_near(found, wanted * each.double()[:, None] / 2, 16)


def test_grouped_columns_are_the_transpose_and_stacks_have_no_offsets():
    a, b, of_a, of_b, wanted = sides("mxfp8", True)
    how = {"swizzle_a": SWIZZLED, "swizzle_b": SWIZZLED, "output_dtype": "f32"}
    found = scaled_grouped_mm(b.mT, a.T, of_b, BY_32, of_a, BY_32, offs=OFFS, **how)
    assert is_near(found.T, wanted)
    stack = quantize(A[:148].reshape(GROUPS, 37, K).reshape(-1, K), "mxfp8")
    data, scales = stack.data.reshape(GROUPS, 37, K), stack.scales.reshape(GROUPS, 37, -1)
    of_stack = torch.stack([to_blocked(each).view(torch.uint8) for each in scales])
    of_stack = of_stack.reshape(GROUPS, -1).view(scales.dtype)
    found = scaled_grouped_mm(data, b, of_stack, BY_32, of_b, BY_32, **how)
    each = quantize(B.reshape(-1, K), "mxfp8")
    stacked = numbers(each, "mxfp8").reshape(GROUPS, N, K)
    assert is_near(found, numbers(stack, "mxfp8").reshape(GROUPS, 37, K) @ stacked.mT)


def blocks_of_128(matrix, rows):
    """e4m3 with scales in f32 of 128 elements, as torch's recipe has them, and their worth."""
    blocks = matrix.reshape(*matrix.shape[:-1], -1, 128)
    scales = blocks.abs().amax(-1)
    if rows:
        *stack, count, along = scales.shape
        padded = F.pad(scales, (0, 0, 0, -count % 128)).reshape(*stack, -1, 128, along)
        scales = padded.amax(-2)
        each = scales.repeat_interleave(128, -2)[..., :count, :]
    else:
        each = scales
    scales, each = scales / 448, each / 448
    data = (blocks / each[..., None]).to(torch.float8_e4m3fn)
    worth = data.double() * each.double()[..., None]
    lies = F.pad(scales, (0, -scales.shape[-1] % 4)) if rows else scales.mT.contiguous().mT
    lies = lies.contiguous().mT if rows else lies
    return data.reshape(matrix.shape), lies, worth.reshape(matrix.shape)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("of_matrix", [True, False])
def test_threads_multiply_by_scales_of_128(of_matrix, target):
    a, of_a, worth_a = blocks_of_128(A, False)
    b, of_b, worth_b = blocks_of_128(B, of_matrix)
    recipe = BY_MATRIX if of_matrix else BY_128
    how = {"offs": OFFS, "target": target, "output_dtype": "f32"}
    found = scaled_grouped_mm(a, b.mT, of_a, BY_128, of_b, recipe, **how)
    assert is_near(found, wanted_rows(worth_a, worth_b), 16)


def test_nothing_is_multiplied_where_there_are_no_rows():
    a, b, _, of_b, _ = sides("mxfp8", False)
    none = torch.zeros(0, K // 32).to(torch.float8_e8m0fnu)
    found = scaled_grouped_mm(a[:0], b, none, BY_32, of_b, BY_32, offs=OFFS, target="sm_100a")
    assert found.shape == (0, N)


GOOD = sides("mxfp8", True)
EIGHT, OF_8, _ = blocks_of_128(A, False)
STACK, OF_STACK, _ = blocks_of_128(B, True)
REFUSALS = {
    "a recipe": ({"scale_recipe_a": "RowWise"}, "both operands must have scales of blocks, got"),
    "K": ({"mat_b": EIGHT.T}, "K must not be grouped with scales of blocks, got two matrices"),
    "no offsets": ({"offs": None}, "offs must be None for two stacks, and given else, got None"),
    "gathered": (
        {"rows": OFFS},
        "rows must be None with scales of blocks, got some; copy the rows",
    ),
    "atoms": (
        {"scale_a": GOOD[2].reshape(-1)[:-8]},
        "scale_a must be whole rows of atoms, 1024 elements each, for 8 blocks, got 4088",
    ),
    "a stack's": (
        {"scale_b": GOOD[3][:, 8:]},
        "scale_b must have 4096 elements, blocked for each matrix, got 4064",
    ),
    "plain": ({"swizzle_a": None}, r"scale_a must be \[150, 8\] without a swizzle, got \[512, 8\]"),
    "types": (
        {"mat_a": A.to(torch.float8_e4m3fn), "scale_a": A},
        "mat_a and scale_a must be of a format with blocks of 32, got float8_e4m3fn and float32",
    ),
    "a second": (
        {"scale_a": [GOOD[2]] * 2, "scale_recipe_a": [BY_32, "RowWise"], "swizzle_a": [SWIZZLED]},
        "scale_a must be of blocks, with a plain TensorWise one at most, got RowWise and None",
    ),
    "lists": (
        {"scale_a": [GOOD[2]], "scale_recipe_a": [BY_32, BY_32]},
        "scale_a must have a recipe each, and at most a swizzle, got 1 with 2 and 1",
    ),
    "bias": ({"bias": A}, "bias must be None, got one; add it by an epilogue of grouped_mm"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_no_recipe_has_is_refused(what):
    a, b, of_a, of_b, _ = GOOD
    given = {"mat_a": a, "mat_b": b, "scale_a": of_a, "scale_recipe_a": BY_32}
    given |= {"scale_b": of_b, "scale_recipe_b": BY_32, "offs": OFFS, "target": "sm_100a"}
    given |= {"swizzle_a": SWIZZLED, "swizzle_b": SWIZZLED}
    more, message = REFUSALS[what]
    with pytest.raises(OptionError, match=message):
        scaled_grouped_mm(**{**given, **more})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"scale_recipe_a": BY_MATRIX}, "scale_recipe_a must be BlockWise1x128 where its rows are"),
        ({"scale_a": OF_8.contiguous()}, "scale_a must be .150, 2. for BlockWise1x128, its first"),
        ({"scale_b": OF_STACK[:, :2]}, "scale_b must be .4, 4, 1. for BlockWise128x128"),
        ({"swizzle_a": SWIZZLED}, "swizzle_a must be NO_SWIZZLE or None for BlockWise1x128"),
        (
            {"scale_a": OF_8.double()},
            "scale_a must be float32 for BlockWise1x128, got torch.float64",
        ),
    ],
)
def test_scales_of_128_that_lie_otherwise_are_refused(more, message):
    given = {"mat_a": EIGHT, "mat_b": STACK.mT, "scale_a": OF_8, "scale_recipe_a": BY_128}
    given |= {"scale_b": OF_STACK, "scale_recipe_b": BY_MATRIX, "offs": OFFS, "target": "sm_90a"}
    with pytest.raises(OptionError, match=message):
        scaled_grouped_mm(**{**given, **more})
