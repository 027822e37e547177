"""Matmuls whose result is split in two, such as gate and up projections in one weight.

    y = mm(x, w)                        g = mm(x, w[:, :n])
    g, u = split(y, n, -1)         →    u = mm(x, w[:, n:])

The halves of the weight are views, of which nothing is copied. Only one kernel of both halves is
worth it: where there is none, the product stays whole.
"""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from .products import Product, aten, sizes_of

VIEWS = (aten.reshape.default, aten.view.default, aten._unsafe_view.default)


def halves_of(product: Product) -> list[Product]:
    """Both halves of a product that is cut so, the first one first; [] for any other."""
    whole_of_scales = all(sizes_of(each) in ((), (1,), (1, 1)) for each in product.scales)
    others = product.addend is not None or product.offsets is not None or product.b_is_nk
    others = others or bool(product.blocks)
    if others or not whole_of_scales:
        return []
    if product.alpha != 1 or len(sizes_of(product.node)) != 2 or not product.is_static():
        return []
    columns = sizes_of(product.node)[-1]
    leaves = _leaves(_last_view(product.node), columns)
    if sorted(leaves.values()) != [(0, columns // 2), (columns // 2, columns)] or columns % 2:
        return []
    ordered = sorted(leaves, key=leaves.__getitem__)
    return [product._replace(node=n, part=leaves[n], origin=product.node) for n in ordered]


def whole(product: Product) -> Product:
    """The product of which one may be a half."""
    return product._replace(node=product.multiplies, part=None, origin=None)


def way_to(product: Product) -> list[fx.Node]:
    """What lies between a half and its operator, with that; [] for a whole product."""
    found: list[fx.Node] = []
    node: Any = product.node
    while product.origin is not None and node is not product.origin:
        node = node.args[0]
        found.append(node)
    return found


def _last_view(node: fx.Node) -> fx.Node:
    while len(node.users) == 1:
        user = next(iter(node.users))
        if user.target not in VIEWS or sizes_of(user)[-1] != sizes_of(node)[-1]:
            return node
        node = user
    return node


def _leaves(node: fx.Node, columns: int) -> dict[fx.Node, tuple[int, int]]:
    """The cuts of a value's columns, from one to another; {} where something else reads it."""
    found: dict[fx.Node, tuple[int, int]] = {}
    last = len(sizes_of(node)) - 1
    for user in node.users:
        if user.target in (aten.split.Tensor, aten.split_with_sizes.default):
            dim = user.args[2] if len(user.args) > 2 else user.kwargs.get("dim", 0)
            pieces = {each: _span_of_piece(each) for each in user.users}
            if dim not in (-1, last) or None in pieces.values():
                return {}
            found |= pieces  # type: ignore[arg-type]
        elif user.target is aten.slice.Tensor and user.args[1] in (-1, last):
            start, stop, step = (*user.args[2:], *(0, columns, 1)[len(user.args) - 2 :])
            if step != 1 or not all(isinstance(each, int) for each in (start, stop)):
                return {}
            found[user] = int(start or 0), min(int(stop), columns)  # type: ignore[arg-type]
        else:
            return {}
    return found


def _span_of_piece(node: fx.Node) -> tuple[int, int] | None:
    """The columns that a piece of a split is."""
    if node.target is not operator.getitem:
        return None
    split: Any = node.args[0]
    widths = [each.shape[-1] for each in split.meta["val"]]
    number: Any = node.args[1]
    return sum(widths[:number]), sum(widths[: number + 1])
