"""Kernels whose threads multiply by themselves are right for every tile, layout and edge."""

from dataclasses import replace

import pytest

from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import TARGETS

# A thread an element, of whole warps and of parts of one; a tile of C each, in warps of 4x8 threads
# and in lines of 32; tiles that divide nothing.
TILES = ("16x16x8", "3x3x3", "32x64x16", "7x5x11")
OPERANDS = ("tiles", "whole", "global")
SHAPES = ((2, 2, 2), (9, 9, 9), (20, 33, 13))


@pytest.mark.sweep(8)
@pytest.mark.array(
    tile=TILES,
    operands=OPERANDS,
    a_major="km",
    b_major="kn",
    shape=SHAPES,
    target=("sm_100a", "sm_90a"),
)
def test_threads_multiply_in_any_tile(
    check_matmul, tile, operands, a_major, b_major, shape, target
):
    spec = MatmulSpec(*shape, a_major=a_major, b_major=b_major, c_dtype="f32")
    pipeline = f"tiling{{tile={tile} mma=fma operands={operands}}}"
    check_matmul(spec, pipeline=pipeline, target=target, stop_after="tiling")


@pytest.mark.sweep(16)
@pytest.mark.array(
    force=("none", "32B", "64B", "128B"),
    a_major="km",
    b_major="kn",
    threads=(128, 256),
)
def test_threads_read_every_swizzle(check_matmul, force, a_major, b_major, threads):
    spec = MatmulSpec(40, 33, 72, a_major=a_major, b_major=b_major)
    tiling = f"tiling{{tile=64x64x64 mma=fma threads={threads}}}"
    check_matmul(spec, pipeline=f"{tiling},swizzle-selection{{force={force}}}")


@pytest.mark.sweep(16)
@pytest.mark.array(
    preset=("puzzle-naive", "puzzle-shared", "puzzle-tiled", "puzzle-async", "puzzle-registers"),
    target=tuple(TARGETS),
    shape=((2, 2, 2), (9, 9, 9), (5, 7, 11)),
    dtype=("f32", "bf16", "f64", "f16"),
    b_major="kn",
)
def test_the_puzzles_kernels_are_right_on_every_chip(
    check_matmul, preset, target, shape, dtype, b_major
):
    spec = replace(MatmulSpec.of_type(*shape, dtype), b_major=b_major)
    check_matmul(spec, preset=preset, target=target)


@pytest.mark.sweep(8)
@pytest.mark.array(
    stages=(1, 2, 3),
    k=(1, 16, 17, 48, 70),
    a_major="km",
    dtype=("f32", "f64"),
)
def test_rings_of_any_depth_take_any_number_of_steps(check_matmul, stages, k, a_major, dtype):
    spec = replace(MatmulSpec.of_type(33, 20, k, dtype), a_major=a_major)
    tiling = "tiling{tile=32x32x16 mma=fma threads=64}"
    passes = f"{tiling},copy-insertion,swizzle-selection,pipelining{{stages={stages}}}"
    check_matmul(spec, pipeline=passes, target="sm_80", seed=k)
