"""Layers of torch that multiply by our kernels.

    Linear            torch.nn.Linear
    replace           a model whose linear layers become such, in place
    WeightOnlyLinear  the same with weights of 8 or 4 bits, and scales of groups
    quantize          a model whose linear layers become such, in place
    quantize_weights  weights, scales and zero points of a matrix

torch is imported when a name is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.calls.layers.linear import Linear, replace
    from .compiler.calls.layers.weight_layers import WeightOnlyLinear, quantize, quantize_weights

__all__ = ["Linear", "WeightOnlyLinear", "quantize", "quantize_weights", "replace"]
_HOMES = {"Linear": "linear", "replace": "linear"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .runtime.extras import home_of

    home = _HOMES.get(name, "weight_layers")
    return getattr(home_of(f"{__package__}.compiler.calls.layers.{home}"), name)


def __dir__() -> list[str]:
    return __all__
