"""Replaces a region's nodes by one call of its kernel.

mm, convert, mul, erf, …   →   region([a, b, …], key), getitem, reshape
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ...dialects.errors import CompileError
from .products import aten, sizes_of
from .region import CONVERT, Region, source_of
from .source import TRUTH, Input

REST = -1  # of sizes: as many as are left
Launch = Callable[[fx.Graph, list[fx.Node]], fx.Node]


def replace(
    graph: fx.Graph,
    region: Region,
    inputs: list[Input],
    launch: Launch,
    moved: dict[fx.Node, fx.Node],
) -> None:
    """Put the kernel's call where all that it reads is known; what only the region computed is gone
    then.

    launch: adds the kernel's call with its inputs to the graph. moved: for each value of regions
        replaced before what stands in its place; this one's are added.
    Raises CompileError where a size has no node that is known without the region. All of the region
    stands then as it did.
    """
    reads = [moved.get(each, each) for each in region.reads]
    inside = set(region.nodes)
    with graph.inserting_before(max([*reads, region.nodes[0]]).next):
        given = [_given(graph, reads[each.number], each, inside) for each in inputs]
        launched = launch(graph, given)
        made = {
            each: call(graph, operator.getitem, (launched, number))
            for number, each in enumerate(region.outputs)
        }
        found = {
            node: _viewed(graph, made[source_of(node, inside)], sizes_of(node), inside)
            for node in region.nodes
            if any(user not in inside for user in node.users)
        }
    for node, view in found.items():
        view.meta.update({k: v for k, v in node.meta.items() if k not in view.meta})
        node.replace_all_uses_with(view, lambda user: user not in inside)
    moved.update(found)
    for node in reversed(region.nodes):
        graph.erase_node(node)


def _given(graph: fx.Graph, node: fx.Node, given: Input, inside: set[fx.Node]) -> fx.Node:
    """A value as the kernel takes it; of a permuted one that is permuted back, its source."""
    order, sizes = given.order, given.sizes
    if given.is_first:
        node = call(graph, aten.select.int, (node, 0, 0))
    if given.is_truth:
        node = call(graph, CONVERT, (node, TRUTH))
    if given.columns is not None:
        node = call(graph, aten.slice.Tensor, (node, len(sizes_of(node)) - 1, *given.columns))
    if order:
        if node.target is aten.permute.default:
            source, before = node.args
            if [before[each] for each in order] == list(range(len(order))):  # type: ignore[index]
                return source  # type: ignore[return-value]
        return call(graph, aten.permute.default, (node, list(order)))
    return node if sizes is None else _viewed(graph, node, sizes, inside)


def _viewed(
    graph: fx.Graph, node: fx.Node, sizes: tuple[Any, ...], inside: set[fx.Node]
) -> fx.Node:
    """The node with other sizes, of which one may be -1 and any a symbol."""
    if len(sizes) == len(sizes_of(node)) and all(map(_is_same, sizes_of(node), sizes)):
        return node
    return call(graph, aten.reshape.default, (node, _as_arguments(graph, sizes, inside)))


def _is_same(size: Any, wanted: Any) -> bool:
    """Whether a size is the one that is wanted, without a comparison of symbols."""
    if type(size) is int or type(wanted) is int:
        return wanted == REST or (type(size) is type(wanted) and size == wanted)
    return size.node.expr == wanted.node.expr


def _as_arguments(graph: fx.Graph, sizes: tuple[Any, ...], inside: set[fx.Node]) -> list[Any]:
    """Sizes as an operator of the graph takes them: numbers, -1 for one symbol, nodes for more."""
    symbols = [each for each in sizes if type(each) is not int]
    if len(symbols) == 1 and REST not in sizes:
        return [each if type(each) is int else REST for each in sizes]
    found = [each if type(each) is int else _node_of(graph, each, inside) for each in sizes]
    if found.count(None) > (REST not in sizes):
        size = sizes[found.index(None)]
        raise CompileError(f"region: the graph must have a value of {size} without it, got none")
    return [REST if each is None else each for each in found]


def _node_of(graph: fx.Graph, size: Any, inside: set[fx.Node]) -> fx.Node | None:
    """A node that gives a size without what is inside: one of the graph, or the size of one of its
    inputs. None: there is none."""
    for node in graph.nodes:
        value = node.meta.get("val")
        if (
            isinstance(value, torch.SymInt)
            and value.node.expr == size.node.expr
            and not _depends(node, inside)
        ):
            return node
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for dim, each in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if type(each) is not int and each.node.expr == size.node.expr:
                return call(graph, aten.sym_size.int, (node, dim))
    return None


def _depends(node: fx.Node, inside: set[fx.Node]) -> bool:
    """Whether a node is, or reads by any way, one of those inside."""
    seen, left = set[fx.Node](), [node]
    while left:
        each = left.pop()
        if each in inside:
            return True
        if each not in seen:
            seen.add(each)
            left.extend(each.all_input_nodes)
    return False


def call(graph: fx.Graph, target: Any, arguments: tuple[Any, ...]) -> fx.Node:
    """A call with what it gives as a fake value, as all nodes of the graph have."""
    node = graph.call_function(target, arguments)
    values = fx.node.map_arg(arguments, lambda each: each.meta["val"])
    found = [each for each in _leaves(values) if isinstance(each, torch.Tensor)]
    mode = getattr(found[0], "fake_mode", None) if found else None
    if mode is None:
        node.meta["val"] = target(*values)
    else:
        with mode:
            node.meta["val"] = target(*values)
    return node


def _leaves(values: Any) -> list[Any]:
    if isinstance(values, list | tuple):
        return [leaf for each in values for leaf in _leaves(each)]
    return [values]
