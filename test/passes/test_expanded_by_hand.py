"""Kernels whose loops over tiles are written out, changed by hand: refused at the op."""

import functools
from pathlib import Path

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.importers.linalg_text import LinalgText
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

RESIDUAL = Path(__file__).parent.parent / "fuzz" / "op_sources" / "residual.mlir"
TMA = "tiling{tile=128x64x64},tma-insertion"
AHEAD = f"{TMA},swizzle-selection,epilogue-staging{{ahead=2}},pipelining{{stages=2}}"
KERNELS = {
    "lanes": (MatmulSpec(1, 64, 128), None, "expand-loops"),
    "claims": (
        MatmulSpec(256, 128, 96),
        f"{TMA},warp-specialization,persistence{{scheduler=clc}}",
        "pipes-to-barriers",
    ),
    "ahead": (LinalgText(RESIDUAL.read_text(), "r.mlir"), AHEAD, "expand-loops"),
}


@functools.cache
def text_of(name):
    source, pipeline, last = KERNELS[name]
    target = "sm_100a" if name == "claims" else "sm_90a"
    how = {"pipeline": pipeline, "stop_after": last, "until": "mlir"}
    return compile_matmul(source, target=target, **how).mlir


@pytest.mark.parametrize(
    ("name", "old", "new", "rule"),
    [
        (
            "lanes",
            'tile.mma_unit = "fma", ',
            "",
            "views: threads that multiply by themselves read them, got wgmma.mma_async; load tiles",
        ),
        (
            "lanes",
            "number = 0",
            "number = 1",
            "sums: number must be below the 1 rows that a thread has, got 1; read one of them",
        ),
        (
            "claims",
            '"sm.slot_address"(%slot)',
            '"sm.slot_address"(%slots_0)',
            "slots: must be of a slot that sm.slot gives, got that of sm.slot_memory; take a slot",
        ),
        (
            "claims",
            "grid = [2, 2, 1]",
            "grid = [-1, 2, 1]",
            "tiles: a launch says the grid of a dynamic M or batch, got c of memref<256x128xbf16,",
        ),
        (
            "claims",
            "grid = [2, 2, 1]",
            "grid = [2, 2, 65536]",
            "a grid can have 65535 CTAs along z, got 65536",
        ),
        (
            "ahead",
            "{extents = [128, 64]}",
            "{extents = [128, 64.0]}",
            "attributes: extents must be of i64, got 6.400000e+01 : f64; write a number",
        ),
        (
            "ahead",
            '"tile.await_piece"(%ahead_ring)',
            '"tile.await_piece"(%staging_ring)',
            "ahead: the ring must have barriers, got that of sm.staging; take that of the loads",
        ),
    ],
)
def test_what_the_lowering_cannot_mean_is_refused(name, old, new, rule):
    text = text_of(name)
    assert old in text
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text.replace(old, new, 1), "k.mlir", "lower-to-nvvm")
    assert rule in str(caught.value)
    assert caught.value.location
