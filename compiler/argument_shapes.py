"""Arguments of a torch module's function as they are read: of the shape that all views of them
have, and without dims of one element, which no op then indexes.

    f(%s: tensor<32x1xf32>) {              f(%s: tensor<32xf32>) {
      linalg.generic … (d0, 0) …      →      linalg.generic … (d0) …

Scales of rows are [m, 1] and [1, n] in torch, and those of tensors may be [1]. Scales of blocks may
have any shape of as many elements, which is viewed as atoms. What only the epilogue reads, by any
chain of elementwise ops, loses such dims also where those have loops of one step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..dialects.mlir import func, ir
from ..passes.base import walk
from .importers.linalg_text import LinalgText

PRODUCTS = ("linalg.matmul", "linalg.batch_matmul")
VIEWS = ("tensor.collapse_shape", "tensor.expand_shape")


def reshape_arguments(source: LinalgText, module: ir.Module) -> LinalgText:
    """The source with arguments as they are read; `module` is it, parsed, and is changed."""
    (function,) = walk(module, func.FuncOp)
    block = function.body.blocks[0]
    viewed = {each.arg_number for each in block.arguments if _viewed(each)}
    dropped = [_dropped(argument) for argument in block.arguments]
    if not viewed and not any(dropped):
        return source
    source = replace(source, column_major=source.column_major - viewed)
    type_ = ir.FunctionType.get([each.type for each in block.arguments], function.type.results)
    function.operation.attributes["function_type"] = ir.TypeAttr.get(type_)
    return replace(source, text=module.operation.get_asm(enable_debug_info=True))


def _viewed(argument: Any) -> bool:
    """Whether the argument has taken the shape in which its one user reads it."""
    given = argument.type
    while [use.owner.operation.name in VIEWS for use in argument.uses] == [True]:
        (view,) = (use.owner.operation for use in argument.uses)
        argument.set_type(view.results[0].type)
        view.results[0].replace_all_uses_with(argument)
        view.erase()
    return argument.type != given


def _dropped(argument: Any) -> bool:
    """Whether the argument has lost dims of one element, for all that read it."""
    given: Any = argument.type
    if not isinstance(given, ir.RankedTensorType) or 1 not in given.shape:
        return False
    kept = [dim for dim, extent in enumerate(given.shape) if extent != 1]
    taken = ir.RankedTensorType.get([given.shape[dim] for dim in kept], given.element_type)
    uses = [(use.owner.operation, use.operand_number) for use in argument.uses]
    beside = not _is_multiplied(argument)
    if not uses or not all(_is_without(*use, taken, kept, beside) for use in uses):
        return False
    argument.set_type(taken)
    for user, number in uses:
        if user.name == "linalg.generic":
            maps = list(user.attributes["indexing_maps"])
            maps[number] = ir.AffineMapAttr.get(_smaller(maps[number].value, kept))
            user.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
        else:
            user.results[0].replace_all_uses_with(argument)
            user.erase()
    return True


def _is_multiplied(value: Any) -> bool:
    """Whether a product reads a value, or what is made of it."""
    found, waiting = {value}, [value]
    while waiting:
        for use in waiting.pop().uses:
            user = use.owner.operation
            if user.name in PRODUCTS:
                return True
            made = [each for each in user.results if each not in found]
            found.update(made)
            waiting += made
    return False


def _is_without(
    user: Any, number: int, taken: ir.Type, kept: list[int], beside: bool = False
) -> bool:
    """Whether an op reads an operand in a way that its dims of one element have no part in."""
    if user.name == "tensor.collapse_shape":
        return user.results[0].type == taken
    if user.name != "linalg.generic" or number == len(user.operands) - 1:
        return False
    dims = enumerate(user.attributes["indexing_maps"][number].value.results)
    return all(
        dim in kept or beside or isinstance(each.maybe_downcast(), ir.AffineConstantExpr)
        for dim, each in dims
    )


def _smaller(map_: ir.AffineMap, kept: list[int]) -> ir.AffineMap:
    return ir.AffineMap.get(map_.n_dims, 0, [map_.results[dim] for dim in kept])
