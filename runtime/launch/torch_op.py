"""Loaded kernels as one operator of torch, so that torch.compile keeps them in its graphs.

    tilewright::run_kernel(key, inputs) → output
    tilewright::run_kernel_of_several(key, inputs) → outputs

Imported only where torch is. The key names a kernel that this process has loaded; the graph holds
nothing else of it.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import library

from ..bundles.bundle import Bundle
from ..element_types import torch_dtype
from ..errors import DeviceError, LaunchError


class Callee(Protocol):
    """A loaded kernel: called with its inputs, it gives what its manifest declares for them."""

    bundle: Bundle
    key: str

    def declared_outputs(self, inputs: Any) -> Sequence[Mapping[str, Any]]: ...

    def check_traced(self, inputs: Any) -> None: ...

    def __call__(self, *inputs: torch.Tensor) -> Any: ...


LOADED: weakref.WeakValueDictionary[str, Callee] = weakref.WeakValueDictionary()


def enter(key: str, kernel: Callee) -> Callee | None:
    """Let graphs call the kernel while it lives; gives the one of this key that they call already.

    Who loads the same bundle again must hold that one, so that graphs of either have it: a second
    program with a layer of the same sizes may end sooner, or later, than the first.
    """
    known = LOADED.setdefault(key, kernel)
    return None if known is kernel else known


_numbers = itertools.count()


class Checked:
    """A kernel that graphs may call, while this lives, if a check passes, which raises what it
    finds.

    The kernel gets a key that no other has in this process. Processes that load alike give the same
    keys, by which torch finds its graphs on disk again. The kernel does not hold this, so that what
    is checked ends with its last user.
    """

    def __init__(self, kernel: Callee, check: Callable[[], None]):
        self.bundle, self.declared_outputs = kernel.bundle, kernel.declared_outputs
        self.check_traced = kernel.check_traced
        self._kernel, self._check = kernel, check
        self.key = kernel.key = f"{kernel.key}-checked-{next(_numbers)}"
        LOADED[self.key] = self

    def __reduce__(self) -> Any:
        """A copy is of a kernel and a module of its own."""
        return Checked, (self._kernel, self._check)

    def __call__(self, *inputs: torch.Tensor) -> Any:
        self._check()
        return self._kernel(*inputs)


@library.custom_op("tilewright::run_kernel", mutates_args=())
def run_kernel(key: str, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Call the kernel of this key; raises DeviceError when the process hasn't loaded it."""
    return loaded(key)(*inputs)


@library.custom_op("tilewright::run_kernel_of_several", mutates_args=())
def run_kernel_of_several(key: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same, of a kernel with any number of outputs."""
    made = loaded(key)(*inputs)
    return list(made) if isinstance(made, tuple) else [made]


def loaded(key: str) -> Callee:
    """The kernel of a key; DeviceError where none of it lives."""
    found = LOADED.get(key)
    if found is None:
        raise DeviceError(f"kernel {key}: must be loaded, got a graph that outlived it; load it")
    return found


@run_kernel.register_fake
def _(key: str, inputs: list[torch.Tensor]) -> torch.Tensor:
    return _fakes(loaded(key), inputs)[0]


@run_kernel_of_several.register_fake
def _(key: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return _fakes(loaded(key), inputs)


def _fakes(kernel: Callee, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What a call gives, as torch knows it; LaunchError for inputs that no launch takes."""
    kernel.check_traced(inputs)
    places = {each.device for each in inputs}
    if len(places) > 1:
        got = ", ".join(sorted(map(str, places)))
        rule = f"kernel {kernel.key}: must have its inputs on one device, got {got}"
        raise LaunchError(f"{rule}; move them to one")
    return [_fake(declared, inputs) for declared in kernel.declared_outputs(inputs)]


def _fake(declared: Mapping[str, Any], inputs: list[torch.Tensor]) -> torch.Tensor:
    dtype = torch_dtype(declared["dtype"])
    shape, strides = declared["shape"], declared["strides"]
    return torch.empty_strided(shape, strides, dtype=dtype, device=inputs[0].device)
