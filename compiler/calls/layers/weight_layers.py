"""A linear layer of torch with 8-bit or 4-bit weights, and its quantization.

Imported when it is asked for, as it imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ....dialects.errors import OptionError
from ....runtime.tracing import is_transformed, is_watched
from ..weights.weight_only import weight_only_mm
from ..weights.weight_operator import add_bias, dequantized, product
from .linear import as_rows, autocast, check_only

KINDS = {"int4": "s4", "uint4": "u4", "int8": "s8", "e4m3": "e4m3", "e5m2": "e5m2"}
LARGEST = {"s4": 7.0, "s8": 127.0, "e4m3": 448.0, "e5m2": 57344.0}
TORCH = {"s8": torch.int8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
MOST = 15  # of u4
SMALLEST = 1e-12


def quantize_weights(
    weight: torch.Tensor, dtype: str = "int4", group: int | None = 128
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Quantize weights [n, k] for `weight_only_mm`: returns b, scales and zeros, which only uint4
    has.

    dtype: "int4", "int8", "e4m3" or "e5m2", by the largest magnitude of each group of K, or
        "uint4", by its smallest and largest weight.
    group: the number of elements of K that share a scale, 32, 64 or 128; None for all of K.

    Elements are rounded to nearest, by the scales as they are stored, in the type of the weights.
    Raises OptionError for weights that are no matrix of floats, or a K that does not consist of
    whole groups.
    """
    if dtype not in KINDS:
        known = ", ".join(KINDS)
        raise OptionError(f"quantize_weights: dtype must be one of {known}, got {dtype!r}")
    if len(weight.shape) != 2 or not weight.is_floating_point() or not weight.shape[1]:
        got = f"{weight.dtype} {list(weight.shape)}"
        raise OptionError(f"quantize_weights: weight must be a matrix of floats, got {got}")
    if group is not None and (type(group) is not int or group < 1):
        rule = "group must be a number of elements of K, or None for all"
        raise OptionError(f"quantize_weights: {rule}, got {group!r}")
    n, k = weight.shape
    size, kind = group or k, KINDS[dtype]
    if k % size or (kind in ("s4", "u4") and k % 2):
        raise OptionError(f"quantize_weights: K of {k} must be whole groups of {size}; pad K")
    groups = weight.detach().float().reshape(n, k // size, size)
    if kind == "u4":
        return _by_range(groups, weight.dtype)
    scales = _stored(groups.abs().amax(-1) / LARGEST[kind], weight.dtype)
    values = (groups / scales.float()[..., None]).clamp(-LARGEST[kind], LARGEST[kind]).flatten(1)
    if kind == "s4":
        return packed(values.round().to(torch.int8)), scales, None
    stored = values.round() if kind == "s8" else values
    return stored.to(TORCH[kind]), scales, None


def _by_range(
    groups: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """uint4: 0 to 15 over the least and the largest of each group, and zero."""
    least, most = groups.amin(-1).clamp_max(0), groups.amax(-1).clamp_min(0)
    scales = _stored((most - least) / MOST, dtype)
    zeros = (-least / scales.float()).round().clamp(0, MOST)
    values = (groups / scales.float()[..., None]).round() + zeros[..., None]
    values = values.clamp(0, MOST).flatten(1)
    return packed(values.to(torch.int8)), scales, zeros.to(torch.uint8)


def _stored(scales: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Scales in the type that they are stored in, of which none is 0."""
    found = torch.finfo(dtype)
    return scales.clamp_min(max(SMALLEST, found.smallest_normal * found.eps)).to(dtype)


def packed(values: torch.Tensor) -> torch.Tensor:
    """Integers [n, k] of four bits as bytes [n, k / 2], the first of two in the low bits."""
    low, high = (values[:, start::2].to(torch.uint8) & 15 for start in (0, 1))
    return (low | (high << 4)).contiguous()


class WeightOnlyLinear(torch.nn.Module):
    """x [..., in_features] · weightᵀ + bias with narrow weights, in one kernel for any number of
    rows.

    weight, scales, zeros: buffers, as `weight_only_mm` takes them.
    bias: [out_features], or None.
    dtype: of the weights, as in `quantize_weights`.

    Inputs have 16 bits. The input and the bias have gradients. On the CPU the kernel runs on the
    emulator. Raises OptionError for an unknown dtype or a bias of another shape.
    """

    weight: torch.Tensor
    scales: torch.Tensor | None
    zeros: torch.Tensor | None

    def __init__(
        self,
        weight: torch.Tensor,
        scales: torch.Tensor | None,
        zeros: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        dtype: str = "int4",
    ) -> None:
        super().__init__()
        if not isinstance(weight, torch.Tensor):
            rule = "weight must be a tensor, as quantize_weights gives it"
            cure = "make the layer of another by WeightOnlyLinear.from_linear"
            raise OptionError(f"WeightOnlyLinear: {rule}, got {type(weight).__name__}; {cure}")
        if dtype not in KINDS:
            known = ", ".join(KINDS)
            raise OptionError(f"WeightOnlyLinear: dtype must be one of {known}, got {dtype!r}")
        if bias is not None and list(bias.shape) != [len(weight)]:
            rule = f"bias must be [{len(weight)}], one number for each row of weight"
            raise OptionError(f"WeightOnlyLinear: {rule}, got {list(bias.shape)}")
        self.dtype = dtype
        self.bias = None if bias is None else torch.nn.Parameter(bias)
        for name, value in (("weight", weight), ("scales", scales), ("zeros", zeros)):
            self.register_buffer(name, value)

    @classmethod
    def from_linear(
        cls, linear: torch.nn.Linear, dtype: str = "int4", group: int | None = 128
    ) -> WeightOnlyLinear:
        """The layer with its weights rounded (`quantize_weights`); its bias is its own."""
        bias = None if linear.bias is None else linear.bias.detach()
        return cls(*quantize_weights(linear.weight, dtype, group), bias, dtype)

    @property
    def in_features(self) -> int:
        return self.weight.shape[1] * (2 if self.dtype in ("int4", "uint4") else 1)

    @property
    def out_features(self) -> int:
        return self.weight.shape[0]

    def dequantized(self) -> torch.Tensor:
        """The weights [out_features, in_features] in float32."""
        return dequantized(self.weight, self.scales, self.zeros, b_dtype=KINDS[self.dtype])

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """[..., out_features] of the input's type, or of autocast's."""
        input = self._taken(input)
        seen = torch.compiler.is_compiling() or is_transformed() or is_watched(input, self.weight)
        differentiated = torch.is_grad_enabled() and (
            input.requires_grad or (self.bias is not None and self.bias.requires_grad)
        )
        kind = KINDS[self.dtype]
        if seen or differentiated:
            given = self.weight, self.scales, self.zeros, self.bias
            return product(input, *given, kind, "", "dynamic")
        how: dict[str, Any] = {"zeros": self.zeros, "b_dtype": kind, "m": "dynamic"}
        if self.bias is not None:
            how |= {"epilogue": add_bias, "operands": (self.bias,)}
        return weight_only_mm(input, self.weight, self.scales, **how)

    def _taken(self, input: torch.Tensor) -> torch.Tensor:
        """The input as kernels take it; OptionError for what none takes."""
        (x,) = autocast(input)
        sizes = list(x.shape)
        if x.dtype not in (torch.bfloat16, torch.float16) or sizes[-1:] != [self.in_features]:
            rule = f"input must be [..., {self.in_features}] of bfloat16 or float16"
            raise OptionError(f"WeightOnlyLinear: {rule}, got {sizes} of {x.dtype}; convert it")
        return as_rows(x)

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, {self.dtype}, bias={self.bias is not None}"
        )


def quantize(
    model: torch.nn.Module,
    dtype: str = "int4",
    group: int | None = 128,
    only: Callable[[str, torch.nn.Linear], bool] | None = None,
) -> torch.nn.Module:
    """Give the linear layers of a model narrow weights, in place, and return the model.

    model: its modules of the class torch.nn.Linear become `WeightOnlyLinear`; a layer that several
        modules share becomes one such layer.
    dtype, group: as in `quantize_weights`.
    only: a function of the name and the module; layers for which it is false are left alone.

    Raises OptionError, and changes no layer, if one of them is refused.
    """
    if not isinstance(model, torch.nn.Module) or type(model) is torch.nn.Linear:
        rule = "model must be a torch.nn.Module with linear layers in it"
        cure = "take WeightOnlyLinear.from_linear for a layer"
        raise TypeError(f"quantize: {rule}, got {type(model).__name__}; {cure}")
    check_only("quantize", only)
    made: dict[torch.nn.Linear, WeightOnlyLinear] = {}
    places: list[tuple[torch.nn.Module, str, torch.nn.Linear]] = []
    for whole, child in model.named_modules(remove_duplicate=False):
        if type(child) is torch.nn.Linear and (only is None or only(whole, child)):
            parent, _, name = whole.rpartition(".")
            places.append((model.get_submodule(parent), name, child))
            if child not in made:
                made[child] = _narrow(whole, child, dtype, group)
    for parent, name, child in places:  # after all that may be refused
        setattr(parent, name, made[child])
    return model


def _narrow(name: str, linear: torch.nn.Linear, dtype: str, group: int | None) -> WeightOnlyLinear:
    """The layer with narrow weights, in the mode of the other; OptionError names the layer."""
    try:
        return WeightOnlyLinear.from_linear(linear, dtype, group).train(linear.training)
    except OptionError as error:
        cure = "leave it out by only="
        raise OptionError(f"quantize: {name}: {error.message}; or {cure}") from None
