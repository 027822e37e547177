"""A torch module with views around its product, as one without: views of its inputs are arguments,
and those of its results are the caller's.

    q = linear(x, w, b)                              f(x', w, b, s') = linear(x', w, b) * s'
    q.view(2, 8, 4, 12).transpose(1, 2) * s    →     x' = x.reshape(16, 32), s' = s.permute(…)…
                                                     result.reshape(2, 8, 4, 12).permute(0, 2, 1, 3)

Every tensor that depends on the product is one of the product's own rows and columns, after a
chain of views. Elementwise operators are computed on rows and columns, so that what they read
beside goes through the chain backwards. What isn't read is refused, with the line of Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ...dialects.errors import CompileError
from .torch_view_ops import name_of, read_view, refusal, shape_of
from .view_chains import Chain
from .viewed_graph import ViewedGraph, is_copy, is_elementwise
from .viewed_products import PRODUCTS, Product, product_of


class Result(NamedTuple):
    """A result of the module: an output of its kernel, by which views, and whether it is a copy
    that lies as the module's own does."""

    output: int
    chain: Chain
    copied: bool


class Viewed(NamedTuple):
    """A module of arguments, numbers of the original's with a chain of views, and its results."""

    module: torch.nn.Module
    arguments: list[tuple[int, Chain | None]]
    results: list[Result]


def without_views(program: torch.export.ExportedProgram, values: Sequence[Any]) -> Viewed | None:
    """The program of these values without views around its product; None where it has none.

    Of a tensor that repeats elements a kernel reads one of them.

    Raises CompileError, with the line of Python, for what is not read.
    """
    if any(_changes(node) for node in program.graph.nodes):
        program = program.run_decompositions({})  # by operators that change nothing in place
    reader = Reader(program, values)
    if not all(isinstance(each, fx.Node) for each in reader.returned):
        return None
    try:
        viewed = reader.read()
    except CompileError:
        if reader.has_views():
            raise
        return None  # what is wrong with it is no view's fault
    plain = all(chain is None for _, chain in viewed.arguments)
    same = all(not each.chain.steps and not each.copied for each in viewed.results)
    return None if plain and same and not reader.has_views() else viewed


class Reader:
    """Follows what the results are computed from, and notes by which views they show a product."""

    def __init__(self, program: torch.export.ExportedProgram, values: Sequence[Any]) -> None:
        self.graph, self.values = program.graph, values
        given = list(program.graph_signature.user_inputs)
        nodes = {node.name: node for node in self.graph.find_nodes(op="placeholder")}
        self.places = {nodes[name]: given.index(name) for name in given if name in nodes}
        self.chains: dict[fx.Node, Chain] = {}
        self.products: dict[fx.Node, Product] = {}
        (output,) = self.graph.find_nodes(op="output")
        self.returned: list[fx.Node] = list(output.args[0])

    def has_views(self) -> bool:
        """Whether anything is viewed but by an exchange of the last two dims, which all take."""
        views = (read_view(node) for node in self._reachable())
        chains = (view[1] for view in views if view is not None)
        return any(each.steps and each != Chain(each.shape).swap() for each in chains)

    def read(self) -> Viewed:
        for node in self._reachable():
            self._follow(node)
        for each in self.returned:
            if each not in self.chains:
                raise refusal(each, "a result must depend on a product of matrices, got another")
        shown = [self._shown(each) for each in self.returned]
        roots = list(dict.fromkeys((root, back) for root, back, _ in shown))
        graph = ViewedGraph(self.values, self.places, self.products)
        module = graph.module([graph.write(root, back) for root, back in roots])
        results = [
            _result(roots.index((root, back)), chain, node)
            for (root, back, chain), node in zip(shown, self.returned, strict=True)
        ]
        self._check(Viewed(module, graph.arguments, results))
        return Viewed(module, graph.arguments, results)

    def _check(self, viewed: Viewed) -> None:
        """Hold what the new module gives to the types and shapes that torch gave the old one."""
        given = (chain or Chain(tuple(self.values[n].shape)) for n, chain in viewed.arguments)
        types = (self.values[number].dtype for number, _ in viewed.arguments)
        pairs = zip(given, types, strict=True)
        made = viewed.module(
            *(torch.empty(chain.result, dtype=dtype, device="meta") for chain, dtype in pairs)
        )
        outputs = made if isinstance(made, tuple) else (made,)
        for result, node in zip(viewed.results, self.returned, strict=True):
            own, found = node.meta["val"], outputs[result.output]
            if found.dtype != own.dtype or tuple(found.shape) != result.chain.shape:
                rule = f"must have the type that torch gives it, {own.dtype} {[*own.shape]}"
                raise refusal(node, f"{rule}, got {found.dtype} {[*found.shape]}")

    def _reachable(self) -> list[fx.Node]:
        """What the results are computed from, in the graph's order."""
        found, waiting = set(self.returned), list(self.returned)
        while waiting:
            more = [each for each in waiting.pop().all_input_nodes if each not in found]
            found.update(more)
            waiting += more
        return [node for node in self.graph.nodes if node in found]

    def _follow(self, node: fx.Node) -> None:
        """Note by which chain a node shows rows and columns of the product, if it does."""
        if node.op != "call_function":
            return
        if _changes(node):
            raise refusal(node, "must change no tensor in place beside views", "compute another")
        inner = [each for each in node.all_input_nodes if each in self.chains or _is_cut(each)]
        if name_of(node) in PRODUCTS:
            self._multiply(node, inner)
        elif _is_cut(node) or not any(self._is_inner(each) for each in inner):
            return
        elif view := read_view(node):
            if view[0] in self.chains:  # and not the size alone of something that is
                self.chains[node] = self.chains[view[0]].then(view[1])
        elif is_elementwise(node):
            self.chains[node] = self._shared(node, inner)
        else:
            raise refusal(node, "must be elementwise where it reads the product, got another kind")

    def _is_inner(self, node: fx.Node) -> bool:
        """Whether a node depends on the product."""
        return node in self.chains or (_is_cut(node) and node.args[0] in self.chains)

    def _multiply(self, node: fx.Node, inner: Sequence[fx.Node]) -> None:
        if inner:
            raise refusal(node, "a product must be of what is given, got one of another product")
        self.products[node] = product = product_of(node, self._is_copied)
        self.chains[node] = product.shown

    def _is_copied(self, node: fx.Node, chain: Chain) -> bool:
        """Whether what a chain of views makes of a view of an argument is a copy of it."""
        while node not in self.places:
            view = read_view(node)
            if view is None:
                return False
            node, chain = view[0], view[1].then(chain)
        value = self.values[self.places[node]]
        return is_copy(chain.of(value), value)

    def _shared(self, node: fx.Node, inner: Sequence[fx.Node]) -> Chain:
        """The chain that all inner operands of an elementwise operator have."""
        chains = {self._whole(node, self.chains[each]) for each in inner}
        shapes = {shape_of(each): None for each in (*inner, node)}
        if len(chains) > 1 or len(shapes) > 1:
            rule = "all that it reads of the product must be the same elements in one shape"
            raise refusal(node, f"{rule}, got {' and '.join(str([*each]) for each in shapes)}")
        return chains.pop()

    def _whole(self, node: fx.Node, chain: Chain) -> Chain:
        """The chain from the rows and columns that it shows of any product, which are its own."""
        if not chain.picks:
            return chain
        parts = [each.part(chain) for each in self.products.values() if each.shape == chain.shape]
        if not parts or parts[0] is None:
            rule = "must read whole rows or columns of the product, got parts or repeated ones"
            raise refusal(node, rule)
        return parts[0].shown

    def _shown(self, node: fx.Node) -> tuple[fx.Node, Chain, Chain]:
        """The node that an output of the kernel is, before the views that its caller makes, the
        chain from that to rows and columns, and the one from those to the result."""
        shown, root = self.chains[node], node
        while view := read_view(root):
            root = view[0]
        back = self.chains[root].inverse()
        assert back is not None, "products and elementwise operators show all elements"
        if len(self.returned) == 1 and root in self.products and shown.picks:
            part = self.products[root].part(shown)
            if part is not None and part.reached is not None:  # no more than that is computed
                return root, back.then(part.reached), part.shown
        return root, back, shown


def _changes(node: fx.Node) -> bool:
    """Whether an operator changes a tensor in place."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _is_cut(node: fx.Node) -> bool:
    """Whether a node is several tensors that another is cut into."""
    return isinstance(node.meta.get("val"), list | tuple)


def _result(output: int, chain: Chain, node: fx.Node) -> Result:
    """How a result is made of the kernel's output, to lie as the module's own does."""
    own = node.meta["val"]
    made = chain.of(torch.empty(chain.shape, dtype=own.dtype, device="meta"))
    return Result(output, chain, own.is_contiguous() and not made.is_contiguous())
