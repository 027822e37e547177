"""What a kernel may say of stacks of matrices, one row for each rule that it can break."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "tiles = 3 : i64",
            "tiles = 4 : i64",
            "stacks: 2 matrices of 4 tiles must be the 6 along M, by whole clusters of 1, got "
            "another number; change tiles",
        ),
        (
            '"tile.batch"(%i)',
            '"tile.batch"(%j)',
            "tiles: must store to the M place of its tile, got another index; store there",
        ),
    ],
)
def test_tiles_that_are_not_those_of_the_matrices_are_refused(old, new, rule, tmp_path):
    spec, pipeline = MatmulSpec(300, 40, 72, batch=2), "tiling{tile=128x64x64}"
    text = compile_matmul(spec, pipeline=pipeline, stop_after="tiling", until="mlir").mlir
    assert old in text
    path = tmp_path / "edited.mlir"
    path.write_text(text.replace(old, new))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, pipeline="tma-insertion", until="mlir")
    assert rule in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "count = -1 : i64",
            "count = 2 : i64",
            "stacks: 2 matrices of 3 tiles must be the -1 along M, by whole clusters of 1, got "
            "another number; change tiles",
        ),
        (
            "grid = [-1, 1, 1]",
            "grid = [6, 1, 1]",
            "stacks: -1 matrices of 3 tiles must be the 6 along M, by whole clusters of 1, got "
            "another number; change tiles",
        ),
        (
            "grid = [-1, 1, 1]",
            "grid = [3, -1, 1]",
            "stacks: -1 matrices of 3 tiles must be the 3 along M, by whole clusters of 1, got "
            "another number; change tiles",
        ),
        ("count = -1 : i64", "count = 0 : i64", "tiles and count must be at least 1, got 3 and 0"),
    ],
)
def test_tiles_of_any_number_of_matrices_that_are_not_theirs_are_refused(old, new, rule, tmp_path):
    spec = MatmulSpec(300, 40, 72, batch=2, dynamic_batch=True)
    pipeline = "tiling{tile=128x64x64}"
    text = compile_matmul(spec, pipeline=pipeline, stop_after="tiling", until="mlir").mlir
    assert old in text
    path = tmp_path / "edited.mlir"
    path.write_text(text.replace(old, new))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, pipeline="tma-insertion", until="mlir")
    assert rule in str(refused.value)
