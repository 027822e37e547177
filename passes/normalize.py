"""Gathers linalg on tensors into one `tile.matmul`.

    %0 = linalg.fill ins(%zero) outs(%empty)             %0 = "tile.matmul"(%a, %b) ({
    %1 = linalg.matmul ins(%a, %b) outs(%0)          →   ^bb0(%acc: f32):
    %2 = linalg.generic {truncf} ins(%1) …                 %1 = arith.truncf %acc
    return %2                                              "tile.yield"(%1) }) {a_major = "k", …}

Operands are traced through transposes and extensions to function arguments; the result is traced
back from the return through elementwise ops to the matmul, one scalar op for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..dialects.dtypes import OPERAND_DTYPES, OUTPUT_DTYPES
from ..dialects.epilogue import SCALAR_OPS
from ..dialects.errors import CompileError
from ..dialects.mlir import arith, func, ir, linalg
from ..dialects.tile import ElementOp, MatmulOp, YieldOp
from .base import PassLog, attributes_of, location_of, refused, walk

Axes = tuple[str, ...]


@dataclass(frozen=True)
class Normalize:
    """linalg on tensors → one `tile.matmul` with operand layouts and epilogue region."""

    name: ClassVar[str] = "normalize"

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        function = _the_function(module)
        matmul = _the_matmul(function)
        a = _trace_operand(matmul.operands[0], _major(matmul, 0), matmul)
        b = _trace_operand(matmul.operands[1], _major(matmul, 1), matmul)
        _check_dtypes(matmul, a[0], b[0])
        _check_accumulator(matmul)
        fused = _build(function, matmul, a, b)
        _erase_dead(function)
        m, n = fused.c.type.shape
        steps = len(list(fused.epilogue.blocks[0].operations)) - 1
        log.did(f"gathered {m}x{n} matmul, {steps} epilogue ops")


def _the_function(module: ir.Module) -> func.FuncOp:
    functions = walk(module, func.FuncOp)
    if len(functions) != 1:
        raise CompileError(f"normalize: the module must hold one func.func, got {len(functions)}")
    if functions[0].is_external or len(functions[0].body.blocks) != 1:
        raise refused(functions[0], "the body must be one block; remove control flow")
    return functions[0]


def _the_matmul(function: func.FuncOp) -> Any:
    matmuls = walk(function, linalg.MatmulOp)
    if len(matmuls) != 1:
        raise refused(function, f"the function must hold one linalg.matmul, got {len(matmuls)}")
    return matmuls[0]


def _major(matmul: Any, index: int) -> str:
    """Whether operand 0 (A) or 1 (B) is stored with K ("k") or M/N ("mn") contiguous."""
    found = _map_dims(ir.ArrayAttr(matmul.attributes["indexing_maps"])[index], matmul)
    mn = index
    if found == (mn, 2):
        return "k"
    if found == (2, mn):
        return "mn"
    operand = "AB"[index]
    raise refused(matmul, f"operand {operand} must be indexed by its two dims, got d{found}")


def _map_dims(attribute: ir.Attribute, op: Any) -> tuple[int, ...]:
    results = ir.AffineMapAttr(attribute).value.results
    if not all(isinstance(result, ir.AffineDimExpr) for result in results):
        raise refused(op, f"indexing maps must name loop dims only, got {attribute}")
    return tuple(ir.AffineDimExpr(result).position for result in results)


def _trace_operand(value: ir.Value, major: str, user: Any) -> tuple[ir.Value, str]:
    """The function argument behind an operand and how it is stored."""
    if isinstance(value.owner, ir.Block):
        return value, major
    op = value.owner.opview
    if isinstance(op, linalg.TransposeOp):
        return _trace_operand(op.operands[0], _flip(major), op)
    if op.operation.name == "arith.extf":
        return _trace_operand(op.operands[0], major, op)
    if isinstance(op, linalg.GenericOp) and _is_extension(op):
        source, target = (_map_dims(map_, op) for map_ in op.attributes["indexing_maps"])
        next_major = major if source == target else _flip(major)
        return _trace_operand(op.operands[0], next_major, op)
    raise refused(
        op,
        "an operand must come from a function argument through transposes and extf; "
        "compute anything else before the kernel",
    )


def _flip(major: str) -> str:
    return "mn" if major == "k" else "k"


def _is_extension(generic: Any) -> bool:
    names = [op.operation.name for op in generic.regions[0].blocks[0].operations]
    return len(generic.operands) == 2 and names in (["arith.extf", "linalg.yield"], ["linalg.yield"])


def _check_dtypes(matmul: Any, a: ir.Value, b: ir.Value) -> None:
    elements = [str(operand.type.element_type) for operand in (a, b)]
    for operand, element in zip("AB", elements, strict=True):
        if element not in OPERAND_DTYPES:
            takes = ", ".join(OPERAND_DTYPES)
            raise refused(matmul, f"element type of {operand} must be one of {takes}, got {element}")
    if elements[0] != elements[1]:
        raise refused(matmul, f"A and B must have one element type, got {' and '.join(elements)}")
    shapes = [*a.type.shape, *b.type.shape]
    if any(extent <= 0 for extent in shapes):
        raise refused(matmul, f"shapes must be static and positive, got {a.type} and {b.type}")


def _check_accumulator(matmul: Any) -> None:
    accumulator = matmul.operands[2]
    element = accumulator.type.element_type
    if str(element) != "f32":
        raise refused(matmul, f"must accumulate in f32, got {element}; truncate the result after it")
    owner = accumulator.owner
    fill = None if isinstance(owner, ir.Block) else owner.opview
    if not isinstance(fill, linalg.FillOp) or _constant(fill.operands[0]) != 0.0:
        raise refused(matmul, "the accumulator must start as linalg.fill of 0.0; add C afterwards")


def _constant(value: ir.Value) -> float | None:
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    return ir.FloatAttr(attribute).value if isinstance(attribute, ir.FloatAttr) else None


def _build(function: func.FuncOp, matmul: Any, a: Any, b: Any) -> MatmulOp:
    """Insert the fused op before the return and make the function return it."""
    terminator = list(function.body.blocks[0].operations)[-1]
    if len(terminator.operands) != 1:
        raise refused(terminator, f"must return one tensor, got {len(terminator.operands)}")
    result = terminator.operands[0]
    _check_result(terminator, result)
    scratch = func.FuncOp("scratch", ([], []), ip=ir.InsertionPoint(function))
    block = scratch.body.blocks.append(ir.F32Type.get())
    gather = _Gather(matmul, block)
    with ir.InsertionPoint(block), matmul.location:
        YieldOp(gather.element(result, ("m", "n")))
    if not gather.reached:
        raise refused(terminator, "the returned tensor does not depend on the linalg.matmul")
    with ir.InsertionPoint(terminator), matmul.location:
        fused = MatmulOp(
            c=result.type,
            a=a[0],
            b=b[0],
            a_major=ir.StringAttr.get(a[1]),
            b_major=ir.StringAttr.get(b[1]),
        )
    block.append_to(fused.epilogue)
    scratch.erase()
    terminator.operands[0] = fused.c
    return fused


def _check_result(terminator: Any, result: ir.Value) -> None:
    element = str(result.type.element_type)
    if element not in OUTPUT_DTYPES:
        takes = ", ".join(OUTPUT_DTYPES)
        raise refused(terminator, f"element type of C must be one of {takes}, got {element}")


def _erase_dead(function: func.FuncOp) -> None:
    for op in reversed(list(function.body.blocks[0].operations)[:-1]):
        if all(not list(result.uses) for result in op.operation.results):
            op.operation.erase()


class _Gather:
    """Builds the epilogue: one scalar for each (tensor value, axes) it is asked for."""

    def __init__(self, matmul: Any, block: ir.Block):
        self.matmul = matmul
        self.block = block
        self.known: dict[tuple[ir.Value, Axes], ir.Value] = {}
        self.reached = False

    def element(self, value: ir.Value, axes: Axes) -> ir.Value:
        """The scalar that is one element of `value`, indexed by `axes`."""
        if (value, axes) not in self.known:
            self.known[value, axes] = self._element(value, axes)
        return self.known[value, axes]

    def _element(self, value: ir.Value, axes: Axes) -> ir.Value:
        if isinstance(value.owner, ir.Block):
            return self._argument(value, axes)
        op = value.owner.opview
        if op.operation == self.matmul.operation:
            return self._accumulator(op, axes)
        if isinstance(op, linalg.GenericOp):
            return self._generic(op, axes)
        if isinstance(op, linalg.FillOp):
            return self._scalar(op.operands[0])
        if isinstance(op, linalg.BroadcastOp):
            added = set(op.attributes["dimensions"])
            return self.element(
                op.operands[0], tuple(axis for i, axis in enumerate(axes) if i not in added)
            )
        if isinstance(op, linalg.TransposeOp):
            order = list(op.attributes["permutation"])
            source = [axes[order.index(i)] for i in range(len(axes))]
            return self.element(op.operands[0], tuple(source))
        if op.operation.name == "arith.constant":
            return self._splat(op)
        return self._elementwise(op, axes)

    def _accumulator(self, op: Any, axes: Axes) -> ir.Value:
        if axes != ("m", "n"):
            raise refused(op, "its result must not be transposed or broadcast by the epilogue")
        self.reached = True
        return self.block.arguments[0]

    def _argument(self, value: ir.Value, axes: Axes) -> ir.Value:
        if axes not in (("m",), ("n",), ("m", "n")):
            raise refused(
                self.matmul,
                f"an epilogue operand must be indexed [m], [n] or [m, n], got {list(axes)} "
                f"for {value.type}",
            )
        with self.matmul.location, ir.InsertionPoint(self.block):
            return ElementOp(
                source=value,
                axes=ir.StringAttr.get("".join(axes)),
                value=value.type.element_type,
            ).value

    def _generic(self, op: Any, axes: Axes) -> ir.Value:
        *sources, target = (_map_dims(map_, op) for map_ in op.attributes["indexing_maps"])
        iterators = [str(kind) for kind in op.attributes["iterator_types"]]
        if len(op.results) != 1 or any("parallel" not in kind for kind in iterators):
            raise refused(op, "must be elementwise with one result (all iterators parallel)")
        if sorted(target) != list(range(len(iterators))):
            raise refused(op, f"the output map must use every loop dim once, got {target}")
        axis_of = dict(zip(target, axes, strict=True))
        body = op.regions[0].blocks[0]
        inside = {}
        for argument, operand, dims in zip(body.arguments, op.operands, sources, strict=False):
            inside[argument] = lambda operand=operand, dims=dims: self._operand(
                operand, tuple(axis_of[dim] for dim in dims)
            )
        return self._body(op, body, inside)

    def _operand(self, operand: ir.Value, axes: Axes) -> ir.Value:
        if isinstance(operand.type, ir.RankedTensorType):
            return self.element(operand, axes)
        return self._scalar(operand)

    def _body(self, generic: Any, body: ir.Block, inside: dict) -> ir.Value:
        values: dict[ir.Value, ir.Value] = {}

        def read(value: ir.Value) -> ir.Value:
            if value in values:
                return values[value]
            if value in inside:
                return inside[value]()
            if value in list(body.arguments):
                raise refused(generic, "the body must not read its output operand")
            return self._scalar(value)

        for op in list(body.operations)[:-1]:
            clone = self._clone(op, [read(operand) for operand in op.operands])
            values[op.operation.results[0]] = clone
        return read(list(body.operations)[-1].operands[0])

    def _scalar(self, value: ir.Value) -> ir.Value:
        """A scalar computed outside every region: only constants can be carried along."""
        if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
            raise refused(self.matmul, f"an epilogue scalar must be an arith.constant, got {value}")
        return self._clone(value.owner.opview, [])

    def _splat(self, op: Any) -> ir.Value:
        attribute = op.attributes["value"]
        if not isinstance(attribute, ir.DenseElementsAttr):
            raise refused(op, "a constant of the epilogue must be a splat")
        dense = ir.DenseElementsAttr(attribute)
        if not dense.is_splat:
            raise refused(op, "a constant of the epilogue must be a splat; pass it as an argument")
        with op.location:
            return arith.ConstantOp(
                dense.get_splat_value().type, dense.get_splat_value(), ip=ir.InsertionPoint(self.block)
            ).result

    def _elementwise(self, op: Any, axes: Axes) -> ir.Value:
        if op.operation.name not in SCALAR_OPS:
            raise refused(
                op, "not an elementwise op that an epilogue can take; write it as a linalg.generic"
            )
        return self._clone(op, [self._operand(operand, axes) for operand in op.operands])

    def _clone(self, op: Any, operands: list[ir.Value]) -> ir.Value:
        name = op.operation.name
        if name not in SCALAR_OPS:
            raise CompileError(
                f"{name}: not an op that an epilogue can take; use one of {', '.join(SCALAR_OPS)}",
                location_of(op),
            )
        type_ = op.operation.results[0].type
        scalar = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
        with op.location:
            clone = ir.Operation.create(
                name,
                results=[scalar],
                operands=operands,
                attributes=attributes_of(op),
                ip=ir.InsertionPoint(self.block),
            )
        return clone.results[0]
