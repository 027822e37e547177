"""Boxes whose rows a launch says: what a module of such may not say."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

PASSES = "tiling{tile=64x32x64},tma-insertion,swizzle-selection"


@pytest.fixture(scope="module")
def kernel():
    return left_by("pipes-to-barriers")


def left_by(last: str) -> str:
    spec = MatmulSpec(64, 48, 128, dynamic_m=True)
    how = {"target": "sm_90a", "pipeline": PASSES, "stop_after": last}
    compiled = compile_matmul(spec, until="mlir", **how)
    assert compiled.mlir is not None
    return compiled.mlir


def lowered(text: str):
    return compile_matmul(LinalgText(text, "kernel.mlir", is_file=True), until="ptx")


def test_the_bytes_of_such_boxes_are_expected_by_their_rows(kernel):
    assert "sm.arrive_expect_more" in kernel and "{bytes = 4096 : i64}" in kernel
    assert "mbarrier.arrive.expect_tx" in (lowered(kernel).ptx or "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "{most = 64 : i64}",
            "{most = 32 : i64}",
            "bytes: 'operands.full' gets 4096 + 128 × rows (up to 64) bytes at a slot, got 4096 + "
            "128 × rows (up to 32) expected; expect as many as the loads bring",
        ),
        (
            "{bytes = 4096 : i64}",
            "{bytes = 12288 : i64}",
            "bytes: 'operands.full' gets 4096 + 128 × rows (up to 64) bytes at a slot, got 12288 + "
            "128 × rows (up to 64) expected; expect as many as the loads bring",
        ),
        (
            "arith.muli",
            "arith.xori",
            "bytes: what is expected more must be of tile.box_rows times a number, got another; "
            "multiply them",
        ),
        (
            "{most = 64 : i64}",
            "{most = 300 : i64}",
            "tile.box_rows: most must be 1 to 256, got 300",
        ),
        ("[64, -64]", "[64, -32]", "the box must be [64, 64] or [64, 64, 1], got [64, -32]"),
        ("[64, 32]", "[64, -32]", "box extents must be 1 to 256 elements, got [64, -32]"),
    ],
)
def test_other_bytes_or_rows_are_refused(kernel, old, new, said):
    lines = kernel.split("\n")
    edited = [*lines]
    for mark in ("sm.arrive_expect_more", "!tile.map"):
        first = next(number for number, line in enumerate(lines) if mark in line)
        for number in range(first - 5, first + 2):  # what it is made of, and the map beside it
            edited[number] = lines[number].replace(old, new)
    assert edited != lines
    with pytest.raises(CompileError) as caught:
        lowered("\n".join(edited))
    assert said in str(caught.value)


def test_rows_without_a_bound_are_not_those_of_one_tile():
    """A grid of one tile along M covers a C of any number of rows only where a module bounds it."""
    kernel = left_by("swizzle-selection")
    text = kernel.replace("grid = [-1, 2, 1]", "grid = [1, 2, 1]")
    assert text != kernel
    with pytest.raises(CompileError, match="tiles of 64 must cover c along M, got 1"):
        lowered(text)
    bound = text.replace("module attributes {", "module attributes {tile.rows = [1, 64], ")
    assert lowered(bound).ptx
