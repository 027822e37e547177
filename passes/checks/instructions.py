"""Checks of attributes of kernels with expanded stores or selected instructions.

attributes   no op, of ours or of MLIR's, has an attribute that nobody reads
alignment    loads and stores name one that LLVM takes; MLIR's verifier lets any number through
lowered      MLIR translates what ops of a gpu.module are declared with, and passes over the rest
"""

from __future__ import annotations

import functools
import keyword
from typing import Any

from ...dialects import sm
from ...dialects.fallback import FALLBACK, FALLBACK_ARRIVALS
from ...dialects.mlir import ext, ir, scf, upstream_class
from ...dialects.shared_columns import SHARED as SHARED_COLUMNS
from ...dialects.sm.memory import BarriersOp, ColumnsOp
from ...dialects.tile import CopyOp, KernelOp
from ..base import (
    COUNTS,
    SOURCE_ATTRIBUTE,
    SWAPPED_ATTRIBUTE,
    operations,
    refuse_unread,
    refused,
)
from ..expand.loops import is_expanded
from ..groups import LEVEL_ATTRIBUTE
from ..shared_scales import SHARED
from ..warp_grids import WARP_GRID_ATTRIBUTE
from ..whole import WHOLE, WHOLE_OPS

OF_KERNELS = {
    *(SOURCE_ATTRIBUTE, SWAPPED_ATTRIBUTE, LEVEL_ATTRIBUTE, WARP_GRID_ATTRIBUTE),
    FALLBACK,
}
GPU_MODULE, FUNCTION = "gpu.module", "llvm.func"
OF_LOWERED = {
    GPU_MODULE: frozenset({"sym_name", "targets"}),
    FUNCTION: frozenset(
        {"gpu.kernel", "tile.launch"}
        | {f"nvvm.{name}" for name in ("kernel", "reqntid", "cluster_dim", "minctasm")}
    ),
}
"""What ops of a lowered kernel say beside what MLIR declares of them."""
ALIGNMENT, ALIGNMENTS = "alignment", tuple(2**power for power in range(13))
# convert-scf-to-cf hands it to the branch of the loop, and that to LLVM.
LOOP_ANNOTATION = "loop_annotation"


def check_instructions(module: ir.Module) -> None:
    """Refuse, at the op, what breaks a rule."""
    for kernel in module.body.operations:
        if isinstance(kernel, sm.KernelOp) or (
            isinstance(kernel, KernelOp) and is_expanded(kernel)
        ):
            _check_attributes(kernel)
            for op in operations(kernel.operation):
                _check_attributes(op)
        elif kernel.operation.name == GPU_MODULE:
            for op in (kernel, *operations(kernel.operation)):
                more = OF_LOWERED.get(op.operation.name, frozenset())
                refuse_unread(op, _known(_class_of(op)) | more)
                _check_alignment(op)


def _check_attributes(op: Any) -> None:
    if not len(op.operation.attributes):
        return
    written = {WHOLE} if isinstance(op, WHOLE_OPS) else set()
    written |= {SHARED} if isinstance(op, CopyOp) else set()
    written |= {FALLBACK_ARRIVALS} if isinstance(op, BarriersOp | sm.BarrierInitOp) else set()
    written |= {SHARED_COLUMNS} if isinstance(op, ColumnsOp) else set()
    refuse_unread(op, _known(_class_of(op)) | written)
    _check_alignment(op)


def _check_alignment(op: Any) -> None:
    attributes = op.operation.attributes
    said = attributes[ALIGNMENT] if ALIGNMENT in attributes else None
    if isinstance(said, ir.IntegerAttr) and said.value not in ALIGNMENTS:
        rule = f"alignment: must be a power of two up to {ALIGNMENTS[-1]}"
        raise refused(op, f"{rule}, got {said.value}; say that of the address")


def _class_of(op: Any) -> type:
    """What the bindings declare the op with, of dialects that are built by name, too."""
    name = op.operation.name
    return upstream_class(name) if name.startswith(("llvm.", "nvvm.")) else type(op)


@functools.cache
def _known(op_class: type) -> frozenset[str]:
    """The attributes that an op of the class is declared with, and those that passes read."""
    fields = getattr(op_class, "_fields", None)
    if fields is not None:
        declared = {field.name for field in fields if isinstance(field, ext.AttributeDef)}
        is_kernel = issubclass(op_class, KernelOp | sm.KernelOp)
        return frozenset(declared | {*COUNTS} | (OF_KERNELS if is_kernel else set()))
    extra = {LOOP_ANNOTATION} if op_class is scf.ForOp else set()
    return frozenset(_inherent(op_class) | extra | {*COUNTS})


def _inherent(op_class: type) -> set[str]:
    """The attributes of an op of MLIR's: of its generated properties, those that can be set."""
    generated = op_class.__mro__[: op_class.__mro__.index(ir.OpView)]
    return {
        name.rstrip("_") if keyword.iskeyword(name.rstrip("_")) else name
        for each in generated
        for name, member in vars(each).items()
        if isinstance(member, property) and member.fset
    }
