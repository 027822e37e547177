"""What a kernel takes as parameters: tensor maps, and pointers to tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dialects.mlir import ir
from ..dialects.tile import KernelOp, TensorMapOp
from ..dialects.tile.ahead import StagedElementOp


class Parameter(NamedTuple):
    """One kernel parameter: a tensor map (`map` is its op) or a pointer to a tensor."""

    tensor: str
    argument: ir.Value
    map: TensorMapOp | None = None


def parameters_of(kernel: KernelOp) -> list[Parameter]:
    """Tensor maps and pointers in the order of the kernel's arguments."""
    parameters = []
    names = [ir.StringAttr(name).value for name in kernel.arg_names]
    for name, argument in zip(names, kernel.body.blocks[0].arguments, strict=True):
        users = [use.owner.opview for use in argument.uses if _takes(use.owner.opview)]
        maps = [user for user in users if isinstance(user, TensorMapOp)]
        parameters += [Parameter(name, argument, map_) for map_ in maps]
        if len(maps) < len(users):
            parameters.append(Parameter(name, argument))
    return parameters


def _takes(user: Any) -> bool:
    """Whether an op that names a view takes its map or address as a parameter."""
    return user.operation.name != "memref.dim" and not isinstance(user, StagedElementOp)
