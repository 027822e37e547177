"""The memory layout of the matrices of a spec: leading dimensions and batch strides."""

from __future__ import annotations

from math import prod

from ...dialects.record import record


@record
class Stored:
    """A matrix in memory, or a stack of them: sizes as it is stored, and the steps along them.

    `leading` is the leading dimension as BLAS has it, the elements from a row to the next, and
    `step` is those from a matrix of a stack to the next (cublasGemmStridedBatchedEx); 0 where there
    is no gap. Of `any_rows` only a launch knows the step: as many rows as it says.
    """

    shape: tuple[int, ...]
    leading: int = 0
    step: int = 0
    any_rows: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one to the next along each dim."""
        *stack, rows, columns = self.shape
        pitch = self.leading or columns
        return (*(self.step or rows * pitch for _ in stack), pitch, 1)

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie one after the other."""
        return self.strides == tuple(prod(self.shape[at + 1 :]) for at in range(len(self.shape)))

    @property
    def is_non_overlapping(self) -> bool:
        """Whether no two elements share a place."""
        reached = 0
        for stride, extent in sorted(zip(self.strides, self.shape, strict=True)):
            if extent > 1 and stride <= reached:
                return False
            reached += (extent - 1) * stride
        return True

    @property
    def spanned(self) -> tuple[int]:
        """Elements from the first to the last one, gaps included."""
        return (1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)),)

    @property
    def layout(self) -> str:
        """MLIR's attribute of an argument or a result that lies so, "" where it is dense."""
        if self.is_dense:
            return ""
        first, *others = self.strides
        open_step = self.any_rows and len(others) == 2
        steps = ", ".join(map(str, ("?" if open_step else first, *others)))
        return f" {{bufferization.buffer_layout = strided<[{steps}]>}}"
