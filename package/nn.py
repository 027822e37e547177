"""Layers of torch that multiply by our kernels.

    Linear      torch.nn.Linear
    replace     a model whose linear layers become such, in place

torch is imported when a name is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.calls.linear import Linear, replace

__all__ = ["Linear", "replace"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .compiler.calls import linear

    return getattr(linear, name)


def __dir__() -> list[str]:
    return __all__
