"""The pass that Inductor runs on the joint graph, before it is partitioned.

    le(relu, 0)  →  le(reshape(saved), 0), of saved = view(relu, …), which mm reads in backward

ReLU's gradient compares what ReLU gave, in the sizes that it has in the model. The product of a
weight's gradient reads the same value as a matrix, and forward saves that. torch, which does not
see that both are one, would save the result of the comparison as well: a bool for each element,
which no kernel of ours stores in forward or reads in backward. So what is saved is compared, and
the kernel of the gradient does that by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from torch import fx
from torch._inductor.custom_graph_pass import CustomGraphPass

from ..own_sources import source_digest
from .products import aten, is_static, product_of, sizes_of
from .region import PERMUTES, VIEWS

COMPARISONS = tuple(getattr(aten, name).Scalar for name in ("le", "lt", "ge", "gt", "eq", "ne"))
TANGENTS = "tangents"
"""How torch names what backward gets, in a graph of both."""


class JointPass(CustomGraphPass):
    """Compares in backward what forward saves; `before` is a pass that runs ahead of it."""

    def __init__(self, before: Any = None):
        self.before = before

    def __call__(self, graph: fx.Graph) -> None:
        for each in several(self.before):
            each(graph)
        compare_what_is_saved(graph)

    def uuid(self) -> Any:
        """What torch keys its cache of graphs by; None where a pass before has no name."""
        return named_with(self.before, source_digest())


def several(passes: Any) -> list[Any]:
    """The passes of one of Inductor's places for them."""
    if passes is None:
        return []
    return list(passes) if isinstance(passes, list | tuple) else [passes]


def named_with(before: Any, *parts: str) -> str | None:
    """The name of a pass of these parts after others; None where one of them has none."""
    names = []
    for each in several(before):
        found = each.uuid() if hasattr(each, "uuid") else None
        if found is None:
            return None
        names.append(repr(found))
    return hashlib.sha256("\n".join([*parts, *names]).encode()).hexdigest()


def compare_what_is_saved(graph: fx.Graph) -> None:
    """Let comparisons read the view of their value that a product of backward reads."""
    order = {node: place for place, node in enumerate(graph.nodes)}
    backward: set[fx.Node] | None = None
    for target in COMPARISONS:
        for node in graph.find_nodes(op="call_function", target=target):
            backward = _backward(graph) if backward is None else backward
            saved = _saved(node.args[0], backward)
            if saved is not None and order[saved] < order[node]:
                _compare(graph, node, saved)


def _backward(graph: fx.Graph) -> set[fx.Node]:
    """What is computed from what backward gets."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        given = node.op == "placeholder" and node.name.startswith(TANGENTS)
        if given or any(each in found for each in node.all_input_nodes):
            found.add(node)
    return found


def _saved(value: Any, backward: set[fx.Node]) -> fx.Node | None:
    """Another view of a value than its own that a product of backward reads; None where there is
    none, or where the value itself is read."""
    if not isinstance(value, fx.Node) or value in backward or not is_static(value):
        return None
    root = value
    while root.target in VIEWS:
        root = root.args[0]  # type: ignore[assignment]
    views = [each for each in _views(root) if each not in backward]
    read = [each for each in views if _is_read(each, backward)]
    return None if not read or value in read else read[0]


def _views(root: fx.Node) -> Iterator[fx.Node]:
    """A value and its views, which lie as it lies."""
    yield root
    for user in root.users:
        if user.target in VIEWS:
            yield from _views(user)


def _is_read(value: fx.Node, backward: set[fx.Node]) -> bool:
    """Whether a product of backward multiplies it, as it is or turned."""
    return any(
        _is_read(user, backward)
        if user.target in PERMUTES
        else user in backward and product_of(user) is not None
        for user in value.users
    )


def _compare(graph: fx.Graph, node: fx.Node, saved: fx.Node) -> None:
    """Let a comparison read what is saved, in the sizes of what it reads now."""
    value: Any = node.args[0]
    sizes, fake = list(sizes_of(value)), saved.meta["val"]
    with graph.inserting_before(node), fake.fake_mode:
        seen = graph.call_function(aten.reshape.default, (saved, sizes))
        seen.meta = {**saved.meta, "val": fake.reshape(sizes)}
    node.replace_input_with(value, seen)
