"""Which operators a kernel can fuse after a matmul, and why not others."""

from __future__ import annotations

from collections.abc import Container

import torch
from torch import fx

from ..importers.aten_elements import is_known
from ..importers.element_names import MLIR_TYPES
from ..importers.torch_functions import is_power, is_taken
from .frames import framed, in_frame, viewed
from .products import aten, dtype_of, is_static, sizes_of
from .region import CONVERT, PERMUTES, SAME, Known, changes, is_constant

NO_ELEMENTS = (*PERMUTES, aten.new_full.default)
READ = (torch.bfloat16, torch.float16, torch.float32, torch.bool)
"""Types of operands; a kernel reads a bool of rows or columns as a number."""


def refusal_of(
    node: fx.Node,
    product: fx.Node,
    taken: Container[fx.Node],
    others: Container[fx.Node],
    known: Known,
    frame: tuple[int, ...],
) -> str:
    """Why an operator cannot be in the region; "" if it can."""
    if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
        return "is no operator of one tensor"
    if node in known.owner:
        return "belongs to another region"
    if known.waits.for_more(node, product):
        return "waits for a collective that the product does not wait for"
    if any(each in others for each in node.all_input_nodes):
        return "reads what is computed outside"
    if changes(node):
        return "changes a tensor in place"
    if not _is_elementwise(node):
        pointwise = torch.Tag.pointwise in getattr(node.target, "tags", ())
        return "is computed in no kernel" if pointwise else "is not elementwise"
    if node.target is aten.pow.Tensor_Scalar and not is_power(node.args[1]):
        return f"has the exponent {node.args[1]}, which no kernel computes"
    if not is_taken(node.target, node.args, node.kwargs):
        return "has arguments with which no kernel computes it"
    if not is_static(node):
        return "has sizes that are symbols"
    if dtype_of(node) not in MLIR_TYPES:
        return f"computes {dtype_of(node)}"
    if not in_frame(sizes_of(node), frame):
        return f"has the sizes {list(sizes_of(node))}"
    if node.target is CONVERT and dtype_of(node) is torch.float64:
        return "computes float64"
    outside = [each for each in node.all_input_nodes if each not in taken]
    reasons = (_operand_refusal(each, node, product, frame) for each in outside)
    return next((each for each in reasons if each), "")


def _is_elementwise(node: fx.Node) -> bool:
    if node.target in SAME or node.target is CONVERT:
        return True
    return node.target not in NO_ELEMENTS and is_known(node.target)


def _operand_refusal(
    operand: fx.Node, node: fx.Node, product: fx.Node, frame: tuple[int, ...]
) -> str:
    """Why a kernel cannot read an operand of an operator."""
    value = operand.meta.get("val")
    if not isinstance(value, torch.Tensor) or not is_static(operand):
        return "reads what is no tensor of known sizes"
    if is_constant(operand):
        return ""
    if value.dtype not in READ:
        return f"reads {value.dtype}"
    if value.device != product.meta["val"].device:
        return f"reads a tensor on {value.device}"
    sizes = framed(sizes_of(operand), sizes_of(node), frame)
    if sizes is None:
        return f"reads {list(value.shape)}, which has some of the rows' dims and not all"
    if value.dtype is torch.bool and sizes == frame and not _is_compared_here(operand, product):
        return "reads a bool of each element"
    if viewed(value, sizes) is None:
        return f"reads a tensor with strides {list(value.stride())}, which would be copied"
    return ""


def _is_compared_here(operand: fx.Node, product: fx.Node) -> bool:
    """Whether a kernel can compute a bool from numbers of the same sizes by itself."""
    if operand.op != "call_function" or not _is_elementwise(operand):
        return False
    frame = sizes_of(operand)
    return not any(
        _operand_refusal(each, operand, product, frame)
        or (not is_constant(each) and dtype_of(each) is torch.bool)
        for each in operand.all_input_nodes
    )
