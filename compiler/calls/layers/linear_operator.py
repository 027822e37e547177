"""A linear layer that runs as torch calls it: with its gradients, and of tensors that ranks share.

    linear(x [.., k], weight [n, k], bias [n] or None)   →   [.., n]

    tensors            bias, no gradients   bias, gradients       no bias
    torch's own        one kernel           Layer, one kernel     the product
    DTensors, …        tilewright::linear   Layer of that         tilewright::linear

As one operator it costs a DTensor one call of its dispatcher, whatever the dims before the rows,
and partial sums of a cut depth are added up in the type of the result. So do its gradients:

    linear_input_gradient(gradient [.., n], weight [n, k])    →   [.., k]
    linear_weight_gradient(gradient [.., n], x [.., k])       →   [n, k]

Where torch traces or transforms what runs, it must see the product and the bias apart.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, library

from ....dialects.tables import changes, keep, when_changed
from ....runtime.gpu.operands import Recognizer, recognizer
from ....runtime.launch.kernel import Kernel
from ....runtime.tracing import is_traced, is_transformed, is_watched
from ..dense.fused import find_fused, has_no_elements, multiply_fused
from ..dense.matmul import matmul
from ..kernels.lookup import SEEN_KEPT, How, differentiates, with_others
from ..operators.flops import count_flops, of_all_rows, of_rows

LIBRARY = library.Library("tilewright", "FRAGMENT")
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
SIGNATURE = "(Tensor x, Tensor weight, Tensor? bias) -> Tensor"
library.define("tilewright::linear", SIGNATURE, lib=LIBRARY, tags=TAGS)
linear_operator = torch.ops.tilewright.linear.default
count_flops(linear_operator, of_rows)
OF_INPUT = "(Tensor gradient, Tensor weight) -> Tensor"
library.define("tilewright::linear_input_gradient", OF_INPUT, lib=LIBRARY, tags=TAGS)
input_gradient = torch.ops.tilewright.linear_input_gradient.default
count_flops(input_gradient, of_rows)
OF_WEIGHT = "(Tensor gradient, Tensor x) -> Tensor"
library.define("tilewright::linear_weight_gradient", OF_WEIGHT, lib=LIBRARY, tags=TAGS)
weight_gradient = torch.ops.tilewright.linear_weight_gradient.default
count_flops(weight_gradient, of_all_rows)
AS_EVER = How()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · weightᵀ + bias, added in float32 and rounded once; with gradients where torch records."""
    if _must_be_seen():
        return _in_steps(x, weight, bias)
    shared = _are_shared(x, weight)
    wanted = x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    if differentiates(wanted) and (shared or bias is not None):
        return Layer.apply(x, weight, bias)
    return _of_shared(x, weight, bias) if shared else _alone(x, weight, bias)


def _must_be_seen() -> bool:
    """Whether torch must see a product and its bias apart."""
    return bool(is_traced() or torch._C._len_torch_dispatch_stack() or is_transformed())


def _alone(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """By one kernel, which is asked for itself where there is one to launch."""
    if bias is None and x.dim() > 2 and x.is_contiguous():
        # All rows at once, of which `matmul` finds the kernel without asking how they lie.
        return matmul(_as_matrix(x), weight).view(*x.shape[:-1], weight.shape[0])
    if bias is None:
        return _in_steps(x, weight, bias)
    key = x.shape, weight.shape, x.dtype, x.requires_grad, weight.requires_grad
    known = _known(key, (x, weight, bias))
    if known and known.kernel and not torch._C._len_torch_dispatch_stack():
        return known.kernel(_as_matrix(x), weight, bias).view(*x.shape[:-1], weight.shape[0])
    if is_watched(x, weight, bias) or has_no_elements(x, weight):
        return _in_steps(x, weight, bias)
    result = multiply_fused(x, weight, None, AS_EVER, _add_bias, (bias,))
    if not known:
        _remember(key, x, weight, bias)
    return result


class Seen(NamedTuple):
    """Tensors of a layer that came before, and the kernel if one took them as they are."""

    recognizes: Recognizer
    kernel: Kernel | None


_seen: dict[Any, tuple[Seen, ...]] = {}
when_changed(_seen.clear)


def _known(key: Any, values: tuple[Tensor, ...]) -> Seen | None:
    """What is known of tensors like these."""
    for known in _seen.get(key, ()):
        if known.recognizes(*values):
            return known
    return None


def _remember(key: Any, x: Tensor, weight: Tensor, bias: Tensor) -> None:
    """Let `_alone` know tensors, and their kernel where it takes them as they are."""
    before = changes()
    found, *_ = find_fused(x, weight, None, AS_EVER, _add_bias, (bias,))
    plain = all(each.is_contiguous() for each in (x, weight, bias)) and bias.dim() == 1
    as_they_are = plain and (found.spec.a_major, found.spec.b_major) == ("k", "k")
    if len(_seen) >= SEEN_KEPT:
        _seen.clear()
    values = x, weight, bias
    made = Seen(recognizer(values), found.kernel if as_they_are else None)
    keep(_seen, key, with_others(made, _seen.get(key, ()), values), before)


def _in_steps(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """By `matmul`, which lets torch see a product and what follows it where it must."""
    if bias is None:
        return matmul(x, weight)
    return matmul(x, weight, epilogue=_add_bias, operands=(bias,))


def _add_bias(acc: Any, bias: Any) -> Any:
    return acc + bias


@functools.cache
def _stands_for_others(kind: type) -> bool:
    """Whether tensors of this type are called by operators, as DTensors are."""
    return kind.__torch_dispatch__ is not Tensor.__torch_dispatch__  # type: ignore[attr-defined]


def _are_shared(*tensors: Tensor) -> bool:
    return any(_stands_for_others(type(each)) for each in tensors)


def _of_shared(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return _shared(linear_operator, x, weight, bias)


def _shared(operator: Any, *operands: Tensor | None) -> Tensor:
    """An operator of tensors that stand for others."""
    if "torch.distributed.tensor" not in sys.modules:
        return operator(*operands)
    return _calls()[operator](*operands)


@functools.cache
def _calls() -> dict[Any, Callable[..., Tensor]]:
    """How each operator is called where some operands may be DTensors."""
    from ..operators import sharding
    from .shared_layer import call

    sharding.register_layer(linear_operator, input_gradient, weight_gradient)
    found = (
        (linear_operator, _alone, sharding.shardings_of_layer),
        (input_gradient, _input_gradient, sharding.shardings_of_input_gradient),
        (weight_gradient, _weight_gradient, sharding.shardings_of_weight_gradient),
    )
    return {operator: functools.partial(call, operator, *how) for operator, *how in found}


@library.impl("tilewright::linear", "CompositeExplicitAutograd", lib=LIBRARY)
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return _alone(x, weight, bias)


@library.register_fake("tilewright::linear", lib=LIBRARY)
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return matmul(x, weight)


def _input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    return _alone(gradient, weight.mT, None)


library.impl(
    "tilewright::linear_input_gradient", "CompositeExplicitAutograd", _input_gradient, lib=LIBRARY
)


@library.register_fake("tilewright::linear_input_gradient", lib=LIBRARY)
def _(gradient: Tensor, weight: Tensor) -> Tensor:
    return matmul(gradient, weight.mT)


def _weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    return _alone(_as_matrix(gradient).mT, _as_matrix(x).mT, None)


library.impl(
    "tilewright::linear_weight_gradient", "CompositeExplicitAutograd", _weight_gradient, lib=LIBRARY
)


@library.register_fake("tilewright::linear_weight_gradient", lib=LIBRARY)
def _(gradient: Tensor, x: Tensor) -> Tensor:
    return matmul(_as_matrix(gradient).mT, _as_matrix(x).mT)


class Layer(torch.autograd.Function):
    """The layer with its gradients, which are layers again where they are differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return (_of_shared if _are_shared(x, weight) else _alone)(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (gradient,), (of_x, of_weight, of_bias) = gradients, ctx.needs_input_grad
        if _are_shared(gradient) and not (torch.is_grad_enabled() or _must_be_seen()):
            return (
                _shared(input_gradient, gradient, weight) if of_x else None,
                _shared(weight_gradient, gradient, x) if of_weight else None,
                gradient.sum(list(range(gradient.dim() - 1))) if of_bias else None,
            )
        rows = _as_matrix(gradient)
        return (
            linear(gradient, weight.mT, None) if of_x else None,
            linear(rows.mT, _as_matrix(x).mT, None) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )


def _as_matrix(x: Tensor) -> Tensor:
    """All rows, by an operator that batches of gradients have, too."""
    return x if x.dim() == 2 else x.reshape(prod(x.shape[:-1]), x.shape[-1])
