"""Of a module for any M, comparisons of sizes are dropped, and every other one is left."""

import pytest

from tilewright.compiler.importers.torch_rows import without_comparisons

SIZES = """
    %dim = tensor.dim %arg0, %c0 : tensor<?x40xbf16>
    %dim_0 = tensor.dim %arg1, %c0 : tensor<?x40xbf16>
"""
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
    left_over = without_comparisons(before + compared(left, right, kind))
    assert left_over.split() == ["return"]


@pytest.mark.parametrize(("left", "right"), [("1", "c40"), ("arg2", "2"), ("arg2", "c40")])
def test_what_is_compared_with_a_size_stays(left, right):
    text = SIZES + CASTS + compared(left, right, "i64")
    assert compared(left, right, "i64") in without_comparisons(text)
