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
from ..dialects.errors import CompileError
from ..dialects.mlir import func, ir, linalg
from ..dialects.tile import MatmulOp, YieldOp
from .base import PassLog, refused, walk
from .gather_epilogue import EpilogueGatherer, map_dims


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
    found = map_dims(ir.ArrayAttr(matmul.attributes["indexing_maps"])[index], matmul)
    mn = index
    if found == (mn, 2):
        return "k"
    if found == (2, mn):
        return "mn"
    operand = "AB"[index]
    raise refused(matmul, f"operand {operand} must be indexed by its two dims, got d{found}")


def _trace_operand(value: ir.Value, major: str, user: Any) -> tuple[ir.Value, str]:
    """The function argument behind an operand and how it is stored."""
    if isinstance(value.owner, ir.Block):
        return value, major
    op = value.owner.opview
    if isinstance(op, linalg.TransposeOp):
        swaps = list(op.attributes["permutation"]) == [1, 0]
        return _trace_operand(op.operands[0], _flip(major) if swaps else major, op)
    if op.operation.name == "arith.extf":
        return _trace_operand(op.operands[0], major, op)
    if isinstance(op, linalg.GenericOp) and _is_extension(op):
        source, target = (map_dims(map_, op) for map_ in op.attributes["indexing_maps"])
        if sorted(source) == sorted(target) == [0, 1]:
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
    """Whether a linalg.generic gives each input element as it is, or extended."""
    block = generic.regions[0].blocks[0]
    *body, last = list(block.operations)
    if len(generic.operands) != 2 or [op.operation.name for op in body] not in ([], ["arith.extf"]):
        return False
    moved = body[0].operation.operands[0] if body else last.operands[0]
    given = body[0].operation.results[0] if body else moved
    return moved == block.arguments[0] and last.operands[0] == given


def _check_dtypes(matmul: Any, a: ir.Value, b: ir.Value) -> None:
    elements = [str(operand.type.element_type) for operand in (a, b)]
    for operand, element in zip("AB", elements, strict=True):
        if element not in OPERAND_DTYPES:
            takes = ", ".join(OPERAND_DTYPES)
            raise refused(matmul, f"{operand} must hold one of {takes}, got {element}")
    if elements[0] != elements[1]:
        raise refused(matmul, f"A and B must hold one type, got {' and '.join(elements)}")
    shapes = [*a.type.shape, *b.type.shape]
    if any(extent <= 0 for extent in shapes):
        raise refused(matmul, f"shapes must be static and positive, got {a.type} and {b.type}")


def _check_accumulator(matmul: Any) -> None:
    accumulator = matmul.operands[2]
    element = accumulator.type.element_type
    if str(element) != "f32":
        raise refused(matmul, f"must accumulate in f32, got {element}; truncate the result")
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
    _check_result(terminator, result, matmul)
    scratch = func.FuncOp("scratch", ([], []), ip=ir.InsertionPoint(function))
    block = scratch.body.blocks.append(ir.F32Type.get())
    gather = EpilogueGatherer(matmul, block)
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


def _check_result(terminator: Any, result: ir.Value, matmul: Any) -> None:
    shape = matmul.results[0].type.shape
    if not isinstance(result.type, ir.RankedTensorType) or result.type.shape != shape:
        raise refused(terminator, f"must return a {shape[0]}x{shape[1]} tensor, got {result.type}")
    element = str(result.type.element_type)
    if element not in OUTPUT_DTYPES:
        takes = ", ".join(OUTPUT_DTYPES)
        raise refused(terminator, f"element type of C must be one of {takes}, got {element}")


def _erase_dead(function: func.FuncOp) -> None:
    for op in reversed(list(function.body.blocks[0].operations)[:-1]):
        if all(not list(result.uses) for result in op.operation.results):
            op.operation.erase()
