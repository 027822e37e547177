"""Regions: a matmul with the elementwise operators after it, computed by one kernel.

    grow      take every operator after the product that is elementwise and reads nothing that
              depends on an operator left out
    cut       of the operators in their order, keep as many as make memory traffic least
    pair      a second product of the same A joins (SwiGLU)

What leaves a region is an output of its kernel: C, and one more where two values are read outside,
as the pre-activation that backward needs; of two products both may be, beside C.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import torch
from torch import fx

from .collectives import Waits
from .halves import halves_of
from .joins import absorbed, paired
from .products import Product, aten, dtype_of, product_of
from .region import (
    VIEWS,
    VIEWS_OF_ONE,
    Known,
    Region,
    alone,
    base_of,
    bytes_of,
    changes,
    closed,
    is_same,
    name_of,
    outputs_of,
)
from .rules import refusal_of

OUTPUTS_MAX = 2
STORED = (torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2)


def regions_of(graph: fx.Graph, products: Sequence[Product]) -> list[Region]:
    """A region for each of the products that none before it has taken."""
    order = {node: place for place, node in enumerate(graph.nodes)}
    known = Known(order, {}, Waits(graph))
    found = []
    for product in products:
        if product.node in known.owner:
            continue
        region = _of_halves(product, known) or _grown(product, known)
        if len(region.nodes) > 1:
            region = _kept(region, order, known.owner)
        known.owner.update(dict.fromkeys(region.nodes, region))
        found.append(region)
    return found


def _kept(region: Region, order: Mapping[fx.Node, int], owner: Mapping[fx.Node, Region]) -> Region:
    """The region, or its product alone where reading all at once would be too early or too late."""
    first = region.products[0]
    if in_circle(region, owner, order):
        return alone(first, "another region needs what this one makes, and the reverse")
    begin, end = (order[region.nodes[place]] for place in (0, -1))
    read = {base_of(each) for each in region.reads}
    for node in list(order)[begin:end]:
        if changes(node) and read & {base_of(each) for each in node.all_input_nodes}:
            return alone(first, f"{name_of(node)} changes what the region reads meanwhile")
    return region


def _of_halves(product: Product, known: Known) -> Region | None:
    """The region of a product whose two halves one kernel takes together; None for others."""
    halves = halves_of(product)
    if not halves:
        return None
    first, second = halves
    region = _grown(first, known, {second.node: second})
    return region if len(region.products) == 2 else None


def _grown(
    product: Product, known: Known, mates: Mapping[fx.Node, Product] | None = None
) -> Region:
    frame, order = product.frame, known.order
    taken, others, stop = {product.node}, Others(product.node, order), ""
    grown: list[fx.Node] = []
    reached = {product.node}
    readers: list[tuple[int, fx.Node]] = []  # of what is taken, the next one of the graph first
    _reach(product.node, reached, readers, order)
    while readers:
        _, node = heapq.heappop(readers)
        reason = refusal_of(node, product.node, taken, others, known, frame)
        if reason:
            others.add(node)
            if not _is_boundary(node):
                stop = stop or f"{name_of(node)}: {reason}"
        else:
            taken.add(node)
            grown.append(node)
            _reach(node, reached, readers, order)
    kept = _cut(product.node, grown)
    region = closed([product], [product.node, *kept], stop)
    return absorbed(paired(region, known, others, mates or {}), known)


def _reach(
    node: fx.Node,
    reached: set[fx.Node],
    readers: list[tuple[int, fx.Node]],
    order: Mapping[fx.Node, int],
) -> None:
    for user in node.users:
        if user not in reached:
            reached.add(user)
            heapq.heappush(readers, (order[user], user))


class Others:
    """What depends on a product through an operator that is not in its region.

    Such operators are added in the graph's order, so that what was asked for before stays true.
    """

    def __init__(self, product: fx.Node, order: Mapping[fx.Node, int]):
        self._order, self._begin = order, order[product]
        self._known: dict[fx.Node, bool] = {}

    def add(self, node: fx.Node) -> None:
        self._known[node] = True

    def __contains__(self, node: fx.Node) -> bool:
        waiting = [node]
        while waiting:
            each = waiting[-1]
            if each in self._known:
                waiting.pop()
                continue
            reads = [e for e in each.all_input_nodes if self._order[e] > self._begin]
            unknown = [e for e in reads if e not in self._known]
            waiting += unknown
            if not unknown:
                self._known[each] = any(self._known[e] for e in reads)
        return self._known[node]


def _cut(product: fx.Node, grown: Sequence[fx.Node]) -> list[fx.Node]:
    """The operators from the first on that make the least traffic; the most of equal ones."""
    best, least = 0, _traffic(product, [], grown)
    for count in range(1, len(grown) + 1):
        if is_same(grown[count - 1]):  # a view that leaves the region costs nothing outside
            continue
        cost = _traffic(product, grown[:count], grown[count:])
        if cost is not None and (least is None or cost <= least):
            best, least = count, cost
    return list(grown[:best])


def _traffic(product: fx.Node, kept: Sequence[fx.Node], left: Sequence[fx.Node]) -> int | None:
    """Bytes that are written and read after the sums; None where no kernel stores the outputs.

    Inductor computes an elementwise operator where it is read, and writes only what a kernel of
    another kind or the caller reads.
    """
    nodes = [product, *kept]
    outputs = outputs_of(nodes)
    if len(outputs) > OUTPUTS_MAX or any(dtype_of(each) not in STORED for each in outputs):
        return None
    inside = set(nodes)
    total = 0
    for each in outputs:
        fusible = any(not _is_boundary(user) for user in _readers(each, inside))
        total += bytes_of(each) * (2 if fusible else 1)
    for each in left:
        if not is_same(each) and any(_is_boundary(user) for user in _readers(each, inside)):
            total += bytes_of(each)
    return total


def _is_boundary(node: fx.Node) -> bool:
    """Whether a node reads its arguments from memory: a product, the caller, what is no Inductor
    kernel."""
    return node.op == "output" or product_of(node) is not None


def _readers(node: fx.Node, inside: set[fx.Node]) -> list[fx.Node]:
    """Who reads a value outside, through views that cost nothing."""
    found = []
    for user in node.users:
        if user.target in (*VIEWS, *VIEWS_OF_ONE, aten.permute.default):
            found += _readers(user, inside)
        elif user not in inside:
            found.append(user)
    return found


def in_circle(
    region: Region, owner: Mapping[fx.Node, Region], order: Mapping[fx.Node, int]
) -> bool:
    """Whether something outside needs the region, and the region needs that.

    Other regions are one node each: all of one is computed before anything that it gives.
    """
    inside = set(region.nodes)
    last = _horizon(region, owner, order)
    seen: set[fx.Node] = set()
    waiting = [user for node in inside for user in node.users if user not in inside]
    while waiting:
        node = waiting.pop()
        if node in seen or order[node] > last:
            continue
        together = owner[node].nodes if node in owner else [node]
        seen.update(together)
        for user in (user for each in together for user in each.users):
            if user in inside:
                return True
            waiting.append(user)
    return False


def _horizon(region: Region, owner: Mapping[fx.Node, Region], order: Mapping[fx.Node, int]) -> int:
    """The place in the graph after which nothing leads back to the region.

    A region is one node that reaches from its first operator to its last.
    """
    last = max(order[node] for node in region.nodes)
    spans = [
        (min(places), max(places))
        for places in (
            [order[node] for node in each.nodes]
            for each in {id(e): e for e in owner.values()}.values()
        )
    ]
    for begin, end in sorted(spans):
        if begin <= last < end:
            last = end
    return last
