"""Matmuls of one row or column that Inductor decomposes, as matmuls again.

    sum(unsqueeze(f32 a, -1) · unsqueeze(f32 b, -3), -2)   →   mm(a, b), or bmm(a, b) of stacks

Inductor does that on a GPU where coordinate descent tunes kernels, as max-autotune asks for. A
product stands in its place while regions are looked for. What no kernel takes is then as it was.
The product is rounded as eager torch rounds it, also where Inductor had left that out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import fx

from .products import aten, dtype_of, is_static, sizes_of
from .region import CONVERT
from .replace import call

NARROW = (torch.bfloat16, torch.float16)
PRODUCTS = {2: aten.mm.default, 3: aten.bmm.default}


class StandIn(NamedTuple):
    """A product in the place of `total`, its sums in f32, and of what rounded them.

    wide: the product in f32, for what read the sums before they were rounded.
    """

    product: fx.Node
    wide: fx.Node
    total: fx.Node
    rounded: list[fx.Node]


class Recomposed:
    """A graph in which products stand for their sums, until `restore`."""

    def __init__(self, graph: fx.Graph):
        self._graph = graph
        self._made = []
        for node in graph.find_nodes(op="call_function", target=aten.sum.dim_IntList):
            operands = _operands(node)
            if operands is not None:
                self._made.append(_stand_in(graph, node, *operands))

    def restore(self) -> None:
        """Put back the sums of each product that is still there."""
        here = set(self._graph.nodes)
        for product, wide, total, rounded in self._made:
            if product not in here:
                continue
            if wide in here:
                wide.replace_all_uses_with(total)
                self._graph.erase_node(wide)
            for each in rounded[:1]:
                product.replace_all_uses_with(each)
            self._graph.erase_node(product)


def _stand_in(graph: fx.Graph, total: fx.Node, a: fx.Node, b: fx.Node) -> StandIn:
    rounding = (total, dtype_of(a))
    rounded = [each for each in total.users if each.target is CONVERT and each.args == rounding]
    with graph.inserting_before(total.next):
        product = call(graph, PRODUCTS[len(sizes_of(a))], (a, b))
        wide = call(graph, CONVERT, (product, torch.float32))
    total.replace_all_uses_with(wide, lambda user: user not in rounded)
    if not wide.users:  # else it would be one more reader of the product
        graph.erase_node(wide)
    for each in rounded:
        each.replace_all_uses_with(product)
    return StandIn(product, wide, total, rounded)


def _operands(total: fx.Node) -> tuple[fx.Node, fx.Node] | None:
    """A [.., m, k] and B [.., k, n] of a sum over k of their products, where m or n is 1."""
    rank = len(sizes_of(total))
    if rank not in PRODUCTS or not _sums(total, rank - 1):
        return None
    multiplied = total.args[0]
    if not (isinstance(multiplied, fx.Node) and multiplied.target is aten.mul.Tensor):
        return None
    a, b = (
        _widened(each, dim) for each, dim in zip(multiplied.args, (rank, rank - 2), strict=True)
    )
    if a is None or b is None or dtype_of(a) is not dtype_of(b):
        return None
    if not (is_static(a) and is_static(b)):
        return None
    *stack, m, k = sizes_of(a)
    *others, depth, n = sizes_of(b)
    return (a, b) if 1 in (m, n) and (*stack, k) == (*others, depth) else None


def _sums(node: fx.Node, dim: int) -> bool:
    """Whether one dim is summed, and dropped, of a tensor that has one dim more."""
    dims = node.args[1]
    return (
        len(node.args) == 2
        and not node.kwargs
        and isinstance(dims, list | tuple)
        and [each % (len(sizes_of(node)) + 1) for each in dims] == [dim]
    )


def _widened(node: Any, dim: int) -> fx.Node | None:
    """The value of 16 bits that was made f32 and got this dim."""
    if not (isinstance(node, fx.Node) and node.target is aten.unsqueeze.default):
        return None
    wide, where = node.args
    if not isinstance(wide, fx.Node) or where % len(sizes_of(node)) != dim:  # type: ignore[operator]
        return None
    if wide.target is not CONVERT or wide.args[1] is not torch.float32:
        return None
    source = wide.args[0]
    narrow = isinstance(source, fx.Node) and dtype_of(source) in NARROW
    return source if narrow else None  # type: ignore[return-value]
