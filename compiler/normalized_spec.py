"""The spec of a module after `normalize`, for which a schedule is chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..dialects.dtypes import DType, operand_dtype, stored_dtype, weight_dtype
from ..dialects.epilogue_instructions import Step, instructions_of
from ..dialects.mlir import ir
from ..dialects.target import find_target
from ..dialects.tile import ElementOp, MatmulOp
from ..dialects.tile.blockwise import BlockwiseMatmulOp
from ..dialects.tile.duals import DualMatmulOp
from ..dialects.tile.grouped_products import GATHERED, GROUPED_PRODUCTS, groups_rows
from ..dialects.tile.groups import GroupedMatmulOp, OrderedMatmulOp
from ..dialects.tile.scales import ScaledMatmulOp
from ..dialects.tile.weights import WeightMatmulOp
from ..dialects.tile_types import element_bytes
from ..dialects.verify import logical_shape
from ..passes.argument_layouts import argument_strides, result_strides
from ..passes.base import DEFAULT_TARGET, MMA_ATTRIBUTE, ROWS_ATTRIBUTE, target_of, walk
from ..passes.batches import is_dynamic_step
from ..passes.dynamic_rows import row_bounds, rows_multiple
from .scaled_source import c_dtype_of, outputs_of, scaled_spec_of
from .spec import (
    BATCH_HINT,
    DEPTH_HINT,
    GROUP_DEPTH_HINT,
    MANY_ROWS,
    ROWS_HINT,
    ROWS_MOST,
    TWO_LEVEL,
    MatmulSpec,
)
from .spec.epilogue import hints_of_epilogue_operands


def spec_of(module: ir.Module) -> MatmulSpec:
    """The spec of a normalized module; of its epilogue, how much there is to compute."""
    (matmul,) = walk(module, MatmulOp)
    if isinstance(matmul, ScaledMatmulOp):
        return _with_epilogue(scaled_spec_of(matmul), matmul)
    rows, k = logical_shape(matmul.a.type, matmul.a_major.value)
    m, of_rows = _rows_of(module, matmul, rows)
    stack = _stack_of(matmul)
    if k < 0:
        hint = GROUP_DEPTH_HINT * stack["groups"] if "groups" in stack else DEPTH_HINT
        k, of_rows = hint, of_rows | {"dynamic_k": True}
    a, b = _operands_of(module, matmul)
    spec = MatmulSpec(
        m,
        matmul.c.type.shape[-1],
        k,
        a.name,
        b.name,
        c_dtype_of(matmul),
        a.accumulator,
        a_major="k" if matmul.a_major.value == "k" else "m",
        b_major="k" if _b_of(matmul)[1] == "k" else "n",
        products=matmul.products,
        **of_rows,
        **stack,
        **_gaps_of(matmul),
        **outputs_of(matmul),
        **_scales_of(module, matmul),
    )
    return _with_epilogue(spec, matmul)


def _with_epilogue(spec: MatmulSpec, matmul: MatmulOp) -> MatmulSpec:
    """The spec with what the epilogue computes and reads."""
    ops = [op.operation for op in matmul.epilogue.blocks[0].operations]
    steps = [Step(op.name, op.results[0], list(op.operands)) for op in ops if len(op.results)]
    instructions = instructions_of(steps, spec.outputs)
    elements = {op.source: (op.axes.value, str(op.value.type)) for op in walk(matmul, ElementOp)}
    beside = hints_of_epilogue_operands(list(elements.values()), matmul.c.type.rank)
    return replace(spec, epilogue_instructions=instructions, **beside)


def _operands_of(module: ir.Module, matmul: MatmulOp) -> tuple[DType, DType]:
    """The types of A and B, as the MMA that the module asks for reads them."""
    elements = [str(value.type.element_type) for value in (matmul.a, matmul.b)]
    named = target_of(module).mma.name if MMA_ATTRIBUTE in module.operation.attributes else ""
    operands = [operand_dtype(element, named) for element in elements]
    if isinstance(matmul, WeightMatmulOp):
        operands[1] = weight_dtype(elements[1])
    a, b = (dtype for dtype in operands if dtype is not None)  # normalize has checked them
    return a, b


def _rows_of(module: ir.Module, matmul: MatmulOp, rows: int) -> tuple[int, dict[str, Any]]:
    """The M to choose a schedule for, and what is said of any M, where A has so many rows."""
    m = rows
    more: dict[str, Any] = {"dynamic_m": rows < 0}
    if isinstance(matmul, GATHERED):
        m, more["gathered"] = matmul.rows.type.shape[0], rows
    if rows < 0:
        m = ROWS_HINT
    if rows_multiple(matmul) > 1:
        more["multiple_m"] = rows_multiple(matmul)
    if ROWS_ATTRIBUTE in module.operation.attributes:
        least, most = row_bounds(matmul)
        m = most if most < ROWS_MOST else max(least, MANY_ROWS)
        more |= {"least_m": least, "most_m": most}
    return m, more


def _stack_of(matmul: MatmulOp) -> dict[str, Any]:
    """The batch of a matmul, or the groups that its rows or K are divided into."""
    if isinstance(matmul, (GroupedMatmulOp, *GROUPED_PRODUCTS)):
        axis = "m" if groups_rows(matmul) else "k"
        ordered = isinstance(matmul, OrderedMatmulOp)
        return {"groups": matmul.offsets.type.shape[0], "group_axis": axis, "ordered": ordered}
    *stack, _, _ = matmul.c.type.shape
    if not stack:
        return {}
    stacked = {"a_stacked": matmul.a.type.rank == 3, "b_stacked": matmul.b.type.rank == 3}
    if stack[0] < 0:
        return {"batch": BATCH_HINT, "dynamic_batch": True, **stacked}
    return {"batch": stack[0], **stacked}


def _scales_of(module: ir.Module, matmul: MatmulOp) -> dict[str, Any]:
    """Scales in f32 or of weights, and whether threads add the sums of 128 elements of K."""
    if isinstance(matmul, BlockwiseMatmulOp):
        return {"a_scales": matmul.a_form.value, "b_scales": matmul.b_form.value}
    if isinstance(matmul, WeightMatmulOp):
        return _groups_of(matmul)
    target = target_of(module)
    return {"sums": TWO_LEVEL} if target.adds_products and not target.mma.splits else {}


def _groups_of(matmul: WeightMatmulOp) -> dict[str, Any]:
    """How many elements of K share a scale of weights, and its type."""
    if matmul.scales is None:
        return {}
    dtype = stored_dtype(str(matmul.scales.type.element_type))
    assert dtype is not None  # its verifier has asked
    zeros = matmul.zeros is not None
    return {"group_size": matmul.group.value, "scale_dtype": dtype.name, "zero_points": zeros}


def _b_of(matmul: MatmulOp) -> tuple[ir.Value, str]:
    """B and its major; of two B's that lie otherwise the one that limits the schedule: TMA can't
    address its rows, or else N is contiguous."""
    function: Any = matmul.operation.parent.opview
    unit = find_target(DEFAULT_TARGET).tma_alignment_bytes
    found: list[tuple[Any, str]] = [(matmul.b, matmul.b_major.value)]
    if isinstance(matmul, DualMatmulOp):
        found.append((matmul.b2, matmul.b2_major.value))

    def limits(each: tuple[Any, str]) -> tuple[bool, bool]:
        value, major = each
        strides = argument_strides(function, ir.BlockArgument(value).arg_number)
        pitch = value.type.shape[-1] if strides is None else strides[-2]
        return pitch * element_bytes(value.type.element_type) % unit != 0, major == "mn"

    return max(found, key=limits)


def _gaps_of(matmul: MatmulOp) -> dict[str, Any]:
    """The leading dimensions and the steps between matrices, of tensors that are not dense."""
    function = matmul.operation.parent.opview
    a, b = (ir.BlockArgument(value).arg_number for value in (matmul.a, _b_of(matmul)[0]))
    lies = {"a": argument_strides(function, a), "b": argument_strides(function, b)}
    found: dict[str, Any] = {}
    for name, strides in (lies | {"c": result_strides(function)}).items():
        if strides is not None:
            found[f"ld{name}"] = strides[-2]
            apart = len(strides) == 3 and not is_dynamic_step(strides[0])
            found |= {f"stride_{name}": strides[0]} if apart else {}
    return found
