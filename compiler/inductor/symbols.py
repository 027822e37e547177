"""A graph with symbolic sizes, specialised to numbers.

    graph    mul(mm(a [s0, 64], b [64, 48]), c [s0, 48])
    first    mul(mm(a [12, 64], b [64, 48]), c [12, 48])      the numbers that torch traced with
    second   mul(mm(a [84, 64], b [64, 48]), c [84, 48])      others, each in the same ratios

All that finds and judges regions works on numbers, in the first graph. What it says of a size that
follows from symbols is held to the second one: the rows of a kernel for any M are a number there
that differs, and everything else is the same. No comparison of two symbols is asked for, which
would bind torch's graph to the sizes that make it true.

Numbers stand in the place of sizes alone: of values, and of views. A symbol that an operator
computes with, as min(s0, 8) that scales a product, stays a node, which no region reads. Two
readings would not show that it is none: min(12, 8) and min(84, 8) are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from ...dialects.errors import CompileError
from .products import Product, aten
from .region import SAME, Region

FACTORS = (7, 11, 13, 17, 19, 23, 29, 31)
"""How many times as large the symbols of the second graph are, one factor each."""


class Numbered:
    """A graph with numbers for its symbols, twice; `first` is where regions are looked for."""

    def __init__(self, graph: fx.Graph, hints: dict[Any, int]):
        times = {symbol: FACTORS[n] * hints[symbol] for n, symbol in enumerate(hints)}
        self.graph = graph
        self._numbers = _Numbers(hints), _Numbers(times)
        self.first, ahead = _copied(graph, self._numbers[0])
        self.second, further = _copied(graph, self._numbers[1])
        self._back = {copy: node for node, copy in ahead.items()}
        self._second = {copy: further[node] for node, copy in ahead.items()}

    def original(self, region: Region) -> Region:
        """A region of the first graph in the one with symbols."""
        return _moved(region, self._back)

    def other(self, region: Region) -> Region:
        """A region of the first graph in the second one."""
        return _moved(region, self._second)

    def is_symbolic(self, region: Region) -> bool:
        """Whether a size of what a region of the first graph reads or computes is a symbol."""
        nodes = [self._back[each] for each in (*region.reads, *region.nodes)]
        sizes = (size for node in nodes for size in _sizes_in(node.meta.get("val")))
        return any(size.node.expr.free_symbols for size in sizes)

    def check_sizes(self, region: Region) -> None:
        """Refuse sizes of a region of the first graph that follow from symbols and are the same in
        both, as min(s0, 8), of which nobody knows what they are at others."""
        for node in (*region.reads, *region.nodes):
            for size in _sizes_in(self._back[node].meta.get("val")):
                first, second = (_number(size, each) for each in self._numbers)
                if first == second and not _is_known(size):
                    rule = "sizes must be numbers, or differ where symbols do"
                    raise CompileError(f"region: {rule}, got {size} of {node.name}")


def numbered(graph: fx.Graph) -> Numbered | None:
    """The graph with numbers; None where its sizes are numbers, or symbols that stand for none."""
    sizes = [size for node in graph.nodes for size in _sizes_in(node.meta.get("val"))]
    symbols = {each for size in sizes for each in size.node.expr.free_symbols}
    hints = {
        size.node.expr: size.node.hint
        for size in sizes
        if size.node.expr.is_symbol and isinstance(size.node.hint, int)  # none of ragged tensors
    }
    if not sizes or symbols != set(hints) or len(symbols) > len(FACTORS):
        return None
    return Numbered(graph, hints)


class _Numbers(dict[Any, int]):
    """What each expression is whose symbols have these numbers; a graph has few different ones."""

    def __init__(self, symbols: dict[Any, int]):
        super().__init__()
        self._symbols = symbols

    def __missing__(self, expression: Any) -> int:
        self[expression] = int(expression.subs(self._symbols))
        return self[expression]


def _copied(graph: fx.Graph, numbers: _Numbers) -> tuple[fx.Graph, dict[fx.Node, fx.Node]]:
    """The graph with numbers in the place of symbols, and of the nodes that give sizes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    made, copies = fx.Graph(), {}

    def size(node: fx.Node) -> Any:
        value = node.meta.get("val")
        return _number(value, numbers) if isinstance(value, torch.SymInt) else copies[node]

    with FakeTensorMode():
        for node in graph.nodes:
            copy = copies[node] = made.node_copy(node, copies.__getitem__)
            copy.meta = {**node.meta, "val": _valued(node.meta.get("val"), numbers)}
            first, last = _places_of_sizes(node)
            args = (
                fx.node.map_arg(arg, size) if first <= place < last else copied
                for place, (arg, copied) in enumerate(zip(node.args, copy.args, strict=True))
            )
            copy.args = tuple(args)
    return made, copies


def _places_of_sizes(node: fx.Node) -> tuple[int, int]:
    """Which of a node's arguments are the sizes of what it gives, from one to another."""
    if node.target is aten.full.default:
        return 0, 1
    return (1, len(node.args)) if node.target in SAME else (0, 0)


def _valued(value: Any, numbers: _Numbers) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_valued(each, numbers) for each in value)
    if isinstance(value, torch.SymInt):
        return _number(value, numbers)
    if not isinstance(value, torch.Tensor) or not _symbolic(value):
        return value
    shape, strides = ([_number(e, numbers) for e in each] for each in (value.shape, value.stride()))
    return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _number(size: Any, numbers: _Numbers) -> int:
    return size if type(size) is int else numbers[size.node.expr]


def _is_known(size: torch.SymInt) -> bool:
    """Whether a size or stride is one number whatever its symbols are, as min(64, 64 * s0) is.

    A symbol of 0 makes a tensor without elements, of which no stride is read.
    """
    from torch.utils._sympy.numbers import int_oo
    from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

    expression = size.node.expr
    least = {symbol: ValueRanges(1, int_oo) for symbol in expression.free_symbols}
    return bound_sympy(expression, least).is_singleton()


def _sizes_in(value: Any) -> Iterator[torch.SymInt]:
    """The sizes and strides of a value that are symbols."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _sizes_in(each)
    elif isinstance(value, torch.SymInt):
        yield value
    elif isinstance(value, torch.Tensor):
        yield from (e for e in (*value.shape, *value.stride()) if isinstance(e, torch.SymInt))


def _symbolic(value: Any) -> bool:
    return next(_sizes_in(value), None) is not None


def _moved(region: Region, places: dict[fx.Node, fx.Node]) -> Region:
    """The same region in another graph."""

    def of_product(product: Product) -> Product:
        return Product(*fx.node.map_aggregate(tuple(product), _mover(places)))  # type: ignore[misc]

    found = {
        name: [places[node] for node in getattr(region, name)]
        for name in ("nodes", "operands", "outputs")
    }
    return replace(region, products=[of_product(each) for each in region.products], **found)


def _mover(places: dict[fx.Node, fx.Node]) -> Callable[[Any], Any]:
    return lambda each: places[each] if isinstance(each, fx.Node) else each
