"""A region as a function of its accumulators and its other operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ...dialects.errors import CompileError
from .frames import framed
from .products import Product, aten, dtype_of, is_truth, sizes_of
from .region import CONVERT, Region, is_constant, is_same


def function_of(region: Region) -> Callable[..., Any]:
    """The region as a function of the sums and the operands, all in the frame's sizes."""

    hidden = region.hidden
    unrounded = {each.node for each in region.products if takes_a_bias(region, each)}

    def epilogue(*values: torch.Tensor) -> Any:
        count = len(region.products)
        given = zip(region.operands, values[count:], strict=True)
        known = {node: value != 0 if is_truth(node) else value for node, value in given}
        sums = {
            each.node: (each, value) for each, value in zip(region.products, values, strict=False)
        }
        for node in region.nodes:
            if node in hidden:
                continue
            if node in sums:
                product, found = sums[node]
                made = product.of_sums(found, lambda each: _value(each, known))
                known[node] = made if node in unrounded else made.to(dtype_of(node))
            else:
                known[node] = _computed(node, known)
        first, *others = (known[each] for each in region.outputs)
        return (first, *others) if others else first

    return epilogue


def takes_a_bias(region: Region, product: Product) -> bool:
    """Whether a row is added to the product first, as an addmm adds it before it rounds.

    Inductor takes such an addmm apart, where eager torch has rounded once.
    """
    node, inside = product.node, set(region.nodes)
    while len(node.users) == 1 and is_same(next(iter(node.users))):
        node = next(iter(node.users))
    user = next(iter(node.users), None)
    if user is None or user not in inside or len(node.users) != 1 or node in region.outputs:
        return False
    if user.target is not aten.add.Tensor or user.kwargs or dtype_of(user) is not dtype_of(node):
        return False
    others = [each for each in user.args if each is not node]
    rows = (
        framed(sizes_of(e), sizes_of(user), region.frame) for e in others if isinstance(e, fx.Node)
    )
    return next(rows, None) == (*[1] * (len(region.frame) - 1), region.frame[-1])


def _computed(node: fx.Node, known: dict[fx.Node, Any]) -> Any:
    """The value of an operator on values in the frame."""

    def value(argument: fx.Node) -> torch.Tensor:
        return _value(argument, known)

    if is_same(node):
        return value(node.args[0])  # type: ignore[arg-type]
    if node.target is CONVERT:
        return aten._to_copy.default(value(node.args[0]), dtype=node.args[1])  # type: ignore[arg-type]
    arguments = fx.node.map_arg(node.args, value)
    options = {n: e for n, e in fx.node.map_arg(node.kwargs, value).items() if n not in PLACES}
    return node.target(*arguments, **options).to(dtype_of(node))  # type: ignore[operator]


def _value(node: fx.Node, known: dict[fx.Node, Any]) -> torch.Tensor:
    """A value in the frame; a constant has none of the frame's dims."""
    return known[node] if node in known else _constant(node)


PLACES = ("device", "layout", "pin_memory", "memory_format")
"""Keywords that say where a value lies, which a kernel's value does nowhere."""


def _constant(node: fx.Node) -> torch.Tensor:
    if not is_constant(node):
        raise CompileError(f"region: must know all it reads, got {node.name}")
    return torch.full((), node.args[-1], dtype=dtype_of(node))  # type: ignore[arg-type]
