"""Other operators that join a region, besides those after its matmul.

paired      a second product of the same A: gate and up of SwiGLU. What backward saves of it is one
            more output of the kernel
absorbed    the operators that make its operands, where the kernel then reads less
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import torch
from torch import fx

from .halves import way_to
from .products import Product, is_truth, product_of
from .region import Known, Region, bytes_of, changes, closed, is_constant, is_same, source_of
from .rules import refusal_of

DEPTH_MAX = 12  # operators that are compared to see whether two values are the same


def paired(
    region: Region,
    known: Known,
    others: Container[fx.Node],
    mates: Mapping[fx.Node, Product],
) -> Region:
    """With a second product of the same A that the region reads, where there is one.

    What lies between both is read by the region alone; the product itself may be an output.
    """
    first = region.products[0]
    if len(region.frame) != 2:
        return region
    inside = set(region.nodes)
    for operand in region.operands:
        behind, made = _made_of(operand, region, mates, known)
        second = made[0] if len(made) == 1 else None
        if second is None or second.node in known.owner or second.node in others:
            continue
        joined = inside | behind | {second.node}
        leaving = [each for each in behind if any(user not in joined for user in each.users)]
        read_here = all(source_of(each, joined) is second.node for each in leaving)
        alike = known.waits.alike(first.node, second.node)
        if read_here and alike and _go_together(first, second):
            places = known.order
            products = sorted((first, second), key=lambda one: (one.part or (), places[one.node]))
            joined |= {node for each in products for node in way_to(each)}
            nodes = sorted(joined, key=places.__getitem__)
            return closed(products, nodes, region.stop)
    return region


def _made_of(
    operand: fx.Node,
    region: Region,
    mates: Mapping[fx.Node, Product],
    known: Known,
) -> tuple[set[fx.Node], list[Product]]:
    """The elementwise operators that make an operand, and the products that they read."""
    first, waiting = region.products[0].node, [operand]
    behind: set[fx.Node] = set()
    found: dict[fx.Node, Product] = {}
    while waiting:
        node = waiting.pop()
        product = mates.get(node) or product_of(node)
        if isinstance(product, Product):
            found[node] = product
        elif node not in behind and not is_constant(node):
            made_here = is_same(node) or not refusal_of(
                node, first, set(), set(), known, region.frame
            )
            if made_here and node not in known.owner:
                behind.add(node)
                waiting += node.all_input_nodes
    return behind, list(found.values())


def absorbed(region: Region, known: Known) -> Region:
    """With the operators that make its operands, where the kernel then reads no more bytes.

    A gradient is multiplied with a function of what forward saved: the kernel computes that, too.
    """
    first = region.products[0].node
    inside, waiting = set(region.nodes), list(region.operands)
    own_reads = {*region.reads[: len(region.reads) - len(region.operands)], *region.hidden}
    own_reads |= {each.a for each in region.products}
    while waiting:
        node = waiting.pop()
        own = node not in inside | own_reads and all(user in inside for user in node.users)
        if (
            own
            and not is_constant(node)
            and not refusal_of(node, first, inside, set(), known, region.frame)
        ):
            inside.add(node)
            waiting = [each for one in inside for each in one.all_input_nodes]
    if len(inside) == len(region.nodes):
        return region
    nodes = sorted(inside, key=known.order.__getitem__)
    wider = closed(region.products, nodes, region.stop)
    return wider if _read_bytes(wider) <= _read_bytes(region) else region


def _read_bytes(region: Region) -> int:
    """A bool is converted to a number of 16 bits first: written and read."""
    sizes = (bytes_of(each) * (4 if is_truth(each) else 1) for each in region.operands)
    return sum(sizes)


def _go_together(first: Product, second: Product) -> bool:
    """Whether one kernel makes both: the same A, and B of one form."""
    if second.offsets is not None or first.node.target is not second.node.target:
        return False
    if first.blocks or second.blocks or first.precision != second.precision:
        return False
    if first.part and first.multiplies is not second.multiplies:
        return False
    of_b = (first.b_like(), second.b_like())
    lies = [(each.shape, each.stride(), each.dtype) for each in of_b]
    return _is_same_value(first.a, second.a) and lies[0] == lies[1]


def _is_same_value(one: Any, other: Any, depth: int = 0) -> bool:
    """Whether two nodes are the same, or the same operators of the same."""
    if one is other or not isinstance(one, fx.Node) or not isinstance(other, fx.Node):
        return one is other or (type(one) is type(other) and not isinstance(one, fx.Node)
                                and one == other)  # fmt: skip
    if one.op != "call_function" or one.target is not other.target or depth == DEPTH_MAX:
        return False
    tags = getattr(one.target, "tags", ())
    if changes(one) or torch.Tag.nondeterministic_seeded in tags or one.kwargs != other.kwargs:
        return False
    pairs = zip(one.args, other.args, strict=False)
    return len(one.args) == len(other.args) and all(
        _is_same_value(*pair, depth + 1) for pair in pairs
    )
