"""A kernel for any M, any batch, both, or any K: the sizes that a call brings get a launch of
their own.

call    each size from the first input that has it → the kernel for these, kept → its launch
first   the manifest with the sizes in it (`bundles/sizes.py`); nothing is compiled or loaded again
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..bundles.bundle import Bundle
from ..bundles.manifest import in_order
from ..bundles.sizes import DEPTH, dynamic_axis, size_names, tensor_for
from ..errors import LaunchError
from ..operands.results import cleared, new_zeros
from .kernel import Kernel

SIZES_KEPT = 1024


class DynamicKernel(Kernel):
    """A bundle whose M each call says, by its number of rows, or its batch, or both, or whose K.

    Without rows, or without matrices, there is nothing to launch: the output has none. Without
    columns along K the sums are zero, as those of one column of zeros.
    """

    def __init__(self, bundle: Bundle, device: str | None = None, copies: bool = False):
        super().__init__(bundle, device, copies)
        self._how = device, copies
        self._names = size_names(bundle.manifest)
        self._places = [self.arguments.place_of(size) for size in self._names]
        self._kernels: dict[tuple[int, ...], Kernel] = {}

    def __call__(self, *inputs: Any, out: Any = None, stream: int | None = None) -> Any:
        """The output for these arguments, as `Kernel` has it; raises LaunchError too."""
        if len(inputs) != self.arguments.count:
            self._refuse_count(len(inputs))
        sizes = self._sizes_of(inputs)
        if self._is_traced():
            return self._in_graph(inputs, out)
        if 0 in sizes:
            self.check_traced(inputs)
        if 0 in sizes and self._names == (DEPTH,):
            return self.at(1)(*self._of_zeros(inputs), out=out, stream=stream)
        if 0 in sizes:
            return self._nothing(inputs, out)
        return self.at(*sizes)(*inputs, out=out, stream=stream)

    def relaunched(self, inputs: tuple[Any, ...], out: Any, stream: int | None = None) -> bool:
        """Like `Kernel.relaunched`, by the kernel for these sizes."""
        found = self._kernels.get(self._sizes_of(inputs)) if len(inputs) == self._count else None
        return found is not None and found.relaunched(inputs, out, stream)

    def at(self, *sizes: int) -> Kernel:
        """The kernel for one size of each; raises LaunchError for one that it cannot count."""
        found = self._kernels.get(sizes)
        if found is None:
            if len(self._kernels) >= SIZES_KEPT:
                self._kernels.clear()
            found = self._kernels[sizes] = Kernel(self.bundle.at(*sizes), *self._how)
        return found

    def run(self, tensors: Mapping[str, Any], seed: int = 0) -> Any:
        """Run on tensors named as in the manifest, and wait, as `Kernel.run`."""
        in_order(self.manifest, tensors)
        return self.at(*(self._size_in(tensors, size) for size in self._names)).run(tensors, seed)

    def _size_in(self, tensors: Mapping[str, Any], size: str) -> int:
        """A size as the first tensor has it."""
        axes = {each["name"]: dynamic_axis(each, size) for each in self.manifest["tensors"]}
        name, axis = next(pair for pair in axes.items() if pair[1] is not None)
        return tensors[name].shape[axis]

    def declared_outputs(self, inputs: Any) -> list[Mapping[str, Any]]:
        """What the manifest says of the outputs for these arguments, whose sizes may be symbols."""
        return [tensor_for(each, self._named(inputs)) for each in self.outputs]

    def check_traced(self, inputs: Any) -> None:
        """Like `Kernel.check_traced`, for the sizes that the inputs have."""
        self.arguments.check_sized(inputs, self._named(inputs))

    def _named(self, inputs: Any) -> dict[str, Any]:
        """The sizes by their names."""
        return dict(zip(self._names, self._sizes_of(inputs), strict=True))

    def _sizes_of(self, inputs: Any) -> tuple[Any, ...]:
        """The sizes in their order, each of the first input that has it."""
        return tuple([self._size_of(inputs, *place) for place in self._places])

    def _size_of(self, inputs: Any, at: int, axis: int, rank: int) -> Any:
        shape = getattr(inputs[at], "shape", ())
        if len(shape) != rank:
            name = self.arguments.names[at]
            wanted = "be a stack of matrices" if rank == 3 else "have rows and columns"
            raise LaunchError(f"argument '{name}': must {wanted}, got {list(shape)}")
        return shape[axis]

    def _of_zeros(self, inputs: Any) -> list[Any]:
        """The arguments with one column of zeros along K, where they have none."""
        given, places = list(inputs), self.arguments.places_of(DEPTH)
        declared = [each for each in self.manifest["tensors"] if DEPTH in each["shape"]]
        for (index, axis, _), tensor in zip(places, declared, strict=True):
            value, shape = given[index], [*given[index].shape]
            shape[axis] = 1
            given[index] = new_zeros(shape, tensor["dtype"], value, self.arguments.names[index])
        return given

    def _nothing(self, inputs: Any, out: Any) -> Any:
        """Outputs without rows or matrices."""
        declared = self.declared_outputs(inputs)
        if out is None:
            like = inputs[self._places[0][0]]
            made = [
                new_zeros(each["shape"], each["dtype"], like, each["name"]) for each in declared
            ]
        else:
            given = self._given(out) if self._several else (out,)
            made = [cleared(*pair) for pair in zip(declared, given, strict=True)]
        return tuple(made) if self._several else made[0]
