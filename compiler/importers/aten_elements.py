"""Elementwise aten operators as scalar ops of arith and math: the body of a linalg.generic.

A graph is read from its result. An element of a value depends on the elements beside it of its
operator's arguments; which ones follows from torch's broadcasting (torch docs, Broadcasting
semantics: shapes are aligned at their last dims). So each value is asked for with `Axes`: for each
of its dims the dim of the result that indexes it, or None where it has one element there.

Torch converts tensors to the type that they are promoted to, computes of bf16 and f16 in f32, and
rounds each operator's result once (`opmath`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import fx

from .element_names import MLIR_TYPES, STAND_IN, STOOD_FOR
from .mlir_literals import FLOAT_TYPES, bits_of, literal
from .traced_function import decomposed_operators, name_of, refused

aten: Any = torch.ops.aten
Axes = tuple[int | None, ...]

NARROW = ("f8E4M3FN", "f8E5M2")
INFINITE_FROM = 61440.0  # of e5m2: half a step beyond its largest number
HALVES = ("bf16", "f16")
COMPUTED = FLOAT_TYPES[:3]
"""Of which a kernel computes; f64 it converts alone."""
PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
UNARY = {
    aten.neg.default: "arith.negf",
    aten.abs.default: "math.absf",
    aten.exp.default: "math.exp",
    aten.exp2.default: "math.exp2",
    aten.erf.default: "math.erf",
    aten.log.default: "math.log",
    aten.log10.default: "math.log10",
    aten.log1p.default: "math.log1p",
    aten.log2.default: "math.log2",
    aten.ceil.default: "math.ceil",
    aten.cos.default: "math.cos",
    aten.floor.default: "math.floor",
    aten.round.default: "math.roundeven",
    aten.trunc.default: "math.trunc",
    aten.sin.default: "math.sin",
    aten.tanh.default: "math.tanh",
    aten.sqrt.default: "math.sqrt",
    aten.rsqrt.default: "math.rsqrt",
}
BINARY = {"sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf"}
SCALED = (aten.mul.Tensor, aten.div.Tensor)
"""By whose second argument torch multiplies as it is where it is one number, on the CPU."""
FILLED = {
    aten.ones_like.default: 1,
    aten.zeros_like.default: 0,
    aten.full_like.default: None,
    aten.new_full.default: None,
    aten.full.default: None,
    aten.scalar_tensor.default: None,
}
SAME = (aten.alias.default, aten.clone.default, aten.detach.default, aten.lift_fresh_copy.default)


class Scalar(NamedTuple):
    """A value of the body: its name and MLIR type."""

    name: str
    type: str


class Use(NamedTuple):
    """An input of the graph, by its number, and how it is indexed."""

    number: int
    axes: Axes


class Elements:
    """The body of one graph: `lines`, and the inputs they read, in the order of `uses`.

    converts: whether inputs of bytes come converted to `STAND_IN`.
    """

    def __init__(self, graph: fx.Graph, converts: bool = False):
        self._converts = converts
        self.lines: list[str] = []
        self.uses: dict[Use, Scalar] = {}
        self._numbers = {node: n for n, node in enumerate(graph.find_nodes(op="placeholder"))}
        self._known: dict[tuple[fx.Node, Axes], Scalar] = {}
        self._constants: dict[tuple[str, str], Scalar] = {}

    def value(self, node: fx.Node, axes: Axes) -> Scalar:
        """The element of a node's value at those axes of the result."""
        axes = tuple(
            None if extent == 1 else axis for axis, extent in zip(axes, shape_of(node), strict=True)
        )
        if (node, axes) not in self._known:
            self._known[node, axes] = self._made(node, axes)
        return self._known[node, axes]

    def _made(self, node: fx.Node, axes: Axes) -> Scalar:
        if node.op == "placeholder":
            return self._input(node, axes)
        rule = _RULES.get(node.target)
        if rule is None:
            takes = "must be elementwise operators that a kernel has"
            raise refused(node, f"{takes}, got {name_of(node)}; compute it outside")
        try:
            return rule(self, node, axes)
        except OverflowError as error:
            raise refused(node, f"must take {error}, in {name_of(node)}; take another") from error

    def _input(self, node: fx.Node, axes: Axes) -> Scalar:
        """An element of an input; of truth values whether what stands for it is not 0."""
        dtype = node.meta["val"].dtype
        stood_for = self._converts and dtype in STOOD_FOR
        type_ = MLIR_TYPES[STAND_IN] if stood_for else self.type_of(node)
        use = Use(self._numbers[node], axes)
        read = self.uses.setdefault(use, Scalar(f"%in{len(self.uses)}", type_))
        if not stood_for or dtype != torch.bool:
            return read
        return self.emit("arith.cmpf une,", read, self.constant(0, type_), result="i1")

    def type_of(self, node: fx.Node) -> str:
        """The MLIR type of a node's elements."""
        dtype = node.meta["val"].dtype
        if dtype not in MLIR_TYPES:
            known = ", ".join(str(each).removeprefix("torch.") for each in MLIR_TYPES)
            raise refused(node, f"types must be {known}, got {dtype}; convert it outside")
        return MLIR_TYPES[dtype]

    def argument(self, node: fx.Node, argument: Any, axes: Axes, type_: str) -> Scalar:
        """An argument of a node, a tensor or a number, converted to a type."""
        if not isinstance(argument, fx.Node):
            return self.constant(argument, type_)
        rank = len(shape_of(argument))
        value = self.value(argument, axes[len(axes) - rank :])
        as_it_is = rank == 0 and node.target in SCALED and argument is node.args[1]
        common = MLIR_TYPES.get(node.meta["val"].dtype)
        if common in HALVES and type_ != "i1" and not as_it_is:
            value = self.converted(node, value, common)
        return self.converted(node, value, type_)

    def emit(self, operation: str, *operands: Scalar, result: str = "") -> Scalar:
        """An op on operands of one type, with a result of that or of `result`."""
        type_ = operands[0].type
        names = ", ".join(each.name for each in operands)
        return self._line(f"{operation} {names} : {type_}", result or type_)

    def _line(self, text: str, type_: str) -> Scalar:
        scalar = Scalar(f"%v{len(self.lines)}", type_)
        self.lines.append(f"{scalar.name} = {text}")
        return scalar

    def constant(self, number: float, type_: str) -> Scalar:
        """A Python number, rounded to the type."""
        text = literal(number, type_)
        if (text, type_) not in self._constants:
            typed = text if type_ == "i1" else f"{text} : {type_}"  # of a bool MLIR takes no type
            self._constants[text, type_] = self._line(f"arith.constant {typed}", type_)
        return self._constants[text, type_]

    def converted(self, node: fx.Node, value: Scalar, type_: str) -> Scalar:
        """The value as torch converts it to another type; refused where no kernel can."""
        old = value.type
        if old == type_:
            return value
        if old == "i1" and type_ in FLOAT_TYPES:
            return self.select(value, self.constant(1, type_), self.constant(0, type_))
        if old in ("i32", "i64") and type_ in COMPUTED:  # as torch does, by way of f32
            return self.converted(node, self._cast("arith.sitofp", value, "f32"), type_)
        if old in COMPUTED and type_ in NARROW:
            return self._narrowed(value, type_)
        if old not in FLOAT_TYPES or type_ not in FLOAT_TYPES:
            raise refused(node, f"must not convert {old} to {type_}, got {name_of(node)}")
        if bits_of(type_) < bits_of(old):
            return self._cast("arith.truncf", value, type_)
        if bits_of(old) < bits_of(type_):
            return self._cast("arith.extf", value, type_)
        return self._cast("arith.truncf", self._cast("arith.extf", value, "f32"), type_)

    def _narrowed(self, value: Scalar, type_: str) -> Scalar:
        """In 8 bits as torch does: e4m3 has its largest number beyond it, e5m2 infinity."""
        wide = value if value.type == "f32" else self._cast("arith.extf", value, "f32")
        found = self._cast("arith.truncf", wide, type_)
        if type_ == "f8E5M2":
            for order, sign, bits in (("oge", 1, "0x7C"), ("ole", -1, "0xFC")):
                edge = self.constant(sign * INFINITE_FROM, "f32")
                beyond = self.emit(f"arith.cmpf {order},", wide, edge, result="i1")
                infinite = self._line(f"arith.constant {bits} : {type_}", type_)
                found = self.select(beyond, infinite, found)
        return found

    def _cast(self, operation: str, value: Scalar, type_: str) -> Scalar:
        return self._line(f"{operation} {value.name} : {value.type} to {type_}", type_)

    def select(self, condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
        """`yes` where the condition is true."""
        text = f"arith.select {condition.name}, {yes.name}, {no.name} : {yes.type}"
        return self._line(text, yes.type)


def shape_of(node: fx.Node) -> tuple[int, ...]:
    """The sizes of a node's value."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise refused(node, f"must compute tensors, got {type(value).__name__}")
    return tuple(value.shape)


Rule = Callable[[Elements, fx.Node, Axes], Scalar]
_RULES: dict[Any, Rule] = {}


def _rule(*overloads: Any) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(overloads, rule))
        return rule

    return enter


def is_known(target: Any) -> bool:
    """Whether an operator, or what it is taken apart into, is one of elements that a kernel has."""
    return target in _RULES or target in decomposed_operators()


def _computing(dtype: str) -> str:
    """The type that torch computes in, for results of one type."""
    return "f32" if dtype in HALVES else dtype


def _in_opmath(rule: Callable[[Elements, fx.Node, Axes, str], Scalar]) -> Rule:
    """A rule that computes in the wider type, with the result rounded to the node's."""

    def rounded(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
        type_ = body.type_of(node)
        if type_ not in COMPUTED:
            takes = ", ".join(COMPUTED)
            raise refused(node, f"must compute with {takes}, got {name_of(node)} of {type_}")
        return body.converted(node, rule(body, node, axes, _computing(type_)), type_)

    return rounded


def _enter_unary(overload: Any, operation: str) -> None:
    def unary(body: Elements, node: fx.Node, axes: Axes, type_: str) -> Scalar:
        return body.emit(operation, body.argument(node, node.args[0], axes, type_))

    _RULES[overload] = _in_opmath(unary)


def _enter_binary(name: str, operation: str) -> None:
    def binary(body: Elements, node: fx.Node, axes: Axes, type_: str) -> Scalar:
        unread = set(node.kwargs) - {"alpha"}
        if unread:
            raise refused(node, f"must be called without {unread.pop()}, got {name_of(node)}")
        x, y = (body.argument(node, each, axes, type_) for each in node.args[:2])
        alpha: Any = node.kwargs.get("alpha", 1)
        if alpha != 1:
            y = body.emit("arith.mulf", y, body.constant(alpha, type_))
        return body.emit(operation, x, y)

    packet = getattr(aten, name)
    _RULES[packet.Tensor] = _RULES[packet.Scalar] = _in_opmath(binary)


@_in_opmath
def _sum_of_floats(body: Elements, node: fx.Node, axes: Axes, type_: str) -> Scalar:
    x, y = (body.argument(node, each, axes, type_) for each in node.args[:2])
    alpha: Any = node.kwargs.get("alpha", 1)
    if alpha != 1:
        y = body.emit("arith.mulf", y, body.constant(alpha, type_))
    return body.emit("arith.addf", x, y)


@_rule(aten.add.Tensor, aten.add.Scalar)
def _add(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
    type_ = body.type_of(node)
    if type_ != "i32":
        return _sum_of_floats(body, node, axes)
    if node.kwargs.get("alpha", 1) != 1:
        raise refused(node, "must add integers without alpha, got one")
    return body.emit("arith.addi", *(body.argument(node, e, axes, type_) for e in node.args[:2]))


@_rule(aten.sigmoid.default)
@_in_opmath
def _sigmoid(body: Elements, node: fx.Node, axes: Axes, type_: str) -> Scalar:
    one = body.constant(1, type_)
    power = body.emit("math.exp", body.emit("arith.negf", _only(body, node, axes, type_)))
    return body.emit("arith.divf", one, body.emit("arith.addf", one, power))


@_rule(aten.relu.default)
@_in_opmath
def _relu(body: Elements, node: fx.Node, axes: Axes, type_: str) -> Scalar:
    return body.emit("arith.maximumf", _only(body, node, axes, type_), body.constant(0, type_))


def _only(body: Elements, node: fx.Node, axes: Axes, type_: str) -> Scalar:
    return body.argument(node, node.args[0], axes, type_)


@_rule(aten.where.self)
def _where(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
    condition, *sides = node.args
    type_ = body.type_of(node)
    chosen = body.argument(node, condition, axes, "i1")
    return body.select(chosen, *(body.argument(node, each, axes, type_) for each in sides))


def _enter_comparison(name: str, predicate: str) -> None:
    def compare(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
        tensors = [each.meta["val"] for each in node.args if isinstance(each, fx.Node)]
        dtype = tensors[0].dtype if len(tensors) == 1 else torch.result_type(*tensors)
        common = MLIR_TYPES.get(dtype, str(dtype))
        if common not in COMPUTED:
            takes = ", ".join(COMPUTED)
            raise refused(node, f"must compare {takes}, got {name_of(node)} of {dtype}")
        rounded = (body.argument(node, each, axes, common) for each in node.args)
        x, y = (body.converted(node, each, _computing(common)) for each in rounded)
        return body.emit(f"arith.cmpf {predicate},", x, y, result="i1")

    packet = getattr(aten, name)
    _RULES[packet.Tensor] = _RULES[packet.Scalar] = compare


@_rule(aten._to_copy.default)
def _convert(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
    return body.argument(node, node.args[0], axes, body.type_of(node))


@_rule(*SAME, aten.expand.default)
def _same(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
    return body.argument(node, node.args[0], axes, body.type_of(node))


@_rule(*FILLED)
def _filled(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
    number, type_ = FILLED[node.target], body.type_of(node)
    if type_ in NARROW:
        rule = f"numbers must not be of {type_}"
        raise refused(node, f"{rule}, got {name_of(node)}; convert a tensor")
    return body.constant(node.args[-1] if number is None else number, type_)


def _order(node: fx.Node, rank: int) -> list[int]:
    """The dims of a tensor in the order that an operator brings them to."""
    given, order = node.args[1:], list(range(rank))
    if node.target is aten.permute.default:
        return [dim % rank for dim in given[0]]
    if node.target is aten.numpy_T.default:
        return order[::-1]
    if rank > 1:
        first, second = given or (0, 1)
        order[first], order[second] = order[second], order[first]
    return order


@_rule(aten.permute.default, aten.t.default, aten.transpose.int, aten.numpy_T.default)
def _transposed(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
    """The argument with its dims in another order: `order` has the dim of it that comes there."""
    source, rank = node.args[0], len(axes)
    order = _order(node, rank)
    transposed: list[int | None] = [None] * rank
    for place, dim in enumerate(order):
        transposed[dim] = axes[place]
    return body.value(source, tuple(transposed))


@_rule(aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default)
@_rule(aten.view.default, aten.reshape.default, aten._unsafe_view.default)
def _reshaped(body: Elements, node: fx.Node, axes: Axes) -> Scalar:
    """Dims of one element come or go; others stay in their order."""
    (source, *_), sizes = node.args, shape_of(node)
    kept = [axis for axis, extent in zip(axes, sizes, strict=True) if extent != 1]
    old = shape_of(source)
    if [size for size in sizes if size != 1] != [size for size in old if size != 1]:
        rule = f"must keep the dims of {list(old)}, got {name_of(node)} to {list(sizes)}"
        raise refused(node, f"{rule}; reshape operands before the call")
    left = iter(kept)
    return body.value(source, tuple(None if extent == 1 else next(left) for extent in old))


for _overload, _operation in UNARY.items():
    _enter_unary(_overload, _operation)
for _name, _operation in BINARY.items():
    _enter_binary(_name, _operation)
for _name, _predicate in PREDICATES.items():
    _enter_comparison(_name, _predicate)
