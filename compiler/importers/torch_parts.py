"""Slices of a weight as separate arguments, if a module slices the product with all of it.

    y = linear(x, w, b)              g = linear(x, w[:n], b[:n])
    g, u = y.chunk(2, dim=-1)   →    u = linear(x, w[n:], b[n:])

Gate and up of an MLP often lie in one weight, one after the other or in alternating rows. A part
is every so manyth row, from one to another: a view, of which nothing is copied.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

aten: Any = torch.ops.aten
VIEWS = (
    operator.getitem,
    aten.chunk.default,
    aten.narrow.default,
    aten.reshape.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unbind.int,
    aten.unflatten.int,
    aten.view.default,
)


class Part(NamedTuple):
    """Rows of an argument: the first one, the step from one to the next, and how many."""

    start: int
    step: int
    count: int

    def of(self, value: Any) -> Any:
        """The rows of a tensor, as a view."""
        return value[self.start : self.start + self.step * (self.count - 1) + 1 : self.step]

    def named(self, name: str) -> str:
        """The rows of an argument, in Python's notation."""
        return f"{name}[{self}]"

    def __str__(self) -> str:
        stop = self.start + self.step * (self.count - 1) + 1
        return f"{self.start}:{stop}" + (f":{self.step}" if self.step > 1 else "")


class Cut(NamedTuple):
    """A module of these arguments: numbers of the original's, with the part that is taken."""

    module: torch.nn.Module
    arguments: list[tuple[int, Part | None]]


def cut_weights(module: torch.nn.Module, values: Sequence[torch.Tensor]) -> Cut | None:
    """The module with a linear for each part that it cuts another's output into; None without.

    module: takes the values and has no state. A linear is left as it is where its output is read
    otherwise, or its weight is computed.
    """
    graph = torch.export.export(module, tuple(values)).graph_module.graph
    places = {node: number for number, node in enumerate(graph.find_nodes(op="placeholder"))}
    if len(places) != len(values):
        return None  # a constant of the module is a placeholder, too
    arguments: list[tuple[int, Part | None]] = [(number, None) for number in places.values()]
    inserted: dict[tuple[int, Part], fx.Node] = {}

    def part_of(node: fx.Node | None, part: Part) -> fx.Node | None:
        if node is None:
            return None
        key = places[node], part
        if key not in inserted:
            with graph.inserting_before(_behind_placeholders(graph)):
                inserted[key] = graph.placeholder(f"part_{len(inserted)}")
            arguments.append(key)
        return inserted[key]

    for node in graph.find_nodes(op="call_function", target=aten.linear.default):
        x, *state = (*node.args, None)[:3]
        if any(each is not None and each not in places for each in state):
            continue
        for leaf, part in _parts(node) or ():
            with graph.inserting_before(leaf):
                taken = (x, *(part_of(each, part) for each in state))
                leaf.replace_all_uses_with(graph.call_function(aten.linear.default, taken))
    if not inserted:
        return None
    kept = _kept(graph, arguments, places)
    return Cut(fx.GraphModule(torch.nn.Module(), graph), kept)


def _behind_placeholders(graph: fx.Graph) -> fx.Node:
    return next(node for node in graph.nodes if node.op != "placeholder")


def _parts(linear: fx.Node) -> list[tuple[fx.Node, Part]] | None:
    """The views of a linear's output that others read, with its columns that they are.

    None where one is no part of the columns of all rows.
    """
    shape = tuple(linear.meta["val"].shape)
    columns = torch.arange(shape[-1]).expand(shape)
    parts = [(leaf, _columns(value, shape)) for leaf, value in _leaves(linear, columns)]
    if any(part is None for _, part in parts):
        return None
    return [(leaf, part) for leaf, part in parts if part is not None]


def _leaves(node: fx.Node, value: Any) -> Iterator[tuple[fx.Node, Any]]:
    """What is read of a node through views: (the last view, its value)."""
    if any(user.target not in VIEWS for user in node.users):
        yield node, value
        return
    for user in node.users:
        taken = [value if each is node else each for each in user.args]
        yield from _leaves(user, user.target(*taken, **user.kwargs))  # type: ignore[operator]


def _columns(value: Any, shape: Sequence[int]) -> Part | None:
    """The part of 0, 1, 2, … that every row of a view is."""
    if not isinstance(value, torch.Tensor) or tuple(value.shape[:-1]) != tuple(shape[:-1]):
        return None
    rows = zip(value.shape[:-1], value.stride()[:-1], strict=True)
    if any(extent > 1 and stride for extent, stride in rows) or not value.shape[-1]:
        return None
    return Part(value.storage_offset(), max(1, value.stride(-1)), value.shape[-1])


def _kept(
    graph: fx.Graph,
    arguments: list[tuple[int, Part | None]],
    places: dict[fx.Node, int],
) -> list[tuple[int, Part | None]]:
    """The arguments, without those that only whole linears read; the graph loses them, too."""
    whole = {node for node in places if node.users}
    graph.eliminate_dead_code()
    gone = {places[node] for node in whole if not node.users}
    for node in [each for each in places if places[each] in gone]:
        graph.erase_node(node)
    graph.lint()
    return [(number, part) for number, part in arguments if part is not None or number not in gone]
