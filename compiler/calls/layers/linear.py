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
    """x [..., in_features] · weightᵀ + bias, like torch.nn.Linear, in one kernel.

    Input and weight must have 16 bits, if need be by autocast; the bias is added to the accumulator
    in float32, and the result is rounded once. Everything else uses torch's own linear, so that a
    model never has less precision than it asks for: float32, nested or sparse inputs, weights with
    functions of their own (such as torchao's quantized ones), other devices. If torch traces or
    transforms the call, adding the bias is a separate operation. On the CPU the kernel runs on the
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
    """Replace the linear layers of a model by ours, in place, and return the model.

    model: its modules of exactly the class torch.nn.Linear become `Linear`. Parameters, hooks,
        names and the state of an optimizer stay. Subclasses, including parametrized layers, are
        left alone.
    only: a function of the name and the module; layers for which it is false are left alone.

    Raises TypeError if the model is no torch.nn.Module, or `only` no function.
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
