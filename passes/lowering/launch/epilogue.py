"""What the epilogues of a kernel compute, element by element, as its launch tells it."""

from __future__ import annotations

from typing import Any

from ....dialects.dtypes import stored_dtype
from ....dialects.epilogue import NO_FUNCTION
from ....dialects.mlir import arith, ir
from ....dialects.tile import ElementOp, KernelOp
from ....dialects.tile.outputs import WriteGroupOp
from ....dialects.tile.pieces import ApplyEpilogueOp
from ....dialects.tile.quantized import BlockScaleOp
from ....dialects.tile.threads import ApplyToRowOp, WriteRowOp
from ...base import MATH_ATTRIBUTE, attributes_of, is_swapped, refused, walk
from ...batches import argument_of, matrix_of, transposed_of
from ...duals import B2, arg_names, is_dual
from ...math_policy import has_functions, math_of
from ...outputs import SCALES, output_names, output_of, outputs_of, stored_to
from ...tiling.swap import EXCHANGED


def all_stores(kernel: KernelOp) -> list[Any]:
    """Every op that has an epilogue: of a staged store all parts."""
    return walk(kernel, ApplyEpilogueOp | WriteRowOp | ApplyToRowOp)


def stores(kernel: KernelOp) -> list[Any]:
    """The ops that store an accumulator, of all parts of a store the first."""
    parts: dict[Any, Any] = {}
    for op in all_stores(kernel):
        parts.setdefault(stored_to(op), op)
    found: dict[Any, Any] = {}
    for op in parts.values():
        found.setdefault(output_of(op), op)
    return list(found.values())


def policy_of(kernel: KernelOp) -> str:
    """How exact the functions of the kernel's epilogues are."""
    elements = [ir.MemRefType(view.type).element_type for view in outputs_of(kernel)]
    return math_of(kernel.operation.parent.opview, elements)


def describe_math(kernel: KernelOp) -> dict[str, str]:
    """The policy, where there is a function that it is about; refused where there is none."""
    if any(has_functions(store.epilogue.blocks[0]) for store in stores(kernel)):
        return {"math": policy_of(kernel)}
    if MATH_ATTRIBUTE in kernel.operation.parent.attributes:
        raise refused(kernel, f"{MATH_ATTRIBUTE}: {NO_FUNCTION}")
    return {}


def describe_epilogues(kernel: KernelOp) -> dict[str, Any]:
    """What is done to an element: for c, and for each further output."""
    found = stores(kernel)
    views = outputs_of(kernel)
    scales = walk(kernel, BlockScaleOp)
    views = views[: len(views) - bool(scales)]
    first, *others = [next(op for op in found if output_of(op) == view) for view in views]
    described = {"epilogue": _epilogue(kernel, first)}
    if scales:
        block, rounding = scales[0].block.value, scales[0].rounding.value
        described["quantized"] = {"scales": SCALES, "block": block, "rounding": rounding}
    if not others:
        return described
    names = output_names(len(views))[1:]
    pairs = zip(names, others, strict=True)
    return described | {"outputs": [_output(kernel, name, store) for name, store in pairs]}


def _output(kernel: KernelOp, name: str, store: Any) -> dict[str, Any]:
    described = {"tensor": name, "epilogue": _epilogue(kernel, store)}
    for op in walk(kernel, WriteGroupOp):
        if argument_of(op.view) == output_of(store):
            return described | {"reduce": {"kind": op.reduce.value, "group": op.group.value}}
    return described


def _epilogue(kernel: KernelOp, store: Any) -> dict[str, Any]:
    """The region as a scalar program: ids count the arguments, then the operations."""
    block, names = store.epilogue.blocks[0], arg_names(kernel)
    name_of: dict[ir.Value, str] = dict(zip(kernel.body.blocks[0].arguments, names, strict=True))
    *body, last = list(block.operations)
    elements = [op for op in body if isinstance(op, ElementOp)]
    arguments: list[dict[str, Any]] = [{"tensor": None, "axes": ["m", "n"]}]
    if is_dual(kernel):
        arguments.append({"tensor": None, "axes": ["m", "n"], "b": B2})
    as_it_lies = isinstance(store, WriteRowOp) and transposed_of(store.view) is None
    swapped = is_swapped(kernel) and not as_it_lies
    arguments += [
        {"tensor": name_of[argument_of(op.source)], "axes": _axes(op, swapped)} for op in elements
    ]
    values = [*block.arguments, *(op.value for op in elements)]
    ids: dict[ir.Value, int] = {value: position for position, value in enumerate(values)}
    operations = []
    for op in (op for op in body if not isinstance(op, ElementOp)):
        operations.append(_operation(op, ids))
        ids[op.operation.results[0]] = len(ids)
    return {"arguments": arguments, "operations": operations, "result": ids[last.operands[0]]}


def _axes(op: ElementOp, swapped: bool) -> list[str]:
    """What the argument of a source is indexed by: a stack also by its matrix, "b"."""
    transposed = transposed_of(op.source)
    source = op.source if transposed is None else transposed.view
    axes = EXCHANGED[op.axes.value] if swapped else op.axes.value
    return [*(["b"] if matrix_of(source) else []), *axes]


def _operation(op: ir.OpView, ids: dict[ir.Value, int]) -> dict[str, Any]:
    return {
        "name": op.operation.name,
        "operands": [ids[operand] for operand in op.operation.operands],
        "attributes": _plain_attributes(op),
    }


def _plain_attributes(op: ir.OpView) -> dict[str, float | str]:
    """The result type, and the value or predicate where the op has one."""
    found = attributes_of(op)
    type_ = op.operation.results[0].type
    stored = stored_dtype(str(type_))
    plain: dict[str, float | str] = {"type": stored.name if stored else str(type_)}
    if "value" in found:
        plain["value"] = _number(found["value"])
    if "predicate" in found:
        code = ir.IntegerAttr(found["predicate"]).value
        plain["predicate"] = str(arith.CmpFPredicate(code))
    return plain


def _number(value: ir.Attribute) -> float:
    if isinstance(value, ir.FloatAttr):
        return value.value
    number = ir.IntegerAttr(value).value
    return bool(number) if ir.IntegerAttr(value).type == ir.IntegerType.get_signless(1) else number
