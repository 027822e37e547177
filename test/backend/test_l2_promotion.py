"""How much of a row of an operand L2 asks DRAM for at once, as the launch's tensor maps say."""

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.spec import MatmulSpec

TEXT = "tiling{tile=64x32x64},tma-insertion,swizzle-selection"


def promotions(spec, target="sm_90a", text=TEXT):
    """By tensor; the spec is compiled as far as its launch."""
    compiled = compile_matmul(spec, target=target, pipeline=text, stop_after="lower-to-nvvm")
    maps = [each for each in compiled.manifest["parameters"] if each["kind"] == "tensor_map"]
    return {each["tensor"]: each["l2_promotion"] for each in maps}


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_two_lines_of_an_operand_that_is_read_once(target):
    assert promotions(MatmulSpec(64, 256, 128), target) == {"a": "128B", "b": "256B"}
    assert promotions(MatmulSpec(256, 32, 128), target) == {"a": "256B", "b": "128B"}
    assert promotions(MatmulSpec(65, 256, 128), target) == {"a": "128B", "b": "128B"}


def test_one_line_where_rows_start_inside_lines():
    assert promotions(MatmulSpec(64, 256, 136)) == {"a": "128B", "b": "128B"}


def test_exchanged_operands_keep_their_names():
    text = TEXT.replace("64x32x64", "64x32x64 swap=true")
    assert promotions(MatmulSpec(32, 256, 128), text=text) == {"a": "128B", "b": "256B"}
    assert promotions(MatmulSpec(33, 256, 128), text=text) == {"a": "128B", "b": "128B"}


def test_rows_of_columns_are_as_before():
    assert promotions(MatmulSpec(64, 256, 128, b_major="n")) == {"a": "128B", "b": "128B"}


def test_a_launch_says_the_rows_of_a_range():
    few = MatmulSpec(64, 256, 128, dynamic_m=True, least_m=1, most_m=64)
    assert promotions(few)["b"] == "256B"
    assert promotions(MatmulSpec(64, 256, 128, dynamic_m=True))["b"] == "128B"
