"""f32 by three products of tf32: prefixes, layouts, types of kernels, and how exact it is."""

import numpy as np
import pytest
import torch

import tilewright
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import parse_pipeline
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import TARGETS
from tilewright.runtime.judge.sums import split_sums

pytestmark = pytest.mark.pairwise

SPLIT = "3xtf32"
COPIES = "copy-insertion,swizzle-selection,pipelining{stages=2}"
LOADS = "tma-insertion,swizzle-selection,pipelining{stages=2},warp-specialization,persistence"
PREFIXES = tuple(call.name for call in parse_pipeline(f"tiling,{LOADS}"))


def spec_of(m, n, k, **more):
    return MatmulSpec(m, n, k, SPLIT, SPLIT, "f32", **more)


@pytest.mark.sweep(4)
@pytest.mark.array(1, prefix=PREFIXES, target=("sm_90a", "sm_100a"))
def test_every_prefix(check_matmul, prefix, target):
    """Tiles hang over along each axis; the last step of K is a part."""
    pipeline = f"tiling{{tile=32x32x32}},{LOADS}"
    compiled, report = check_matmul(
        spec_of(40, 36, 76), target=target, pipeline=pipeline, stop_after=prefix
    )
    assert not report.warnings
    assert compiled.ptx.count("mma.sync") % 3 == 0
    assert "cvt.rna.tf32.f32" in compiled.ptx


@pytest.mark.sweep(4)
@pytest.mark.array(1, target=tuple(TARGETS), majors=("kk", "mk", "kn", "mn"))
def test_every_chip_reads_either_major(check_matmul, target, majors):
    spec = spec_of(24, 20, 40, a_major=majors[0], b_major=majors[1])
    check_matmul(spec, target=target)


@pytest.mark.parametrize("more", [{"batch": 2}, {"products": 2}, {"groups": 3}])
def test_stacks_groups_and_two_products(check_matmul, more):
    check_matmul(spec_of(48, 24, 40, **more), target="sm_90a")


def test_the_last_fragments_of_a_step_are_held_back(check_matmul):
    """Threads that copy by themselves multiply them in the next step."""
    pipeline = f"tiling{{tile=32x32x32}},{COPIES}"
    check_matmul(spec_of(40, 36, 100), target="sm_80", pipeline=pipeline)


@pytest.mark.parametrize("k", [1, 64, 2048])
def test_errors_are_near_those_of_f32(k):
    """Of numbers of many magnitudes, relative to the sum of magnitudes of all products.

    2^-20 is left out of each product at most; tf32 leaves out a thousand times as much.
    """
    draw = np.random.default_rng(k)
    a, b = (
        (draw.standard_normal((16, k)) * 2.0 ** draw.integers(-8, 8, (16, k))).astype(np.float32)
        for _ in range(2)
    )
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64).T
    made = {each: tilewright.matmul(a, b, precision=each) for each in (SPLIT, "tf32", "ieee")}
    errors = {name: (np.abs(value - exact) / scale).max() for name, value in made.items()}
    assert errors[SPLIT] <= 2.0**-20 + 3 * k * 2.0**-24
    assert errors[SPLIT] <= 4 * errors["ieee"] + 2.0**-20
    assert errors["tf32"] > 50 * errors[SPLIT]


def test_the_judge_holds_it_to_that():
    """Interval arithmetic of the three products, each element by itself."""
    draw = np.random.default_rng(5)
    a, b = (draw.standard_normal((4, 33)).astype(np.float32).astype(np.float64) for _ in range(2))
    found, exact = split_sums(a, b), a @ b.T
    reach = np.abs(a) @ np.abs(b).T
    assert (found.low < exact).all() and (exact < found.high).all()
    assert (found.high - found.low < 2 * reach * (2.0**-20 + 120 * 2.0**-24)).all()
    of_tf32 = (a.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    wrong = of_tf32.astype(np.float64) @ b.T
    assert ((wrong < found.low) | (wrong > found.high)).any()


def test_an_infinite_operand_makes_nan_of_its_sums(check_matmul):
    """The judge allows that, and nothing else, in its rows alone."""
    a = torch.randn(20, 24)
    b = torch.randn(24, 24)
    a[3, 5] = float("inf")
    made = tilewright.matmul(a, b, precision=SPLIT, target="sm_90a")
    assert not made[3].isfinite().any()
    others = [row for row in range(20) if row != 3]
    assert torch.allclose(made[others], a[others] @ b.T, rtol=0, atol=1e-4)


def test_gradients_are_split_too():
    a, b = torch.randn(12, 20, requires_grad=True), torch.randn(8, 20, requires_grad=True)
    tilewright.matmul(a, b, precision=SPLIT, target="sm_90a").sum().backward()
    expected = torch.ones(12, 8) @ b.detach()
    assert (a.grad - expected).abs().max() < 2.0**-18 * b.detach().abs().sum(0).max()


@pytest.mark.parametrize(
    ("types", "target", "pipeline", "message"),
    [
        (
            "bf16",
            "sm_90a",
            "tiling{mma=mma.sync+3xtf32}",
            "mma.sync\\+3xtf32 of sm_90a multiplies no",
        ),
        (SPLIT, "sm_90a", "tiling{mma=mma.sync}", "the module asks for tile.mma_unit"),
    ],
)
def test_what_it_does_not_go_with_is_refused(types, target, pipeline, message):
    with pytest.raises(CompileError, match=message):
        compile_matmul(MatmulSpec(64, 64, 64, types, types), target=target, pipeline=pipeline)
