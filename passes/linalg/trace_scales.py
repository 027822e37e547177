"""Finds the block scales of a product of linalg; used by `normalize`.

    %w = linalg.generic ins(%a, %s) {                  linalg.generic ins(%a, %s, %b, %t) {
         yield extf(%x) * extf(%u) }             or         yield %sum + x * u * y * v }
    linalg.matmul ins(%w, …)
                                 →    a: %a, "k"     a_scales: %s, by 32 elements of K

An operand is a product of elements and scales. The scale of an element may be read in any number of
steps, such as a broadcast of it first. What counts is the place that all indexing maps together
name, and that is held to the formula of each layout at every row and every element of K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...dialects.dtypes import (
    BLOCKWISE,
    BLOCKWISE_FORMS,
    scale_dtype,
    scaled_dtype,
    scaled_mma,
)
from ...dialects.mlir import ir, linalg_ops
from ...dialects.tile_types import integer
from ..base import refused
from .affine import dims_of, function_of
from .scale_places import Factor, block_of, check_place, form_of
from .trace_operand import Operand, check_copies, check_parallel, map_dims
from .trace_views import Index, source_index

CASTS = ("arith.extf", "arith.truncf")
WIDE = ("f32", "bf16")
MAGNITUDE, UNSIGNED = "math.absf", "f8E8M0FNU"


class ScaledOperand(NamedTuple):
    """An operand with its scales, an argument of the function: one for `block` elements of K."""

    elements: Operand
    scales: ir.Value
    block: int
    sign_is_read: bool
    """Whether the text reads a sign of its scales, which no tensor core does."""
    form: str = ""
    """How scales of f32 lie."""


def is_contraction(generic: Any) -> bool:
    """Whether a linalg.generic sums what may be a product with scales: of three inputs or more."""
    kinds = [str(kind) for kind in generic.attributes["iterator_types"]]
    return len(generic.operands) > 3 and any("parallel" not in kind for kind in kinds)


def trace_scales(matmul: Any) -> tuple[ScaledOperand, ScaledOperand] | None:
    """A and B of a contraction with block scales; None where neither operand is a product."""
    if not isinstance(matmul, linalg_ops.GenericOp) and not any(map(_is_product, matmul.operands)):
        return None
    loops = _loops(matmul)
    factors = list(_contracted(matmul))
    sides = [[each for each in factors if loops[axis] in each.loops] for axis in "mn"]
    for each in factors:
        if not any(each in side for side in sides):
            rule = "a factor of a product must be indexed by its row or column and by K"
            cure = "multiply the result by one of a whole tensor"
            raise refused(each.op, f"{rule}, got {each.value.type} at {each.at}; {cure}")
    extents = _extents(matmul)
    a, b = (
        _operand(matmul, name, side, (loops["b"], loops[axis], loops["k"]), extents)
        for name, axis, side in zip("AB", "mn", sides, strict=True)
    )
    return a, b


def scale_operands(
    matmul: Any, sides: tuple[ScaledOperand, ScaledOperand]
) -> dict[str, ir.Value | ir.Attribute]:
    """What `tile.scaled_matmul`, or `tile.blockwise_matmul`, takes beside A and B; refuses those
    that none takes together."""
    a, b = sides
    if a.form and b.form:
        return _forms(matmul, a, b)
    types = [str(ir.RankedTensorType(each.scales.type).element_type) for each in sides]
    of_a, of_b = (scaled_dtype(each.elements.element) for each in sides)
    scale = scale_dtype(types[0]) if types[0] == types[1] else None
    if not (of_a and of_b and scale and scaled_mma(of_a, of_b, scale, a.block)):
        got = ", ".join(f"{e.elements.element} by {t}" for e, t in zip(sides, types, strict=True))
        rule = "A and B must be formats that an MMA takes together (docs/block-scales.md)"
        raise refused(matmul, f"{rule}, got {got}; convert one of them")
    block = integer(a.block)
    return {"a_scales": a.scales, "b_scales": b.scales, "block": block}


def _forms(matmul: Any, a: ScaledOperand, b: ScaledOperand) -> dict[str, ir.Value | ir.Attribute]:
    """Scales of f32, of which one side has one for each row."""
    if BLOCKWISE_FORMS[0] not in (a.form, b.form):
        rule = "one of A and B must have scales of each row, got those of 128 rows for both"
        raise refused(matmul, f"{rule}; spread one of them")
    forms = {f"{name}_form": ir.StringAttr.get(each.form) for name, each in (("a", a), ("b", b))}
    return {"a_scales": a.scales, "b_scales": b.scales, **forms}


def _is_product(value: ir.Value) -> bool:
    """Whether an operand is multiplied before the contraction."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.opview
    if op.operation.name == "arith.mulf":
        return True
    if isinstance(op, linalg_ops.GenericOp):
        body = op.operation.regions[0].blocks[0]
        if any(each.operation.name == "arith.mulf" for each in body.operations):
            return True
    return len(op.operands) > 0 and _is_product(op.operands[0])


def _loops(matmul: Any) -> dict[str, int]:
    """Which loop is m, n and k, and b of a stack, -1 without."""
    maps = ir.ArrayAttr(matmul.attributes["indexing_maps"])
    *stack, m, n = map_dims(maps[len(maps) - 1], matmul)
    count = ir.AffineMapAttr(maps[0]).value.n_dims
    (k, *others) = set(range(count)) - {m, n, *stack} or {-1}
    if others or len(stack) > 1 or k < 0:
        raise refused(matmul, f"must have one loop along K, got {count} loops")
    return {"b": stack[0] if stack else -1, "m": m, "n": n, "k": k}


def _extents(matmul: Any) -> dict[int, int]:
    """How long each loop of the contraction is: as the dims of operands that it alone indexes."""
    maps = [ir.AffineMapAttr(each).value for each in matmul.attributes["indexing_maps"]]
    return {
        ir.AffineDimExpr(place).position: extent
        for map_, operand in zip(maps, matmul.operands, strict=True)
        for place, extent in zip(map_.results, operand.type.shape, strict=True)
        if isinstance(place, ir.AffineDimExpr)
    }


def _contracted(matmul: Any) -> Iterator[Factor]:
    """What the contraction multiplies, back to arguments of the function."""
    (body,) = matmul.operation.regions[0].blocks
    arguments = list(body.arguments)
    total = list(body.operations)[-1].operands[0]
    for op in body.operations:
        _check_unrounded(op)
    terms = []
    if not isinstance(total.owner, ir.Block) and total.owner.name == "arith.addf":
        terms = [each for each in total.owner.operands if each != arguments[-1]]
    if len(terms) != 1:
        rule = "its region must yield the output plus the product of its inputs"
        raise refused(matmul, f"{rule}, got another sum; add one product to the output")
    maps = ir.ArrayAttr(matmul.attributes["indexing_maps"])
    whole = [tuple(ir.AffineMapAttr(each).value.results) for each in maps]
    yield from _of_body(matmul, terms[0], whole, ())


def _of_body(op: Any, value: ir.Value, maps: list[Index], steps: tuple[str, ...]) -> Iterator[Any]:
    """The factors of a scalar in an op's body, whose arguments are read at `maps`."""
    if isinstance(value.owner, ir.Block):
        number = ir.BlockArgument(value).arg_number
        if value.owner != op.operation.regions[0].blocks[0] or number == len(maps) - 1:
            raise refused(op, "a factor must be an input of the op, got another value")
        yield from _of_tensor(op, op.operands[number], maps[number], steps)
        return
    for operand, more in _through(op, value.owner.opview, steps):
        yield from _of_body(op, operand, maps, more)


def _of_tensor(user: Any, value: ir.Value, index: Index, steps: tuple[str, ...]) -> Iterator[Any]:
    """The factors of a tensor at a place."""
    if isinstance(value.owner, ir.Block):
        yield Factor(value, index, user, steps)
        return
    op = value.owner.opview
    if isinstance(op, linalg_ops.GenericOp):
        check_parallel(op)
        yield from _of_generic(op, index, steps)
    elif isinstance(op, linalg_ops.TransposeOp):
        check_copies(op)
        order = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        transposed = tuple(index[order.index(dim)] for dim in range(len(order)))
        yield from _of_tensor(user, op.operands[0], transposed, steps)
    elif isinstance(op, linalg_ops.BroadcastOp):
        check_copies(op)
        added = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
        kept = tuple(each for dim, each in enumerate(index) if dim not in added)
        yield from _of_tensor(user, op.operands[0], kept, steps)
    elif (seen := source_index(op, index)) is not None:
        yield from _of_tensor(user, op.operands[0], seen, steps)
    else:
        for operand, more in _through(op, op, steps):
            yield from _of_tensor(op, operand, index, more)


def _of_generic(op: Any, index: Index, steps: tuple[str, ...]) -> Iterator[Factor]:
    """The factors of a linalg.generic's result at a place: its loops are what that place says."""
    attributes = ir.ArrayAttr(op.attributes["indexing_maps"])
    *maps, target = (ir.AffineMapAttr(each).value for each in attributes)
    order = map_dims(attributes[len(maps)], op)
    if sorted(order) != list(range(target.n_dims)):
        raise refused(op, f"the output map must use every loop dim once, got {target}")
    count = 1 + max((dim for each in index for dim in dims_of(each)), default=0)
    loops = ir.AffineMap.get(count, 0, [index[order.index(dim)] for dim in range(len(order))])
    read = [tuple(each.compose(loops).maybe_downcast() for each in map_.results) for map_ in maps]
    (body,) = op.operation.regions[0].blocks
    yield from _of_body(op, list(body.operations)[-1].operands[0], [*read, index], steps)


def _through(user: Any, op: Any, steps: tuple[str, ...]) -> list[tuple[ir.Value, tuple[str, ...]]]:
    """What an op multiplies or converts, with the steps from there on."""
    name = op.operation.name
    if name == "arith.mulf":
        _check_wide(op)
        if MAGNITUDE in steps:
            raise refused(op, "math.absf must be taken of scales alone, got a product")
        return [(each, steps) for each in op.operands]
    if name in CASTS or name == MAGNITUDE:
        _check_cast(op)
        return [(op.operands[0], (*steps, name))]
    rule = "an operand must be elements, or elements times scales of their blocks, through"
    takes = "transposes, broadcasts, views, extf and mulf"
    raise refused(user, f"{rule} {takes}, got {name}; compute anything else before the kernel")


def _check_unrounded(op: Any) -> None:
    """A product of both sides has more bits than bf16, of which a tensor core drops none."""
    name, got = op.operation.name, [_element(each) for each in op.operation.results]
    if name in ("arith.mulf", "arith.truncf") and got != ["f32"]:
        rule = "what a sum along K multiplies must be f32, which rounds no product"
        raise refused(op, f"{rule}, got {got[0]}; extend the factors to f32")


def _check_cast(op: Any) -> None:
    """A cast keeps what it is given: f16 has few of the exponents of a scale without a sign."""
    name, source, got = op.operation.name, op.operands[0], _element(op.results[0])
    if name == "arith.truncf":
        _check_wide(op)
    if name == "arith.extf" and _element(source) == UNSIGNED and got not in WIDE:
        rule = f"scales of {UNSIGNED} must be extended to {' or '.join(WIDE)}, which hold them"
        raise refused(op, f"{rule}, got {got}; extend them to f32")


def _element(value: ir.Value) -> str:
    type_ = value.type
    return str(type_.element_type if isinstance(type_, ir.RankedTensorType) else type_)


def _check_wide(op: Any) -> None:
    """Products are exact in what has the exponents of f32 and 8 bits, and so is a truncation."""
    got = _element(op.results[0])
    if got not in WIDE:
        rule = f"elements times scales must be {' or '.join(WIDE)}, which hold them exactly"
        raise refused(op, f"{rule}, got {got}; extend them to f32")


def _operand(
    matmul: Any,
    name: str,
    factors: Sequence[Factor],
    loops: tuple[int, int, int],
    extents: dict[int, int],
) -> ScaledOperand:
    """The operand that its factors are; `loops` are those of b, of m or n, and of k."""
    b, mn, k = loops
    if len(factors) != 2:
        other = "BA"[name == "B"]
        got = "; ".join(f"{each.value.type} at {each.at}" for each in factors) or "none"
        rule = f"{name} must be elements times scales, two factors indexed by its d{mn}, as {other}"
        raise refused(matmul, f"{rule}, got {got}; give both operands scales")
    named = {b: "b", mn: "mn", k: "k"}
    whole = [tuple(_axis(each, named, extents) for each in factor.index) for factor in factors]
    scales = [number for number, axes in enumerate(whole) if not _is_whole(axes)]
    if len(scales) != 1:
        got = ", ".join(factor.at for factor in factors)
        rule = f"{name} must be elements, one at each d{mn} and d{k}, times scales of blocks"
        raise refused(factors[0].op, f"{rule}, got factors at {got}; index scales by blocks")
    elements, scale = factors[1 - scales[0]], factors[scales[0]]
    if set(elements.steps) - set(CASTS):
        raise refused(elements.op, f"elements of {name} must be extended, got their magnitude")
    axes = whole[1 - scales[0]]
    operand = Operand(elements.value, axes, elements.steps)
    read = [extents[{"b": b, "mn": mn, "k": k}[axis]] for axis in axes]
    if list(operand.type.shape) != read:
        rule = f"{name} must be read whole, got {read} of {list(operand.type.shape)} elements"
        raise refused(elements.op, f"{rule}; copy the slice before the kernel")
    stacked = bool(scale.index) and _axis(scale.index[0], {b: "b"}, extents) == "b"
    return _with_scales(name, operand, scale, (mn, k), int(stacked))


def _with_scales(
    name: str, operand: Operand, scale: Factor, loops: tuple[int, int], stack: int
) -> ScaledOperand:
    """Elements with their scales, which lie as their type asks for after `stack` dims."""
    rows, depth = (operand.type.shape[operand.axes.index(axis)] for axis in ("mn", "k"))
    if str(scale.type.element_type) == "f32":
        _check_untouched(name, scale)
        form = form_of(name, scale, loops, (rows, depth), stack)
        return ScaledOperand(operand, scale.value, BLOCKWISE, False, form)
    block = block_of(name, scale, depth)
    check_place(name, scale, loops, (rows, depth), block, stack)
    signed = str(scale.type.element_type) != UNSIGNED and MAGNITUDE not in scale.steps
    return ScaledOperand(operand, scale.value, block, signed)


def _check_untouched(name: str, scale: Factor) -> None:
    """Scales of f32 have all bits of f32: what rounds them, or their products, changes them."""
    if scale.steps:
        got = ", ".join(scale.steps[::-1])
        rule = f"scales of f32 of {name} must be multiplied as they are, and products kept in f32"
        raise refused(scale.op, f"{rule}, got {got}; compute them before the kernel")


def _axis(expression: ir.AffineExpr, named: dict[int, str], extents: dict[int, int]) -> str:
    """What a loop is called that is the index by itself, however written, "" for any other."""
    dims = dims_of(expression)
    if len(dims) != 1:
        return ""
    (loop,), value = dims, function_of(expression)
    is_loop = loop in extents and all(value(i) == i for i in range(extents[loop]))
    return named.get(loop, "") if is_loop else ""


def _is_whole(axes: tuple[str, ...]) -> bool:
    """Whether an index names each element of a matrix, or of those of a stack, once."""
    return sorted(each for each in axes if each != "b") == ["k", "mn"]
