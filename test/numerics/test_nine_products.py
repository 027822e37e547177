"""f32 by nine products of bf16: prefixes, kinds of kernels, magnitudes, and what is no number."""

import numpy as np
import pytest
import torch

import tilewright
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import TARGETS
from tilewright.runtime.judge.sums import part_sums

pytestmark = pytest.mark.pairwise

NINE = "bf16x9"
COPIES = "copy-insertion,swizzle-selection,pipelining{stages=2}"
LOADS = "tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,persistence"
PREFIXES = tuple(call.name for call in parse_pipeline(f"tiling,{LOADS}"))
LARGEST = np.finfo(np.float32).max


def spec_of(m, n, k, **more):
    return MatmulSpec(m, n, k, NINE, NINE, "f32", **more)


def product(a, b):
    return tilewright.matmul(a, b, precision=NINE, target="sm_90a")


@pytest.mark.sweep(4)
@pytest.mark.array(1, prefix=PREFIXES, target=("sm_90a", "sm_100a"))
def test_every_prefix(check_matmul, prefix, target):
    """Tiles hang over along each axis; the last step of K is a part."""
    pipeline = f"tiling{{tile=32x32x32}},{LOADS}"
    compiled, report = check_matmul(
        spec_of(40, 36, 76), target=target, pipeline=pipeline, stop_after=prefix
    )
    assert not report.warnings
    assert compiled.ptx.count("m16n8k16.row.col.f32.bf16.bf16.f32") % 9 == 0


@pytest.mark.sweep(4)
@pytest.mark.array(1, target=tuple(TARGETS), majors=("kk", "mk", "kn", "mn"))
def test_every_chip_reads_either_major(check_matmul, target, majors):
    spec = spec_of(24, 20, 40, a_major=majors[0], b_major=majors[1])
    check_matmul(spec, target=target)


@pytest.mark.parametrize("more", [{"batch": 2}, {"products": 2}, {"groups": 3}])
def test_stacks_groups_and_two_products(check_matmul, more):
    check_matmul(spec_of(48, 24, 40, **more), target="sm_90a")


@pytest.mark.parametrize(
    "pipeline",
    [
        f"tiling{{tile=32x32x8}},{COPIES}",
        f"tiling{{tile=32x32x24}},{COPIES}",
        "tiling{tile=16x32x16 warps=1x4},tma-insertion,split-k{parts=2},pipelining",
        "tiling{tile=32x32x16},tma-insertion,split-k{parts=3 over=grid},pipelining",
    ],
)
def test_mmas_of_half_the_depth_and_parts_of_k(check_matmul, pipeline):
    """A tile of 24 along K has an MMA of 16 and one of 8; the last ones are held back."""
    check_matmul(spec_of(40, 36, 100), target="sm_90a", pipeline=pipeline)


def _drawn(k, least, most):
    draw = np.random.default_rng(k)
    return [
        np.ldexp(draw.standard_normal((16, k)), draw.integers(least, most, (16, k))).astype(
            np.float32
        )
        for _ in range(2)
    ]


def _errors(made, a, b):
    """Relative to the sum of the magnitudes of all products."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (np.abs(made - a @ b.T) / (np.abs(a) @ np.abs(b).T)).max()


@pytest.mark.parametrize("k", [1, 64, 1000])
def test_errors_are_those_of_f32(k):
    """Of numbers of many magnitudes; a long K has less, since threads add sums of 16 products."""
    a, b = _drawn(k, -8, 8)
    exact = _errors(tilewright.matmul(a, b, precision="ieee"), a, b)
    assert _errors(product(a, b), a, b) <= exact + 2.0**-23


@pytest.mark.parametrize("least", [-149, -130, -110, 80, 106])
def test_magnitudes_at_the_ends_of_f32(least):
    """Subnormal numbers keep the bits that they have: parts that are left are made larger."""
    a, _ = _drawn(24, least, least + 20)
    _, b = _drawn(24, 80, 100) if least < -100 else _drawn(24, -80, -60)
    assert _errors(product(a, b), a, b) <= 2.0**-21


def test_the_largest_number():
    a = np.full((16, 8), 0, np.float32)
    a[:, 3] = LARGEST
    b = np.zeros((8, 8), np.float32)
    b[:, 3] = [1, -1, 0.5, 0.25, 0, 2.0**-20, -(2.0**-126), 2.0**-140]
    assert np.array_equal(product(a, b), a @ b.T)


def test_what_is_no_number_is_as_in_f32():
    a, b = _drawn(24, -4, 4)
    a[1, 2], a[2, 3], a[3, 7], a[4, 20] = np.inf, -np.inf, np.nan, np.inf
    a[5] = 0
    b[3, 9], b[6, 20], b[7, 2] = np.inf, -np.inf, 0
    a.view(np.uint32)[8, 5] = 0x7F800001  # a NaN of whose fraction bf16 has nothing
    with np.errstate(invalid="ignore"):
        wanted = a.astype(np.float64) @ b.astype(np.float64).T
    made = product(a, b)
    numbers = np.isfinite(wanted)
    assert np.array_equal(made[~numbers], wanted[~numbers].astype(np.float32), equal_nan=True)
    assert np.allclose(made[numbers], wanted[numbers], rtol=0, atol=2.0**-12)


def test_the_judge_holds_it_to_that():
    """A product that leaves out what three products of tf32 do is wrong."""
    draw = np.random.default_rng(5)
    a, b = (draw.standard_normal((40, 2)).astype(np.float32).astype(np.float64) for _ in range(2))
    found, exact = part_sums(a, b), a @ b.T
    assert (found.low < exact).all() and (exact < found.high).all()
    cut = (a.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFFF00)).view(np.float32)
    wrong = cut.astype(np.float64) @ b.T
    assert ((wrong < found.low) | (wrong > found.high)).any()


def test_the_judge_knows_what_is_no_number():
    a, b = np.array([[np.inf, 1.0]]), np.array([[1.0, 1.0], [0.0, 1.0], [2.0**-140, 1.0]])
    found = part_sums(a, b)
    assert list(found.nan[0]) == [False, True, True]
    assert found.low[0, 0] == np.inf


def test_gradients_have_the_same_precision():
    a, b = torch.randn(12, 20, requires_grad=True), torch.randn(8, 20, requires_grad=True)
    product(a, b).sum().backward()
    expected = torch.ones(12, 8, dtype=torch.float64) @ b.detach().double()
    assert (a.grad - expected).abs().max() < 2.0**-21 * b.detach().abs().sum(0).max()


@pytest.mark.parametrize(
    ("types", "pipeline", "message"),
    [
        ("bf16", "tiling{mma=mma.sync+bf16x9}", "mma.sync\\+bf16x9 of sm_90a multiplies no"),
        (NINE, "tiling{mma=mma.sync+3xtf32}", "the module asks for tile.mma_unit"),
        (NINE, "tiling{tile=32x32x4}", "tile K must be a multiple of 8"),
    ],
)
def test_what_it_does_not_go_with_is_refused(types, pipeline, message):
    with pytest.raises(CompileError, match=message):
        compile_matmul(MatmulSpec(64, 64, 64, types, types), target="sm_90a", pipeline=pipeline)
