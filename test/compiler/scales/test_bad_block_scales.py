"""Bad block scales are refused at each entry: a spec, the command line, text of MLIR, scaled_mm."""

import contextlib
import io

import pytest
import torch
from torch.nn import functional as F

from tilewright import CompileError, scaled_mm, scales
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.tools.main import main

M, N = 200, 64
E4M3, E8M0, FP4 = torch.float8_e4m3fn, torch.float8_e8m0fnu, torch.float4_e2m1fn_x2
BY_32, BY_16 = F.ScalingType.BlockWise1x32, F.ScalingType.BlockWise1x16
ATOMS, PLAIN = F.SwizzleType.SWIZZLE_32_4_4, F.SwizzleType.NO_SWIZZLE


def spec(k, format_="mxfp8", **fields):
    MatmulSpec(M, N, k, format_, format_, **fields)


def compiled(*options):
    """The command line, whose message becomes the exception's."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert main(["compile", "--m", str(M), "--n", str(N), *options]) != 0
    raise CompileError(said.getvalue())


def text(old, new, k=160, format_="mxfp8"):
    whole = MatmulSpec(M, N, k, format_, format_).mlir_text()
    assert old in whole
    compile_matmul(LinalgText(whole.replace(old, new), "text"), until="mlir", stop_after="tiling")


def of_torch(k, of_a, swizzle, dtype=E4M3, by=BY_32):
    """A product of ones: `of_a` is the shape of A's scales, those of B are as they must be."""
    block, kind = (16, E4M3) if by == BY_16 else (32, E8M0)
    width = k if dtype == E4M3 else k // 2
    a, b = (torch.ones(rows, width, dtype=torch.uint8).view(dtype) for rows in (M, N))
    of_b = torch.ones(N, -(-k // block)).to(kind)
    of_b = scales.to_blocked(of_b) if swizzle == ATOMS else of_b
    scaled_mm(a, b.T, torch.ones(of_a).to(kind), by, of_b, by, swizzle, swizzle)


BOTH = ("--a-dtype", "--b-dtype")
MX8, MX4 = ([word for name in BOTH for word in (name, each)] for each in ("mxfp8", "mxfp4"))
EITHER = (
    r"must be blocked, \[2, 2, 32, 4, 4\], or linear, \[200, 5\], for 200 rows of 5 blocks, got "
)
LINEAR = r"must be \[200, 5\], linear, by swizzle_a, for 200 rows of 5 blocks, got "
BLOCKED = "must be 2048 elements, blocked, by swizzle_a, for 200 rows of 5 blocks, got "
BLOCK_OF_32 = "must be a multiple of the 32 elements that share a scale.*, got 100; pad K"
BYTES = "_major must be 'k' for .*, whose elements share bytes, got '.*'; transpose it before"
ATOM = "2x2x32x4x4"
REFUSED = {
    "K of a spec": (spec, (100,), BLOCK_OF_32),
    "K of a spec, by 16": (spec, (24, "nvfp4"), "multiple of the 16 elements .* got 24; pad K"),
    "K of the command line": (compiled, (*MX8, "--k", "100"), BLOCK_OF_32),
    "K of a text": (text, ("x160x", "x100x"), BLOCK_OF_32),
    "K of torch": (of_torch, (100, (M, 4), PLAIN), BLOCK_OF_32),
    "padded scales of a text": (text, (ATOM, "256x8"), rf"{EITHER}padded ones, \[256, 8\]; use"),
    "fewer atoms of a text": (text, (ATOM, "2x1x32x4x4"), rf"{EITHER}others, \[2, 1, 32, 4, 4\]"),
    "turned scales of a text": (text, (ATOM, "5x200"), f"{EITHER}as many as linear ones"),
    "flat atoms of a text": (text, (ATOM, "2048"), f"{EITHER}as many as padded ones"),
    "padded scales of torch": (of_torch, (160, (256, 8), PLAIN), f"{LINEAR}padded ones"),
    "atoms for linear ones": (of_torch, (160, (2, 2, 32, 4, 4), PLAIN), f"{LINEAR}blocked ones"),
    "linear ones for atoms": (of_torch, (160, (M, 5), ATOMS), f"{BLOCKED}linear ones"),
    "scales by 32 for 16": (of_torch, (160, (M, 5), PLAIN, FP4, BY_16), r"must be \[200, 10\]"),
    "fp4 of a spec along M": (spec, (64, "mxfp4"), BYTES),
    "fp4 of the command line": (compiled, (*MX4, "--k", "64", "--b-major", "n"), BYTES),
    "fp4 of a text along N": (text, ('b_major = "k"', 'b_major = "mn"', 64, "mxfp4"), BYTES),
    "gaps between packed rows": (
        spec,
        (64, "mxfp4"),
        "lda and stride_a must be 0 for operands with block",
    ),
    "gaps between packed rows of a text": (
        text,
        (
            "%a: tensor<200x64xf4E2M1FN>",
            "%a: tensor<200x64xf4E2M1FN> {bufferization.buffer_layout = strided<[80, 1]>}",
            64,
            "mxfp4",
        ),
        "must be dense, got arguments or results with layouts; copy them",
    ),
}
FIELDS = {
    "fp4 of a spec along M": {"a_major": "m"},
    "gaps between packed rows": {"lda": 80},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_kernel_of_block_scales_takes_is_refused(name):
    entry, arguments, rule = REFUSED[name]
    with pytest.raises(CompileError, match=rule):
        entry(*arguments, **FIELDS.get(name, {}))


@pytest.mark.usefixtures("fresh_cache")
def test_packed_rows_of_torch_at_odd_addresses_are_copied():
    rows = scales.quantize(torch.randn(N, 64, generator=torch.Generator().manual_seed(1)), "mxfp4")
    odd = torch.zeros(N * 33, dtype=torch.uint8).as_strided((N, 32), (33, 1))
    odd.copy_(rows.data.view(torch.uint8))
    of = scales.to_blocked(rows.scales)
    got = scaled_mm(
        odd.view(FP4), rows.data.T, of, BY_32, of, BY_32, ATOMS, ATOMS, output_dtype="f32"
    )
    wide = torch.as_tensor(scales.dequantize(rows.data, rows.scales, "mxfp4"))
    assert torch.allclose(got.double(), wide @ wide.T, rtol=2**-20, atol=0)
