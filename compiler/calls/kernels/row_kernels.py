"""Kernels that share all numbers of rows, of matrices or along K, each compiled when a call first
needs it.

call    rows of the first input, or its K, matrices of a stack → the kernel with a range they are in
        → `DynamicKernel` → launch
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ....runtime.bundles.bundle import Bundle
from ....runtime.bundles.several import bands_of
from ....runtime.launch.kernel import Kernel
from ....runtime.launch.loading import open_kernel
from ....runtime.locks import shared_lock
from ...schedule.any_size.buckets import Bucket
from ...spec import BATCH_HINT, ROWS_HINT, MatmulSpec, depth_hint
from .kept_choices import kept_buckets


class RowKernels:
    """A function of arrays, for any number of rows of the first one, of matrices of a stack, or any
    K.

    buckets: the kernels, in the order of their fewest rows. make: the bundle for one of them.
    by_rows: of any K, whether inputs are given with K as their rows, as they lie.
    """

    def __init__(
        self,
        buckets: list[Bucket],
        make: Callable[[Bucket], Bundle],
        copies: bool = False,
        by_rows: bool = False,
    ):
        self.buckets, self._make, self._copies = buckets, make, copies
        spec = buckets[0].spec
        stacks = spec.dynamic_batch and not spec.dynamic_m
        self._at, self._axis = int(stacks and not spec.a_stacked), 0 if stacks else -2
        self._axis = -1 if spec.dynamic_k and not by_rows else self._axis
        bands = bands_of([each.ranges for each in buckets])
        self._stack = None if len(bands) == 1 else int(not spec.a_stacked)
        self._bands = [fewest for fewest, _ in bands[1:]]
        self._starts = [[least for least, _ in ranges[1:]] for _, ranges in bands]
        self._numbers = [[number for _, number in ranges] for _, ranges in bands]
        self._kernels: list[Kernel | None] = [None] * len(buckets)
        self._making = shared_lock()

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """As `Kernel` has it; raises CompileError too."""
        return self._for(inputs)(*inputs, out=out)

    def relaunched(self, inputs: tuple[Any, ...], out: Any) -> bool:
        """As `Kernel` has it."""
        return self._for(inputs).relaunched(inputs, out)

    def _for(self, inputs: tuple[Any, ...]) -> Kernel:
        """The kernel for the sizes of these."""
        matrices = 1 if self._stack is None else inputs[self._stack].shape[0]
        return self.for_sizes(inputs[self._at].shape[self._axis], matrices)

    def for_sizes(self, rows: int, matrices: int = 1) -> Kernel:
        """The kernel for so many rows, or matrices; of both for so many of each."""
        band = bisect_right(self._bands, matrices)
        number = self._numbers[band][bisect_right(self._starts[band], rows)]
        return self._kernels[number] or self._find(number)

    def _find(self, number: int) -> Kernel:
        with self._making:  # so that threads that need the same kernel get it from the first one
            found = self._kernels[number]
            if found is None:
                bundle = self._make(self.buckets[number])
                found = self._kernels[number] = open_kernel(bundle, copies=self._copies)
        return found


def row_buckets(
    spec: MatmulSpec, target: str, pipeline: str, sizes: Sequence[str] = ("m",)
) -> list[Bucket]:
    """Each kernel; one for all sizes where the caller names the passes, with or without a preset.

    sizes: the names of those that a launch says.
    """
    spec = of_any_size(spec, sizes)
    return [Bucket(spec, pipeline, named=True)] if pipeline else kept_buckets(spec, target)


def of_any_size(spec: MatmulSpec, sizes: Sequence[str] = ("m",)) -> MatmulSpec:
    """The spec for which the kernels are chosen, whatever sizes it came with."""
    hints = {"m": ROWS_HINT, "batch": BATCH_HINT, "k": depth_hint(spec)}
    opened: dict[str, Any] = {name: hints[name] for name in sizes}
    return replace(spec, **opened, **{f"dynamic_{name}": True for name in sizes})
