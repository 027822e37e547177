"""The views of a kernel, and the function's arguments to which they belong."""

from __future__ import annotations

from ...dialects.mlir import func, ir
from ...dialects.tile import KernelOp, MatmulOp
from ...dialects.tile.duals import DualMatmulOp
from ...dialects.tile_types import integer
from ..argument_layouts import argument_strides, dense_strides
from ..base import SOURCE_ATTRIBUTE

GLOBAL = 1


def say_source(kernel: KernelOp, matmul: MatmulOp, sources: list[ir.Value]) -> None:
    """Write down which of the function's arguments the inputs are, unless they are those in order.

    `transposed` are the inputs that are views of an argument with its two dims swapped.
    """
    count = len(matmul.operation.block.arguments)
    inputs = [ir.BlockArgument(value).arg_number for value in (matmul.a, matmul.b, *sources)]
    majors = (matmul.a_major.value, matmul.b_major.value, *(major_of(matmul, s) for s in sources))
    transposed = [major == "mn" for major in majors]
    if inputs == list(range(count)) and not any(transposed):
        return
    flags = ", ".join(str(flag).lower() for flag in transposed)
    kernel.operation.attributes[SOURCE_ATTRIBUTE] = ir.Attribute.parse(
        f"{{arguments = {count} : i64, inputs = {inputs}, transposed = [{flags}]}}"
    )


def major_of(matmul: MatmulOp, source: ir.Value) -> str:
    """How an input after b lies: as rows, unless it is the second b."""
    if isinstance(matmul, DualMatmulOp) and source == matmul.b2:
        return matmul.b2_major.value
    return "k"


def strides_of(function: func.FuncOp, argument: ir.Value) -> list[int] | None:
    """The steps along the dims of an argument, None where it is dense."""
    return argument_strides(function, ir.BlockArgument(argument).arg_number)


def view_as(tensor: ir.RankedTensorType, major: str, strides: list[int] | None) -> ir.MemRefType:
    """The logical view of a tensor that lies so: its dims swapped when `major` is "mn"."""
    space = integer(GLOBAL)
    shape, element = list(tensor.shape), tensor.element_type
    if major == "k" and strides is None:
        return ir.MemRefType.get(shape, element, memory_space=space)
    steps = strides or dense_strides(shape)  # of a b, whose matrices have known sizes
    if major == "mn":
        shape, steps = ([*dims[:-2], dims[-1], dims[-2]] for dims in (shape, steps))
    layout = ir.StridedLayoutAttr.get(0, steps)
    return ir.MemRefType.get(shape, element, layout=layout, memory_space=space)
