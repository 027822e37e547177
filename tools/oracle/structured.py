"""linalg.generic, in which form upstream MLIR writes every op of linalg on tensors.

parallel loops             each operand is read where its map says, the body is evaluated on
                           whole arrays, and the output's map places what it yields
out += x · y along loops   a product of two matrices: the sums may be in any order
"""

# The upstream builders have no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialects.mlir import ir
from ...runtime.judge.intervals import Interval, stacked
from .scalars import evaluate, stored
from .values import Value, element_type, places, refuse

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


def generic(
    op: Any, operands: Sequence[Any], sums: Callable[..., Value], body: Body
) -> list[Value]:
    """The results of a linalg.generic on tensors."""
    loops = Loops.of(op)
    if loops.reductions:
        return [_contraction(loops, operands, sums)]
    inputs = [
        _gather(loops, operand, results)
        for operand, results in zip(operands, loops.maps, strict=True)
    ]
    yielded = body(op, inputs)
    first = len(operands) - len(op.results)
    return [_placed(loops, value, first + i, op.results[i].type) for i, value in enumerate(yielded)]


def _gather(loops: Loops, operand: Any, results: Sequence[Any]) -> Any:
    """An operand's elements in the order of the loops."""
    if isinstance(operand, Undefined) or not results:
        return operand
    grids = np.ogrid[tuple(slice(extent) for extent in loops.extents)]
    index = tuple(np.asarray(_affine(loops.op, result, grids)) for result in results)

    def gathered(part: np.ndarray) -> np.ndarray:
        for axis, places_ in enumerate(index):
            if places_.min() < 0 or places_.max() >= part.shape[axis]:
                refuse(loops.op, f"index out of bounds along axis {axis}")
        return part[index]

    return places(operand, gathered)


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
    if len(operands) != 3 or len(op.results) != 1:
        refuse(op, "reduction but sums of products of two operands")
    a, b = _factors(op, operands)
    of_a, of_b, of_c = (loops.dims(operand) for operand in range(3))
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
    if type_ == "f64" and _is_zero(operands[2]):
        return product  # scalars are evaluated in f64, which leaves no limits of a sum in f64
    return stored(evaluate(addition, [operands[2], product]), type_)


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
        turned = part.transpose(order)
        count, height = (
            int(np.prod(each, dtype=np.int64))
            for each in (turned.shape[:first], turned.shape[first : first + len(rows)])
        )
        return turned.reshape(count, height, -1)

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


def _factors(op: Any, operands: Sequence[Any]) -> tuple[Value, Value]:
    """What is multiplied: the first two operands, each alone, after its casts in the body."""
    block = op.regions[0].blocks[0]
    addition = _addition(op)
    summed = [value for value in addition.operands if value != block.arguments[2]]
    if len(summed) != 1 or isinstance(summed[0].owner, ir.Block):
        refuse(op, "reduction but sums of products")
    product = summed[0].owner.opview
    if product.operation.name not in ("arith.mulf", "arith.muli"):
        refuse(op, "reduction but sums of products")
    factors = [_cast(op, value, operands) for value in product.operands]
    if sorted(number for number, _ in factors) != [0, 1]:
        refuse(op, "product but of its two operands")
    by_number = dict(factors)
    return by_number[0], by_number[1]


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
