"""What tiling takes for granted of a function around `tile.matmul`, checked instead.

    module      holds the function alone
    function    one block: the matmul, and the return of its result
    operands    are arguments of the function, and so is what the epilogue reads
    attributes  no op has an attribute that nobody reads
    types       an MMA takes those of A and B together, and a kernel can store that of C

`normalize` leaves such a function; one that a file brings is held to the same.
"""

from __future__ import annotations

from ..dialects.dtypes import OUTPUT_DTYPES, mix_refusal, operand_dtype, stored_dtype
from ..dialects.mlir import func, ir
from ..dialects.tile import ElementOp, MatmulOp
from ..dialects.tile_scales import ScaledMatmulOp
from .accepted_ops import OPS, READ, check_attributes
from .base import refused, walk

OF_MATMUL = {"a_major": READ, "b_major": READ}
OF_SCALED = {**OF_MATMUL, "block": READ}


def check_matmuls(module: ir.Module) -> None:
    """Refuse, at the op, a function with a tile.matmul that breaks a rule."""
    for matmul in walk(module, MatmulOp):
        _check_function(module, matmul)
        scaled = isinstance(matmul, ScaledMatmulOp)
        check_attributes(matmul, OF_SCALED if scaled else OF_MATMUL)
        if not scaled:  # its verifier knows what goes together
            _check_operands(matmul)
        _check_result(matmul)


def _check_function(module: ir.Module, matmul: MatmulOp) -> None:
    function = matmul.operation.parent.opview
    if not isinstance(function, func.FuncOp):
        raise refused(matmul, "must stand in a func.func, got another op around it; move it")
    others = [op for op in module.body.operations if op.operation != function.operation]
    if others:
        raise refused(others[0], "the function must be alone in its module, got this; remove it")
    names = [op.operation.name for op in function.body.blocks[0].operations]
    if len(function.body.blocks) != 1 or names != [matmul.OPERATION_NAME, "func.return"]:
        rule = f"a function of a {matmul.OPERATION_NAME} must hold it and the return of its result"
        raise refused(function, f"{rule}, got {', '.join(names)}; take the rest out")
    returned = list(function.body.blocks[0].operations)[1]
    if list(returned.operands) != [matmul.c]:
        raise refused(returned, "must return the result of tile.matmul, got another value")
    check_attributes(function, OPS["func.func"])
    _check_arguments(matmul)


def _check_arguments(matmul: MatmulOp) -> None:
    block = matmul.operation.block
    elements = [element.source for element in walk(matmul, ElementOp)]
    read = [*matmul.operation.operands, *elements]
    if any(value not in list(block.arguments) for value in read):
        raise refused(matmul, "must read arguments of the function, got a value made in it")


def _check_operands(matmul: MatmulOp) -> None:
    a, b = (operand_dtype(str(value.type.element_type)) for value in (matmul.a, matmul.b))
    if a is None or b is None:
        types = f"{matmul.a.type.element_type} and {matmul.b.type.element_type}"
        raise refused(matmul, f"a and b must hold what an MMA takes, got {types}")
    reason = mix_refusal(a, b)
    if reason:
        raise refused(matmul, f"a and b {reason}")


def _check_result(matmul: MatmulOp) -> None:
    stored = stored_dtype(str(matmul.c.type.element_type))
    if stored is None or stored.name not in OUTPUT_DTYPES:
        got = matmul.c.type.element_type
        raise refused(matmul, f"c must hold one of {', '.join(OUTPUT_DTYPES)}, got {got}")
