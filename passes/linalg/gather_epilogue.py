"""Turns a chain of elementwise tensor ops into scalar ops on one element; used by `normalize`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from ...dialects.dtypes import BESIDE_DTYPES, DTYPES, stored_dtype
from ...dialects.epilogue import SCALAR_OPS, scalar_types
from ...dialects.errors import CompileError
from ...dialects.mlir import arith, ir, linalg_ops
from ...dialects.tile import ElementOp
from ..base import location_of, refused
from .accepted_ops import read_attributes
from .trace_operand import check_copies, check_parallel, map_dims, named

Axes = tuple[str, ...]
# Gets None to start with, and for each element that it asks for its scalar.
Step = Generator[tuple[ir.Value, Axes], Any, ir.Value]
CONVERSIONS = ("arith.constant", "arith.truncf", "arith.sitofp")
READABLE = tuple((*stack, *axes) for stack in ("", "b") for axes in ("", "m", "n", "mn"))
POWER, POWERS = "math.fpowi", range(1, 9)
POWER_OF_TWO, EXP2 = "math.powf", "math.exp2"
TAKEN = (*SCALAR_OPS, POWER, POWER_OF_TWO)
ONE = ""
"""The axis of a dim of one element, which all rows or columns read."""
EXACT = (
    *CONVERSIONS,
    "arith.cmpf",
    "arith.select",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.negf",
    "math.absf",
)
"""Ops that give narrow floats which are the same as those in f32, rounded."""


def _is_narrow(type_: ir.Type) -> bool:
    return isinstance(type_, ir.BF16Type | ir.F16Type)


def _is_exact(op: Any) -> bool:
    """Whether an op gives the same in f32 and then rounded as it does in narrower floats."""
    return op.operation.name in EXACT or not _is_narrow(_element_type(op.operation.results[0]))


def _inputs(op: Any) -> list[ir.Value]:
    """The operands that an epilogue computes; a constant exponent or base is none of them."""
    operands, name = list(op.operands), op.operation.name
    return operands[name == POWER_OF_TWO :][:1] if name in (POWER, POWER_OF_TWO) else operands


def _integer(value: ir.Value) -> int | None:
    """What an integer constant is, None if the value is none."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _float(value: ir.Value) -> float | None:
    """What a constant float is, or each element of a constant tensor; None if it is none."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


def _element_type(value: ir.Value) -> ir.Type:
    type_ = value.type
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def _check_types(op: Any) -> None:
    takes = scalar_types(op.operation.name)
    for value in (*_inputs(op), *op.operation.results):
        if str(_element_type(value)) not in takes:
            raise refused(op, f"must be of {', '.join(takes)} here, got {_element_type(value)}")


def _dims_of_operand(attribute: ir.Attribute, operand: Any, op: Any) -> tuple[int, ...]:
    """The loop dims that an input's map names, in order; -1 of a dim of one element."""
    results = ir.AffineMapAttr(attribute).value.results
    firsts = [
        dim
        for dim, each in enumerate(results)
        if isinstance(each.maybe_downcast(), ir.AffineConstantExpr) and operand.type.shape[dim] == 1
    ]
    if not firsts:
        return map_dims(attribute, op)
    dims = [result for dim, result in enumerate(results) if dim not in firsts]
    named = iter(map_dims(ir.AffineMapAttr.get(ir.AffineMap.get(_loops(op), 0, dims)), op))
    return tuple(-1 if dim in firsts else next(named) for dim in range(len(results)))


def _named(axes: Axes) -> list[str]:
    return [axis or "0" for axis in axes]


def _loops(op: Any) -> int:
    return len(op.attributes["iterator_types"])


def _as_exp2(op: Any) -> str:
    """The name of the op that a power of two is."""
    base = _float(op.operands[0])
    if base != 2:
        raise refused(op, f"the base must be the constant 2, got {base}; compute it outside")
    return EXP2


class EpilogueGatherer:
    """Builds the epilogue: one scalar for each (tensor value, axes) it is asked for.

    What a tensor op computes of bf16 or f16 is computed in f32 and rounded once, when it is given
    to the next tensor op, as torch's operators do.
    """

    def __init__(self, matmul: Any, sums: Mapping[Any, int], block: ir.Block, axes: Axes):
        """`sums` says of each op that multiplies which of the block's arguments its sums are."""
        self.matmul = matmul
        self.sums = sums
        self.axes = axes
        self.block = block
        self.bodies: dict[Any, dict[ir.Value, ir.Value]] = {}
        self.known: dict[tuple[ir.Value, Axes], ir.Value] = {}

    def element(self, value: ir.Value, axes: Axes) -> ir.Value:
        """The scalar that is one element of `value`, indexed by `axes`.

        Each step yields the elements that it needs and gets their scalars: a chain of any length
        takes no recursion.
        """
        steps = [((value, axes), self._element(value, axes))]
        answer = None
        while steps:
            key, step = steps[-1]
            try:
                wanted = step.send(answer)
            except StopIteration as end:
                answer = self.known[key] = end.value
                steps.pop()
                continue
            answer = self.known.get(wanted)
            if answer is None:
                steps.append((wanted, self._element(*wanted)))
        return self.known[value, axes]

    def _element(self, value: ir.Value, axes: Axes) -> Step:
        if isinstance(value.owner, ir.Block):
            return self._argument(value, axes)
        op = value.owner.opview
        if op.operation in self.sums:
            return self._accumulator(op, axes)
        if isinstance(op, linalg_ops.GenericOp):
            return (yield from self._generic(op, axes, ir.OpResult(value).result_number))
        if isinstance(op, linalg_ops.FillOp):
            check_copies(op)
            return self._scalar(op.operands[0])
        if isinstance(op, linalg_ops.BroadcastOp):
            check_copies(op)
            added = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
            return (yield op.operands[0], tuple(a for i, a in enumerate(axes) if i not in added))
        if isinstance(op, linalg_ops.TransposeOp):
            check_copies(op)
            order = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
            source = [axes[order.index(i)] for i in range(len(axes))]
            return (yield op.operands[0], tuple(source))
        if op.operation.name == "arith.constant":
            return self._splat(op)
        return (yield from self._elementwise(op, axes))

    def _accumulator(self, op: Any, axes: Axes) -> ir.Value:
        if axes != self.axes:
            rule = "its result must be read as it lies by the epilogue"
            raise refused(op, f"{rule}, got it transposed or broadcast; do that after the kernel")
        return self.block.arguments[self.sums[op.operation]]

    def _argument(self, value: ir.Value, axes: Axes) -> ir.Value:
        if axes not in READABLE:
            raise refused(
                self.matmul,
                f"an epilogue operand must be indexed [], [m], [n] or [m, n], got {_named(axes)} "
                f"for {value.type}; transpose it before the kernel",
            )
        element = ir.RankedTensorType(value.type).element_type
        dtype = stored_dtype(str(element))
        if dtype is None or dtype.name not in BESIDE_DTYPES:
            takes = ", ".join(DTYPES[name].mlir for name in BESIDE_DTYPES)
            raise refused(
                self.matmul,
                f"an epilogue operand must hold one of {takes}, got {value.type};"
                " convert it before the kernel",
            )
        with self.matmul.location, ir.InsertionPoint(self.block):
            return ElementOp(
                source=value,
                axes=ir.StringAttr.get("".join(axes)),
                value=element,
            ).value

    def _generic(self, op: Any, axes: Axes, number: int) -> Step:
        """The result of that number."""
        maps, count = list(op.attributes["indexing_maps"]), len(op.operation.results)
        inputs = zip(maps[:-count], op.operands, strict=False)
        sources = [_dims_of_operand(map_, operand, op) for map_, operand in inputs]
        target = map_dims(maps[len(sources) + number], op)
        check_parallel(op)
        if sorted(target) != list(range(len(op.attributes["iterator_types"]))):
            raise refused(op, f"the output map must use every loop dim once, got {named(target)}")
        if len(target) != len(axes):
            raise refused(op, f"must have {len(axes)} loop dims here, got {len(target)}")
        axis_of = dict(zip(target, axes, strict=True))
        body = op.regions[0].blocks[0]
        inside = {}
        for argument, operand, dims in zip(body.arguments, op.operands, sources, strict=False):
            inside[argument] = operand, tuple(axis_of.get(dim, ONE) for dim in dims)
        return (yield from self._body(op, body, inside, number))

    def _operand(self, operand: ir.Value, axes: Axes) -> Step:
        if isinstance(operand.type, ir.RankedTensorType):
            return (yield operand, axes)
        return self._scalar(operand)

    def _body(
        self,
        generic: Any,
        body: ir.Block,
        inside: dict[ir.Value, tuple[ir.Value, Axes]],
        number: int,
    ) -> Step:
        key = generic.operation, tuple(axes for _, axes in inside.values())
        values = self.bodies.setdefault(key, {})

        def read(value: ir.Value) -> Step:
            if value in values:
                return values[value]
            if value in inside:
                return (yield from self._operand(*inside[value]))
            if value in list(body.arguments):
                rule = "the body must read its inputs alone, got its output operand"
                raise refused(generic, f"{rule}; pass that as an input")
            return self._scalar(value)

        *computed, last = list(body.operations)
        clone = self._clone if all(map(_is_exact, computed)) else self._clone_wide
        for op in computed if not values else ():
            operands = []
            for each in _inputs(op):
                operands.append((yield from read(each)))
            values[op.operation.results[0]] = clone(op, operands)
        result = yield from read(last.operands[number])
        return self._rounded(result, last.operands[number].type)

    def _scalar(self, value: ir.Value) -> ir.Value:
        """A scalar computed outside every region: only constants can be carried along."""
        if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
            raise refused(
                self.matmul, f"an epilogue scalar must be an arith.constant, got a {value.type}"
            )
        return self._clone(value.owner.opview, [])

    def _splat(self, op: Any) -> ir.Value:
        attribute = op.attributes["value"]
        known = isinstance(attribute, ir.DenseElementsAttr)
        if not known or not (dense := ir.DenseElementsAttr(attribute)).is_splat:
            rule = "a constant of the epilogue must be a splat, got several values"
            raise refused(op, f"{rule}; pass it as an argument")
        with op.location:
            value = dense.get_splat_value()
            return arith.ConstantOp(value.type, value, ip=ir.InsertionPoint(self.block)).result

    def _elementwise(self, op: Any, axes: Axes) -> Step:
        if op.operation.name not in TAKEN:
            raise refused(
                op, "not an elementwise op that an epilogue can take; write it as a linalg.generic"
            )
        operands = []
        for operand in _inputs(op):
            operands.append((yield from self._operand(operand, axes)))
        if _is_exact(op):
            return self._clone(op, operands)
        return self._rounded(self._clone_wide(op, operands), op.results[0].type.element_type)

    def _clone_wide(self, op: Any, operands: list[ir.Value]) -> ir.Value:
        """The op in f32, where it computes in narrower floats."""
        if op.operation.name == "arith.extf":
            wide = self._wide(operands[0])
            return wide if wide.type == _element_type(op.result) else self._clone(op, [wide])
        if op.operation.name in CONVERSIONS:
            return self._clone(op, operands)
        return self._clone(op, [self._wide(operand) for operand in operands], wide=True)

    def _power(self, op: Any, base: ir.Value) -> ir.Value:
        """A small power, as products."""
        exponent = _integer(op.operands[1])
        if exponent is None or exponent not in POWERS:
            allowed = f"{POWERS[0]} to {POWERS[-1]}"
            raise refused(
                op,
                f"the exponent must be a constant of {allowed}, got {exponent};"
                " compute it outside the kernel",
            )
        result = base
        with self.matmul.location, ir.InsertionPoint(self.block):
            for _ in range(exponent - 1):
                result = arith.mulf(result, base)
        return result

    def _wide(self, value: ir.Value) -> ir.Value:
        if not _is_narrow(value.type):
            return value
        with self.matmul.location, ir.InsertionPoint(self.block):
            return arith.extf(ir.F32Type.get(), value)

    def _rounded(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        if value.type == type_:
            return value
        with self.matmul.location, ir.InsertionPoint(self.block):
            return arith.truncf(type_, value)

    def _clone(self, op: Any, operands: list[ir.Value], wide: bool = False) -> ir.Value:
        name = op.operation.name
        if name not in TAKEN:
            raise CompileError(
                f"{name}: not an op that an epilogue can take; use one of {', '.join(SCALAR_OPS)}",
                location_of(op),
            )
        _check_types(op)
        if name == POWER:
            return self._power(op, operands[0])
        if name == POWER_OF_TWO:
            name = _as_exp2(op)
        scalar = _element_type(op.operation.results[0])
        if wide and _is_narrow(scalar):
            scalar = ir.F32Type.get(scalar.context)
        with op.location:
            clone = ir.Operation.create(
                name,
                results=[scalar],
                operands=operands,
                attributes=read_attributes(op),
                ip=ir.InsertionPoint(self.block),
            )
        return clone.results[0]
