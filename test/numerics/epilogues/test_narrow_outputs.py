"""Outputs of 8-bit floats: rounded to nearest even, too large ones as each front end says."""

import pytest
import torch

from tilewright.compiler.calls.dense.matmul import matmul
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import DEFAULT_PIPELINE, parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

PREFIXES = tuple(call.name for call in parse_pipeline(DEFAULT_PIPELINE))
SMALL_TILES = DEFAULT_PIPELINE.replace("tiling", "tiling{tile=64x32x32}")
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
torch.manual_seed(11)
A, B = torch.randn(40, 24).bfloat16() * 30, torch.randn(50, 24).bfloat16()
SUMS = A.float() @ B.float().T


@pytest.mark.sweep(4)
@pytest.mark.array(prefix=PREFIXES, target=("sm_100a", "sm_90a"), n=(80, 45))
def test_every_prefix_rounds_to_8_bits(check_matmul, prefix, target, n):
    spec = MatmulSpec(140, n, 72, c_dtype="e4m3", further=("e5m2",))
    check_matmul(spec, pipeline=SMALL_TILES, stop_after=prefix, target=target)


@pytest.mark.parametrize("target", ["sm_89", "sm_120a"])
def test_warps_and_threads_round_to_8_bits(check_matmul, target):
    check_matmul(MatmulSpec(70, 40, 24, c_dtype="e5m2"), target=target)
    check_matmul(MatmulSpec(20, 9, 24, c_dtype="e4m3"), target=target, preset="puzzle-shared")


def codes(tensor):
    return tensor.view(torch.uint8)


@pytest.mark.parametrize(("dtype", "most"), [(E4M3, 448.0), (E5M2, 57344.0)])
def test_an_output_type_saturates(dtype, most):
    large = A * (1 if dtype is E4M3 else 2**8)
    c = matmul(large, B, out_dtype=dtype)
    wanted = (large.float() @ B.float().T).clamp(-most, most).to(dtype)
    assert (c.float().abs() == most).any()
    assert torch.equal(codes(c), codes(wanted))


@pytest.mark.parametrize(("dtype", "scale"), [(E4M3, 1.5), (E5M2, 300.0)])
def test_a_function_rounds_as_torch_does(dtype, scale):
    def quantized(acc, s):
        return (acc * s).to(dtype), acc

    scale = torch.tensor(scale)
    c, sums = matmul(A, B, epilogue=quantized, operands=[scale])
    wanted = sums * scale
    if dtype is E4M3:  # as torch 2.13 does; before it gave NaN beyond the largest number
        wanted = wanted.clamp(-448.0, 448.0)
    wanted = wanted.to(dtype)
    assert c.dtype == dtype
    assert (sums * scale).abs().max() > torch.finfo(dtype).max
    assert torch.equal(codes(c), codes(wanted))


def test_a_product_of_nothing_keeps_the_type_of_the_function():
    c = matmul(A[:, :0], B[:, :0], epilogue=lambda acc: acc.to(E4M3))
    assert c.dtype == E4M3 and not c.float().any()


def test_chips_without_the_conversion_refuse():
    with pytest.raises(CompileError, match="sm_80 converts nothing to 8-bit floats, got an output"):
        compile_matmul(MatmulSpec(64, 64, 64, c_dtype="e4m3"), target="sm_80")
