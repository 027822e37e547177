"""Of a module for any M, comparisons of sizes are dropped, and every other one is left."""

import pytest

from tilewright.compiler.importers.compared_sizes import without_comparisons
from tilewright.dialects.errors import CompileError

SIZES = """
    %dim = tensor.dim %arg0, %c0 : tensor<?x40xbf16>
    %dim_0 = tensor.dim %arg1, %c0 : tensor<?x40xbf16>
"""
ONE = {(0, 0): "m", (1, 0): "m"}
CASTS = """
    %1 = arith.index_cast %dim : index to i64
    %2 = arith.index_cast %dim_0 : index to i64
"""


def compared(left: str, right: str, kind: str) -> str:
    return (
        f"    %3 = arith.cmpi eq, %{left}, %{right} : {kind}\n"
        '    cf.assert %3, "mismatched sizes"\n'
        "    return\n"
    )


@pytest.mark.parametrize(
    ("before", "left", "right", "kind"),
    [(SIZES, "dim", "dim_0", "index"), (SIZES + CASTS, "1", "2", "i64")],
)
def test_sizes_that_are_one_number_are_not_compared(before, left, right, kind):
    left_over = without_comparisons(before + compared(left, right, kind), ONE)
    assert left_over.split() == ["return"]


@pytest.mark.parametrize(("left", "right"), [("1", "c40"), ("arg2", "2"), ("arg2", "c40")])
def test_what_is_compared_with_a_size_stays(left, right):
    text = SIZES + CASTS + compared(left, right, "i64")
    assert compared(left, right, "i64") in without_comparisons(text, ONE)


MADE = """
    %dim = tensor.dim %arg0, %c0 : tensor<?x?x72xbf16>
    %dim_1 = tensor.dim %arg0, %c1 : tensor<?x?x72xbf16>
    %dim_2 = tensor.dim %arg1, %c0 : tensor<?x40x72xbf16>
    %0 = tensor.empty(%dim_2, %dim_1) : tensor<?x72x?xbf16>
    %turned = linalg.transpose ins(%arg0 : tensor<?x?x72xbf16>) outs(%0 : tensor<?x72x?xbf16>) permutation = [0, 2, 1]
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x72x?xbf16>) -> tensor<?x72x?xbf16>
    %2 = arith.muli %dim, %dim_1 : index
    %3 = tensor.empty(%2) : tensor<?x72xbf16>
    %dim_3 = tensor.dim %turned, %c0 : tensor<?x72x?xbf16>
    %dim_4 = tensor.dim %turned, %c2 : tensor<?x72x?xbf16>
    %dim_5 = tensor.dim %1, %c0 : tensor<?x72x?xbf16>
    %dim_6 = tensor.dim %1, %c2 : tensor<?x72x?xbf16>
    %dim_7 = tensor.dim %3, %c0 : tensor<?x72xbf16>
    %dim_8 = tensor.dim %1, %c1 : tensor<?x72x?xbf16>
    %9 = arith.index_cast %dim_5 : index to i64
"""  # noqa: E501
BOTH = {(0, 0): "b", (0, 1): "m", (1, 0): "b"}
SAME = [("dim", "dim_2"), ("dim_2", "dim_3"), ("dim_1", "dim_4"), ("dim", "dim_5")]
SAME += [("dim_6", "dim_1"), ("dim_4", "dim_6"), ("9", "dim_2")]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_sizes_of_one_dim_are_not_compared(left, right):
    """Through transposes, what is written and what is empty."""
    text = MADE + compared(left, right, "index")
    assert "cf.assert" not in without_comparisons(text, BOTH)


@pytest.mark.parametrize(
    ("left", "right", "got"),
    [
        ("dim", "dim_1", "b and m"),
        ("dim_3", "dim_4", "b and m"),
        ("dim_6", "dim_5", "m and b"),
        ("dim_1", "dim_7", "m and one of no Dim"),
        ("2", "dim", "one of no Dim and b"),
        ("dim_8", "dim_8", "one of no Dim and one of no Dim"),
    ],
)
def test_sizes_of_two_dims_are_not_taken_for_one(left, right, got):
    with pytest.raises(
        CompileError, match=f"sizes that are compared must be of one Dim, got {got};"
    ):
        without_comparisons(MADE + compared(left, right, "index"), BOTH)
