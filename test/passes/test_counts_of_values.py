"""What an op says of how many values its fields have is held to its values, at every level."""

import functools

import pytest

from tilewright.compiler.driver import compile_matmul
from tilewright.compiler.pipeline import parse_module
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.context import lent_context
from tilewright.dialects.errors import CompileError
from tilewright.dialects.mlir import ir

SAID = ", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0>"


@functools.cache
def scaled():
    """A kernel of an op with eight operands and a place for one more."""
    spec = MatmulSpec(128, 128, 128, "mxfp8", "mxfp8")
    made = compile_matmul(spec, pipeline="tiling", stop_after="tiling", until="mlir")
    assert made.mlir.count(SAID) == 1
    return made.mlir


def parsed(text):
    with lent_context(), ir.Location.unknown():
        return str(parse_module(text, "kernel.mlir"))


def test_counts_of_its_values_are_read():
    assert SAID in parsed(scaled())


@pytest.mark.parametrize(
    "counts",
    [
        "1, 1, 1, 1, 1, 1, 1, 1, 1",
        "1, 1, 1, 1, 1, 1, 2, 0, 0",
        "1, 1, 1, 1, 1, 1, 1, 2, -1",
        "1, 1, 1, 1, 1, 1, 1, 0, 1",
        "1, 1, 1, 1, 1, 1, 1, 1",
    ],
)
def test_other_counts_are_refused_at_the_op(counts):
    rule = "operandSegmentSizes must say how many of the 8 values each of 9 fields has"
    with pytest.raises(CompileError, match=rf"scaled_mma: attributes: {rule}, got") as refused:
        parsed(scaled().replace(SAID, f", operandSegmentSizes = array<i32: {counts}>"))
    assert refused.value.location == "-:18:7"


def test_counts_of_another_type_are_refused():
    with pytest.raises(CompileError, match="must have attributes and types of their own form"):
        parsed(scaled().replace(SAID, SAID.replace("i32", "i64")))


@pytest.mark.parametrize("name", ["operandSegmentSizes", "resultSegmentSizes"])
def test_counts_that_an_op_does_not_need_are_refused(name):
    text = scaled().replace('"tile.yield"(%0) :', f'"tile.yield"(%0) {{{name} = array<i32: 1>}} :')
    with pytest.raises(CompileError, match=rf"tile\.yield: attributes: nothing reads '{name}'"):
        parsed(text)
