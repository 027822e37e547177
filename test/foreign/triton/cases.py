"""What a kernel file says about its launch, in the words of the launch file (docs/emulate.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


def integers(seed: int, low: int, high: int) -> dict[str, Any]:
    """Contents: random integers, both ends included."""
    return {"random": seed, "distribution": "integers", "low": low, "high": high}


def normal(seed: int) -> dict[str, Any]:
    """Contents: random numbers of mean 0 and deviation 1."""
    return {"random": seed, "distribution": "normal"}


@dataclass(frozen=True)
class Tensor:
    """A tensor that the kernel gets by pointer; without contents it is an output."""

    dtype: str
    shape: Sequence[int]
    contents: Mapping[str, Any] | None = None
    role: str = "input"

    def declared(self, name: str) -> dict[str, Any]:
        """The launch file's entry of the tensor."""
        entry = {"name": name, "role": self.role, "dtype": self.dtype, "shape": [*self.shape]}
        if self.contents is None:
            return {**entry, "role": "output"}
        return {**entry, "contents": dict(self.contents)}


@dataclass(frozen=True)
class Descriptor:
    """A dense row-major tensor that the kernel gets as a tensor descriptor made by the host.

    block: the shape of one copy. layout: Gluon's shared layout of it. element_type: the
    compiler's, where it differs from the tensor's.
    """

    tensor: Tensor
    block: Sequence[int]
    layout: Any = None
    element_type: str | None = None
    nan_padding: bool = False


@dataclass(frozen=True)
class Constant:
    """A tl.constexpr argument."""

    value: Any


@dataclass(frozen=True)
class Case:
    """A kernel and its launch: arguments by name are tensors, descriptors, constants, integers
    (i32) or floats (f32); targets are compute capabilities such as 90; grid counts clusters where
    num_ctas says that a program is one."""

    kernel: Callable[..., Any]
    targets: Sequence[int]
    grid: Sequence[int]
    arguments: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
