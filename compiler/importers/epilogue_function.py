"""A Python function of the accumulators as the epilogue of a matmul, in linalg.

    matmul(a, b, epilogue=lambda acc, bias: relu(acc + bias), operands=[bias])

    →  %sum = linalg.matmul …
       %c = linalg.generic … ins(%sum, %e0) { arith.addf, arith.maximumf, arith.truncf }

The function sees the sums with all dims that the product has. The kernel sees them as a matrix, or
as a stack of such: `Frame` says which dims of the product become one of the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dialects.dtypes import BESIDE_DTYPES, DTYPES, OUTPUT_DTYPES
from ...dialects.errors import CompileError
from ...dialects.record import record
from ...runtime.element_types import torch_dtype
from ..spec import MatmulSpec
from ..spec.epilogue import Epilogue, EpilogueOperand
from .traced_function import TensorLike, refused, trace

if TYPE_CHECKING:
    from torch import fx

    from .aten_elements import Elements, Use


STORED = [DTYPES[each].mlir for each in BESIDE_DTYPES]
GROUP = 32  # neighbours in a row, of which a kernel gives one reduction


class Argument(NamedTuple):
    """An operand as the kernel takes it: which one, the order of its dims, the sizes after that.

    spread: of each of those dims, and of others beside them, its size and that to which it is
    expanded; empty where none is.
    """

    number: int
    order: tuple[int, ...]
    shape: tuple[int, ...]
    spread: tuple[tuple[int, int], ...] = ()


class Returned(NamedTuple):
    """What a function returns: a value, or its reduction of a kind over a row, or all (`whole`).

    The kernel reduces groups of `GROUP` neighbours; `finished` reduces what it gives of them. One
    in a tuple is returned in a tuple, also where it is alone.
    """

    value: Any
    kind: str = ""
    whole: bool = False
    keepdim: bool = False
    in_tuple: bool = False

    def finished(self, output: Any) -> Any:
        """The reduction of a kernel's output [..., groups], in an order that is always the same."""
        if not self.kind:
            return output
        dims = tuple(range(output.ndim)) if self.whole else (-1,)
        reduce = output.amax if self.kind == "amax" else output.sum
        return reduce(dims, keepdim=self.keepdim)


@record
class Frame:
    """The dims of the product, and those that the kernel has instead: groups of them, in order."""

    shape: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(shape: Sequence[int], batch: int) -> Frame:
        """`shape` is [..., m, n]. With a batch its first dims are that of a stack, else rows."""
        dims = tuple(range(len(shape)))
        groups = (dims[:-2], dims[-2:-1]) if batch else (dims[:-1],)
        return Frame(tuple(shape), (*groups, dims[-1:]))


def import_epilogue(
    spec: MatmulSpec,
    frame: Frame,
    function: Callable[..., Any],
    operands: Sequence[TensorLike],
    c_is_open: bool = False,
    groups: int = 0,
    prepared: bool = False,
) -> tuple[MatmulSpec, Epilogue, list[Argument], list[Returned]]:
    """The epilogue of `spec` that a function is, and what its operands are of the function's.

    operands: sizes and types of the tensors that the function takes after the sums. The spec comes
    back with the types of what the function returns after C; with `c_is_open` also with that of C
    where it is one of 8 bits, which nobody asked for in so many words but the function. With
    `groups` an operand of three dims has one part for each group, of which the function sees its
    own. `prepared` says that the caller converts operands of bytes, and expands those that are the
    same along some of the dims that the kernel has as one, to `Argument.spread`.

    Raises CompileError, at the function's line, for what is no epilogue.
    """
    from .aten_elements import Elements

    sums = TensorLike(frame.shape, torch_dtype(spec.acc_dtype))
    products = spec.products
    seen = [_own_part(number, each, groups) for number, each in enumerate(operands)]
    graph = trace(function, [*[sums] * products, *seen])
    returned = _results(graph, frame)
    results = [each.value for each in returned]
    body = Elements(graph, converts=prepared)
    axes = tuple(range(len(frame.shape)))
    names = []
    kinds = tuple(each.kind for each in returned[1:])
    types = ("f32" if each.kind else _stored_type(each.value) for each in returned[1:])
    spec = replace(spec, further=tuple(types), neighbours=GROUP if any(kinds) else 0)
    if c_is_open and results[0].meta["val"].dtype.itemsize == 1:
        spec = replace(spec, c_dtype=_stored_type(results[0]))
    for result, dtype in zip(results, spec.computed, strict=True):
        scalar = body.value(result, axes)
        names.append(body.converted(result, scalar, DTYPES[dtype].mlir).name)
    _check_inputs(graph, body, products)
    names_of = {use.number: body.uses[use].name for use in body.uses}
    uses = [use for use in body.uses if use.number >= products]
    found = [
        _read(use, use.number - products, frame, operands[use.number - products].shape, groups)
        for use in uses
    ]
    if not prepared:
        refuse_spread([argument for argument, _ in found], frame, operands)
    arguments = [argument for argument, _ in found]
    read = [
        EpilogueOperand(body.uses[use].name, body.uses[use].type, axes, argument.shape)
        for use, (argument, axes) in zip(uses, found, strict=True)
    ]
    acc, second = names_of[0], names_of[1] if products == 2 else ""
    made = Epilogue(acc, tuple(read), tuple(body.lines), names[0], tuple(names[1:]), kinds, second)
    instructions = made.instructions(spec.outputs)
    beside = made.beside(len(frame.shape))
    spec = replace(spec, epilogue_instructions=instructions, **beside)
    return spec, made, arguments, returned


def _own_part(number: int, operand: TensorLike, groups: int) -> TensorLike:
    """What the function sees of an operand: of one that has a part for each group, its own."""
    if not groups or len(operand.shape) != 3:
        return operand
    if operand.shape[0] != groups:
        rule = f"operands[{number}] of three dims must have one part for each of {groups} groups"
        raise CompileError(f"epilogue: {rule}, got {list(operand.shape)}")
    return operand._replace(shape=operand.shape[1:])


def _read(
    use: Use, number: int, frame: Frame, shape: Sequence[int], groups: int
) -> tuple[Argument, str]:
    """An operand as the kernel takes it, and the kernel's dims that index it."""
    if not groups or len(shape) != 3:
        return _argument(use, number, frame), _axes(use, frame)
    argument, axes = _argument(use, number, frame), _axes(use, frame)
    if "m" in axes:
        rule = f"operands[{number}] of three dims must have one row for each group"
        raise CompileError(f"epilogue: {rule}, got {list(shape)}; pass an operand of two dims")
    order = (0, *(dim + 1 for dim in argument.order))
    return Argument(number, order, (groups, *argument.shape)), f"b{axes}"


def _results(graph: fx.Graph, frame: Frame) -> list[Returned]:
    """What the function returns: C, and further outputs."""
    (output,) = graph.find_nodes(op="output")
    returned = output.args[0]
    in_tuple = isinstance(returned, tuple | list) and bool(returned)
    found = list(returned) if in_tuple else [returned]
    first = Returned(_checked(found[0], frame), in_tuple=in_tuple)
    return [
        first,
        *(_reduced(each, frame) or Returned(_checked(each, frame)) for each in found[1:]),
    ]


def _reduced(result: Any, frame: Frame) -> Returned | None:
    """A reduction of what is computed, over the last dim or all: sums, or the largest magnitude."""
    import torch

    aten: Any = torch.ops.aten
    if not isinstance(result, torch.fx.Node):
        return None
    arguments = dict(zip(("value", "dims", "keepdim"), result.args, strict=False))
    value: Any = arguments.get("value")
    if result.target in (aten.amax.default, aten.max.default):
        if not isinstance(value, torch.fx.Node) or value.target is not aten.abs.default:
            return None
        kind, value = "amax", value.args[0]
    elif result.target in (aten.sum.dim_IntList, aten.sum.default) and not result.kwargs:
        kind = "sum"
    else:
        return None
    rank = len(frame.shape)
    dims: Any = arguments.get("dims") or range(rank)
    dims = {dim % rank for dim in dims}
    if dims not in ({rank - 1}, set(range(rank))) or tuple(value.meta["val"].shape) != frame.shape:
        rule = "a reduction must be over the last dim of acc, or all"
        raise refused(result, f"{rule}, got {sorted(dims)}; reduce outside")
    if value.meta["val"].dtype != torch.float32:
        rule = "a reduction must be of f32"
        raise refused(result, f"{rule}, got {value.meta['val'].dtype}; convert it before")
    whole = len(dims) > 1 or rank == 1
    return Returned(value, kind, whole, bool(arguments.get("keepdim", False)))


def _checked(result: Any, frame: Frame) -> fx.Node:
    """What the function returns, if an output can be it."""
    import torch

    got = type(result).__name__
    if not isinstance(result, torch.fx.Node):
        raise CompileError(f"epilogue: the function must return a tensor or several, got {got}")
    shape = tuple(result.meta["val"].shape)
    if shape != frame.shape:
        rule = f"the result must have the shape of acc, {list(frame.shape)}, got {list(shape)}"
        raise refused(result, f"{rule}; reduce or expand outside")
    return result


def _stored_type(result: fx.Node) -> str:
    """The type of a further output: the function's own."""
    dtype = str(result.meta["val"].dtype).removeprefix("torch.")
    found = next((name for name in OUTPUT_DTYPES if DTYPES[name].torch == dtype), None)
    if found is None:
        known = ", ".join(OUTPUT_DTYPES)
        raise refused(result, f"further results must be of {known}, got {dtype}; convert them")
    return found


def _check_inputs(graph: fx.Graph, body: Elements, products: int) -> None:
    """The sums are read at their own element, and each operand is read."""
    for number in range(len(graph.find_nodes(op="placeholder"))):
        read = [use for use in body.uses if use.number == number]
        if not read:
            sums = "acc" if products == 1 else f"the sums of b[{number}]"
            what = f"operands[{number - products}]" if number >= products else sums
            raise CompileError(f"epilogue: the function must read {what}, got one that does not")
        if number < products and any(not _is_own(use.axes) for use in read):
            raise CompileError("epilogue: acc must be read at its own element, got it transposed")
    for use, scalar in body.uses.items():
        if use.number >= products and scalar.type not in STORED:
            rule = f"operands[{use.number - products}] must be of {', '.join(BESIDE_DTYPES)}"
            raise CompileError(f"epilogue: {rule}, got elements of {scalar.type}; convert it")


def _is_own(axes: Sequence[int | None]) -> bool:
    return all(axis in (None, place) for place, axis in enumerate(axes))


def _argument(use: Use, number: int, frame: Frame) -> Argument:
    """The operand with its dims of one element gone and each group's as one, for which it is
    expanded along those of a group of which it has others."""
    dims = {axis: dim for dim, axis in enumerate(use.axes) if axis is not None}
    long = [[axis for axis in group if frame.shape[axis] != 1] for group in frame.groups]
    whole = [group for group in long if dims.keys() & {*group}]
    axes = [axis for group in whole for axis in group]
    order = tuple(dims[axis] for axis in axes if axis in dims)
    sizes = tuple(prod(frame.shape[axis] for axis in group) for group in whole)
    own = [frame.shape[axis] if axis in dims else 1 for axis in axes]
    pairs = zip(own, (frame.shape[axis] for axis in axes), strict=True)
    return Argument(number, order, sizes, () if len(order) == len(axes) else tuple(pairs))


def refuse_spread(
    arguments: Sequence[Argument], frame: Frame, operands: Sequence[TensorLike]
) -> None:
    """Refuse operands that would have to be expanded, where nobody does."""
    for each in arguments:
        if each.spread:
            rule = f"operands[{each.number}] must have all dims that the kernel has as one, or none"
            got = f"got {list(operands[each.number].shape)} for {list(frame.shape)}"
            raise CompileError(f"epilogue: {rule}, {got}; expand it")


def _axes(use: Use, frame: Frame) -> str:
    """The kernel's dims that index an operand."""
    names = "bmn"[-len(frame.groups) :]
    return "".join(
        name
        for name, group in zip(names, frame.groups, strict=True)
        if any(axis in use.axes for axis in group)
    )
