"""Finds the function argument behind an operand of linalg.matmul; used by `normalize`.

    %t = linalg.transpose %b          linalg.matmul ins(%a, %w) {      →   a: %a, "k"
    %w = arith.extsi %t : i16         ^bb0(%x, %y, %z):                    b: %b, "k", signed
                                        yield %z + extsi(%x) * extsi(%y)

What is read on the way: the op's indexing maps, its region, transposes and extensions. Extensions
may follow one another where together they are one extension of the argument's elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..dialects.mlir import ir, linalg
from .base import refused

EXTENSIONS = ("arith.extf", "arith.extsi", "arith.extui")
CASTS = (*EXTENSIONS, "arith.sitofp", "arith.truncf")
PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
OUTPUT_MAP = (0, 1)
NO_PRODUCT = "its region must yield the output plus the product of its inputs"


@dataclass(frozen=True)
class Operand:
    """The function argument behind an operand and how it is stored ("k" or "mn").

    `casts` are the ops that its elements go through, the last one first.
    """

    value: ir.Value
    major: str
    casts: tuple[str, ...] = ()

    @property
    def unsigned(self) -> bool:
        """Whether its integers have no sign: what the first cast makes of them."""
        return self.casts[-1:] == ("arith.extui",)

    @property
    def type(self) -> ir.RankedTensorType:
        """The argument's type."""
        return ir.RankedTensorType(self.value.type)

    @property
    def element(self) -> str:
        """Its element type, as the tile dialect has it: MLIR's integers have no sign."""
        element = str(self.type.element_type)
        return f"u{element}" if self.unsigned and element[0] == "i" else element


def trace_operands(matmul: Any) -> tuple[Operand, Operand]:
    """A and B of C[m,n] += A[m,k] · B[k,n]; refuses a linalg.matmul that is anything else."""
    output = map_dims(_maps(matmul)[2], matmul)
    if output != OUTPUT_MAP:
        raise refused(matmul, f"the output must be indexed (d0, d1), got {named(output)}")
    inside = _casts_inside(matmul)
    a, b = (
        _trace(Operand(matmul.operands[index], _major(matmul, index), inside[index]))
        for index in range(2)
    )
    return a, b


def check_casts(matmul: Any, name: str, operand: Operand) -> None:
    """Refuse casts that together are not one extension of the argument's elements."""
    first, *rest = operand.casts[::-1] or ("arith.extf",)
    mixed = first == "arith.extsi" and "arith.extui" in rest
    if mixed or not set(operand.casts) <= set(EXTENSIONS):
        chain = ", ".join(each.removeprefix("arith.") for each in operand.casts[::-1])
        rule = f"{name} must be extended once, by extf, extsi or extui, got {chain}"
        raise refused(matmul, f"{rule}; extend it by one op")


def map_dims(attribute: ir.Attribute, op: Any) -> tuple[int, ...]:
    """The loop dims that an indexing map names, in order."""
    results = ir.AffineMapAttr(attribute).value.results
    if not all(isinstance(result, ir.AffineDimExpr) for result in results):
        raise refused(op, f"indexing maps must name loop dims only, got {attribute}")
    return tuple(ir.AffineDimExpr(result).position for result in results)


def named(dims: tuple[int, ...]) -> str:
    """Loop dims as MLIR prints them."""
    return f"({', '.join(f'd{dim}' for dim in dims)})"


def check_copies(op: Any) -> None:
    """Refuse a named op whose region, which MLIR does not print, changes what it moves."""
    (body,) = op.operation.regions[0].blocks
    *computed, last = list(body.operations)
    if computed or list(last.operands) != [body.arguments[0]]:
        raise refused(op, "its region must yield its input as it is; write it as a linalg.generic")


def check_parallel(op: Any) -> None:
    """Refuse a linalg.generic that is not elementwise."""
    iterators = [str(kind) for kind in op.attributes["iterator_types"]]
    if len(op.results) != 1 or any("parallel" not in kind for kind in iterators):
        raise refused(op, "must be elementwise with one result (all iterators parallel)")


def _maps(matmul: Any) -> ir.ArrayAttr:
    return ir.ArrayAttr(matmul.attributes["indexing_maps"])


def _casts_inside(matmul: Any) -> list[tuple[str, ...]]:
    """What the region casts A and B by, which it multiplies and adds to the output."""
    (body,) = matmul.operation.regions[0].blocks
    inputs = list(body.arguments)
    total = list(body.operations)[-1].operands[0]
    product_name = PRODUCTS.get(_name(total))
    terms = [each for each in _operands(total) if each != inputs[2]]
    if product_name is None or len(terms) != 1 or _name(terms[0]) != product_name:
        raise refused(matmul, NO_PRODUCT)
    found = dict(_behind(factor) for factor in _operands(terms[0]))
    if any(argument not in found for argument in inputs[:2]):
        raise refused(matmul, NO_PRODUCT)
    return [found[argument] for argument in inputs[:2]]


def _behind(value: ir.Value, casts: tuple[str, ...] = ()) -> tuple[ir.Value, tuple[str, ...]]:
    """The value behind casts, and those."""
    if _name(value) not in CASTS:
        return value, casts
    return _behind(_operands(value)[0], (*casts, _name(value)))


def _name(value: ir.Value) -> str:
    """The op that gives a value, "" for a block's argument."""
    return "" if isinstance(value.owner, ir.Block) else value.owner.name


def _operands(value: ir.Value) -> list[ir.Value]:
    return [] if isinstance(value.owner, ir.Block) else list(value.owner.operands)


def _major(matmul: Any, index: int) -> str:
    """Whether operand 0 (A) or 1 (B) is stored with K ("k") or M/N ("mn") contiguous."""
    found = map_dims(_maps(matmul)[index], matmul)
    if found == (index, 2):
        return "k"
    if found == (2, index):
        return "mn"
    rule = f"operand {'AB'[index]} must be indexed by its two dims, got {named(found)}"
    raise refused(matmul, rule)


def _trace(user: Operand) -> Operand:
    """Follow an operand to the function argument behind it."""
    if isinstance(user.value.owner, ir.Block):
        return user
    op = user.value.owner.opview
    behind = replace(user, value=op.operands[0]) if len(op.operands) else user
    if isinstance(op, linalg.TransposeOp):
        check_copies(op)
        swaps = list(ir.DenseI64ArrayAttr(op.attributes["permutation"])) == [1, 0]
        return _trace(_flipped(behind) if swaps else behind)
    if op.operation.name in EXTENSIONS:
        return _trace(_through(behind, (op.operation.name,)))
    if isinstance(op, linalg.GenericOp) and (casts := _casts_of(op)) is not None:
        check_parallel(op)
        source, target = (map_dims(map_, op) for map_ in _maps(op))
        if sorted(source) == sorted(target) == [0, 1]:
            turned = behind if source == target else _flipped(behind)
            return _trace(_through(turned, casts))
    raise refused(
        op,
        "an operand must come from a function argument through transposes, extf, extsi and extui; "
        "compute anything else before the kernel",
    )


def _flipped(operand: Operand) -> Operand:
    return replace(operand, major="mn" if operand.major == "k" else "k")


def _through(operand: Operand, casts: tuple[str, ...]) -> Operand:
    return replace(operand, casts=(*operand.casts, *casts))


def _casts_of(generic: Any) -> tuple[str, ...] | None:
    """The casts that a linalg.generic gives each input element, None if it does more."""
    body = generic.regions[0].blocks[0]
    value, casts = _behind(list(body.operations)[-1].operands[0])
    whole = len(generic.operands) == 2 and value == body.arguments[0]
    return casts if whole and set(casts) <= set(EXTENSIONS) else None
