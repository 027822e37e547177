"""Products of torch by rows and columns: which views of their operands give a matrix or a stack of
matrices, and how the result that torch gives is a view of that.

    linear(x, w), x [2, 3, 8, k]        rows of x.reshape(48, k), shown as [2, 3, 8, n]
    a @ b, a and b of four dims         a stack of all their matrices, shown in four dims
    linear(x, w).chunk(3, -1)[1]        of the rows n / 3 to 2n / 3 of w, shown as it is
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import torch
from torch import fx

from ...dialects.record import record
from .torch_view_ops import name_of, refusal, shape_of
from .view_chains import Chain, Shape, Step

aten: Any = torch.ops.aten
IsCopied = Callable[[fx.Node, Chain], bool]
"""Whether a chain of a node's is a copy."""
Operand = tuple[fx.Node, Chain]
WIDE = ("aten::mm", "aten::bmm")
"""Products that may have a wider type than their operands."""
Writes = Callable[[fx.Node, Chain], fx.Node]


@record
class Product:
    """One product: its operands as rows of K, as [K, N] or, of a layer, as [N, K], and what is
    added.

    shape: its rows and columns, [m, n], or [b, m, n] of a stack. shown: how torch shows them.
    reached: where it is a part of another product, how that one's rows and columns give its own.
    """

    node: fx.Node
    a: Operand
    b: Operand
    added: Operand | None
    shape: Shape
    shown: Chain
    reached: Chain | None = None

    @property
    def is_layer(self) -> bool:
        """Whether it is an F.linear."""
        return name_of(self.node) == "aten::linear"

    def part(self, chain: Chain) -> Product | None:
        """The product of those rows and columns alone that a chain from `shape` picks; None where
        it doesn't pick whole ones."""
        split = _split(chain, self.shape)
        if split is None or (split.picks_rows and len(self.b[1].result) == 3):
            return None
        rows, columns = split.rows(self.shape[:-1]), split.columns(self.shape[-1])
        shape = (*rows.result, *columns.result)
        reached = split.picked.reshape(shape)
        added = self.added and (self.added[0], self._added_part(self.added[1], columns, reached))
        return replace(
            self,
            a=(self.a[0], self.a[1].then(_beside(rows, self.a[1].result[-1:], True))),
            b=(self.b[0], self.b[1].then(self._beside_k(columns))),
            added=added,
            shape=shape,
            shown=Chain(shape).reshape(split.picked.result).then(split.rest),
            reached=reached,
        )

    def _beside_k(self, columns: Chain) -> Chain:
        shape = self.b[1].result
        return _beside(columns, shape[1:] if self.is_layer else shape[:-1], self.is_layer)

    def _added_part(self, added: Chain, columns: Chain, reached: Chain) -> Chain:
        return added.then(columns if self.is_layer else reached)

    def write(self, graph: fx.Graph, operand: Writes, beside: Writes) -> fx.Node:
        """The product in a graph; `operand` writes what it multiplies, `beside` what it adds."""
        taken = [operand(*each) for each in (self.a, self.b)]
        stacked = len(self.shape) == 3
        if self.is_layer:
            bias = [beside(*self.added)] if self.added else []
            return graph.call_function(aten.linear.default, (*taken, *bias))
        if self.added:
            target = aten.baddbmm.default if stacked else aten.addmm.default
            added = beside(*self.added)
            return graph.call_function(target, (added, *taken), dict(self.node.kwargs))
        product = aten.bmm if stacked else aten.mm
        if name_of(self.node) in WIDE:  # a type of the sums may be given after the operands
            overload = getattr(product, getattr(self.node.target, "_overloadname", "default"))
            return graph.call_function(overload, (*taken, *self.node.args[2:]))
        return graph.call_function(product.default, tuple(taken))


@record
class _Split:
    """A chain as what it picks, of dims that are of rows alone or of columns alone, and the rest.

    outer: how many dims are of rows.
    """

    shape: Shape
    outer: int
    slices: tuple[Step, ...]
    rest: Chain
    picked: Chain

    @property
    def picks_rows(self) -> bool:
        return any(step.what[0] < self.outer for step in self.slices)

    def rows(self, shape: Shape) -> Chain:
        """From all rows to those that are picked, in two dims of a stack of matrices."""
        if not self.picks_rows:
            return Chain(shape)
        found = Chain(shape).reshape(self.shape[: self.outer])
        for step in self.slices:
            if step.what[0] < self.outer:
                found = found.slice(step.what)
        one = (prod(found.result),)
        return found.reshape(found.result if len(found.result) == len(shape) else one)

    def columns(self, count: int) -> Chain:
        """From all columns to those that are picked."""
        found = Chain((count,)).reshape(self.shape[self.outer :])
        for step in self.slices:
            dim, *part = step.what
            if dim >= self.outer:
                found = found.slice((dim - self.outer, *part))
        return found.reshape((prod(found.result),))


def _split(chain: Chain, shape: Shape) -> _Split | None:
    """What a chain picks first; None where that isn't rows and columns."""
    steps, viewed = list(chain.steps), shape
    if steps and steps[0].kind == "reshape":
        viewed = steps.pop(0).what
    count = next((n for n, step in enumerate(steps) if step.kind != "slice"), len(steps))
    slices, picked = tuple(steps[:count]), Chain(shape).reshape(viewed)
    for step in slices:
        picked = picked.slice(step.what)
    rest = Chain(picked.result, tuple(steps[count:]))
    outer = next((d for d in range(len(viewed)) if prod(viewed[:d]) == prod(shape[:-1])), None)
    if not slices or rest.picks or outer is None:
        return None
    return _Split(viewed, outer, slices, rest, picked)


def _beside(chain: Chain, others: Shape, first: bool) -> Chain:
    """The chain of a tensor's first dims, or of its last ones, the others of which stay."""
    found = Chain((*chain.shape, *others) if first else (*others, *chain.shape))
    for kind, what in chain.steps:
        if kind == "slice":
            found = found.slice(what if first else (what[0] + len(others), *what[1:]))
        else:
            found = found.reshape((*what, *others) if first else (*others, *what))
    return found


def product_of(node: fx.Node, is_copied: IsCopied) -> Product:
    """The product that a node is. Raises CompileError for one with a type of its own."""
    overload = getattr(node.target, "_overloadname", "default")
    if overload not in ("default", "dtype") or (overload == "dtype" and name_of(node) not in WIDE):
        raise refusal(node, f"must be the plain product, got {node.target}")
    return PRODUCTS[name_of(node)](node, is_copied)


def _layer(node: fx.Node, is_copied: IsCopied) -> Product:
    x, weight, *bias = node.args
    (*lead, k), of_weight = shape_of(x), shape_of(weight)
    if len(of_weight) != 2:
        raise refusal(node, f"a weight must be a matrix, got {[*of_weight]}")
    n = of_weight[0]
    whole = Chain((*lead, k))
    rows = _rows(x, whole if lead else whole.reshape((1, k)), is_copied)
    added = (bias[0], Chain((n,))) if bias and bias[0] is not None else None
    shape = (*rows[1].result[:-1], n)
    shown = Chain(shape).reshape((*lead, n))
    return Product(node, rows, (weight, Chain((n, k))), added, shape, shown)


def _rows(x: fx.Node, whole: Chain, is_copied: IsCopied) -> Operand:
    """All rows as one matrix, or as a stack of them where only that is no copy.

    A stack stays one, of which an epilogue may read rows that all matrices share.
    """
    *lead, k = whole.result
    real = (*(size for size in lead[:-1] if size != 1), lead[-1])
    if len(real) <= 2:
        return x, whole.reshape((*real, k))
    splits = range(1, len(real))
    shapes = [(prod(lead), k), *((prod(real[:d]), prod(real[d:]), k) for d in splits)]
    found = [whole.reshape(shape) for shape in shapes]
    return x, next((each for each in found if not is_copied(x, each)), found[0])


def _multiplied(node: fx.Node, is_copied: IsCopied) -> Product:
    a, b = (shape_of(each) for each in node.args[:2])
    left, right = Chain(a), Chain(b)
    if len(a) == 1:
        left = left.reshape((1, *a))
    if len(b) == 1:
        right = right.reshape((*b, 1))
    lead = tuple(torch.broadcast_shapes(left.result[:-2], right.result[:-2]))
    operands: tuple[Operand, Operand] = (node.args[0], left), (node.args[1], right)
    one = prod(right.result[:-2]) == 1
    x, y = _times_one(*operands, is_copied) if one else _times_stack(*operands, lead)
    shape = (*x[1].result[:-1], y[1].result[-1])
    torch_shape = (*lead, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))
    return Product(node, x, y, None, shape, Chain(shape).reshape(torch_shape))


def _times_one(a: Operand, b: Operand, is_copied: IsCopied) -> tuple[Operand, Operand]:
    """The operands of a product of rows and one matrix, which a stack of rows shares."""
    left = _rows(*a, is_copied)
    stack, matrix = left[1].result[:-2], b[1].result[-2:]
    return left, (b[0], b[1].reshape(matrix).expand((*stack, *matrix)))


def _times_stack(a: Operand, b: Operand, lead: Shape) -> tuple[Operand, Operand]:
    """The operands of a product of two stacks, whose leading dims become one."""
    spread = (
        (node, chain.expand((*lead, *chain.result[-2:])).reshape((prod(lead), *chain.result[-2:])))
        for node, chain in (a, b)
    )
    return next(spread), next(spread)


def _with_added(node: fx.Node, _: IsCopied) -> Product:
    added, a, b = node.args[:3]
    shape = (*shape_of(a)[:-1], shape_of(b)[-1])
    spread = added, Chain(shape_of(added)).expand(shape)
    left, right = ((each, Chain(shape_of(each))) for each in (a, b))
    return Product(node, left, right, spread, shape, Chain(shape))


def _einsum(node: fx.Node, _: IsCopied) -> Product:
    """An einsum of two operands: letters of both and of the result are batch dims, letters of both
    alone are K."""
    equation, given = str(node.args[0]).replace(" ", ""), node.args[1]
    terms, out = (*equation.split("->"), "")[:2]
    left, *others = pairs = list(zip(terms.split(","), given, strict=False))
    sizes = [dict(zip(letters, shape_of(each), strict=False)) for letters, each in pairs]
    if not _is_product(out, [letters for letters, _ in pairs], sizes):
        rule = (
            "must be of two operands, each letter once in each and of one size, and summed in both"
        )
        raise refusal(node, f"{rule}, got {equation}")
    (right,) = others
    if out[-1:] in [*left[0]] and out[-1:] not in [*right[0]]:
        left, right = right, left  # so that the result has its columns last
    size = sizes[0] | sizes[1]
    stack = "".join(each for each in out if each in left[0] and each in right[0])
    rows, columns = (
        "".join(c for c in out if c in own and c not in stack) for own, _ in (left, right)
    )
    depth = "".join(each for each in left[0] if each not in out)

    def operand(given: tuple[str, fx.Node], first: str, last: str) -> Operand:
        order = tuple(given[0].index(each) for each in stack + first + last)
        shape = tuple(prod(size[each] for each in group) for group in (stack, first, last))
        chain = Chain(tuple(size[each] for each in given[0])).permute(order)
        return given[1], chain.reshape(shape if stack else shape[1:])

    a, b = operand(left, rows, depth), operand(right, depth, columns)
    shape = (*a[1].result[:-1], b[1].result[-1])
    made = stack + rows + columns
    shown = Chain(shape).reshape(tuple(size[each] for each in made))
    return Product(node, a, b, None, shape, shown.permute(tuple(made.index(c) for c in out)))


def _is_product(out: str, terms: list[str], sizes: list[dict[str, int]]) -> bool:
    """Whether an einsum multiplies two operands and sums only what both have."""
    if len(terms) != 2 or not all(each.isalpha() for each in terms) or not (out + "a").isalpha():
        return False
    left, right = map(set, terms)
    once = all(len({*each}) == len(each) for each in (*terms, out))
    whole = (left ^ right) <= {*out} <= (left | right) and (left & right) - {*out}
    return bool(once and whole and all(sizes[0][c] == sizes[1][c] for c in left & right))


PRODUCTS: dict[str, Callable[[fx.Node, IsCopied], Product]] = {
    "aten::einsum": _einsum,
    "aten::linear": _layer,
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::matmul"), _multiplied),
    **dict.fromkeys(("aten::addmm", "aten::baddbmm"), _with_added),
}
