"""Pieces that are loaded ahead of a store are refused where the store reads others."""

from pathlib import Path

import pytest

from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.dialects.errors import CompileError

KERNEL = Path(__file__).parent / "epilogue_staging" / "ahead.mlir"
RULES = {
    "another tile": (
        ("%4#0, %4#1) {pieces", "%4#0, %4#0) {pieces"),
        "must load the tile that the store stores, got another place",
    ),
    "too few pieces": (
        ("{pieces = 4", "{pieces = 3"),
        "must load 128x16 in 4 pieces, as the store, got 128x16 in 3",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_load_ahead_that_is_not_the_stores_is_refused(name):
    (old, new), wanted = RULES[name]
    passes = "epilogue-staging{columns=16 ahead=2}"
    text = run_passes_on_text(KERNEL.read_text(), "kernel.mlir", passes, long=True)
    lines = [
        line.replace(old, new) if "tile.load_ahead" in line else line for line in text.splitlines()
    ]
    assert lines != text.splitlines()
    with pytest.raises(CompileError) as error:
        run_passes_on_text("\n".join(lines), "kernel.mlir", "swizzle-selection")
    assert f"tile.load_ahead: ahead: {wanted}" in str(error.value)
