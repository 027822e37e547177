"""The graph of a module without views, written from its results: each operator on operands of which
the views that come after it are made first, down to the arguments.

    (x + s).view(6, 8)    →    x.view(6, 8) + s.expand(…).reshape(6, 8)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any

import torch
from torch import fx

from .torch_view_ops import name_of, read_view, refusal, shape_of
from .view_chains import Chain, Shape
from .viewed_products import Product

aten: Any = torch.ops.aten
OTHERS = (
    "aten::full_like", "aten::zeros_like", "aten::ones_like", "aten::to", "aten::_to_copy",
    "aten::relu6", "aten::selu", "aten::celu", "aten::hardtanh", "aten::hardswish",
    "aten::hardsigmoid", "aten::log_sigmoid", "aten::hardshrink", "aten::threshold", "aten::square",
    "aten::clip", "aten::subtract", "aten::multiply", "aten::divide", "aten::true_divide",
)  # fmt: skip
"""Elementwise operators that torch doesn't mark so."""


def is_elementwise(node: fx.Node) -> bool:
    """Whether each element of a node's result is of those at its place alone."""
    if not isinstance(node.target, torch._ops.OpOverload) or not hasattr(node.meta["val"], "shape"):
        return False
    shapes = [shape_of(each) for each in node.all_input_nodes]
    if torch.broadcast_shapes(*shapes) != shape_of(node):
        return False
    tags = node.target.tags
    random = torch.Tag.nondeterministic_seeded in tags
    return name_of(node) in OTHERS or (torch.Tag.pointwise in tags and not random)


def is_copy(view: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a tensor lies elsewhere than the one that it was made of."""
    return view.untyped_storage()._cdata != value.untyped_storage()._cdata


class ViewedGraph:
    """A graph that is written for one that was read: of arguments with these values, which are the
    nodes in `places` by their numbers, and of these products.

    arguments: of each placeholder the number of what it is a view of, and the chain of views.
    """

    def __init__(
        self,
        values: Sequence[torch.Tensor],
        places: Mapping[fx.Node, int],
        products: Mapping[fx.Node, Product],
    ) -> None:
        self._values, self._places, self._products = values, places, products
        self._made = fx.Graph()
        self.arguments: list[tuple[int, Chain | None]] = []
        self._taken: dict[tuple[int, Chain], fx.Node] = {}
        self._written: dict[tuple[fx.Node, Chain, bool], fx.Node] = {}
        self._shapes: dict[fx.Node, Shape] = {}

    def module(self, outputs: list[fx.Node]) -> torch.nn.Module:
        """The module that returns these nodes."""
        self._made.output(outputs[0] if len(outputs) == 1 else tuple(outputs))
        self._made.lint()
        return fx.GraphModule(torch.nn.Module(), self._made)

    def write(self, node: fx.Node, view: Chain, multiplied: bool = False) -> fx.Node:
        """What a chain of views makes of a node that was read, or what broadcasts to that.

        multiplied: whether a product reads it, which takes either order of a matrix in memory.
        """
        key = node, view, multiplied
        if key not in self._written:
            made = self._of(node, view, multiplied)
            if "stack_trace" in node.meta and made.op == "call_function":
                made.meta.setdefault("stack_trace", node.meta["stack_trace"])
            self._written[key] = made
        return self._written[key]

    def _of(self, node: fx.Node, view: Chain, multiplied: bool) -> fx.Node:
        if node in self._places:
            return self._argument(self._places[node], view, multiplied)
        if node in self._products:
            return self._product(node, view)
        if (found := read_view(node)) is not None:
            return self.write(found[0], found[1].then(view), multiplied)
        if is_elementwise(node):
            return self._elementwise(node, view, multiplied)
        raise refusal(node, "must be a view, or elementwise, of arguments, got another kind")

    def _elementwise(self, node: fx.Node, view: Chain, multiplied: bool) -> fx.Node:
        """The operator on operands that broadcast to what the view makes of its result."""

        def seen(each: fx.Node) -> fx.Node:
            own = shape_of(each)  # one without dims has no part in the choice of a type
            spread = Chain(own).expand(shape_of(node)).then(view) if own else Chain(own)
            return self.write(each, spread, multiplied)

        taken = fx.map_arg(node.args, seen), fx.map_arg(node.kwargs, seen)
        target: Any = node.target
        made = self._made.call_function(target, *taken)
        shapes = [self._shapes[each] for each in made.all_input_nodes]
        return self._shaped(made, tuple(torch.broadcast_shapes(*shapes)))

    def _product(self, node: fx.Node, view: Chain) -> fx.Node:
        product = self._products[node]
        total = product.shown.then(view)
        if total.steps:
            part = product.part(total)
            if part is None or part.reached != total:
                rule = "its rows and columns must be read in one order"
                raise refusal(node, f"{rule}, got them as {total.named('those')}")
            product = part
        made = product.write(self._made, self._operand, self.write)
        return self._shaped(made, product.shape)

    def _operand(self, node: fx.Node, view: Chain) -> fx.Node:
        """An operand of a product, with all of its elements."""
        found = self.write(node, view, multiplied=True)
        if self._shapes[found] == view.result:
            return found
        spread = self._made.call_function(aten.expand.default, (found, list(view.result)))
        return self._shaped(spread, view.result)

    def _argument(self, number: int, view: Chain, multiplied: bool) -> fx.Node:
        """An argument by a chain of views."""
        view = _without_repeats(view, stacks_alone=multiplied)
        example = view.of(self._values[number])
        strides, columns = example.stride(), example.shape[-1:]
        is_transposed = columns[0] > 1 and strides[-2:-1] == (1,) if multiplied else False
        if not is_transposed or strides[-1] <= 1:
            return self._placeholder(number, view)
        found = self._placeholder(number, view.swap())
        transposed = self._made.call_function(aten.transpose.int, (found, -1, -2))
        return self._shaped(transposed, view.result)

    def _placeholder(self, number: int, view: Chain) -> fx.Node:
        key = number, view
        if key not in self._taken:
            others = (each for each in self._made.nodes if each.op != "placeholder")
            behind = next(others, None)
            with self._made.inserting_before(behind) if behind else nullcontext():
                found = self._made.placeholder(f"argument_{len(self._taken)}")
            self.arguments.append((number, view if view.steps else None))
            self._taken[key] = self._shaped(found, view.result)
        return self._taken[key]

    def _shaped(self, node: fx.Node, shape: Shape) -> fx.Node:
        self._shapes[node] = shape
        return node


def _without_repeats(view: Chain, stacks_alone: bool) -> Chain:
    """The chain without dims that repeat elements, of whatever lies in memory: those have one
    element, and are left out where they are the first ones.

    stacks_alone: only where a stack is one matrix repeated.
    """
    example = view.of(torch.empty(view.shape, device="meta"))
    pairs = list(zip(example.shape, example.stride(), strict=True))
    repeats = [dim for dim, (size, stride) in enumerate(pairs) if size > 1 and not stride]
    if stacks_alone:
        repeats = [dim for dim in repeats if dim == 0 and len(pairs) == 3]
    for dim in repeats:
        view = view.slice((dim, 0, 1, 1))
    first = next(dim for dim in range(len(pairs) + 1) if dim not in repeats)
    shape = view.result
    return _plainer(view.reshape(shape[min(first, max(0, len(shape) - 1)) :]))


def _plainer(view: Chain) -> Chain:
    """A reshape alone, where a chain comes to that."""
    plain = Chain(view.shape).reshape(view.result)
    if prod(view.shape) != prod(view.result):
        return view
    source = torch.empty(view.shape, device="meta")
    places = (
        (each.stride(), each.storage_offset()) for each in (plain.of(source), view.of(source))
    )
    return plain if len({*places}) == 1 and not is_copy(view.of(source), source) else view
