"""What passes take for granted of kernels with block scales is checked of a kernel from a file."""

import re

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import run_passes_on_text
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError


@pytest.fixture(scope="module")
def kernel():
    """An mxfp8 kernel in TMA's slots, as text; K is two tiles and a part."""
    spec = MatmulSpec(256, 200, 288, "mxfp8", "mxfp8")
    pipeline = "tiling{tile=128x96x128},tma-insertion"
    return compile_matmul(spec, pipeline=pipeline, stop_after="tma-insertion", until="mlir").mlir


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"a_scales", "b_scales"',
            '"a_scales", "factors"',
            "tile.kernel: scales: the views after a and b must be ['a_scales', 'b_scales'], got "
            "['a_scales']; rename them",
        ),
        (
            '"tile.tensor_map"(%a_scales)',
            '"tile.tensor_map"(%b_scales)',
            "tile.scaled_mma: views: must take a's tiles from a and b's from b, got a_scales from "
            "b_scales; swap them",
        ),
        *(
            (
                "extent = 288",
                f"extent = {extent}",
                f"tile.scaled_mma: scales: extent must be K, 288, got {extent}; say K",
            )
            for extent in (160, 256, 320, 576)
        ),
        (
            "%b_scales_tile_4, %j, %k)",
            "%b_scales_tile_4, %i, %k)",
            "tile.scaled_mma: scales: j must be the N place of its tile, "
            "got another index; take the store's",
        ),
        (
            "%b_scales_tile_4, %j, %k)",
            "%b_scales_tile_4, %j, %j)",
            "tile.scaled_mma: steps: K steps must follow one another, each by one, got another "
            "order; count K by the loop around",
        ),
        (
            "[256, 6, 2], [256, 1536]",
            "[256, 6, 2], [512, 1536]",
            "tile.tma_load: views: the tensor map of memref<2x3x32x4x4xf8E8M0FNU, 1> must have "
            "dims [256, 6, 2] and strides [256, 1536] of f8E8M0FNU, got [256, 6, 2] and [512, "
            "1536] of f8E8M0FNU",
        ),
    ],
)
def test_a_kernel_that_breaks_a_rule_is_refused(kernel, old, new, message):
    text = kernel.replace(old, new)
    assert text != kernel, kernel
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "-", "swizzle-selection")
    assert caught.value.message == message


def test_tma_brings_no_padding_to_an_mma_that_would_read_it():
    """K of 96 ends within the scales of an MMA of 64: a map in the place of a copy is refused."""
    text = compile_matmul(
        MatmulSpec(128, 64, 128, "nvfp4", "nvfp4"),
        pipeline="tiling,tma-insertion",
        stop_after="tma-insertion",
        until="mlir",
    ).mlir.replace("extent = 128", "extent = 96")
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "-", "swizzle-selection")
    assert caught.value.message == (
        "tile.tma_load: scales: the last mxf4nvf4 of 64 reads what pads the scales of K 96; copy "
        "them by threads, which clear it"
    )


@pytest.fixture(scope="module")
def barriers():
    """An mxfp8 kernel of a ring of three slots, its pipes barriers, as text."""
    spec = MatmulSpec(128, 32, 512, "mxfp8", "mxfp8")
    rings = "tma-insertion,swizzle-selection,pipelining{stages=3},warp-specialization"
    lowering = "assign-threads,plan-memory,expand-loops,pipes-to-barriers"
    pipeline = f"tiling{{tile=128x32x128}},{rings},{lowering}"
    return compile_matmul(
        spec, pipeline=pipeline, stop_after="pipes-to-barriers", until="mlir"
    ).mlir


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            r' *"sm.wait_barrier".*\n( *"sm.fence".*\n *"tile.scaled_mma")',
            r"\1",
            "tile.scaled_mma: visit: scales go to a place of sm.scale_columns once its barrier has "
            "been waited for at that index, got no such wait before; add it",
        ),
        (
            r'( *"tile.scaled_mma".*\n) *"sm.commit".*\n',
            r"\1",
            "sm.barriers: arrivals: 'scales.empty' gets 0 in a phase, got a count of 1; wait for "
            "as many",
        ),
        (
            r'("sm.scale_columns".*end =) \d+',
            r"\1 80",
            "sm.scale_columns: must lie one after the other in the 64 columns, got [32, 36, 80, "
            "176]",
        ),
    ],
)
def test_scales_of_two_steps_share_no_columns(barriers, old, new, message):
    text = re.sub(old, new, barriers)
    assert text != barriers, barriers
    with pytest.raises(CompileError) as caught:
        run_passes_on_text(text, "-", "select-instructions")
    assert caught.value.message == message
