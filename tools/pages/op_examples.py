"""An example of each op: a function that holds it and takes what the op takes.

`test/fuzz/op_examples.py` cuts them out of kernels and writes them to docs/dialects/examples/; the
pages of the dialects show them, with aliases for long types.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...compiler.ir_text import shortened
from ...compiler.value_names import name_values
from ...dialects.mlir import ext, func, ir
from ...dialects.verify import MALFORMED

OURS = ("tile.", "pipe.", "sm.")
BEHIND_MAX = 2
"""How far back an example goes for what its op takes."""
AROUND_MAX = 4
"""Ops around an op that cannot stand alone, as one that ends a region."""
HERE = "example.here"
LINES_MAX = 24
ENDS = ("yield", "return")
_FUNCTION = re.compile(r'^(func\.func @"?([\w.]+)"?\(.*?^})$', re.MULTILINE | re.DOTALL)


def is_ours(name: str) -> bool:
    """Whether an op is of one of our dialects."""
    return name.startswith(OURS)


def example_of(op: ir.Operation) -> str | None:
    """The function, which MLIR has verified; None where no such function can be.

    The op stands there alone, or after the ops whose results it takes, or within the op around it,
    of which no more is left than must be.
    """
    op.attributes[HERE] = ir.UnitAttr.get()
    try:
        return _with_less_and_less(op)
    finally:
        del op.attributes[HERE]


def _with_less_and_less(op: ir.Operation) -> str | None:
    around = op
    for _ in range(AROUND_MAX + 1):
        for depth in range(BEHIND_MAX + 1):
            text = _function(op.name, around, depth)
            if text is not None:
                return text
        if around.parent is None or around.parent.name == "builtin.module":
            return None
        around = around.parent
    return None


@functools.cache
def read_examples(folder: Path) -> dict[str, str]:
    """The examples of a folder by the names of their ops."""
    texts = [path.read_text() for path in sorted(folder.glob("*.mlir"))]
    return {name: whole for text in texts for whole, name in _FUNCTION.findall(text)}


def shown(example: str) -> str:
    """An example as pages show it, which parses and verifies, too."""
    return shortened(example).rstrip()


def _function(name: str, op: ir.Operation, depth: int) -> str | None:
    """The op after those that make what it takes, these by `depth` steps."""
    chain = _chain(op, depth)
    module = ir.Module.create()
    taken = list(_taken(chain))
    with ir.InsertionPoint(module.body):
        function = func.FuncOp(name, ([value.type for value in taken], []))
        block = function.add_entry_block()
    values = dict(zip(taken, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        end = func.ReturnOp([])
    for each in chain:
        with ir.InsertionPoint(end):
            copy = each.clone().operation
        for inner in [copy, *_within(copy)]:
            for at, value in enumerate(inner.operands):
                inner.operands[at] = values.get(value, value)
        values |= dict(zip(each.results, copy.results, strict=True))
        _name(copy, block.arguments)
    _reduce(function)
    return _verified(module)


def _reduce(function: Any) -> None:
    """Erase what the op needs not of what surrounds it, and of what it holds if that is long."""
    all_ops = list(_within(function.operation))
    here = next(each for each in all_ops if HERE in each.attributes)
    del here.attributes[HERE]
    kept, inside = [here, *_around(here)], list(_within(here))
    for each in reversed(all_ops):
        is_short = each in inside and _lines(here) <= LINES_MAX
        if not (each in kept or is_short or each.name.endswith(ENDS) or _is_used(each)):
            each.erase()
    _drop_arguments(function)


def _lines(op: ir.Operation) -> int:
    return len(op.get_asm(assume_verified=True).splitlines())


def _drop_arguments(function: Any) -> None:
    """Take nothing that is not used."""
    block = function.entry_block
    for number in reversed(range(len(block.arguments))):
        if not any(True for _ in block.arguments[number].uses):
            block.erase_argument(number)
    types = ir.FunctionType.get([value.type for value in block.arguments], [])
    function.attributes["function_type"] = ir.TypeAttr.get(types)


def _around(op: ir.Operation) -> Iterator[ir.Operation]:
    while op.parent is not None:
        op = op.parent.operation
        yield op


def _is_used(op: ir.Operation) -> bool:
    return any(True for result in op.results for _ in result.uses)


def _chain(op: ir.Operation, depth: int) -> list[ir.Operation]:
    """The op after those that make what it takes, in an order in which each finds its own."""
    made: list[ir.Operation] = []
    for value in _taken([op]) if depth else ():
        if isinstance(value.owner, ir.Operation | ir.OpView):
            for each in _chain(value.owner.operation, depth - 1):
                made += [each] if each not in made else []
    return [*made, op]


def _name(op: ir.Operation, arguments: Any) -> None:
    """Name what an op takes after its fields."""
    if not is_ours(op.name):
        return
    for name, value in _operands(op.opview):
        argument = next((each for each in arguments if each == value), None)
        if argument is not None:
            ir.BlockArgument(argument).set_location(ir.Location.name(name))


def _operands(op: Any) -> Iterator[tuple[str, ir.Value]]:
    for field in ext.partition_fields(type(op)._fields)[0]:
        value = getattr(op, field.name)
        several = [] if value is None else [value] if isinstance(value, ir.Value) else list(value)
        for number, each in enumerate(several):
            yield f"{field.name}{number or ''}", each


def _verified(module: ir.Module) -> str | None:
    try:
        module.operation.verify()
    except (ir.MLIRError, *MALFORMED):
        return None
    named = name_values(module.operation)
    text = named.get_asm(use_name_loc_as_prefix=True)
    lines = [line.removeprefix("  ") for line in text.splitlines()[1:-1]]
    return "\n".join(lines) + "\n"


def _within(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region:
            for each in block:
                yield each.operation
                yield from _within(each.operation)


def _taken(chain: list[ir.Operation]) -> Iterator[ir.Value]:
    """The values from elsewhere that ops and those in them take, each once."""
    inside = [each for op in chain for each in [op, *_within(op)]]
    own = {result for each in inside for result in each.results}
    for each in inside:
        for region in each.regions:
            own |= {argument for block in region for argument in block.arguments}
    yield from dict.fromkeys(v for each in inside for v in each.operands if v not in own)
