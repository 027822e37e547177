"""Layouts of a torch module's arguments, where its kernel may choose.

    f(%w: tensor<32x40xf32>) {        f(%0: tensor<40x32xf32>) {
      … %w …                     →      %w = linalg.transpose %0
                                        … %w …

A torch tensor may lie in either order of its axes. What the MMA reads must have K contiguous for
some types; for the others the kernel takes an operand as the example of it lies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..dialects.mlir import func, ir, linalg
from ..dialects.mma_units import MmaUnit
from ..dialects.target import find_target
from ..dialects.tile import MatmulOp
from ..dialects.tile.duals import DualMatmulOp
from ..dialects.tile_types import element_bytes
from ..passes.argument_layouts import LAYOUT_ATTRIBUTE
from ..passes.base import ARGUMENTS_ATTRIBUTE, refused, walk
from ..passes.tiling.kernel import epilogue_tensors
from .importers.linalg_text import LinalgText


def lay_out(source: LinalgText, module: ir.Module, normalized: ir.Module, chip: str) -> LinalgText:
    """The source with those arguments transposed that the kernel better takes so.

    `module` is the source, parsed, which is changed; `normalized` another one of it, by the pass.
    """
    (matmul,) = walk(normalized, MatmulOp)
    target = find_target(chip)
    mma = (target.using(source.mma) if source.mma else target).mma
    transposed = frozenset(
        number
        for number, majors in _majors(matmul).items()
        if _is_better_transposed(number in source.column_major, majors, matmul, mma)
    )
    if not transposed:
        return source
    (function,) = walk(module, func.FuncOp)
    for number in sorted(transposed):
        _transpose(function, number)
    text = module.operation.get_asm(enable_debug_info=True)
    return replace(source, text=text, transposed=transposed)


def describe_gaps(source: LinalgText, module: ir.Module) -> LinalgText:
    """The source whose arguments that are parts or views of others, with gaps, lie so.

    `module` is the source, parsed, which is changed.
    """
    if not any(source.strides):
        return source
    (function,) = walk(module, func.FuncOp)
    pairs = zip(function.type.inputs, source.strides, strict=True)
    layouts = [_layout(type_, strides) for type_, strides in pairs]
    function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(layouts)
    return replace(source, text=module.operation.get_asm(enable_debug_info=True))


def _layout(type_: Any, strides: tuple[int, ...]) -> ir.Attribute:
    """The attributes of an argument with these strides; none of one that has lost dims."""
    if not strides or type_.rank != len(strides):
        return ir.DictAttr.get({})
    return ir.DictAttr.get({LAYOUT_ATTRIBUTE: ir.StridedLayoutAttr.get(0, list(strides))})


def describe_arguments(module: ir.Module, source: Any) -> None:
    """Let what passes left of a torch module's function say what its arguments are."""
    if isinstance(source, LinalgText) and source.arguments:
        module.operation.attributes[ARGUMENTS_ATTRIBUTE] = _described(source)


def read_arguments(module: ir.Module, source: LinalgText) -> LinalgText:
    """The source with the arguments that its module tells of, if it does."""
    attributes = module.operation.attributes
    if ARGUMENTS_ATTRIBUTE not in attributes:
        return source
    return _read(module, attributes[ARGUMENTS_ATTRIBUTE], source)


def _described(source: LinalgText) -> ir.Attribute:
    names = [ir.StringAttr.get(name) for name in source.arguments]
    transposed = ir.DenseI64ArrayAttr.get(sorted(source.transposed))
    return ir.DictAttr.get({"names": ir.ArrayAttr.get(names), "transposed": transposed})


def _read(module: ir.Module, described: ir.Attribute, source: LinalgText) -> LinalgText:
    """The source with names and turned arguments as its module tells them."""
    try:
        fields = ir.DictAttr(described)
        names = [ir.StringAttr(name).value for name in ir.ArrayAttr(fields["names"])]
        transposed = list(ir.DenseI64ArrayAttr(fields["transposed"]))
        if len(fields) != 2 or not names or not set(transposed) <= set(range(len(names))):
            raise ValueError
    except (ValueError, KeyError) as error:
        rule = 'must be {names = ["…", …], transposed = array<i64: which of them, …>}'
        raise refused(module.operation, f"{ARGUMENTS_ATTRIBUTE} {rule}, got {described}") from error
    return replace(source, arguments=tuple(names), transposed=frozenset(transposed))


def _majors(matmul: MatmulOp) -> dict[int, set[str]]:
    """The majors that each argument is read with, of those that are operands and nothing else."""
    majors: dict[int, set[str]] = {}
    read = [(matmul.a, matmul.a_major), (matmul.b, matmul.b_major)]
    if isinstance(matmul, DualMatmulOp):
        read.append((matmul.b2, matmul.b2_major))
    for value, major in read:
        majors.setdefault(ir.BlockArgument(value).arg_number, set()).add(major.value)
    for source in epilogue_tensors(matmul):
        majors.pop(ir.BlockArgument(source).arg_number, None)
    return majors


def _is_better_transposed(
    column_major: bool, majors: set[str], matmul: MatmulOp, mma: MmaUnit
) -> bool:
    if element_bytes(matmul.a.type.element_type) in mma.mn_major_bytes:  # as B's
        return column_major
    return majors == {"mn"}


def _transpose(function: func.FuncOp, number: int) -> None:
    """Let the function take an argument's transpose, and transpose that first."""
    block = function.body.blocks[0]
    argument = block.arguments[number]
    given: Any = argument.type
    *stack, rows, columns = given.shape
    taken = ir.RankedTensorType.get([*stack, columns, rows], given.element_type)
    argument.set_type(taken)
    with ir.InsertionPoint.at_block_begin(block), function.location:
        empty = ir.Operation.create("tensor.empty", results=[given]).result
        order = [*range(len(stack)), len(stack) + 1, len(stack)]
        linalg.transpose(argument, outs=[empty], permutation=order)
    transpose = block.operations[1].operation
    argument.replace_all_uses_except(transpose.results[0], transpose)
    described = function.operation.attributes
    if "arg_attrs" in described:
        layouts = list(ir.ArrayAttr(described["arg_attrs"]))
        layouts[number] = ir.DictAttr.get({})
        described["arg_attrs"] = ir.ArrayAttr.get(layouts)
    inputs = [each.type for each in block.arguments]
    type_ = ir.FunctionType.get(inputs, function.type.results)
    function.operation.attributes["function_type"] = ir.TypeAttr.get(type_)
