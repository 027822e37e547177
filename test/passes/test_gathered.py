"""What a kernel, and a module, may say of rows that are gathered by their numbers."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

SPEC = MatmulSpec(300, 40, 72, groups=3, gathered=50)


@pytest.fixture(scope="module")
def kernel():
    return compile_matmul(SPEC, pipeline="tiling", stop_after="tiling", until="mlir").mlir


def refusal(text, tmp_path, pipeline="tma-insertion"):
    path = tmp_path / "edited.mlir"
    path.write_text(text)
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, pipeline=pipeline, until="mlir")
    return str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            '"tile.gathered_rows"(%a, %group#2, %group#3, %rows)',
            '"tile.gathered_rows"(%a, %group#1, %group#3, %rows)',
            "groups: must take the rows of a tile.group, got others; take its results",
        ),
        (
            '"tile.group_rows"(%c, %group#2, %group#3) : (memref<300x40xbf16, 1>, index, index)',
            '"tile.gathered_rows"(%c, %group#2, %group#3, %rows) : (memref<300x40xbf16, 1>, index, '
            "index, memref<300xi32, 1>)",
            "groups: must gather rows of a, "
            "got those of memref<300x40xbf16, 1>; take the view of a",
        ),
        (
            "%group#3, %rows) : (memref<50x72xbf16, 1>, index, index, memref<300xi32, 1>) -> "
            "memref<300x72xbf16, 1>",
            "%group#3, %offsets) : (memref<50x72xbf16, 1>, index, index, memref<3xi32, 1>) -> "
            "memref<3x72xbf16, 1>",
            "groups: must gather by 300 numbers that the kernel takes, got memref<3xi32, 1>; "
            "take the argument that has them",
        ),
        (
            "memref<300xi32, 1>) -> memref<300x72xbf16, 1>",
            "memref<300xi32, 1>) -> memref<50x72xbf16, 1>",
            "tile.gathered_rows: must give memref<300x72xbf16, 1>, got memref<50x72xbf16, 1>",
        ),
        (
            "memref<300xi32, 1>",
            "memref<300xi64, 1>",
            "tile.gathered_rows: rows must be a vector of i32, got memref<300xi64, 1>",
        ),
    ],
)
def test_rows_that_are_not_those_of_the_numbers_are_refused(kernel, old, new, rule, tmp_path):
    assert old in kernel, kernel
    edited = kernel.replace(old, new)
    if "memref<50x72xbf16, 1>" in new.rpartition("->")[2]:  # and what loads them
        edited = edited.replace("%gathered_rows, %group#1, %k) : (memref<300", "…")
        edited = edited.replace("…", "%gathered_rows, %group#1, %k) : (memref<50")
    if "memref<3x72xbf16, 1>" in new:
        edited = edited.replace("%k) : (memref<300x72", "%k) : (memref<3x72")
    assert rule in refusal(edited, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "tensor<300xi32>",
            "tensor<300x1xi32>",
            "tile.gathered_matmul: rows must be a vector of i32, got tensor<300x1xi32>",
        ),
        (
            "tensor<300xi32>",
            "tensor<299xi32>",
            "tile.gathered_matmul: c must be 299x40, got [300, 40]",
        ),
    ],
)
def test_products_of_other_rows_than_the_numbers_say_are_refused(old, new, rule, tmp_path):
    assert rule in refusal(SPEC.mlir_text().replace(old, new), tmp_path, "tiling")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"gathered": -1}, "gathered must be 0 to 2147483647, got -1"),
        (
            {"groups": 0},
            "gathered must be 0 where no rows are grouped, got 50; take one group",
        ),
        (
            {"group_axis": "k", "a_major": "m", "b_major": "n"},
            "gathered must be 0 where no rows are grouped, got 50; take one group",
        ),
    ],
)
def test_specs_that_gather_no_rows_are_refused(fields, rule):
    given = {"groups": 3, "gathered": 50, **fields}
    with pytest.raises(CompileError) as refused:
        MatmulSpec(300, 40, 72, **given)
    assert str(refused.value) == f"error: spec: {rule}"


GATHER = "tiling{tile=128x64x64},tma-insertion,swizzle-selection,pipelining{stages=2}"


@pytest.fixture(scope="module")
def by_fours():
    how = {"stop_after": "swizzle-selection", "until": "mlir", "target": "sm_100a"}
    return compile_matmul(SPEC, pipeline=GATHER, **how).mlir


def test_tma_gathers_rows_by_fours_where_it_can(by_fours):
    assert by_fours.count('"tile.tma_gather"') == 1 and '"tile.copy"' not in by_fours
    assert '!tile.map<bf16, [72, 50], [144], [64, 1], "128B">' in by_fours
    how = {"pipeline": GATHER, "until": "ptx"}
    assert "tile::gather4" in compile_matmul(SPEC, target="sm_100a", **how).ptx
    assert "tile::gather4" not in compile_matmul(SPEC, target="sm_90a", **how).ptx


@pytest.mark.parametrize(
    ("spec", "pipeline"),
    [
        (SPEC, GATHER.replace("swizzle-selection", "swizzle-selection{force=none}")),
        (MatmulSpec(300, 40, 71, groups=3, gathered=50), GATHER),
        (
            SPEC,
            GATHER.replace("tma-insertion", "copy-insertion").replace(
                "tiling{", "tiling{mma=mma.sync "
            ),
        ),
    ],
)
def test_threads_gather_the_others(spec, pipeline):
    how = {"stop_after": "swizzle-selection", "until": "mlir", "target": "sm_100a"}
    text = compile_matmul(spec, pipeline=pipeline, **how).mlir
    assert '"tile.copy"(%gathered_rows' in text and '"tile.tma_gather"' not in text


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "[64, 1]",
            "[64, 4]",
            "tile.tma_gather: the box must be [64, 1] with 128B, got [64, 4] with 128B",
        ),
        (
            "[72, 50]",
            "[72, 300]",
            "views: the tensor map of memref<50x72xbf16, 1> must have dims [72, 50] and strides",
        ),
    ],
)
def test_maps_that_are_not_of_rows_are_refused(by_fours, old, new, rule, tmp_path):
    path = tmp_path / "edited.mlir"
    path.write_text(by_fours.replace(old, new))
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, target="sm_100a", pipeline="pipelining{stages=2}", until="mlir")
    assert rule in str(refused.value)
