"""A Python function of the sums as the epilogue of a matmul, in linalg on tensors.

    matmul(a, b, epilogue=lambda acc, bias: relu(acc + bias), operands=[bias])

    →  %sum = linalg.matmul …
       %c = linalg.generic … ins(%sum, %e0) { arith.addf, arith.maximumf, arith.truncf }

The function sees the sums with all dims that the product has. The kernel sees them as a matrix, or
as a stack of such: `Frame` says which dims of the product become one of the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dialects.dtypes import DTYPES
from ...dialects.errors import CompileError
from ...runtime.element_types import torch_dtype
from ..spec import MatmulSpec
from .linalg_text import LinalgText
from .traced_function import TensorLike, refused, trace

if TYPE_CHECKING:
    from torch import fx

    from .aten_elements import Elements, Use


class Argument(NamedTuple):
    """An operand as the kernel takes it: which one, the order of its dims, the sizes after that."""

    number: int
    order: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
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

    def sizes(self) -> list[int]:
        """The sizes that the kernel sees."""
        return [prod(self.shape[dim] for dim in group) for group in self.groups]


def import_epilogue(
    spec: MatmulSpec,
    frame: Frame,
    function: Callable[..., Any],
    operands: Sequence[TensorLike],
) -> tuple[LinalgText, list[Argument]]:
    """The module of `spec` with that epilogue, and what its arguments after a and b are.

    operands: sizes and types of the tensors that the function takes after the sums.

    Raises CompileError, at the function's line, for what is no epilogue.
    """
    from .aten_elements import Elements

    sums = TensorLike(frame.shape, torch_dtype(spec.acc_dtype))
    graph = trace(function, [sums, *operands])
    result = _result(graph, frame)
    body = Elements(graph)
    axes = tuple(range(len(frame.shape)))
    scalar = body.value(result, axes)
    wanted = DTYPES[spec.c_dtype].mlir
    body.lines.append(f"linalg.yield {body.converted(result, scalar, wanted).name} : {wanted}")
    _check_inputs(graph, body)
    uses = [use for use in body.uses if use.number]
    arguments = [_argument(use, frame, operands[use.number - 1].shape) for use in uses]
    text = _Text(spec, frame, body, uses, arguments)
    names = ("a", "b", *(f"operands[{use.number - 1}]" for use in uses))
    return LinalgText(spec.mlir_text(text.arguments(), text.epilogue()), "matmul", names), arguments


def _result(graph: fx.Graph, frame: Frame) -> fx.Node:
    """The node whose value is C's."""
    import torch

    (output,) = graph.find_nodes(op="output")
    result = output.args[0]
    got = type(result).__name__
    if not isinstance(result, torch.fx.Node):
        raise CompileError(f"epilogue: the function must return one tensor, got {got}")
    shape = tuple(result.meta["val"].shape)
    if shape != frame.shape:
        rule = f"the result must have the shape of acc, {list(frame.shape)}, got {list(shape)}"
        raise refused(result, f"{rule}; reduce or expand outside")
    return result


def _check_inputs(graph: fx.Graph, body: Elements) -> None:
    """The sums are read at their own element, and each operand is read."""
    for number in range(len(graph.find_nodes(op="placeholder"))):
        read = [use for use in body.uses if use.number == number]
        if not read:
            what = f"operands[{number - 1}]" if number else "acc"
            raise CompileError(f"epilogue: the function must read {what}, got one that does not")
        if number == 0 and any(not _is_own(use.axes) for use in read):
            raise CompileError("epilogue: acc must be read at its own element, got it transposed")


def _is_own(axes: Sequence[int | None]) -> bool:
    return all(axis in (None, place) for place, axis in enumerate(axes))


def _argument(use: Use, frame: Frame, shape: Sequence[int]) -> Argument:
    """The operand with its dims of one element gone and each group's as one."""
    dims = {axis: dim for dim, axis in enumerate(use.axes) if axis is not None}
    order: list[int] = []
    sizes: list[int] = []
    for group in frame.groups:
        long = [axis for axis in group if frame.shape[axis] != 1]
        found = [dims[axis] for axis in long if axis in dims]
        if found and len(found) != len(long):
            rule = f"operands[{use.number - 1}] must have all of the product's dims {list(long)}"
            raise CompileError(
                f"epilogue: {rule} or none, got {list(shape)} for {list(frame.shape)}; expand it"
            )
        order += found
        sizes += [prod(shape[dim] for dim in found)] if found else []
    return Argument(use.number - 1, tuple(order), tuple(sizes))


class _Text:
    """The text of an epilogue behind the text of a spec."""

    def __init__(
        self,
        spec: MatmulSpec,
        frame: Frame,
        body: Elements,
        uses: Sequence[Use],
        arguments: Sequence[Argument],
    ):
        self.spec, self.frame, self.body, self.uses = spec, frame, body, uses
        self.types = [
            f"tensor<{''.join(f'{size}x' for size in argument.shape)}{body.uses[use].type}>"
            for use, argument in zip(uses, arguments, strict=True)
        ]

    def arguments(self) -> list[str]:
        return [f"%e{number}: {type_}" for number, type_ in enumerate(self.types)]

    def epilogue(self) -> str:
        sizes = "".join(f"{size}x" for size in self.frame.sizes())
        sums = f"tensor<{sizes}{DTYPES[self.spec.acc_dtype].mlir}>"
        c = f"tensor<{sizes}{DTYPES[self.spec.c_dtype].mlir}>"
        loops = range(len(self.frame.groups))
        own = self._map(loops)
        maps = ", ".join([own, *(self._map(self._loops(use)) for use in self.uses), own])
        names = ", ".join(["%sum", *(f"%e{number}" for number in range(len(self.uses)))])
        types = ", ".join([sums, *self.types])
        iterators = ", ".join('"parallel"' for _ in loops)
        block = ", ".join([*self._block_arguments(), f"%out: {DTYPES[self.spec.c_dtype].mlir}"])
        lines = "\n    ".join(self.body.lines)
        return f"""%c_init = tensor.empty() : {c}
  %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
    ins({names} : {types}) outs(%c_init : {c}) {{
  ^bb0({block}):
    {lines}
  }} -> {c}"""

    def _block_arguments(self) -> list[str]:
        found = self.body.uses
        (acc,) = (use for use in found if use.number == 0)
        return [f"{found[use].name}: {found[use].type}" for use in (acc, *self.uses)]

    def _loops(self, use: Use) -> list[int]:
        """The kernel's dims that index an operand."""
        return [
            place
            for place, group in enumerate(self.frame.groups)
            if any(axis in use.axes for axis in group)
        ]

    def _map(self, loops: Sequence[int]) -> str:
        all_loops = ", ".join(f"d{number}" for number in range(len(self.frame.groups)))
        return f"affine_map<({all_loops}) -> ({', '.join(f'd{number}' for number in loops)})>"
