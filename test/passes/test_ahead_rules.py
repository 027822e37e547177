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


HELD = Path(__file__).parent / "epilogue_staging" / "held.mlir"
TYPE = ": (memref<256xbf16, 1>, index, index) -> ()"
READ = f'"tile.read_ahead"(%bias, %i, %j) {{axes = "n"}} {TYPE}'
ONE_STORE = (
    "one store by TMA of its tile, beside it and after it, must read what is read ahead once"
)


def moved_behind(text):
    """The read stands behind the store."""
    head, tail = text.replace(READ, "").split("}) {write = ")
    store, rest = tail.split("\n", 1)
    return "\n".join([f"{head}}}) {{write = {store}", READ, rest])


READS = {
    "twice": (lambda text: text.replace(READ, READ + READ), f"{ONE_STORE}, got 1 that do and 2"),
    "another tile": (
        lambda text: text.replace(READ, READ.replace("%i, %j", "%j, %i")),
        f"{ONE_STORE}, got 0 that do and 1",
    ),
    "other axes": (
        lambda text: text.replace(READ, READ.replace('"n"', '"m"')),
        f"{ONE_STORE}, got 0 that do and 1",
    ),
    "behind the store": (moved_behind, f"{ONE_STORE}, got 0 that do and 1"),
    "tensor memory": (
        lambda text: text.replace("sm_90a", "sm_100a"),
        "threads read vectors ahead where warpgroups hold the sums, got sm_100a; drop it",
    ),
}


@pytest.mark.parametrize("name", READS)
def test_vectors_are_read_once_for_a_store_of_their_tile(name):
    change, wanted = READS[name]
    passes = "epilogue-staging{columns=32 vectors=registers}"
    text = run_passes_on_text(HELD.read_text(), "kernel.mlir", passes)
    assert READ in text and change(text) != text
    with pytest.raises(CompileError) as error:
        run_passes_on_text(change(text), "kernel.mlir", "swizzle-selection")
    assert f"tile.read_ahead: ahead: {wanted}" in str(error.value)


def test_what_is_held_is_read_when_loops_are_written_out():
    text = HELD.read_text().replace(
        '"tile.element"(%all) {axes = ""} : (memref<f32, 1>)',
        '"tile.held_element"(%all, %x) {axes = ""} : (memref<f32, 1>, f32)',
    )
    with pytest.raises(
        CompileError, match="must read views before expand-loops, got what is held; read a view"
    ):
        run_passes_on_text(text, "kernel.mlir", "epilogue-staging")


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
