"""Marks that no launch could tell apart are refused."""

from pathlib import Path

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

KERNEL = Path(__file__).parent / "instrument" / "places.mlir"
PASSES = "tma-insertion,pipelining{stages=2},warp-specialization,persistence{ctas=2},instrument"
RULES = {
    "the same column": ("column = 8", "column = 7", "marks: each place has a column, got two of 7"),
    "two clocks": (
        'place = "start", unit = "cycles"',
        'place = "start", unit = "nanoseconds"',
        "marks: all tell one clock, got two units; take one",
    ),
    "too few rows": (
        "memref<2x9xi32, 1>",
        "memref<1x9xi32, 1>",
        "marks: must have a row for each of 2 CTAs, got 1; resize it",
    ),
    "another name": (
        '"marks"',
        '"e0"',
        "marks: must write to the input 'marks', got another view; name it so",
    ),
    "a column beyond": ("column = 8", "column = 9", "column must be below 9, got 9"),
    "an unknown time": ('keep = "last"', 'keep = "mean"', "keep must be one of ('first', 'last')"),
    "an unknown clock": ('unit = "cycles"', 'unit = "hours"', "unit must be one of ('cycles',"),
    "floats": ("memref<2x9xi32, 1>", "memref<2x9xf32, 1>", "marks must be rows of i32, got"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_mark_that_nobody_could_read_is_refused(name):
    old, new, wanted = RULES[name]
    text = run_passes_on_text(KERNEL.read_text(), "kernel.mlir", PASSES)
    assert old in text
    with pytest.raises(CompileError) as error:
        run_passes_on_text(text.replace(old, new), "kernel.mlir", "lower-to-nvvm")
    assert f"tile.mark: {wanted}" in str(error.value)
