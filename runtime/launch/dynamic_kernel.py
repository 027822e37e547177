"""A kernel for any M, or any batch: each size that a call brings gets a launch of its own.

call    the size from the first input that has it → the kernel for that size, kept → its launch
first   the manifest with the size in it (`bundles/sizes.py`); nothing is compiled or loaded again
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..bundles.bundle import Bundle
from ..bundles.manifest import in_order
from ..bundles.sizes import STACK, dynamic_axis, size_name
from ..errors import LaunchError
from ..operands.results import cleared, new_zeros
from .kernel import Kernel

SIZES_KEPT = 1024


class DynamicKernel(Kernel):
    """A bundle whose M each call says, by its number of rows, or its batch.

    Without rows, or without matrices, there is nothing to launch: the output has none.
    """

    def __init__(self, bundle: Bundle, device: str | None = None, copies: bool = False):
        super().__init__(bundle, device, copies)
        self._how = device, copies
        self._size = size_name(bundle.manifest)
        self._at, self._axis, self._rank = self.arguments.place_of(self._size)
        self._kernels: dict[int, Kernel] = {}

    def __call__(self, *inputs: Any, out: Any = None, stream: int | None = None) -> Any:
        """The output for these arguments, as `Kernel` has it; raises LaunchError too."""
        if len(inputs) != self.arguments.count:
            self._refuse_count(len(inputs))
        m = self._size_of(inputs)
        if self._is_traced():
            return self._in_graph(inputs, out)
        if m == 0:
            return self._nothing(inputs, out)
        return self.at(m)(*inputs, out=out, stream=stream)

    def relaunched(self, inputs: tuple[Any, ...], out: Any, stream: int | None = None) -> bool:
        """As `Kernel` has it, of the kernel for this size."""
        found = self._kernels.get(self._size_of(inputs)) if len(inputs) == self._count else None
        return found is not None and found.relaunched(inputs, out, stream)

    def at(self, m: int) -> Kernel:
        """The kernel for one size; raises LaunchError for one that it cannot count."""
        found = self._kernels.get(m)
        if found is None:
            if len(self._kernels) >= SIZES_KEPT:
                self._kernels.clear()
            found = self._kernels[m] = Kernel(self.bundle.at(m), *self._how)
        return found

    def run(self, tensors: Mapping[str, Any], seed: int = 0) -> Any:
        """Run on tensors named as in the manifest, and wait, as `Kernel.run`."""
        in_order(self.manifest, tensors)
        axes = {each["name"]: dynamic_axis(each) for each in self.manifest["tensors"]}
        name, axis = next(pair for pair in axes.items() if pair[1] is not None)
        return self.at(tensors[name].shape[axis]).run(tensors, seed)

    def declared_outputs(self, inputs: Any) -> list[Mapping[str, Any]]:
        """What the manifest says of the outputs for these arguments, whose size may be a symbol."""
        m = self._size_of(inputs)
        shapes = [
            [m if size == self._size else size for size in each["shape"]] for each in self.outputs
        ]
        pairs = zip(self.outputs, shapes, strict=True)
        return [{**each, "shape": shape} for each, shape in pairs]

    def _size_of(self, inputs: Any) -> Any:
        shape = getattr(inputs[self._at], "shape", ())
        if len(shape) != self._rank:
            name = self.arguments.names[self._at]
            wanted = "be a stack of matrices" if self._size == STACK else "have rows and columns"
            raise LaunchError(f"argument '{name}': must {wanted}, got {list(shape)}")
        return shape[self._axis]

    def _nothing(self, inputs: Any, out: Any) -> Any:
        """Outputs without rows or matrices."""
        declared = self.declared_outputs(inputs)
        if out is None:
            made = [new_zeros(each, inputs[self._at]) for each in declared]
        else:
            given = self._given(out) if self._several else (out,)
            made = [cleared(*pair) for pair in zip(declared, given, strict=True)]
        return tuple(made) if self._several else made[0]
