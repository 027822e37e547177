"""Traces an operand of linalg.matmul back to a function argument; used by `normalize`.

    %t = linalg.transpose %b          linalg.matmul ins(%a, %w) {      →   a: %a, "k"
    %w = arith.extsi %t : i16         ^bb0(%x, %y, %z):                    b: %b, "k", signed
                                        yield %z + extsi(%x) * extsi(%y)

What is read on the way: the op's indexing maps, its region, transposes and extensions. Extensions
may follow one another where together they are one extension of the argument's elements.
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir, linalg_ops
from ...dialects.record import record
from ..base import refused

EXTENSIONS = ("arith.extf", "arith.extsi", "arith.extui")
CASTS = (*EXTENSIONS, "arith.sitofp", "arith.truncf")
PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
OUTPUT_MAPS = {False: (0, 1), True: (0, 1, 2)}
STORED = tuple((*stack, *dims) for stack in ((), ("b",)) for dims in (("mn", "k"), ("k", "mn")))
NO_PRODUCT = "its region must yield the output plus the product of its inputs"


@record
class Operand:
    """The function argument that an operand comes from, and what its dims are: "b", "mn" and "k".

    `casts` are the ops that its elements go through, the last one first.
    """

    value: ir.Value
    axes: tuple[str, ...]
    casts: tuple[str, ...] = ()

    @property
    def major(self) -> str:
        """Which dim is stored contiguously, "k" or "mn"."""
        return self.axes[-1]

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
        """The element type in the tile dialect, whose integers have a sign, unlike MLIR's."""
        element = str(self.type.element_type)
        return f"u{element}" if self.unsigned and element[0] == "i" else element


def trace_operands(matmul: Any) -> tuple[Operand, Operand]:
    """A and B of C[m,n] += A[m,k] · B[k,n], or of stacks of them; refuses a linalg.matmul or
    linalg.batch_matmul that is anything else."""
    output, wanted = map_dims(_maps(matmul)[2], matmul), OUTPUT_MAPS[_stacked(matmul)]
    if output != wanted:
        raise refused(
            matmul,
            f"the output must be indexed {named(wanted)}, got {named(output)}; "
            "exchange A and B for the transpose",
        )
    inside = _casts_inside(matmul)
    a, b = (
        _trace(Operand(matmul.operands[index], _axes(matmul, index), inside[index]))
        for index in range(2)
    )
    for operand in (a, b):
        if operand.axes not in STORED:
            got = ", ".join(operand.axes)
            raise refused(
                matmul,
                f"a stack must have its matrices along the first dim, got {got}; "
                "transpose it before the call",
            )
    if _stacked(matmul) and not any("b" in operand.axes for operand in (a, b)):
        raise refused(
            matmul,
            "one of the operands must be a stack, got a product of the same two matrices;"
            " multiply once",
        )
    return a, b


def _stacked(matmul: Any) -> bool:
    return isinstance(matmul, linalg_ops.BatchMatmulOp)


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
        rule = f"indexing maps must name loop dims only, got {attribute}"
        raise refused(op, f"{rule}; compute it outside the kernel")
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
    if not is_elementwise(op):
        raise refused(
            op, "must be elementwise (all iterators parallel); compute it outside the kernel"
        )


def is_elementwise(op: Any) -> bool:
    """Whether no loop of a linalg.generic sums."""
    return all("parallel" in str(kind) for kind in op.attributes["iterator_types"])


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
    """The value before casts, and the casts."""
    if _name(value) not in CASTS:
        return value, casts
    return _behind(_operands(value)[0], (*casts, _name(value)))


def _name(value: ir.Value) -> str:
    """The op that gives a value, "" for a block's argument."""
    return "" if isinstance(value.owner, ir.Block) else value.owner.name


def _operands(value: ir.Value) -> list[ir.Value]:
    return [] if isinstance(value.owner, ir.Block) else list(value.owner.operands)


def _axes(matmul: Any, index: int) -> tuple[str, ...]:
    """What the dims of operand 0 (A) or 1 (B) are."""
    found, first = map_dims(_maps(matmul)[index], matmul), int(_stacked(matmul))
    names = {first + index: "mn", first + 2: "k"} | ({0: "b"} if first else {})
    axes = tuple(names.get(dim, "") for dim in found)
    if set(axes) - {"b"} != {"mn", "k"} or len(set(axes)) != len(axes):
        rule = f"operand {'AB'[index]} must be indexed by its two dims, got {named(found)}"
        raise refused(matmul, rule)
    return axes


def _trace(user: Operand) -> Operand:
    """Trace an operand back to a function argument."""
    if isinstance(user.value.owner, ir.Block):
        return user
    op = user.value.owner.opview
    behind = _behind_op(op, user)
    if behind is None:
        raise refused(
            op,
            "an operand must come from a function argument through transposes, extf, extsi and "
            "extui; compute anything else before the kernel",
        )
    axes, casts = behind
    return _trace(Operand(op.operands[0], axes, (*user.casts, *casts)))


def _behind_op(op: Any, user: Operand) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The axes of an op's first operand where its result is the user's, and the casts between them;
    None of an op that does anything else."""
    if isinstance(op, linalg_ops.TransposeOp):
        check_copies(op)
        order = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        axes = tuple(user.axes[order.index(dim)] for dim in range(len(order)))
        return axes, ()
    if isinstance(op, linalg_ops.BroadcastOp):
        check_copies(op)
        return _behind_broadcast(op, user.axes)
    if op.operation.name in EXTENSIONS:
        return user.axes, (op.operation.name,)
    if isinstance(op, linalg_ops.GenericOp) and (casts := _casts_of(op)) is not None:
        check_parallel(op)
        return _behind_maps(op, user.axes, casts)
    return None


def _behind_broadcast(
    op: Any, axes: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The axes in front of a broadcast of one matrix that a whole stack shares."""
    added = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    if {axes[dim] for dim in added} != {"b"}:
        return None
    return tuple(axis for dim, axis in enumerate(axes) if dim not in added), ()


def _behind_maps(
    op: Any, axes: tuple[str, ...], casts: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The axes in front of a linalg.generic that reads each element once, or one matrix for a whole
    stack."""
    source, target = (map_dims(map_, op) for map_ in _maps(op))
    axis_of = dict(zip(target, axes, strict=True))
    read = tuple(axis_of.get(dim, "") for dim in source)
    whole = len(axis_of) == len(target) and set(read) | {"b"} == set(axes) | {"b"}
    return (read, casts) if whole else None


def _casts_of(generic: Any) -> tuple[str, ...] | None:
    """The casts that a linalg.generic gives each input element, None if it does more."""
    body = generic.regions[0].blocks[0]
    value, casts = _behind(list(body.operations)[-1].operands[0])
    whole = len(generic.operands) == 2 and len(generic.results) == 1 and value == body.arguments[0]
    return casts if whole and set(casts) <= set(EXTENSIONS) else None
