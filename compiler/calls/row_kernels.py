"""Kernels that share all numbers of rows, each compiled when a call first needs it.

call    rows of the first input → the kernel whose range they are in → `DynamicKernel` → launch
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...runtime.bundles.bundle import Bundle
from ...runtime.launch.kernel import Kernel
from ...runtime.launch.loading import open_kernel
from ..buckets import bucket_specs
from ..spec import ROWS_HINT, MatmulSpec


class RowKernels:
    """A function of arrays, for any number of rows of the first one.

    specs: those of the kernels, from the fewest rows on. make: the bundle for one of them.
    """

    def __init__(
        self, specs: list[MatmulSpec], make: Callable[[MatmulSpec], Bundle], copies: bool = False
    ):
        self.specs, self._make, self._copies = specs, make, copies
        self._ends = [each.most_m for each in specs[:-1]]
        self._kernels: list[Kernel | None] = [None] * len(specs)
        self._making = threading.Lock()

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """As `Kernel` has it; raises CompileError too."""
        return self.for_rows(inputs[0].shape[0])(*inputs, out=out)

    def for_rows(self, m: int) -> Kernel:
        """The kernel for so many rows."""
        number = bisect_left(self._ends, m)
        return self._kernels[number] or self._find(number)

    def _find(self, number: int) -> Kernel:
        with self._making:  # so that threads that need the same kernel get it from the first one
            found = self._kernels[number]
            if found is None:
                bundle = self._make(self.specs[number])
                found = self._kernels[number] = open_kernel(bundle, copies=self._copies)
        return found


def row_specs(spec: MatmulSpec, target: str, by_choice: bool) -> list[MatmulSpec]:
    """The spec of each kernel; one for all M where the caller names the passes."""
    spec = replace(spec, m=ROWS_HINT, dynamic_m=True)
    return bucket_specs(spec, target) if by_choice else [spec]
