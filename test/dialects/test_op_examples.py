"""Every op has an example in the pages of its dialect, which parses, verifies and holds the op."""

import re
from pathlib import Path

import pytest

from tilewright.compiler.pipeline import parse_module
from tilewright.dialects import pipe, sm, tile
from tilewright.dialects.context import lent_context
from tilewright.dialects.mlir import ir
from tilewright.tools.pages.op_examples import example_of, is_ours

PAGES = Path(__file__).parent.parent.parent / "docs/dialects"
EXAMPLE = re.compile(r"^## `([\w.]+)`$(?:(?!^## ).)*?^```mlir\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPS = {op.OPERATION_NAME for each in (tile.Tile, pipe.Pipe, sm.Sm) for op in each.operations}
WITHOUT = {"tile.narrow_mma", "tile.take_columns"}
"""Ops that `select-instructions` makes and takes away again: no kernel between passes has any."""


def examples() -> dict[str, str]:
    texts = [path.read_text() for path in sorted(PAGES.rglob("*.md"))]
    return {name: example for text in texts for name, example in EXAMPLE.findall(text)}


def test_every_op_has_an_example():
    assert examples().keys() == OPS - WITHOUT


@pytest.mark.parametrize("dialect", ["tile", "pipe", "sm"])
def test_every_example_parses_and_verifies_and_holds_its_op(dialect):
    for name, text in examples().items():
        if name.startswith(f"{dialect}."):
            with lent_context(), ir.Location.unknown():
                module = parse_module(text, name)
                module.operation.verify()
                assert name in {op.name for op in within(module.operation)}, name


def within(operation):
    for region in operation.regions:
        for block in region:
            for op in block:
                yield op.operation
                yield from within(op.operation)


SOURCE = """
func.func @f(%sums: !tile.acc<tensor<64x64xf32>>, %other: i32) {
  %sum = arith.addi %other, %other : i32
  "tile.clear_sums"(%sums) : (!tile.acc<tensor<64x64xf32>>) -> ()
  "tile.finish_sums"(%sums) : (!tile.acc<tensor<64x64xf32>>) -> ()
  return
}
"""


def test_an_example_holds_the_op_and_what_it_takes_alone():
    with lent_context(), ir.Location.unknown():
        module = ir.Module.parse(SOURCE)
        (op,) = [op for op in within(module.operation) if op.name == "tile.clear_sums"]
        before = str(module)
        text = example_of(op)
        assert str(module) == before and is_ours(op.name)
    assert text.splitlines() == [
        "func.func @tile.clear_sums(%acc: !tile.acc<tensor<64x64xf32>>) {",
        '  "tile.clear_sums"(%acc) : (!tile.acc<tensor<64x64xf32>>) -> ()',
        "  return",
        "}",
    ]
