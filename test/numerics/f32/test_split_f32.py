"""f32 by products of narrower floats: prefixes, layouts and types of kernels of mma.sync, and how
exact three products of tf32 are."""

import numpy as np
import pytest
import torch
from split_products import LOADS, MAJORS, PREFIXES, drawn, errors, spec_of

import tilewright
from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.dtypes import SPLITS
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import TARGETS
from tilewright.runtime.judge.sums import split_sums

pytestmark = pytest.mark.pairwise

SPLIT = "3xtf32"
COPIES = "copy-insertion,swizzle-selection,pipelining{stages=2}"
MMAS = {
    "3xtf32": (3, "m16n8k8.row.col.f32.tf32.tf32.f32"),
    "bf16x9": (9, "m16n8k16.row.col.f32.bf16.bf16.f32"),
}
"""How many MMAs are one, and which."""


@pytest.mark.sweep(4)
@pytest.mark.array(1, name=SPLITS, prefix=PREFIXES, target=("sm_90a", "sm_100a"))
def test_every_prefix(check_matmul, name, prefix, target):
    """Tiles hang over along each axis; the last step of K is a part."""
    pipeline = f"tiling{{tile=32x32x32 mma=mma.sync+{name}}},{LOADS}"
    compiled, report = check_matmul(
        spec_of(name, 40, 36, 76), target=target, pipeline=pipeline, stop_after=prefix
    )
    times, mma = MMAS[name]
    assert not report.warnings
    assert compiled.ptx.count(mma) and compiled.ptx.count(mma) % times == 0
    assert ("cvt.rna.tf32.f32" in compiled.ptx) == (name == "3xtf32")


@pytest.mark.sweep(4)
@pytest.mark.array(1, name=SPLITS, target=tuple(TARGETS), majors=MAJORS)
def test_every_chip_reads_either_major(check_matmul, name, target, majors):
    spec = spec_of(name, 24, 20, 40, a_major=majors[0], b_major=majors[1])
    check_matmul(spec, target=target)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("more", [{"batch": 2}, {"products": 2}, {"groups": 3}])
def test_stacks_groups_and_two_products(check_matmul, name, more):
    check_matmul(spec_of(name, 48, 24, 40, **more), target="sm_90a")


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("name", "target", "pipeline"),
    [
        ("3xtf32", "sm_80", f"tiling{{tile=32x32x32}},{COPIES}"),
        ("bf16x9", "sm_90a", f"tiling{{tile=32x32x8}},{COPIES}"),
        ("bf16x9", "sm_90a", f"tiling{{tile=32x32x24}},{COPIES}"),
        (
            "bf16x9",
            "sm_90a",
            "tiling{tile=16x32x16 warps=1x4},tma-insertion,split-k{parts=2},pipelining",
        ),
        (
            "bf16x9",
            "sm_90a",
            "tiling{tile=32x32x16},tma-insertion,split-k{parts=3 over=grid},pipelining",
        ),
    ],
)
def test_fragments_that_are_held_back_and_parts_of_k(check_matmul, name, target, pipeline):
    """Threads that copy multiply the last fragments of a step in the next one; a tile of 24 along K
    has an MMA of 16 and one of 8."""
    check_matmul(spec_of(name, 40, 36, 100), target=target, pipeline=pipeline)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("k", [1, 64, 2048])
def test_errors_are_near_those_of_f32(k):
    """Of numbers of many magnitudes: 2^-20 is left out of each product at most; tf32 leaves out a
    thousand times as much."""
    a, b = drawn(k, -8, 8)
    found = {
        each: errors(tilewright.matmul(a, b, precision=each), a, b)
        for each in (SPLIT, "tf32", "ieee")
    }
    assert found[SPLIT] <= 2.0**-20 + 3 * k * 2.0**-24
    assert found[SPLIT] <= 4 * found["ieee"] + 2.0**-20
    assert found["tf32"] > 50 * found[SPLIT]


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


def test_an_infinite_operand_makes_nan_of_its_sums():
    """The judge allows that, and nothing else, in its rows alone."""
    a = torch.randn(20, 24)
    b = torch.randn(24, 24)
    a[3, 5] = float("inf")
    made = tilewright.matmul(a, b, precision=SPLIT, target="sm_90a")
    assert not made[3].isfinite().any()
    others = [row for row in range(20) if row != 3]
    assert torch.allclose(made[others], a[others] @ b.T, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("name", "bound"), [("3xtf32", 2.0**-18), ("bf16x9", 2.0**-21)])
def test_gradients_are_split_too(name, bound):
    a, b = torch.randn(12, 20, requires_grad=True), torch.randn(8, 20, requires_grad=True)
    tilewright.matmul(a, b, precision=name, target="sm_90a").sum().backward()
    expected = torch.ones(12, 8, dtype=torch.float64) @ b.detach().double()
    assert (a.grad - expected).abs().max() < bound * b.detach().abs().sum(0).max()


@pytest.mark.parametrize(
    ("types", "pipeline", "message"),
    [
        ("bf16", "tiling{mma=mma.sync+3xtf32}", "mma.sync\\+3xtf32 of sm_90a multiplies no"),
        ("bf16", "tiling{mma=mma.sync+bf16x9}", "mma.sync\\+bf16x9 of sm_90a multiplies no"),
        ("3xtf32", "tiling{mma=mma.sync}", "the module asks for tile.mma_unit"),
        ("3xtf32", "tiling{mma=wgmma.mma_async+bf16x9}", "the module asks for tile.mma_unit"),
        ("bf16x9", "tiling{mma=mma.sync+3xtf32}", "the module asks for tile.mma_unit"),
        ("bf16x9", "tiling{tile=32x32x4}", "tile K must be a multiple of 8"),
    ],
)
def test_what_it_does_not_go_with_is_refused(types, pipeline, message):
    with pytest.raises(CompileError, match=message):
        compile_matmul(MatmulSpec(64, 64, 64, types, types), target="sm_90a", pipeline=pipeline)
