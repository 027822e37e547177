"""1x1 convolutions as matmuls, while regions are searched.

    channels last    x [n, c, h, w] · w [o, c, 1, 1]   →   [nhw, c] · [c, o], values [n, h, w, o]
    one image        the same where rows are dense     →   [o, c] · [c, hw], values [o, hw]
    several images   likewise                          →   [o, c] · [n, c, hw], values [n, o, hw]

Elementwise operators after them are written for values in these orders, and others read them
through views. What a kernel takes stays so. Where none does, the graph is what it was; a
convolution that is left beside one that is taken is read through views as well.

An operator that is written anew stays in its place, without arguments, until `restore`.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import torch
from torch import fx

from .products import aten, dtype_of, is_static, sizes_of
from .region import CONVERT, changes, is_constant
from .replace import call

STANDS_FOR = "tilewright_convolution"
"""In the meta of a product: the form and the sizes of the convolution that it stands for."""
NARROW = (torch.bfloat16, torch.float16)
ROWS, ONE, STACK = "channels last", "one image", "several images"
TO_ROWS, FROM_ROWS = (0, 2, 3, 1), (0, 3, 1, 2)
Sizes = tuple[int, ...]


class Written(NamedTuple):
    """An operator, its arguments, and what stands for it; of a convolution also its product."""

    node: fx.Node
    args: tuple[Any, ...]
    form: str
    value: fx.Node
    made: list[fx.Node]
    product: fx.Node | None = None


class Convolutions:
    """A graph in which products stand for convolutions of 1x1, until `restore`."""

    def __init__(self, graph: fx.Graph):
        self._graph = graph
        self._written: dict[fx.Node, Written] = {}
        convolutions = graph.find_nodes(op="call_function", target=aten.convolution.default)
        self._forms = {node: form for node in convolutions if (form := _form(node))}
        if len(self._forms) < len(convolutions):
            # Inductor may let the others have channels last, and would turn what lies between.
            self._forms = {node: form for node, form in self._forms.items() if form == ROWS}
        for node in list(graph.nodes):
            if node.op == "call_function":
                self._write(node)
        self._back = {each.node: self._read_back(each) for each in self._written.values()}
        for node in self._written:
            node.args = ()

    def restore(self) -> None:
        """Put back the convolutions whose products are still there."""
        taken = {e.node for e in self._written.values() if e.product and e.product._erased}
        mixed = self._with(taken)
        for each in self._written.values():
            if each.node not in mixed:
                self._put_back(each)
            elif each.product is not None and not each.product._erased:
                self._beside(each)
        for each in reversed(self._written.values()):
            for node in reversed([*each.made, *self._back[each.node]]):
                if not node.users and not node._erased:
                    self._graph.erase_node(node)
            if not each.node.args:
                self._graph.erase_node(each.node)

    def _with(self, taken: set[fx.Node]) -> set[fx.Node]:
        """What stands with these in one value: operators that read them, and what those read."""
        found = set(taken)
        while True:
            more = {
                each.node
                for each in self._written.values()
                for other in _tensors(each.args)
                if other in self._written and (each.node in found) != (other in found)
            }
            more |= {
                other
                for each in self._written.values()
                if each.node in found
                for other in _tensors(each.args)
                if other in self._written
            }
            if more <= found:
                return found
            found |= more

    def _put_back(self, each: Written) -> None:
        each.node.args = self._args(each)
        for view in self._back[each.node]:
            view.replace_all_uses_with(each.node)

    def _beside(self, each: Written) -> None:
        """Leave a convolution as it was, and read it as others do that are written anew."""
        each.node.args = self._args(each)
        with self._graph.inserting_before(each.value.next):
            view = _transposed(self._graph, each.node, each.form)
        assert view is not None
        each.value.replace_all_uses_with(view)

    def _args(self, each: Written) -> tuple[Any, ...]:
        """The arguments as they are now: regions may have taken what made them."""
        if each.product is not None:
            *bias, a, b = each.product.args
            x, weight = (a, b) if each.form == ROWS else (b, a)
            read = [_source(value, each.made) for value in (x, weight, *(bias or [None]))]
            return *read, *each.args[3:]
        return tuple(
            _source(value, each.made)
            if isinstance(arg, fx.Node) and arg not in self._written
            else arg
            for arg, value in zip(each.args, each.value.args, strict=True)
        )

    def _write(self, node: fx.Node) -> None:
        before = set(self._graph.nodes)
        with self._graph.inserting_before(node.next):
            form = self._forms.get(node)
            made = _product(self._graph, node, form) if form else self._elementwise(node)
        created = [each for each in self._graph.nodes if each not in before]
        if made is None:
            for each in reversed(created):
                self._graph.erase_node(each)
            return
        form, value, product = made
        value.meta.update({k: v for k, v in node.meta.items() if k not in value.meta})
        self._written[node] = Written(node, node.args, form, value, created, product)

    def _elementwise(self, node: fx.Node) -> tuple[str, fx.Node, None] | None:
        """An operator on values that are written anew, and others that may be viewed so."""
        read = [each for each in _tensors(node.args) if each in self._written]
        forms = {self._written[each].form for each in read}
        if len(forms) != 1 or not _is_elementwise(node):
            return None
        (form,), sizes = forms, sizes_of(read[0])
        if sizes_of(node) != sizes or not _lies_so(node, form):
            return None
        found = {each: self._written[each].value for each in read}
        for each in _tensors(node.args):
            view = found.get(each) or _transposed(self._graph, each, form, sizes)
            if view is None:
                return None
            found[each] = view
        args = [found[each] if isinstance(each, fx.Node) else each for each in node.args]
        return form, call(self._graph, node.target, tuple(args)), None

    def _read_back(self, each: Written) -> list[fx.Node]:
        """The view that others read in the operator's place, if any do."""
        others = [user for user in each.node.users if user not in self._written]
        if not others:
            return []
        with self._graph.inserting_before(each.value.next):
            if each.form == ROWS:
                view = call(self._graph, aten.permute.default, (each.value, list(FROM_ROWS)))
            else:
                view = _reshaped(self._graph, each.value, sizes_of(each.node))
        each.node.replace_all_uses_with(view, lambda user: user in others)
        return [view]


def convolved(
    graph: fx.Graph, node: fx.Node, a: fx.Node, b: fx.Node, bias: fx.Node | None
) -> fx.Node:
    """The convolution that a product stands for, of the product's operands, as the product has it.

    The nodes are of a graph without values, as those of a race are.
    """
    form, (n, c, h, w), columns = node.meta[STANDS_FOR]

    def emit(target: Any, *args: Any) -> fx.Node:
        return graph.call_function(target, args)

    if form == ROWS:
        wide = emit(aten.reshape.default, a, [n, h, w, c])
        image = emit(aten.permute.default, wide, list(FROM_ROWS))
        weight = emit(aten.permute.default, b, [1, 0])
    else:
        image = emit(aten.reshape.default, b, [n, c, h, w])
        weight = a if form == ONE else emit(aten.select.int, a, 0, 0)
    weight = emit(aten.reshape.default, weight, [columns, c, 1, 1])
    if bias is not None:
        bias = emit(aten.reshape.default, bias, [columns])
    how = [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    found = emit(aten.convolution.default, image, weight, bias, *how)
    if form == ROWS:
        found = emit(aten.permute.default, found, list(TO_ROWS))
    return emit(aten.reshape.default, found, list(sizes_of(node)))


def _product(graph: fx.Graph, node: fx.Node, form: str) -> tuple[str, fx.Node, fx.Node]:
    """A convolution's form, its value in that, and the product that it is."""
    x, weight, bias, *_ = node.args
    value, product = _multiplied(graph, form, x, weight, bias, sizes_of(node))
    product.meta[STANDS_FOR] = form, sizes_of(x), sizes_of(node)[1]  # type: ignore[arg-type]
    return form, value, product


def _form(node: fx.Node) -> str:
    """How the image and the result of a convolution of 1x1 lie; "" where it is no product, or none
    that reads them in place."""
    if node.kwargs or len(node.args) != 9:
        return ""
    x, weight, bias, stride, padding, _dilation, transposed, _more, groups = node.args
    named: list[Any] = [each for each in (x, weight, bias, node) if each is not None]
    if not all(isinstance(each, fx.Node) and is_static(each) for each in named):
        return ""
    x, weight = named[:2]
    plain = groups == 1 and not transposed and set(stride) == {1} and set(padding) == {0}  # type: ignore[arg-type]
    if not plain or sizes_of(weight)[2:] != (1, 1) or len(sizes_of(x)) != 4:
        return ""
    if 0 in sizes_of(node) or len({*map(dtype_of, named)}) > 1 or dtype_of(node) not in NARROW:
        return ""
    if _is_last(x) and _is_last(node):
        return ROWS
    if not (x.meta["val"].is_contiguous() and node.meta["val"].is_contiguous()):
        return ""
    return ONE if sizes_of(x)[0] == 1 else STACK


def _is_last(node: fx.Node) -> bool:
    return node.meta["val"].permute(TO_ROWS).is_contiguous()


def _lies_so(node: fx.Node, form: str) -> bool:
    return _is_last(node) if form == ROWS else node.meta["val"].is_contiguous()


def _multiplied(
    graph: fx.Graph, form: str, x: Any, weight: Any, bias: Any, sizes: Sizes
) -> tuple[fx.Node, fx.Node]:
    """The value in its form, and the product after it."""
    (n, o, h, w), c = sizes, sizes_of(x)[1]
    matrix = _reshaped(graph, weight, (o, c))
    if form == ROWS:
        rows = call(graph, aten.permute.default, (x, list(TO_ROWS)))
        a = _reshaped(graph, rows, (n * h * w, c))
        b = call(graph, aten.permute.default, (matrix, [1, 0]))
    else:
        a, b = matrix, _reshaped(graph, x, (c, h * w) if form == ONE else (n, c, h * w))
    if form == STACK:
        whole = call(graph, aten.expand.default, (_reshaped(graph, a, (1, o, c)), [n, o, c]))
        targets, a = (aten.bmm.default, aten.baddbmm.default), whole
    else:
        targets = aten.mm.default, aten.addmm.default
    if bias is None:
        product = call(graph, targets[0], (a, b))
    else:
        added = {ROWS: (o,), ONE: (o, 1), STACK: (1, o, 1)}[form]
        product = call(graph, targets[1], (_reshaped(graph, bias, added), a, b))
    return (_reshaped(graph, product, (n, h, w, o)) if form == ROWS else product), product


def _transposed(
    graph: fx.Graph, node: fx.Node, form: str, of: Sizes | None = None
) -> fx.Node | None:
    """A value, or what is broadcast to the sizes `of`, in a form; None where it has no view so."""
    sizes = sizes_of(node)
    if not is_static(node) or len(sizes) > 4:
        return None
    if not sizes or is_constant(node):
        return node if not sizes or prod(sizes) == 1 else None
    n, o, h, w = wide = (1,) * (4 - len(sizes)) + sizes
    if form == ROWS:
        image = _reshaped(graph, node, wide)
        return call(graph, aten.permute.default, (image, list(TO_ROWS)))
    whole = sizes if of is None else of
    if (h, w) not in (whole[2:], (1, 1)) or (form == ONE and n != 1):
        return None
    return _reshaped(graph, node, (o, h * w) if form == ONE else (n, o, h * w))


def _source(node: Any, made: list[fx.Node]) -> Any:
    """What the views of a value are of that were made for its reader."""
    while node in made:
        node = node.args[0]
    return node


def _reshaped(graph: fx.Graph, node: fx.Node, sizes: Sizes) -> fx.Node:
    if sizes_of(node) == sizes:
        return node
    return call(graph, aten.reshape.default, (node, list(sizes)))


def _is_elementwise(node: fx.Node) -> bool:
    pointwise = torch.Tag.pointwise in getattr(node.target, "tags", ())
    found = pointwise or node.target is CONVERT
    return found and not node.kwargs and not changes(node) and is_static(node)


def _tensors(args: tuple[Any, ...]) -> list[fx.Node]:
    return [each for each in args if isinstance(each, fx.Node)]
