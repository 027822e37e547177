"""What skip-zeros does not take, and what a hand may not write of MMAs that leave out zeros."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import check_program, parse_module
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir

SPEC = MatmulSpec(200, 72, 152)
TILING, LOADS = "tiling{tile=128x32x64}", "tma-insertion,swizzle-selection"
ROLES = f"{TILING},{LOADS},pipelining{{stages=2}},warp-specialization"
LEFT_OUT = "leave skip-zeros out"
ONE_LOOP = "must be tile.mma, tile.dual_mma or a pair's in one loop along all of K"


def passed(spec, pipeline, target="sm_90a"):
    """The kernel that skip-zeros, the last of some passes, leaves."""
    wanted = {"stop_after": "skip-zeros", "until": "mlir"}
    return compile_matmul(spec, target=target, pipeline=pipeline, **wanted).mlir


@pytest.mark.parametrize(
    ("spec", "pipeline", "target", "rule"),
    [
        (
            MatmulSpec(200, 72, 186),
            ROLES.replace("tma-insertion", "copy-insertion"),
            "sm_90a",
            "the last step along K must have MMA instructions of zeros alone, got 64 elements of 64"
            f"; {LEFT_OUT}",
        ),
        (SPEC, f"{ROLES},skip-zeros", "sm_90a", f"MMAs leave zeros out already; {LEFT_OUT}"),
        (
            MatmulSpec(200, 72, 1000),
            f"{TILING},{LOADS},split-k",
            "sm_90a",
            f"{ONE_LOOP}, got another; {LEFT_OUT}",
        ),
        (
            MatmulSpec(200, 72, 152, groups=3, group_axis="k", a_major="m", b_major="n"),
            TILING,
            "sm_90a",
            f"{ONE_LOOP}, got another; {LEFT_OUT}",
        ),
        (
            SPEC,
            "tiling{tile=128x32x64 mma=tcgen05.mma+fma}",
            "sm_100a",
            f"MMAs must be tcgen05.mma or wgmma.mma_async, got tcgen05.mma+fma; {LEFT_OUT}",
        ),
        (
            MatmulSpec(200, 72, 160, "mxfp8", "mxfp8"),
            "tiling",
            "sm_100a",
            f"{ONE_LOOP}, got another; {LEFT_OUT}",
        ),
        (
            SPEC,
            TILING,
            "sm_80",
            f"MMAs must be tcgen05.mma or wgmma.mma_async, got mma.sync; {LEFT_OUT}",
        ),
    ],
    ids=["no zeros", "twice", "parts of K", "groups of K", "products", "scales", "sm_80"],
)  # fmt: skip
def test_a_kernel_whose_zeros_stay_is_refused(spec, pipeline, target, rule):
    with pytest.raises(CompileError) as refused:
        compile_matmul(spec, target=target, pipeline=f"{pipeline},skip-zeros", until="mlir")
    assert str(refused.value).partition("skip-zeros: ")[2] == rule


EDITS = {
    "too short": (
        "{depth = 32 : i64}",
        "{depth = 16 : i64}",
        "short: the last step must multiply 32 elements along K, got 16; take as many",
    ),
    "nothing": ("{depth = 32 : i64}", "{depth = 0 : i64}", "depth must be positive and below 64"),
    "all": ("{depth = 32 : i64}", "{depth = 64 : i64}", "depth must be positive and below 64"),
    "another step": (
        "arith.constant 2 : index",
        "arith.constant 1 : index",
        "short: last must compare the number of the step with 2, got another value; compare so",
    ),
    "other steps": (
        "arith.cmpi eq, %k",
        "arith.cmpi ne, %k",
        "short: last must compare the number of the step with 2, got another value; compare so",
    ),
    "another counter": (
        "arith.cmpi eq, %k, %c2",
        "arith.cmpi eq, %c2, %c2",
        "short: last must compare the number of the step with 2, got another value; compare so",
    ),
    "another chip": (
        'tile.target = "sm_90a"',
        'tile.target = "sm_80"',
        "short: MMAs must be tcgen05.mma or wgmma.mma_async, got mma.sync; run skip-zeros for "
        "another",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_short_mmas_that_leave_out_more_than_zeros_are_refused(name):
    old, new, rule = EDITS[name]
    pipeline = TILING if name == "another chip" else f"{TILING},{LOADS}"
    text = passed(SPEC, f"{pipeline},skip-zeros")
    assert old in text
    changed = text.replace(old, new)
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError, match=rule):
        check_program(parse_module(changed, "kernel.mlir"))


PAIR = "tiling{tile=128x64x64},tma-insertion,swizzle-selection,clustering{shape=2x1 pair=true}"


@pytest.mark.parametrize("name", ["too short", "nothing", "another step"])
@pytest.mark.parametrize("products", [1, 2])
def test_short_mmas_of_pairs_are_held_to_the_same(name, products):
    old, new, rule = EDITS[name]
    spec = MatmulSpec(256, 64, 152, products=products)
    text = passed(spec, f"{PAIR},skip-zeros", "sm_100a")
    assert old in text and ("short_pair_mma", "short_dual_pair_mma")[products - 1] in text
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError, match=rule):
        check_program(parse_module(text.replace(old, new), "kernel.mlir"))


def test_pairs_that_leave_zeros_out_are_refused_where_there_are_none():
    text = passed(SPEC, f"{TILING},{LOADS},skip-zeros")
    changed = text.replace('"tile.short_mma"', '"tile.short_pair_mma"')
    with lent_context(), ir.Location.unknown(), pytest.raises(CompileError, match="acc must be"):
        check_program(parse_module(changed, "kernel.mlir"))


def test_an_mma_may_multiply_some_of_the_zeros():
    text = passed(SPEC, f"{ROLES},skip-zeros")
    assert "{depth = 32" in text
    text = text.replace("{depth = 32", "{depth = 48")
    with lent_context(), ir.Location.unknown():
        check_program(parse_module(text, "kernel.mlir"))


@pytest.mark.parametrize(("k", "left"), [(152, 2), (136, 1), (24, 2), (176, 3)])
def test_the_last_step_has_as_many_instructions_as_elements_need(k, left):
    spec = MatmulSpec(64, 32, k)
    pipeline = f"tiling{{tile=64x32x64}},{LOADS},pipelining{{stages=2}},warp-specialization"
    ptx = compile_matmul(spec, target="sm_90a", pipeline=f"{pipeline},skip-zeros", until="ptx").ptx
    groups = [part.count("wgmma.mma_async") for part in ptx.split("wgmma.fence.sync")[1:]]
    assert left in groups
    assert set(groups) <= {left, 4}
