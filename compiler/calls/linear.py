"""`torch.nn.Linear` whose product is ours, and a model whose linear layers are such.

Imported when it is asked for, as it imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .matmul import matmul

TYPES = (torch.bfloat16, torch.float16)


class Linear(torch.nn.Linear):
    """x [..., in_features] · weightᵀ + bias, as torch.nn.Linear has it, in one kernel.

    Input and weight must be of 16 bits, which autocast may make them; sum and bias are added in
    float32 and rounded once. Anything else, such as float32, is torch's own linear, so that a model
    never has less precision than it asks for. Where torch differentiates or compiles, the bias is
    an operation of its own. On the CPU the kernel runs in the emulator.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """[..., out_features] of the input's type, or of autocast's."""
        x, weight, bias = _cast(input, self.weight, self.bias)
        if x.dim() < 2 or x.dtype not in TYPES or weight.dtype != x.dtype:
            return super().forward(input)
        if bias is None:
            return matmul(x, weight)
        return matmul(x, weight, epilogue=_add_bias, operands=(bias,))


def _add_bias(acc: Any, bias: Any) -> Any:
    return acc + bias


def _cast(*tensors: torch.Tensor | None) -> list[Any]:
    """The tensors as autocast gives them to a linear layer of torch's."""
    kind = next(each for each in tensors if each is not None).device.type
    if not torch.is_autocast_enabled(kind):
        return list(tensors)
    dtype = torch.get_autocast_dtype(kind)
    return [each if each is None else each.to(dtype) for each in tensors]


def replace(
    model: torch.nn.Module, only: Callable[[str, torch.nn.Linear], bool] | None = None
) -> torch.nn.Module:
    """Let the linear layers of a model multiply by our kernels: the same model, changed in place.

    model: its modules of exactly the class torch.nn.Linear become `Linear`. Parameters, hooks,
        names and what an optimizer holds stay. Subclasses, also parametrized ones, are left alone.
    only: takes the name and the module; those for which it is false are left alone.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"replace: model must be a torch.nn.Module, got {type(model).__name__}")
    for name, module in model.named_modules():
        if type(module) is torch.nn.Linear and (only is None or only(name, module)):
            module.__class__ = Linear
    return model
