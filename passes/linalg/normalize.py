"""Gathers linalg on tensors into one `tile.matmul`.

    %0 = linalg.fill ins(%zero) outs(%empty)             %0 = "tile.matmul"(%a, %b) ({
    %1 = linalg.matmul ins(%a, %b) outs(%0)          →   ^bb0(%acc: f32):
    %2 = linalg.generic {truncf} ins(%1) …                 %1 = arith.truncf %acc
    return %2                                              "tile.yield"(%1) }) {a_major = "k", …}

The pass traces each operand of the matmul back to an argument of the function, through transposes
and extensions. If an operand is elements times block scales, it traces both (`trace_scales`). It
also traces the returned value back to the matmul, through elementwise ops, and adds one scalar op
to the epilogue's region for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from ...dialects.dtypes import (
    DTYPES,
    OPERAND_DTYPES,
    OUTPUT_DTYPES,
    DType,
    mix_refusal,
    operand_dtype,
    size_refusal,
    stored_dtype,
)
from ...dialects.dynamic import joined
from ...dialects.entry_names import name_refusal
from ...dialects.errors import CompileError
from ...dialects.mlir import func, ir, linalg_ops
from ...dialects.record import record
from ...dialects.tile import KernelOp, MatmulOp, YieldOp
from ...dialects.tile.blockwise import BlockwiseMatmulOp
from ...dialects.tile.duals import DualMatmulOp
from ...dialects.tile.outputs import PRODUCTS, KeepOp, KeptOp, kept_by
from ...dialects.tile.scales import ScaledMatmulOp
from ...dialects.tile_types import integer
from ..argument_layouts import check_layouts
from ..base import PassLog, many, refused, walk
from ..math_policy import state_math
from .accepted_ops import check_accepted
from .check_matmul import check_matmuls
from .gather_epilogue import EpilogueGatherer
from .open_sizes import check_open_sizes
from .trace_operand import Operand, check_casts, check_copies
from .trace_products import Product, find_matmuls, find_products
from .trace_scales import ScaledOperand, scale_operands, trace_scales

MOST_EPILOGUE_OPS = 5000
"""Of one element; longer ones take minutes in LLVM and ptxas."""


@record
class Normalize:
    """linalg on tensors → one `tile.matmul` with operand layouts and epilogue region.

    Two products of one A become a `tile.dual_matmul`, whose epilogue takes both accumulators. A
    product of elements times block scales becomes a `tile.scaled_matmul`, and with scales in f32 a
    `tile.blockwise_matmul`.

    A file may also contain such an op, or one of the grouped ops, for which linalg has no
    equivalent. The pass leaves it unchanged.
    """

    name: ClassVar[str] = "normalize"
    makes: ClassVar[tuple[str, ...]] = PRODUCTS

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        for entry in walk(module, MatmulOp):  # by hand, or of what linalg has no op for
            check_matmuls(module)
            log.did(f"took {entry.operation.name} as it is")
            return
        for kernel in walk(module, KernelOp):
            raise refused(kernel, "normalize: takes linalg, got a kernel; run it once, first")
        check_accepted(module)
        function = _the_function(module)
        check_layouts(function)
        check_open_sizes(function)
        self._gather(function, log)
        for entry in walk(module, MatmulOp):
            state_math(module, entry)

    def _gather(self, function: func.FuncOp, log: PassLog) -> None:
        matmuls = find_matmuls(function)
        scaled = trace_scales(matmuls[0]) if len(matmuls) == 1 else None
        if scaled:
            self._gather_scaled(function, matmuls[0], scaled, log)
            return
        first, *second = products = find_products(function, matmuls)
        for product in products:
            accumulator = _check_product(product)
        _check_sizes(function)
        operands = [first.a, *(product.b for product in products)]
        _say_unsigned(function, [each for each in operands if each.unsigned])
        named = {"a": first.a.value, "b": first.b.value, **_majors(first.a, first.b)}
        if second:
            b2 = second[0].b
            named |= {"b2": b2.value, "b2_major": ir.StringAttr.get(b2.major)}
        op_class = DualMatmulOp if second else MatmulOp
        fused = _build(function, products, lambda c: op_class(c=c, **named))
        _erase_dead(function)
        sizes = joined(fused.c.type.shape)
        steps, more = _counted(fused)
        if accumulator.name == "f64" and steps:
            rule = f"sums in f64 are stored as they are, got {steps} epilogue ops"
            raise refused(matmuls[0], f"{rule}; compute them outside the kernel")
        what = "two matmuls of one A" if second else "matmul"
        log.did(f"gathered {sizes} {what}, {many(steps, 'epilogue op')}{more}")

    def _gather_scaled(
        self,
        function: func.FuncOp,
        matmul: Any,
        sides: tuple[ScaledOperand, ScaledOperand],
        log: PassLog,
    ) -> None:
        """The same of operands with block scales."""
        _check_sizes(function)
        _check_accumulator(matmul, DTYPES["f32"])
        a, b = (each.elements for each in sides)
        operands = {"a": a.value, "b": b.value, **_majors(a, b), **scale_operands(matmul, sides)}
        product = Product((matmul,), a, b)
        op_class = BlockwiseMatmulOp if all(each.form for each in sides) else ScaledMatmulOp
        fused = _build(function, [product], lambda c: op_class(c=c, **operands))
        if any(each.sign_is_read for each in sides):
            log.remark(matmul, "scales of f8E4M3FN are read without their sign, as by math.absf")
        _erase_dead(function)
        sizes = joined(fused.c.type.shape)
        steps, more = _counted(fused)
        log.did(f"gathered {sizes} matmul by block scales, {many(steps, 'epilogue op')}{more}")


def _counted(fused: MatmulOp) -> tuple[int, str]:
    """How many ops the epilogue has, and how many outputs there are, in words, if several."""
    block = fused.epilogue.blocks[0]
    further = len(kept_by(block))
    more = f", {further + 1} outputs" if further else ""
    return len(list(block.operations)) - 1 - further, more


def _the_function(module: ir.Module) -> func.FuncOp:
    functions = walk(module, func.FuncOp)
    if not functions:
        raise CompileError("normalize: the module must hold one func.func, got 0")
    if len(functions) > 1:
        rule = "must be the one func.func of its module"
        raise refused(functions[1], f"{rule}, got {len(functions)} of them; compile it apart")
    if functions[0].is_external or len(functions[0].body.blocks) != 1:
        raise refused(functions[0], "the body must be one block; remove control flow")
    reason = name_refusal(functions[0].name.value)
    if reason:
        raise refused(functions[0], f"{reason}; rename the function")
    return functions[0]


def _check_product(product: Product) -> DType:
    """Refuse a product that no kernel computes; the type of its sums."""
    matmul, a, b = product.matmuls[0], product.a, product.b
    dtypes = _check_dtypes(matmul, a, b)
    accumulator = DTYPES[dtypes[0].accumulator]
    for each in product.matmuls:
        _check_accumulator(each, accumulator)
    check_casts(matmul, "A", a)
    check_casts(matmul, "B", b)
    return accumulator


def _check_dtypes(matmul: Any, a: Operand, b: Operand) -> tuple[DType, DType]:
    """The types of A and B, which an MMA takes together."""
    found = _dtype(matmul, "A", a), _dtype(matmul, "B", b)
    reason = mix_refusal(*found)
    if reason:
        raise refused(matmul, f"A and B {reason}")
    shapes = [*a.type.shape, *b.type.shape]
    if 0 in shapes:
        types = f"{a.value.type} and {b.value.type}"
        raise refused(matmul, f"shapes must be static and positive, got {types}")
    if a.value == b.value and a.unsigned != b.unsigned:
        raise refused(matmul, "one argument as A and B must have one sign, got both")
    return found


def _dtype(matmul: Any, name: str, operand: Operand) -> DType:
    dtype = operand_dtype(operand.element)
    if dtype is None:
        raise refused(matmul, f"{name} must hold one of {_taken()}, got {operand.element}")
    return dtype


def _check_sizes(function: func.FuncOp) -> None:
    types = [argument.type for argument in function.body.blocks[0].arguments]
    for type_ in (*types, *function.type.results):
        if isinstance(type_, ir.RankedTensorType):
            element = type_.element_type
            known = isinstance(element, ir.IntegerType | ir.FloatType)
            shape = [1 if extent < 0 else extent for extent in type_.shape]
            reason = size_refusal(shape, -(-element.width // 8)) if known else None
            if reason:
                raise refused(function, f"a tensor {reason}")


def _taken() -> str:
    """The types of operands as linalg has them: the casts of integers have the sign."""
    names = (DTYPES[name].mlir.removeprefix("u") for name in OPERAND_DTYPES)
    return ", ".join(dict.fromkeys(names))


def _check_accumulator(matmul: Any, wanted: DType) -> None:
    accumulator = list(matmul.operands)[-1]
    element = accumulator.type.element_type
    if str(element) != wanted.mlir:
        raise refused(
            matmul, f"must accumulate in {wanted.mlir}, got {element}; convert the result"
        )
    if _is_zero(accumulator):
        return
    owner = accumulator.owner
    fill = None if isinstance(owner, ir.Block) else owner.opview
    if not isinstance(fill, linalg_ops.FillOp) or not _is_zero(fill.operands[0]):
        raise refused(matmul, "the accumulator must start as linalg.fill of 0; add C afterwards")
    check_copies(fill)


def _is_zero(value: ir.Value) -> bool:
    """Whether it is a constant of 0, or a tensor of them; -0.0 is none, which sums of -0.0 would
    show."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return False
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    if not isinstance(attribute, ir.FloatAttr | ir.IntegerAttr):
        return False
    return attribute.value == 0 and math.copysign(1, attribute.value) == 1


def _say_unsigned(function: func.FuncOp, operands: list[Operand]) -> None:
    """Give arguments of integers without a sign the one that they are extended with."""
    for operand in operands:
        if operand.element[0] == "u":
            element = ir.Type.parse(operand.element)
            operand.value.set_type(ir.RankedTensorType.get(operand.type.shape, element))
    inputs = [argument.type for argument in function.body.blocks[0].arguments]
    type_ = ir.FunctionType.get(inputs, function.type.results)
    function.operation.attributes["function_type"] = ir.TypeAttr.get(type_)


def _build(
    function: func.FuncOp, products: list[Product], make: Callable[[ir.Type], MatmulOp]
) -> MatmulOp:
    """Insert the fused op, which `make` makes, before the return; the function returns it."""
    matmul = products[0].matmuls[0]
    terminator = list(function.body.blocks[0].operations)[-1]
    results = list(terminator.operands)
    if not results:
        raise refused(terminator, "must return one tensor or several, got none")
    for result in results:
        _check_result(terminator, result, matmul)
    scratch = func.FuncOp("scratch", ([], []), ip=ir.InsertionPoint(function))
    block = _epilogue_in(scratch, terminator, products)
    with ir.InsertionPoint(terminator), matmul.location:
        fused = make(results[0].type)
        kept = [
            KeptOp(c=fused.c, number=integer(number), output=each.type)
            for number, each in enumerate(results[1:])
        ]
    block.append_to(fused.epilogue)
    scratch.erase()
    for number, value in enumerate((fused.c, *(each.output for each in kept))):
        terminator.operands[number] = value
    return fused


def _epilogue_in(scratch: func.FuncOp, terminator: Any, products: list[Product]) -> Any:
    """A block of a function that computes what is returned of the sums, element by element."""
    matmul = products[0].matmuls[0]
    block = scratch.body.blocks.append(
        *(each.matmuls[0].results[0].type.element_type for each in products)
    )
    axes = ("b", "m", "n")[-matmul.results[0].type.rank :]
    sums = {op.operation: number for number, each in enumerate(products) for op in each.matmuls}
    gather = EpilogueGatherer(matmul, sums, block, axes)
    with ir.InsertionPoint(block), matmul.location:
        returned = [gather.element(result, axes) for result in terminator.operands]
        for value in returned[1:]:
            KeepOp(value=value)
        YieldOp(returned[0])
    name = matmul.operation.name
    for value in returned:
        if not any(_depends(value, each) for each in block.arguments):
            rule = f"each returned tensor must depend on the {name}, got one that does not"
            raise refused(terminator, f"{rule}; return it elsewhere")
    if not all(list(each.uses) for each in block.arguments):
        raise refused(terminator, "must return what both products make, got one unread; remove it")
    count = len(list(block.operations)) - len(returned)
    if count > MOST_EPILOGUE_OPS:
        rule = f"an epilogue must have at most {MOST_EPILOGUE_OPS} ops"
        raise refused(matmul, f"{rule}, got {count}")
    return block


def _majors(a: Operand, b: Operand) -> dict[str, ir.Attribute]:
    return {"a_major": ir.StringAttr.get(a.major), "b_major": ir.StringAttr.get(b.major)}


def _depends(value: ir.Value, on: ir.Value) -> bool:
    """Whether a scalar of the epilogue is computed from another."""
    seen, wanted = set(), [value]
    while wanted:
        each = wanted.pop()
        if each == on:
            return True
        if each not in seen and not isinstance(each.owner, ir.Block):
            wanted += list(each.owner.operands)
        seen.add(each)
    return False


def _check_result(terminator: Any, result: ir.Value, matmul: Any) -> None:
    shape = matmul.results[0].type.shape
    if not isinstance(result.type, ir.RankedTensorType) or result.type.shape != shape:
        sizes = joined(shape)
        raise refused(
            terminator,
            f"must return a {sizes} tensor, got {result.type}; "
            "give it the rows of all matrices as one",
        )
    element = str(result.type.element_type)
    dtype = stored_dtype(element)
    if dtype is None or dtype.name not in OUTPUT_DTYPES:
        takes = ", ".join(DTYPES[name].mlir for name in OUTPUT_DTYPES)
        raise refused(
            terminator,
            f"element type of C must be one of {takes}, got {element};"
            " convert it outside the kernel",
        )


def _erase_dead(function: func.FuncOp) -> None:
    for op in reversed(list(function.body.blocks[0].operations)[:-1]):
        if all(not list(result.uses) for result in op.operation.results):
            op.operation.erase()
