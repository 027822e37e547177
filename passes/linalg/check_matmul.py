"""Checks of a function around `tile.matmul`, on which tiling relies.

    module      holds the function alone
    function    one block: the matmul, and the return of all its outputs
    operands    are arguments of the function, and so is what the epilogue reads
    attributes  no op has an attribute that nobody reads
    types       an MMA takes those of A and B together, and a kernel can store that of C

`normalize` leaves such a function; one that a file brings is held to the same.
"""

from __future__ import annotations

from ...dialects.dtypes import OUTPUT_DTYPES, mix_refusal, operand_dtype, stored_dtype
from ...dialects.mlir import func, ir
from ...dialects.tile import ElementOp, MatmulOp
from ...dialects.tile.blockwise import BlockwiseMatmulOp
from ...dialects.tile.duals import DualMatmulOp
from ...dialects.tile.grouped_products import (
    GROUPED_PRODUCTS,
    GatheredDualMatmulOp,
    GroupedBlockwiseMatmulOp,
    GroupedDualMatmulOp,
    GroupedScaledMatmulOp,
)
from ...dialects.tile.groups import GroupedMatmulOp
from ...dialects.tile.outputs import KeepGroupsOp, KeptOp, kept_by, kept_of
from ...dialects.tile.quantized import QuantizeOp, quantize_of
from ...dialects.tile.scales import KIND, ScaledMatmulOp
from ...dialects.tile.weights import WeightMatmulOp
from ...dialects.tile_types import dynamic_dims
from ..argument_layouts import check_layouts, has_layouts
from ..base import refused, walk
from ..dynamic_rows import check_bounds
from .accepted_ops import EPILOGUE_OPS, OPS, READ, check_attributes

OF_MATMUL = {"a_major": READ, "b_major": READ}
OF_DUAL = {**OF_MATMUL, "b2_major": READ}
OF_SCALED = {**OF_MATMUL, "block": READ, KIND: READ}
OF_BLOCKWISE = {**OF_MATMUL, "a_form": READ, "b_form": READ}
OF_WEIGHTS = {**OF_MATMUL, "group": READ, "operandSegmentSizes": READ}
OF_OP = {
    ScaledMatmulOp: OF_SCALED,
    DualMatmulOp: OF_DUAL,
    BlockwiseMatmulOp: OF_BLOCKWISE,
    WeightMatmulOp: OF_WEIGHTS,
    GroupedScaledMatmulOp: OF_SCALED,
    GroupedDualMatmulOp: OF_DUAL,
    GatheredDualMatmulOp: OF_DUAL,
    GroupedBlockwiseMatmulOp: OF_BLOCKWISE,
}
OF_EPILOGUE = {**EPILOGUE_OPS, "tile.element": {"axes": READ}, "tile.yield": {}}
OF_KEPT = {KeepGroupsOp: ("group", "reduce"), QuantizeOp: ("block", "rounding", "scale")}


def check_matmuls(module: ir.Module) -> None:
    """Refuse, at the op, a function with a tile.matmul that breaks a rule."""
    for matmul in walk(module, MatmulOp):
        _check_function(module, matmul)
        knows_types = isinstance(matmul, ScaledMatmulOp | WeightMatmulOp)
        check_attributes(matmul, OF_OP.get(type(matmul), OF_MATMUL))
        _check_epilogue(matmul)
        if not knows_types:  # its verifier knows what goes together
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
    kept = kept_of(matmul)
    wanted = [matmul.OPERATION_NAME, *(KeptOp.OPERATION_NAME for _ in kept), "func.return"]
    if len(function.body.blocks) != 1 or names != wanted:
        rule = f"a function of a {matmul.OPERATION_NAME} must hold it and the return of its result"
        raise refused(function, f"{rule}, got {', '.join(names)}; take the rest out")
    returned = list(function.body.blocks[0].operations)[-1]
    if not kept and list(returned.operands) != [matmul.c]:
        raise refused(returned, "must return the result of tile.matmul, got another value")
    if list(returned.operands) != [matmul.c, *(each.output for each in kept)]:
        rule = "must return the result of tile.matmul, then what it keeps in order of numbers"
        raise refused(returned, f"{rule}, got other values")
    _check_kept(matmul, kept)
    check_attributes(function, OPS["func.func"])
    check_layouts(function)
    if has_layouts(function) and type(matmul) not in (MatmulOp, DualMatmulOp):
        name = matmul.OPERATION_NAME
        rule = f"tensors of a {name} must be dense, got arguments or results with layouts"
        raise refused(function, f"{rule}; copy them before the kernel")
    _check_arguments(matmul)


def _check_kept(matmul: MatmulOp, kept: list[KeptOp]) -> None:
    """Every further output is taken once."""
    keeps = kept_by(matmul.epilogue.blocks[0])
    numbers = [each.number.value for each in kept]
    if numbers != list(range(len(keeps))):
        rule = f"each of its {len(keeps)} tile.keep must have one tile.kept"
        raise refused(matmul, f"{rule}, got those of {numbers}; take each once")
    for op in keeps:
        check_attributes(op, dict.fromkeys(OF_KEPT.get(type(op), ()), READ))
    _check_quantized(matmul)
    check_bounds(matmul, matmul.c.type.rank - 2 in dynamic_dims(matmul.c.type))
    for op in kept:
        check_attributes(op, {"number": READ})


def _check_quantized(matmul: MatmulOp) -> None:
    """C of elements with scales, which come after all other outputs."""
    keeps = kept_by(matmul.epilogue.blocks[0])
    found = [op for op in keeps if isinstance(op, QuantizeOp)]
    if found and found != keeps[-1:]:
        rule = "tile.quantize must be one, and the last that keeps"
        raise refused(found[0], f"{rule}, got {len(found)} among {len(keeps)}; move it down")
    if not found:
        return
    if isinstance(matmul, (GroupedMatmulOp, *GROUPED_PRODUCTS)):
        raise refused(found[0], "rows in groups have no scales of blocks; drop it")
    if dynamic_dims(matmul.c.type):
        what = "M" if matmul.c.type.rank == 2 else "batch"
        raise refused(found[0], f"a dynamic {what} has no scales of blocks; give it a number")


def _check_epilogue(matmul: MatmulOp) -> None:
    """Check that the ops of the epilogue have only attributes that they may have; `_check_kept`
    checks the rest."""
    for op in matmul.epilogue.blocks[0].operations:
        if op.operation.name in OF_EPILOGUE:
            check_attributes(op, OF_EPILOGUE[op.operation.name])


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
    further = [("a further output", each.output) for each in kept_of(matmul)]
    for what, output in (("c", matmul.c), *further):
        got = output.type.element_type
        stored = stored_dtype(str(got))
        if quantize_of(matmul.epilogue.blocks[0]) and output in (matmul.c, further[-1][1]):
            continue  # its verifier knows what goes together
        if stored is None or stored.name not in OUTPUT_DTYPES:
            raise refused(matmul, f"{what} must hold one of {', '.join(OUTPUT_DTYPES)}, got {got}")
