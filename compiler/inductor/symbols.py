"""A graph whose sizes are symbols, with numbers in their place.

    graph    mul(mm(a [s0, 64], b [64, 48]), c [s0, 48])
    first    mul(mm(a [12, 64], b [64, 48]), c [12, 48])      the numbers that torch traced with
    second   mul(mm(a [84, 64], b [64, 48]), c [84, 48])      others, each in the same ratios

All that finds and judges regions works on numbers, in the first graph. What it says of a size that
follows from symbols is held to the second one: the rows of a kernel for any M are a number there
that differs, and everything else is the same. No comparison of two symbols is asked for, which
would bind torch's graph to the sizes that make it true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from .products import Product
from .region import Region

FACTORS = (7, 11, 13, 17, 19, 23, 29, 31)
"""How many times as large the symbols of the second graph are, one factor each."""


class Numbered:
    """A graph with numbers for its symbols, twice; `first` is where regions are looked for."""

    def __init__(self, graph: fx.Graph, hints: dict[Any, int]):
        times = {symbol: FACTORS[n] * hints[symbol] for n, symbol in enumerate(hints)}
        self.graph = graph
        self.first, ahead = _copied(graph, hints)
        self.second, further = _copied(graph, times)
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


def numbered(graph: fx.Graph) -> Numbered | None:
    """The graph with numbers; None where its sizes are numbers, or symbols that stand for none."""
    sizes = [size for node in graph.nodes for size in _sizes_in(node.meta.get("val"))]
    symbols = {each for size in sizes for each in size.node.expr.free_symbols}
    hints = {
        size.node.expr: int(size.node.hint)
        for size in sizes
        if size.node.expr.is_symbol and size.node.hint is not None
    }
    if not sizes or symbols != set(hints) or len(symbols) > len(FACTORS):
        return None
    return Numbered(graph, hints)


def _copied(graph: fx.Graph, numbers: dict[Any, int]) -> tuple[fx.Graph, dict[fx.Node, fx.Node]]:
    """The graph with numbers in the place of symbols and of the nodes that give them."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    made, copies = fx.Graph(), {}

    def argument(node: fx.Node) -> Any:
        value = node.meta.get("val")
        return _number(value, numbers) if isinstance(value, torch.SymInt) else copies[node]

    with FakeTensorMode():
        for node in graph.nodes:
            copy = copies[node] = made.node_copy(node, argument)
            copy.meta = {**node.meta, "val": _valued(node.meta.get("val"), numbers)}
    return made, copies


def _valued(value: Any, numbers: dict[Any, int]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_valued(each, numbers) for each in value)
    if isinstance(value, torch.SymInt):
        return _number(value, numbers)
    if not isinstance(value, torch.Tensor) or not _symbolic(value):
        return value
    shape, strides = ([_number(e, numbers) for e in each] for each in (value.shape, value.stride()))
    return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _number(size: Any, numbers: dict[Any, int]) -> int:
    return size if type(size) is int else int(size.node.expr.subs(numbers))


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
