"""What a kernel may say of groups of rows, one row for each rule that it can break."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError


@pytest.fixture(scope="module")
def kernel():
    spec, pipeline = MatmulSpec(300, 40, 72, groups=3), "tiling{tile=128x64x64}"
    return compile_matmul(spec, pipeline=pipeline, stop_after="tiling", until="mlir").mlir


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "extent = 300 : i64",
            "extent = 299 : i64",
            "groups: must cut the 300 rows of c by offsets that the kernel takes, got 299; fix it",
        ),
        (
            "tile = 128 : i64",
            "tile = 64 : i64",
            "groups: 7 places by whole clusters of 1 must be among the 5 along M, got 1 together; "
            "launch more CTAs, or change together",
        ),
        (
            '"tile.group"(%i,',
            '"tile.group"(%j,',
            "tiles: must store to the M place of its tile, got another index; fix it",
        ),
        (
            "(%a, %group#2, %group#3)",
            "(%a, %group#1, %group#3)",
            "groups: must take the rows of a tile.group, got others; fix it",
        ),
        (
            '"tile.matrix"(%b, %group#0)',
            '"tile.matrix"(%b, %group#1)',
            "groups: must take the group of a tile.group, got another index; fix it",
        ),
    ],
)
def test_tiles_that_are_not_those_of_the_groups_are_refused(kernel, old, new, rule, tmp_path):
    assert old in kernel, kernel
    path = tmp_path / "edited.mlir"
    path.write_text(kernel.replace(old, new))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, pipeline="tma-insertion", until="mlir")
    assert rule in str(refused.value)
