"""A region: one kernel's part of a graph, and what its nodes are to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import fx

from .collectives import Waits
from .halves import way_to, whole
from .products import Product, aten, is_truth

VIEWS = (aten.reshape.default, aten.view.default, aten._unsafe_view.default, aten.alias.default)
VIEWS_OF_ONE = (aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default)
CONVERT = torch.ops.prims.convert_element_type.default
SAME = (*VIEWS, *VIEWS_OF_ONE, aten.clone.default, aten.detach.default, aten.expand.default)
CONSTANTS = (aten.full.default, aten.scalar_tensor.default)
PERMUTES = (aten.permute.default, aten.t.default, aten.transpose.int, aten.numpy_T.default)


@dataclass
class Region:
    """One kernel's part of a graph.

    nodes: the products, the operators after them and the views between, in the graph's order.
    operands: what they read beside the products' A and B. outputs: the values that leave the
    region. stop: which operator it does not take, and why.
    """

    products: list[Product]
    nodes: list[fx.Node]
    operands: list[fx.Node] = field(default_factory=list)
    outputs: list[fx.Node] = field(default_factory=list)
    stop: str = ""

    @property
    def hidden(self) -> set[fx.Node]:
        """Operators and cuts of which the products are parts: no value of the kernel."""
        return {node for product in self.products for node in way_to(product)}

    @property
    def frame(self) -> tuple[int, ...]:
        """The sizes of every value, as the kernel sees it."""
        return self.products[0].frame

    @property
    def reads(self) -> list[fx.Node]:
        """What the kernel reads: A, each B, offsets of groups, scales of blocks, then operands."""
        first = self.products[0]
        offsets = [] if first.offsets is None else [first.offsets]
        bs = [each.b for each in self.products]
        return [first.a, *bs, *offsets, *first.blocks, *self.operands]

    def fused(self) -> list[str]:
        """The operators after the product, views and conversions left out."""
        skipped = {CONVERT, *SAME, *CONSTANTS}
        taken = {each.node for each in self.products} | self.hidden
        return [name_of(n) for n in self.nodes if n not in taken and n.target not in skipped]


class Known(NamedTuple):
    """What is known of a graph while its regions grow.

    order: the place of each node. owner: whose the nodes are that regions before have taken. waits:
    for which collectives each waits.
    """

    order: Mapping[fx.Node, int]
    owner: dict[fx.Node, Region]
    waits: Waits


def name_of(node: fx.Node) -> str:
    """An operator as torch calls it, without its namespace."""
    return str(getattr(node.target, "overloadpacket", node.target)).split(".")[-1]


def alone(product: Product, stop: str = "") -> Region:
    """The region of a product and nothing else."""
    product = whole(product)
    operands = list(dict.fromkeys(product.beside))
    return Region([product], [product.node], operands, [product.node], stop)


def closed(products: list[Product], nodes: list[fx.Node], stop: str) -> Region:
    """The region of these nodes, with its operands and outputs."""
    inside = set(nodes)
    of_products = {each.node: each for each in products}
    hidden = {node for product in products for node in way_to(product)}
    operands: list[fx.Node] = []
    for node in (node for node in nodes if node not in hidden):
        product = of_products.get(node)
        read = product.beside if product else node.all_input_nodes
        operands += [each for each in read if each not in inside and not is_constant(each)]
    return Region(products, nodes, list(dict.fromkeys(operands)), outputs_of(nodes), stop)


def outputs_of(nodes: Sequence[fx.Node]) -> list[fx.Node]:
    """The values that are read outside, each once however it is viewed."""
    inside = set(nodes)
    leaving = [node for node in nodes if any(user not in inside for user in node.users)]
    return list(dict.fromkeys(source_of(node, inside) for node in leaving))


def source_of(node: fx.Node, inside: Iterable[fx.Node]) -> fx.Node:
    """The operator of the region that computes what views of it show."""
    inside = set(inside)
    while is_same(node) and node.args[0] in inside:
        node = node.args[0]  # type: ignore[assignment]
    return node


def is_same(node: fx.Node) -> bool:
    """Whether an operator leaves the elements as they are."""
    return node.target in SAME


def is_constant(node: fx.Node) -> bool:
    """Whether a value is one number, which the kernel holds itself."""
    return node.target in CONSTANTS and not node.all_input_nodes


def truth_behind(node: fx.Node) -> fx.Node:
    """The bool of which a value is a conversion, as masks of dropout are in backward; else the
    value itself."""
    source: Any = node.args[0] if node.target is CONVERT else node
    return source if is_truth(source) else node


def changes(node: fx.Node) -> bool:
    """Whether an operator changes a tensor in place."""
    return bool(getattr(getattr(node.target, "_schema", None), "is_mutable", False))


def base_of(node: fx.Node) -> fx.Node:
    """What a value is a view of."""
    while node.target in (*VIEWS, *VIEWS_OF_ONE, *PERMUTES):
        node = node.args[0]  # type: ignore[assignment]
    return node


def bytes_of(node: fx.Node) -> int:
    value = node.meta["val"]
    return value.numel() * value.itemsize
