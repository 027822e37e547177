"""Collectives of a graph, whose order and overlap regions must keep.

    y = mm(a, b)                            y = mm(a, b)
    s = all_reduce(x); w = wait(s)          z = y + w
    z = y + w

The collective runs while the product does, if that does not wait for it. So a region waits for
what its first product waits for, and for nothing else: it ends before `y + w`. It follows that no
collective comes to need one that was after it, and the collectives can keep their order, which
must be the same on every rank.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping

import torch
from torch import fx

NAMESPACE = "_c10d_functional"
WAIT = "wait_tensor"


def is_wait(node: fx.Node) -> bool:
    """Whether a node waits until a collective is done."""
    return _name(node) == f"{NAMESPACE}::{WAIT}"


def is_collective(node: fx.Node) -> bool:
    """Whether a node starts one."""
    return _name(node).startswith(f"{NAMESPACE}::") and not is_wait(node)


def _name(node: fx.Node) -> str:
    return node.target.name() if isinstance(node.target, torch._ops.OpOverload) else ""


class Waits:
    """What each node of a graph waits for; nothing in a graph without collectives."""

    def __init__(self, graph: fx.Graph):
        waits = {node: 1 << n for n, node in enumerate(filter(is_wait, graph.nodes))}
        self._known: Mapping[fx.Node, int] = _spread(graph, waits) if waits else {}

    def for_more(self, node: fx.Node, product: fx.Node) -> bool:
        """Whether a node waits for a collective that the product does not wait for."""
        return bool(self._known.get(node, 0) & ~self._known.get(product, 0))

    def alike(self, one: fx.Node, other: fx.Node) -> bool:
        """Whether both wait for the same collectives."""
        return self._known.get(one, 0) == self._known.get(other, 0)


def _spread(graph: fx.Graph, waits: Mapping[fx.Node, int]) -> dict[fx.Node, int]:
    """The bits of the waits that each node depends on."""
    found: dict[fx.Node, int] = {}
    for node in graph.nodes:
        bits = waits.get(node, 0)
        for each in node.all_input_nodes:
            bits |= found[each]
        found[node] = bits
    return found


def collectives_of(graph: fx.Graph) -> list[fx.Node]:
    """In the order in which they start."""
    return [node for node in graph.nodes if is_collective(node)]


def sort_with(graph: fx.Graph, collectives: list[fx.Node]) -> None:
    """Bring nodes into an order that runs, near to that in which they stand, and in which the
    collectives start one after the other as they are given."""
    place = {node: n for n, node in enumerate(graph.nodes)}
    needs = {node: set(node.all_input_nodes) for node in graph.nodes}
    for one, other in itertools.pairwise(collectives):
        needs[other].add(one)
    readers: dict[fx.Node, list[fx.Node]] = {node: [] for node in place}
    for node, needed in needs.items():
        for each in needed:
            readers[each].append(node)
    ready = [(n, node) for node, n in place.items() if not needs[node]]
    ordered: list[fx.Node] = []
    while ready:
        _, node = heapq.heappop(ready)
        ordered.append(node)
        for each in readers[node]:
            needs[each].remove(node)
            if not needs[each]:
                heapq.heappush(ready, (place[each], each))
    assert len(ordered) == len(place), "a collective needs one that starts after it"
    for one, other in itertools.pairwise(ordered):
        if one.next is not other:
            one.append(other)
