"""Evaluates linalg.generic, to which upstream MLIR generalises every linalg op on tensors.

parallel loops             each operand is read where its map says, the body is evaluated on
                           whole arrays, and the output's map places what it yields
out += x · y along loops   a product of two matrices: the sums may be in any order. Each may be a
                           product itself, such as of elements and their blocks' scales
"""

# The upstream builders have no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialects.mlir import ir
from ...runtime.judge.intervals import Interval, multiply, stacked
from .rounding import round_to
from .scalars import evaluate, stored
from .values import Value, element_type, places, refuse

PRODUCTS = ("arith.mulf", "arith.muli")
Body = Callable[[Any, Sequence[Any]], list[Value]]


class Undefined:
    """What tensor.empty holds."""


@dataclass(frozen=True)
class Loops:
    """The loops of a linalg.generic: which are reductions, how long each is, and the maps."""

    op: Any
    extents: tuple[int, ...]
    reductions: tuple[int, ...]
    maps: tuple[tuple[Any, ...], ...]

    @staticmethod
    def of(op: Any) -> Loops:
        """What a linalg.generic says of its loops."""
        kinds = [str(kind) for kind in op.attributes["iterator_types"]]
        maps = tuple(
            tuple(ir.AffineMapAttr(map_).value.results) for map_ in op.attributes["indexing_maps"]
        )
        extents: dict[int, int] = {}
        for operand, results in zip(op.operands, maps, strict=True):
            for axis, result in enumerate(results):
                if isinstance(result, ir.AffineDimExpr):
                    position = ir.AffineDimExpr(result).position
                    extents.setdefault(position, operand.type.shape[axis])
        if len(extents) != len(kinds):
            refuse(op, "loop whose length no operand has")
        reductions = tuple(i for i, kind in enumerate(kinds) if "parallel" not in kind)
        return Loops(op, tuple(extents[i] for i in range(len(kinds))), reductions, maps)

    def dims(self, operand: int) -> tuple[int, ...]:
        """The loops that index an operand, each once."""
        found = tuple(
            ir.AffineDimExpr(result).position
            for result in self.maps[operand]
            if isinstance(result, ir.AffineDimExpr)
        )
        if len(set(found)) != len(self.maps[operand]):
            refuse(self.op, f"product or result indexed by {_text(self.maps[operand])}")
        return found

    def named(self, operand: int) -> set[int]:
        """The loops that an operand's index is made of."""
        return set().union(*(_dims(result) for result in self.maps[operand]))

    def places(self, operand: int) -> tuple[np.ndarray, ...]:
        """Along each axis of an operand, which elements the loops read, in shapes that broadcast.

        Refuses a place that the operand does not have.
        """
        grids = np.ogrid[tuple(slice(extent) for extent in self.extents)]
        index = tuple(np.asarray(_affine(self.op, each, grids)) for each in self.maps[operand])
        for axis, (along, extent) in enumerate(
            zip(index, self.op.operands[operand].type.shape, strict=True)
        ):
            if along.min() < 0 or along.max() >= extent:
                refuse(self.op, f"index out of bounds along axis {axis}")
        return index


def generic(
    op: Any, operands: Sequence[Any], sums: Callable[..., Value], body: Body
) -> list[Value]:
    """The results of a linalg.generic on tensors."""
    loops = Loops.of(op)
    if loops.reductions:
        return [_contraction(loops, operands, sums)]
    inputs = [_gather(loops, operand, number) for number, operand in enumerate(operands)]
    yielded = body(op, inputs)
    first = len(operands) - len(op.results)
    return [_placed(loops, value, first + i, op.results[i].type) for i, value in enumerate(yielded)]


def _gather(loops: Loops, operand: Any, number: int) -> Any:
    """An operand's elements in the order of the loops."""
    if isinstance(operand, Undefined) or not loops.maps[number]:
        return operand
    index = loops.places(number)
    return places(operand, lambda part: part[index])


def _dims(expression: Any) -> set[int]:
    """The loops that an affine expression is of."""
    if isinstance(expression, ir.AffineDimExpr):
        return {ir.AffineDimExpr(expression).position}
    kind = next((kind for kind in _AFFINE if isinstance(expression, kind)), None)
    return set() if kind is None else _dims(kind(expression).lhs) | _dims(kind(expression).rhs)


def _affine(op: Any, expression: Any, grids: Sequence[np.ndarray]) -> Any:
    """An affine expression of the loops."""
    if isinstance(expression, ir.AffineDimExpr):
        return grids[ir.AffineDimExpr(expression).position]
    if isinstance(expression, ir.AffineConstantExpr):
        return np.full((1,) * len(grids), ir.AffineConstantExpr(expression).value)
    kind = next((kind for kind in _AFFINE if isinstance(expression, kind)), None)
    if kind is None:
        refuse(op, f"index {expression}")
    both = kind(expression)
    return _AFFINE[kind](_affine(op, both.lhs, grids), _affine(op, both.rhs, grids))


_AFFINE: Mapping[Any, Callable[[Any, Any], Any]] = {
    ir.AffineAddExpr: np.add,
    ir.AffineMulExpr: np.multiply,
    ir.AffineModExpr: np.mod,
    ir.AffineFloorDivExpr: np.floor_divide,
    ir.AffineCeilDivExpr: lambda a, b: -np.floor_divide(-a, b),
}


def _placed(loops: Loops, value: Value, operand: int, type_: Any) -> Value:
    """What the loops yield, where the output's map stores it."""
    dims = loops.dims(operand)
    if sorted(dims) != list(range(len(loops.extents))):
        refuse(loops.op, f"result indexed by {_text(loops.maps[operand])}")

    def place(part: np.ndarray) -> np.ndarray:
        return np.transpose(np.broadcast_to(part, loops.extents), dims)

    return stored(places(value, place), element_type(type_))


def _contraction(loops: Loops, operands: Sequence[Any], sums: Callable[..., Value]) -> Value:
    """The sums along the reduction loops of the products of two operands, and what was there."""
    op = loops.op
    if len(operands) < 3 or len(op.results) != 1:
        refuse(op, "reduction but sums of products")
    (a, of_a), (b, of_b) = _sides(loops, operands)
    of_c = loops.dims(len(operands) - 1)
    m, n = (tuple(dim for dim in of_c if dim in of and dim not in other)
            for of, other in ((of_a, of_b), (of_b, of_a)))  # fmt: skip
    k, both = loops.reductions, tuple(dim for dim in of_c if dim in of_a and dim in of_b)
    whole = set(of_c) == {*both, *m, *n}
    if sorted(of_a) != sorted(both + m + k) or sorted(of_b) != sorted(both + n + k) or not whole:
        refuse(op, "product with loops that one operand only has")
    rows, columns = _matrices(a, of_a, both, m, k), _matrices(b, of_b, both, n, k)
    total = _stacked([sums(op, *pair) for pair in zip(rows, columns, strict=True)])
    shape = [loops.extents[dim] for dim in (*both, *m, *n)]
    order = [(*both, *m, *n).index(dim) for dim in of_c]
    product = places(total, lambda part: part.reshape(shape).transpose(order))
    addition, type_ = _addition(op), element_type(op.results[0].type)
    if type_ == "f64" and _is_zero(operands[-1]):
        return product  # scalars are evaluated in f64, which leaves no limits of a sum in f64
    return stored(evaluate(addition, [operands[-1], product]), type_)


def _sides(loops: Loops, operands: Sequence[Any]) -> list[tuple[Value, tuple[int, ...]]]:
    """Both matrices that are multiplied, each with its loops."""
    factors = _factors(loops.op, operands)
    if len(operands) == 3:
        if sorted(factors) != [0, 1]:
            refuse(loops.op, "product but of its two operands")
        return [(factors[number], loops.dims(number)) for number in range(2)]
    if len(factors) != len(operands) - 1:
        refuse(loops.op, "product that leaves out an operand, or takes one twice")
    *_, m, n = loops.dims(len(operands) - 1)
    of_rows, of_columns = (
        [number for number in factors if dim in loops.named(number)] for dim in (m, n)
    )
    if sorted(of_rows + of_columns) != sorted(factors) or not of_rows or not of_columns:
        refuse(loops.op, "product but of factors of rows and of columns")
    return [_multiplied(loops, factors, numbers) for numbers in (of_rows, of_columns)]


def _multiplied(
    loops: Loops, factors: Mapping[int, Value], numbers: Sequence[int]
) -> tuple[Value, tuple[int, ...]]:
    """The product of some factors, which float32 must hold exactly, along all their loops."""
    gathered = [_gather(loops, factors[number], number) for number in numbers]
    whole = functools.reduce(multiply, gathered)
    if not np.array_equal(round_to(whole.middle, "f32"), whole.middle, equal_nan=True):
        refuse(loops.op, "product that is rounded before it is summed")
    dims = tuple(sorted(set().union(*(loops.named(number) for number in numbers))))
    extents = [loops.extents[dim] for dim in dims]
    full = [e if dim in dims else 1 for dim, e in enumerate(loops.extents)]
    return places(whole, lambda part: np.broadcast_to(part, full).reshape(extents)), dims


def _is_zero(value: Value) -> bool:
    """Whether a tensor is 0, with no doubt."""
    return isinstance(value, Interval) and not any(np.any(part) for part in value.parts())


def _matrices(
    value: Value,
    dims: Sequence[int],
    stack: Sequence[int],
    rows: Sequence[int],
    columns: Sequence[int],
) -> list[Value]:
    """A tensor as matrices along some loops, their rows along others, their columns the rest."""
    order = [dims.index(dim) for dim in (*stack, *rows, *columns)]
    first = len(stack)

    def matrices(part: np.ndarray) -> np.ndarray:
        transposed = part.transpose(order)
        count, height = (
            int(np.prod(each, dtype=np.int64))
            for each in (transposed.shape[:first], transposed.shape[first : first + len(rows)])
        )
        return transposed.reshape(count, height, -1)

    whole = places(value, matrices)
    count = (whole if isinstance(whole, np.ndarray) else whole.middle).shape[0]
    return [places(whole, lambda part, at=at: part[at]) for at in range(count)]


def _stacked(values: list[Value]) -> Value:
    """The values along a new first dim."""
    intervals = [value for value in values if isinstance(value, Interval)]
    return stacked(intervals) if intervals else np.stack([np.asarray(value) for value in values])


def _addition(op: Any) -> Any:
    """The addition that the body yields."""
    last = list(op.regions[0].blocks[0].operations)[-1]
    value = last.operands[0]
    if isinstance(value.owner, ir.Block) or value.owner.name not in ("arith.addf", "arith.addi"):
        refuse(op, "reduction but sums of products")
    if element_type(value.type) not in ("f32", "f64", "i32"):
        refuse(op, f"sum in {element_type(value.type)}")
    return value.owner.opview


def _factors(op: Any, operands: Sequence[Any]) -> dict[int, Value]:
    """What is multiplied: operands by their numbers, each alone, after its casts in the body."""
    block = op.regions[0].blocks[0]
    addition, last = _addition(op), len(operands) - 1
    summed = [value for value in addition.operands if value != block.arguments[last]]
    if len(summed) != 1 or _name_of(summed[0]) not in PRODUCTS:
        refuse(op, "reduction but sums of products")
    return dict(_leaves(op, summed[0], operands))


def _leaves(op: Any, value: Any, operands: Sequence[Any]) -> Iterator[tuple[int, Value]]:
    """The factors of a product, itself of products perhaps."""
    if _name_of(value) not in PRODUCTS:
        yield _cast(op, value, operands)
        return
    for factor in value.owner.operands:
        if _name_of(factor) == "arith.muli":
            refuse(op, "product of several integers")
        yield from _leaves(op, factor, operands)


def _name_of(value: Any) -> str:
    """The op that gives a value, "" for a block's argument."""
    return "" if isinstance(value.owner, ir.Block) else value.owner.name


def _cast(op: Any, value: Any, operands: Sequence[Any]) -> tuple[int, Value]:
    """Which operand a factor is, and its elements after the casts of the body."""
    if isinstance(value.owner, ir.Block):
        number = ir.BlockArgument(value).arg_number
        if isinstance(operands[number], Undefined):
            refuse(op, "value of a tensor.empty")
        return number, operands[number]
    caster = value.owner.opview
    if len(caster.operands) != 1:
        refuse(caster, "such op inside a product")
    number, inner = _cast(op, caster.operands[0], operands)
    return number, evaluate(caster, [inner])


def _text(results: Sequence[Any]) -> str:
    return f"({', '.join(map(str, results))})"
