"""Staged stores: every width of a piece, every way to write it, every place in the pipeline."""

from pathlib import Path

import pytest

from tilewright.compiler.spec import MatmulSpec

pytestmark = pytest.mark.pairwise

ELEMENT_BYTES = {"bf16": 2, "f16": 2, "f32": 4}
TMA = "tma-insertion,swizzle-selection"
LATER = ("clustering", "pipelining{stages=3}", "warp-specialization", "persistence{scheduler=clc}")
INPUTS = Path(__file__).parents[1] / "inputs"


@pytest.mark.sweep(6)
@pytest.mark.array(rows=[64, 128, 192, 256], c_dtype=ELEMENT_BYTES, piece_bytes=[16, 32, 64, 128])
def test_every_width_of_a_piece(check_matmul, rows, c_dtype, piece_bytes):
    columns = piece_bytes // ELEMENT_BYTES[c_dtype]
    text = f"tiling{{tile={rows}x64x32}},{TMA},epilogue-staging{{columns={columns} buffers=3}}"
    check_matmul(MatmulSpec(rows + 8, 72, 48, c_dtype=c_dtype), pipeline=text)


@pytest.mark.sweep(6)
@pytest.mark.array(
    buffers=(1, 2, 4),
    write=("rows", "matrices"),
    tile=("64x96x32", "128x160x32", "256x64x32"),
    rest=("", ",warp-specialization,persistence"),
)
def test_both_ways_to_write_with_any_number_of_buffers(check_matmul, buffers, write, tile, rest):
    staging = f"epilogue-staging{{columns=16 buffers={buffers} write={write}}}"
    text = f"tiling{{tile={tile}}},{TMA},{staging}"
    check_matmul(MatmulSpec(136, 168, 40), pipeline=text + rest, seed=buffers)


@pytest.mark.sweep(6)
@pytest.mark.array(1, place=range(len(LATER) + 1), name=["scale_bias_residual_swish", "bias_relu"])
def test_staging_may_run_anywhere_after_tma_insertion(check_matmul, place, name):
    passes = [*LATER[:place], "epilogue-staging", *LATER[place:]]
    check_matmul(INPUTS / f"{name}.mlir", pipeline=",".join(["tiling", TMA, *passes]), seed=place)


@pytest.mark.sweep(6)
@pytest.mark.array(
    shape=("2x1", "1x2", "4x1", "2x3"),
    staging=("", ",epilogue-staging"),
    pair=("auto", "false"),
    tiles=("one", "nine"),
)
def test_a_cluster_may_hang_over_the_edge_of_whole_tiles(check_matmul, shape, staging, pair, tiles):
    text = f"tiling{{tile=128x64x64}},{TMA}{staging},clustering{{shape={shape} pair={pair}}}"
    if tiles == "one":
        check_matmul(MatmulSpec(128, 64, 64), pipeline=text)
    else:
        check_matmul(MatmulSpec(384, 192, 64), pipeline=f"{text},warp-specialization,persistence")


@pytest.mark.sweep(6)
@pytest.mark.parametrize("columns", [8, 16, 40])
@pytest.mark.parametrize("shape", ["1x7", "3x2"])
def test_an_epilogue_reads_nothing_outside_of_its_operands(check_matmul, columns, shape):
    staging = "" if columns == 40 else f",epilogue-staging{{columns={columns}}}"
    tile = "64x80x64" if columns == 16 else "64x40x64"
    text = f"tiling{{tile={tile}}},{TMA}{staging},clustering{{shape={shape} pair=false}}"
    check_matmul(INPUTS / "scale_bias_residual_swish.mlir", pipeline=text)
