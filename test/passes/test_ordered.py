"""What a kernel, and a module, may say of groups of K that are computed in an order."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError

OF_K = {"a_major": "m", "b_major": "n", "group_axis": "k"}
SPEC = MatmulSpec(200, 40, 300, groups=3, ordered=True, **OF_K)
PIPELINE = "tiling{tile=64x64x64},tma-insertion,pipelining{stages=2},warp-specialization"


@pytest.fixture(scope="module")
def kernel():
    how = {"stop_after": "warp-specialization", "until": "mlir"}
    return compile_matmul(SPEC, target="sm_90a", pipeline=PIPELINE, **how).mlir


def refusal(text, tmp_path, pipeline="persistence"):
    path = tmp_path / "edited.mlir"
    path.write_text(text)
    with pytest.raises(CompileError) as refused:
        compile_matmul(path, target="sm_90a", pipeline=pipeline, until="mlir")
    return str(refused.value)


@pytest.mark.parametrize(
    ("numbers", "rule"),
    [
        (
            "2xi32",
            "depth: must take 3 groups in an order that the kernel takes, got memref<2xi32, 1>",
        ),
        ("3xi64", "tile.ordered_batch: order must be a vector of i32, got memref<3xi64, 1>"),
    ],
)
def test_an_order_that_is_not_of_the_groups_is_refused(kernel, numbers, rule, tmp_path):
    text = kernel.replace("%order: memref<3xi32, 1>", f"%order: memref<{numbers}, 1>")
    lines = [
        line.replace("memref<3xi32, 1>", f"memref<{numbers}, 1>")
        if '"tile.ordered_batch"(' in line
        else line
        for line in text.splitlines()
    ]
    assert rule in refusal("\n".join(lines), tmp_path)


def test_all_agents_take_the_groups_in_one_order(tmp_path):
    how = {"stop_after": "persistence", "until": "mlir", "target": "sm_90a"}
    lines = compile_matmul(SPEC, pipeline=PIPELINE + ",persistence", **how).mlir.splitlines()
    found = [n for n, line in enumerate(lines) if '"tile.ordered_batch"(' in line]
    assert len(found) == 2
    edited = lines[found[1]].replace("tile.ordered_batch", "tile.batch").replace(", %order)", ")")
    lines[found[1]] = edited.replace("(index, memref<3xi32, 1>)", "(index)")
    rule = "stacks: all agents must take matrices in one order, got another than the first"
    assert rule in refusal("\n".join(lines), tmp_path, "assign-threads")


def test_an_order_of_matrices_of_a_stack_is_refused(tmp_path):
    spec = MatmulSpec(200, 40, 72, batch=3)
    how = {"stop_after": "tiling", "until": "mlir"}
    text = compile_matmul(spec, target="sm_90a", pipeline="tiling{tile=64x64x64}", **how).mlir
    text = text.replace("%c: memref", "%e0: memref<3xi32, 1>, %c: memref", 1)
    text = text.replace('"b", "c"]', '"b", "e0", "c"]')
    text = text.replace('"tile.batch"(%i)', '"tile.ordered_batch"(%i, %e0)')
    text = text.replace(
        "} : (index) -> (index, index)", "} : (index, memref<3xi32, 1>) -> (index, index)"
    )
    rule = "stacks: an order must be that of groups of K, got that of other matrices; take"
    assert rule in refusal(text, tmp_path, "tma-insertion")


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (
            "%order: tensor<3xi32>",
            "%order: tensor<4xi32>",
            "tile.ordered_matmul: order must be tensor<3xi32>, got tensor<4xi32>",
        ),
    ],
)
def test_products_in_the_order_of_others_are_refused(old, new, rule, tmp_path):
    text = SPEC.mlir_text().replace(old, new)
    text = text.replace("tensor<3xi32>) -> tensor<3x200", "tensor<4xi32>) -> tensor<3x200")
    assert rule in refusal(text, tmp_path, "tiling")


def test_a_product_of_grouped_rows_has_no_order():
    rule = "spec: ordered must be False where no K is grouped, got True; leave it out"
    with pytest.raises(CompileError) as refused:
        MatmulSpec(200, 40, 72, groups=3, ordered=True)
    assert str(refused.value) == f"error: {rule}"
