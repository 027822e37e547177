"""Kernels that share all numbers of rows, of matrices or along K, each compiled when a call first
needs it.

call    rows of the first input, or its K, matrices of a stack → the kernel with a range they are in
        → `DynamicKernel` → launch
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ....runtime.bundles.bundle import Bundle
from ....runtime.bundles.several import Bands, bands_of, by_multiples
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
    by_rows: whether inputs that have M or N contiguous are given with K as their rows, as they lie.
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
        rows_last = spec.is_long_as_m if by_rows else spec.dynamic_k
        self._axis = -1 if rows_last else self._axis
        bands = bands_of([e.ranges for e in buckets], [e.spec.multiple_m for e in buckets])
        tables = [(multiple, _Table.of(own)) for multiple, own in by_multiples(bands)]
        (_, self._table), self._of_multiples = tables[-1], tables[:-1]
        one_band = all(len(table.bands) == 0 for _, table in tables)
        self._stack = None if one_band else int(not spec.a_stacked)
        self._kernels: list[Kernel | None] = [None] * len(buckets)
        self._making = shared_lock()

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Like `Kernel.__call__`; also raises CompileError."""
        return self._for(inputs)(*inputs, out=out)

    def relaunched(self, inputs: tuple[Any, ...], out: Any) -> bool:
        """Like `Kernel.relaunched`."""
        return self._for(inputs).relaunched(inputs, out)

    def _for(self, inputs: tuple[Any, ...]) -> Kernel:
        """The kernel for the sizes of these."""
        matrices = 1 if self._stack is None else inputs[self._stack].shape[0]
        return self.for_sizes(inputs[self._at].shape[self._axis], matrices)

    def for_sizes(self, rows: int, matrices: int = 1) -> Kernel:
        """The kernel for so many rows, or matrices; of both for so many of each."""
        table = self._table
        for multiple, other in self._of_multiples:
            if rows % multiple == 0:
                table = other
                break
        band = bisect_right(table.bands, matrices)
        number = table.numbers[band][bisect_right(table.starts[band], rows)]
        return self._kernels[number] or self._find(number)

    def _find(self, number: int) -> Kernel:
        with self._making:  # so that threads that need the same kernel get it from the first one
            found = self._kernels[number]
            if found is None:
                bundle = self._make(self.buckets[number])
                found = self._kernels[number] = open_kernel(bundle, copies=self._copies)
        return found


class _Table(NamedTuple):
    """Which kernel sizes have: where bands of matrices begin after the first, and ranges of rows
    in each after its first, and the numbers of kernels."""

    bands: list[int]
    starts: list[list[int]]
    numbers: list[list[int]]

    @staticmethod
    def of(bands: Bands) -> _Table:
        """The table of bands whose rows are multiples of one number."""
        tables = [each[1] for each in bands]
        starts = [[least for least, _ in ranges[1:]] for ranges in tables]
        numbers = [[number for _, number in ranges] for ranges in tables]
        return _Table([each[0] for each in bands[1:]], starts, numbers)


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
