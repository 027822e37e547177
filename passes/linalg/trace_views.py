"""Which elements of a tensor a view reads; used by `trace_scales`.

    tensor.expand_shape    [96] as [3, 32]        (i, j)   →   (i * 32 + j)
    tensor.collapse_shape  [3, 32] as [96]        (k)      →   (k floordiv 32, k mod 32)
    tensor.extract_slice   [48, 4] from [0, 0]    (i, j)   →   (i, j)

So a framework writes the scales of blocks that it spreads over elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ...dialects.mlir import ir
from ..base import refused
from .affine import dims_of

Index = tuple[ir.AffineExpr, ...]


def source_index(op: Any, index: Index) -> Index | None:
    """The place in the source of a view that its result has at `index`; None of any other op."""
    view = _VIEWS.get(op.operation.name)
    return None if view is None else view(op, index)


def _expanded(op: Any, index: Index) -> Index:
    shape = op.results[0].type.shape
    return tuple(
        _flat([index[dim] for dim in group], [shape[dim] for dim in group]) for group in _groups(op)
    )


def _flat(places: Sequence[ir.AffineExpr], extents: Sequence[int]) -> ir.AffineExpr:
    """The number of an element in row-major order."""
    terms = [f"d{dim} * {prod(extents[dim + 1 :])}" for dim in range(len(extents))]
    return _composed(" + ".join(terms) or "0", places)


def _collapsed(op: Any, index: Index) -> Index:
    shape = op.operands[0].type.shape
    if not index:  # a scalar, of one element
        return tuple(_composed("0", []) for _ in shape)
    groups = zip(index, _groups(op), strict=True)
    return tuple(
        part for flat, group in groups for part in _parts(flat, [shape[dim] for dim in group])
    )


def _parts(flat: ir.AffineExpr, extents: Sequence[int]) -> list[ir.AffineExpr]:
    """The opposite of `_flat`."""
    pitches = [prod(extents[dim:]) for dim in range(len(extents) + 1)]
    first, *others = pairwise(pitches)
    formulas = [f"d0 floordiv {first[1]}"]
    formulas += [f"(d0 mod {whole}) floordiv {pitch}" for whole, pitch in others]
    return [_composed(formula, [flat]) for formula in formulas]


def _composed(formula: str, places: Sequence[ir.AffineExpr]) -> ir.AffineExpr:
    """A formula of d0, d1, … with places for them, folded."""
    dims = ", ".join(f"d{dim}" for dim in range(len(places)))
    (of_dims,) = _results(f"affine_map<({dims}) -> ({formula})>")
    count = 1 + max((dim for place in places for dim in dims_of(place)), default=0)
    return of_dims.compose(ir.AffineMap.get(count, 0, list(places))).maybe_downcast()


def _results(map_: str) -> Any:
    return ir.AffineMapAttr(ir.Attribute.parse(map_)).value.results


def _groups(op: Any) -> list[list[int]]:
    """The dims of the longer shape that are one of the shorter."""
    return [
        [ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(op.attributes["reassociation"])
    ]


def _sliced(op: Any, index: Index) -> Index:
    offsets, steps = (
        list(ir.DenseI64ArrayAttr(op.attributes[name]))
        for name in ("static_offsets", "static_strides")
    )
    if len(op.operands) > 1 or len(index) != len(offsets):
        rule = "a slice must have offsets that are numbers, and all dims of its source"
        got = "a dim that is dropped" if len(op.operands) == 1 else "an offset that is a value"
        raise refused(op, f"{rule}, got {got}; slice with numbers, and reshape apart")
    return tuple(
        _composed(f"d0 * {step} + {offset}", [place])
        for place, offset, step in zip(index, offsets, steps, strict=True)
    )


_VIEWS: dict[str, Callable[[Any, Index], Index]] = {
    "tensor.collapse_shape": _collapsed,
    "tensor.expand_shape": _expanded,
    "tensor.extract_slice": _sliced,
}
