"""Gathers linalg on tensors into one `tile.matmul`.

    %0 = linalg.fill ins(%zero) outs(%empty)             %0 = "tile.matmul"(%a, %b) ({
    %1 = linalg.matmul ins(%a, %b) outs(%0)          →   ^bb0(%acc: f32):
    %2 = linalg.generic {truncf} ins(%1) …                 %1 = arith.truncf %acc
    return %2                                              "tile.yield"(%1) }) {a_major = "k", …}

Operands are traced through transposes and extensions to function arguments; the result is traced
back from the return through elementwise ops to the matmul, one scalar op for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..dialects.dtypes import (
    DTYPES,
    OPERAND_DTYPES,
    OUTPUT_DTYPES,
    DType,
    mix_refusal,
    operand_dtype,
    stored_dtype,
)
from ..dialects.errors import CompileError
from ..dialects.mlir import func, ir, linalg
from ..dialects.tile import MatmulOp, YieldOp
from .base import PassLog, attributes_of, refused, walk
from .gather_epilogue import EpilogueGatherer, map_dims

EXTENSIONS = ("arith.extf", "arith.extsi", "arith.extui")


@dataclass(frozen=True)
class Normalize:
    """linalg on tensors → one `tile.matmul` with operand layouts and epilogue region."""

    name: ClassVar[str] = "normalize"

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        function = _the_function(module)
        matmul = _the_matmul(function)
        a, b = (_the_operand(matmul, index) for index in range(2))
        dtypes = _check_dtypes(matmul, a, b)
        accumulator = DTYPES[dtypes[0].accumulator]
        _check_accumulator(matmul, accumulator)
        _say_unsigned(function, [each for each in (a, b) if each.unsigned])
        fused = _build(function, matmul, a, b)
        if dtypes[0].name == "tf32" and log.places:
            log.remark(matmul, "f32 operands are multiplied as tf32, which has 10 fraction bits")
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


@dataclass(frozen=True)
class _Operand:
    """The function argument behind an operand, how it is stored ("k" or "mn"), and its sign."""

    value: ir.Value
    major: str
    unsigned: bool

    @property
    def element(self) -> str:
        """Its element type, as the tile dialect has it: MLIR's integers have no sign."""
        element = str(self.value.type.element_type)
        return f"u{element}" if self.unsigned and element[0] == "i" else element


def _the_operand(matmul: Any, index: int) -> _Operand:
    unsigned = "cast_unsigned" in str(attributes_of(matmul).get("cast"))
    return _trace_operand(matmul.operands[index], _Operand(None, _major(matmul, index), unsigned))


def _trace_operand(value: ir.Value, user: _Operand) -> _Operand:
    """Follow an operand to the function argument behind it."""
    if isinstance(value.owner, ir.Block):
        return replace(user, value=value)
    op = value.owner.opview
    if isinstance(op, linalg.TransposeOp):
        swaps = list(op.attributes["permutation"]) == [1, 0]
        return _trace_operand(op.operands[0], _flipped(user) if swaps else user)
    if op.operation.name in EXTENSIONS:
        return _trace_operand(op.operands[0], _signed(user, op.operation.name))
    if isinstance(op, linalg.GenericOp) and (extension := _extension(op)) is not None:
        source, target = (map_dims(map_, op) for map_ in op.attributes["indexing_maps"])
        if sorted(source) == sorted(target) == [0, 1]:
            turned = user if source == target else _flipped(user)
            return _trace_operand(op.operands[0], _signed(turned, extension))
    raise refused(
        op,
        "an operand must come from a function argument through transposes, extf, extsi and extui; "
        "compute anything else before the kernel",
    )


def _flipped(operand: _Operand) -> _Operand:
    return replace(operand, major="mn" if operand.major == "k" else "k")


def _signed(operand: _Operand, extension: str) -> _Operand:
    """The operand, with the sign that an extension of integers gives it."""
    if extension in ("arith.extsi", "arith.extui"):
        return replace(operand, unsigned=extension == "arith.extui")
    return operand


def _extension(generic: Any) -> str | None:
    """The extension that a linalg.generic gives each input element; "" for as it is, None if it
    does anything else."""
    block = generic.regions[0].blocks[0]
    *body, last = list(block.operations)
    names = [op.operation.name for op in body]
    if len(generic.operands) != 2 or len(names) > 1 or not set(names) <= set(EXTENSIONS):
        return None
    moved = body[0].operation.operands[0] if body else last.operands[0]
    given = body[0].operation.results[0] if body else moved
    whole = moved == block.arguments[0] and last.operands[0] == given
    return "".join(names) if whole else None


def _check_dtypes(matmul: Any, a: _Operand, b: _Operand) -> tuple[DType, DType]:
    """The types of A and B, which an MMA takes together."""
    found = [operand_dtype(operand.element) for operand in (a, b)]
    for name, operand, dtype in zip("AB", (a, b), found, strict=True):
        if dtype is None:
            raise refused(matmul, f"{name} must hold one of {_taken()}, got {operand.element}")
    reason = mix_refusal(*found)
    if reason:
        raise refused(matmul, f"A and B {reason}")
    shapes = [*a.value.type.shape, *b.value.type.shape]
    if any(extent <= 0 for extent in shapes):
        types = f"{a.value.type} and {b.value.type}"
        raise refused(matmul, f"shapes must be static and positive, got {types}")
    if a.value == b.value and a.unsigned != b.unsigned:
        raise refused(matmul, "one argument as A and B must have one sign, got both")
    return found[0], found[1]


def _taken() -> str:
    """The types of operands as linalg has them: the casts of integers have the sign."""
    names = (DTYPES[name].mlir.removeprefix("u") for name in OPERAND_DTYPES)
    return ", ".join(dict.fromkeys(names))


def _check_accumulator(matmul: Any, wanted: DType) -> None:
    accumulator = matmul.operands[2]
    element = accumulator.type.element_type
    if str(element) != wanted.mlir:
        raise refused(
            matmul, f"must accumulate in {wanted.mlir}, got {element}; convert the result"
        )
    owner = accumulator.owner
    fill = None if isinstance(owner, ir.Block) else owner.opview
    if not isinstance(fill, linalg.FillOp) or _constant(fill.operands[0]) != 0:
        raise refused(matmul, "the accumulator must start as linalg.fill of 0; add C afterwards")


def _constant(value: ir.Value) -> float | None:
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) else None


def _say_unsigned(function: func.FuncOp, operands: list[_Operand]) -> None:
    """Give arguments of integers without a sign the one that they are extended with."""
    for operand in operands:
        if operand.element[0] == "u":
            element = ir.Type.parse(operand.element)
            operand.value.set_type(ir.RankedTensorType.get(operand.value.type.shape, element))
    inputs = [argument.type for argument in function.body.blocks[0].arguments]
    type_ = ir.FunctionType.get(inputs, function.type.results)
    function.operation.attributes["function_type"] = ir.TypeAttr.get(type_)


def _build(function: func.FuncOp, matmul: Any, a: _Operand, b: _Operand) -> MatmulOp:
    """Insert the fused op before the return and make the function return it."""
    terminator = list(function.body.blocks[0].operations)[-1]
    if len(terminator.operands) != 1:
        raise refused(terminator, f"must return one tensor, got {len(terminator.operands)}")
    result = terminator.operands[0]
    _check_result(terminator, result, matmul)
    scratch = func.FuncOp("scratch", ([], []), ip=ir.InsertionPoint(function))
    block = scratch.body.blocks.append(matmul.operands[2].type.element_type)
    gather = EpilogueGatherer(matmul, block)
    with ir.InsertionPoint(block), matmul.location:
        YieldOp(gather.element(result, ("m", "n")))
    if not gather.reached:
        raise refused(terminator, "the returned tensor does not depend on the linalg.matmul")
    with ir.InsertionPoint(terminator), matmul.location:
        fused = MatmulOp(
            c=result.type,
            a=a.value,
            b=b.value,
            a_major=ir.StringAttr.get(a.major),
            b_major=ir.StringAttr.get(b.major),
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
    dtype = stored_dtype(element)
    if dtype is None or dtype.name not in OUTPUT_DTYPES:
        takes = ", ".join(DTYPES[name].mlir for name in OUTPUT_DTYPES)
        raise refused(terminator, f"element type of C must be one of {takes}, got {element}")


def _erase_dead(function: func.FuncOp) -> None:
    for op in reversed(list(function.body.blocks[0].operations)[:-1]):
        if all(not list(result.uses) for result in op.operation.results):
            op.operation.erase()
