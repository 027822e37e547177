"""`torch.nn.Linear` with our matmul, and models whose linear layers are replaced by it.

Imported when it is asked for, as it imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ....runtime.operands.copies import warn_of_copy
from ....runtime.tracing import is_traced
from ..operands.leading_dims import steps_evenly
from .linear_operator import linear

TYPES = (torch.bfloat16, torch.float16)
PLACES = ("cpu", "cuda", "meta")


class Linear(torch.nn.Linear):
    """x [..., in_features] · weightᵀ + bias, as torch.nn.Linear has it, in one kernel.

    Input and weight must be of 16 bits, which autocast may make them; sum and bias are added in
    float32 and rounded once. Anything else, such as float32, a nested or sparse input, a weight
    that brings functions of its own (as torchao's quantised ones) or another device, is torch's own
    linear, so that a model never has less precision than it asks for. Where torch traces or
    transforms the call, the bias is an operation of its own. On the CPU the kernel runs in the
    emulator.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """[..., out_features] of the input's type, or of autocast's."""
        if not is_plain(input) or has_own_layers(type(self.weight)):
            return super().forward(input)
        x, weight, bias = autocast(input, self.weight, self.bias)
        if x.dtype not in TYPES or weight.dtype != x.dtype:
            return super().forward(input)
        return linear(as_rows(x), weight, bias)


def is_plain(x: torch.Tensor) -> bool:
    """Whether a kernel can read the input where it lies, once its rows are those of one matrix."""
    if not isinstance(x, torch.Tensor):  # which torch refuses by name
        return False
    dense = x.layout is torch.strided and not x.is_nested and (is_traced() or not x.is_neg())
    return dense and x.dim() >= 2 and x.device.type in PLACES


def has_own_layers(kind: type) -> bool:
    """Whether tensors of this type bring functions of their own, as quantised weights do."""
    known = torch.Tensor.__torch_function__, torch._C._disabled_torch_function_impl
    return kind.__torch_function__ not in known


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """The input, or a copy where its dims before the last do not step over rows of one matrix, as
    after a transpose of batch and sequence: torch's own linear copies it, too."""
    if x.dim() == 2 or steps_evenly(x, 1):
        return x
    if not is_traced():
        warn_of_copy("linear: input", x, f"strides {list(x.stride())} are not rows of one matrix")
    return x.contiguous()


def autocast(*tensors: torch.Tensor | None) -> list[Any]:
    """The tensors as autocast gives them to a linear layer of torch's."""
    kind = next(each for each in tensors if each is not None).device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):
        return list(tensors)
    dtype = torch.get_autocast_dtype(kind)
    return [_narrowed(each, dtype) for each in tensors]


def _narrowed(tensor: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """The tensor converted as autocast does: not from float64 or integers."""
    if tensor is None or not tensor.is_floating_point() or tensor.dtype is torch.float64:
        return tensor
    return tensor.to(dtype)


def replace(
    model: torch.nn.Module, only: Callable[[str, torch.nn.Linear], bool] | None = None
) -> torch.nn.Module:
    """Let the linear layers of a model multiply by our kernels: the same model, changed in place.

    model: its modules of exactly the class torch.nn.Linear become `Linear`. Parameters, hooks,
        names and what an optimizer holds stay. Subclasses, also parametrized ones, are left alone.
    only: takes the name and the module; those for which it is false are left alone.

    Raises TypeError for what is no torch.nn.Module, and for an `only` that is no function.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"replace: model must be a torch.nn.Module, got {type(model).__name__}")
    check_only("replace", only)
    for name, module in model.named_modules():
        if type(module) is torch.nn.Linear and (only is None or only(name, module)):
            module.__class__ = Linear
    return model


def check_only(where: str, only: object) -> None:
    """Refuse what cannot say of a layer whether it is meant, with TypeError."""
    if only is not None and not callable(only):
        rule = "only must be a function of a name and a module, or None"
        raise TypeError(f"{where}: {rule}, got {type(only).__name__}; leave it out")
