"""Epilogues that are compared with torch's own operators: what they compute of which operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

GELU_CUBIC = 0.044715
OPERANDS = {
    "bias": ["n"],
    "scale_bias": ["n", "n"],
    "row_scale": ["m"],
    "residual": ["mn"],
    "gelu_gradient": ["mn"],
    "gelu_tanh_gradient": ["mn"],
    "silu_gradient": ["mn"],
    "times": ["mn"],
}
"""What indexes the operands of an epilogue that has some."""
GRADIENTS = {"gelu_gradient": "none", "gelu_tanh_gradient": "tanh", "silu_gradient": ""}
"""Of functions, and how torch names these."""
TWO_OUTPUTS = ("gelu_and_sums", "gelu_and_slope", "silu_and_sums")
"""What training keeps for its gradients, in bf16 as torch does: the sums, or the slope that
\"times\" multiplies with."""
CUBLASLT = {"relu": {"use_gelu": False}, "gelu_tanh": {"use_gelu": True}}
"""What torch asks of cublasLt's own epilogues beside that of `linear`, which adds a bias."""


def epilogues() -> dict[str, Callable[..., Any]]:
    """Functions of the sums, and of operands of `OPERANDS`."""
    from torch.nn import functional

    return {
        "bias": lambda acc, bias: acc + bias,
        "relu": lambda acc: functional.relu(acc),
        "gelu": lambda acc: functional.gelu(acc),
        "gelu_tanh": lambda acc: functional.gelu(acc, approximate="tanh"),
        "silu": lambda acc: functional.silu(acc),
        "residual": lambda acc, residual: acc + residual,
        "scale_bias": lambda acc, scale, bias: acc * scale + bias,
        "row_scale": lambda acc, scale: acc * scale,
        "gelu_gradient": gelu_gradient,
        "gelu_tanh_gradient": gelu_tanh_gradient,
        "silu_gradient": silu_gradient,
        "times": lambda acc, slope: acc * slope,
        "gelu_and_sums": lambda acc: (functional.gelu(acc), acc.bfloat16()),
        "gelu_and_slope": lambda acc: (functional.gelu(acc), gelu_slope(acc).bfloat16()),
        "silu_and_sums": lambda acc: (functional.silu(acc), acc.bfloat16()),
    }


def gelu_gradient(acc: Any, x: Any) -> Any:
    """The gradient of GELU at x, times that of its result."""
    return acc * gelu_slope(x.float())


def gelu_slope(x: Any) -> Any:
    """The slope of GELU at x."""
    import torch

    density = math.sqrt(0.5 / math.pi) * torch.exp(-0.5 * x * x)
    return 0.5 * (1 + torch.erf(x * math.sqrt(0.5))) + x * density


def silu_gradient(acc: Any, x: Any) -> Any:
    """The gradient of SiLU at x, times that of its result."""
    import torch

    sigmoid = torch.sigmoid(x.float())
    return acc * (sigmoid * (1 + x.float() * (1 - sigmoid)))


def gelu_tanh_gradient(acc: Any, x: Any) -> Any:
    """The gradient of GELU (tanh) at x, times that of its result."""
    import torch

    x = x.float()
    slope = math.sqrt(2 / math.pi) * (1 + 3 * GELU_CUBIC * x * x)
    tanh = torch.tanh(math.sqrt(2 / math.pi) * (x + GELU_CUBIC * x * x * x))
    return acc * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * slope)


def sizes_of(name: str, m: int, n: int) -> list[tuple[int, ...]]:
    """The shapes of an epilogue's operands, as the function of torch takes them."""
    sizes = {"mn": (m, n), "n": (n,), "m": (m, 1)}
    return [sizes[each] for each in OPERANDS.get(name, [])]


def torchs(name: str) -> Callable[..., Any]:
    """The same by torch's own operators; a bias is one of its linear."""
    import torch
    from torch.nn.functional import linear

    epilogue = epilogues()[name]
    if name == "bias":
        return linear
    if name == "silu_gradient":
        return lambda x, w, beside: torch.ops.aten.silu_backward(linear(x, w), beside)
    if name in GRADIENTS:
        return lambda x, w, beside: torch.ops.aten.gelu_backward(
            linear(x, w), beside, approximate=GRADIENTS[name]
        )
    return lambda x, w, *beside: epilogue(linear(x, w), *beside)


def is_near(made: Any, wanted: Any) -> bool:
    """Whether all outputs are what float32 gives, as far as bf16 tells."""
    if isinstance(wanted, tuple):
        return all(is_near(*pair) for pair in zip(made, wanted, strict=True))
    return bool((made.float() - wanted).abs().max() < 2**-6 * wanted.abs().max())
