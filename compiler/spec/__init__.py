"""The matmul a user asks for, and the linalg module that says the same; imports no MLIR."""

from __future__ import annotations

from dataclasses import replace

from ...dialects.dtypes import DTYPES, OPERAND_DTYPES
from ...dialects.errors import OptionError
from ...dialects.record import record
from .checks import check
from .epilogue import Epilogue
from .module_text import module_text
from .problem import (
    BATCH_HINT,
    BLOCKED,
    DEPTH_HINT,
    GROUP_DEPTH_HINT,
    LINEAR,
    MANY_ROWS,
    ROWS_HINT,
    ROWS_MOST,
    TWO_LEVEL,
    Problem,
    depth_hint,
    element_of,
)

__all__ = [
    "BATCH_HINT",
    "BLOCKED",
    "DEPTH_HINT",
    "GROUP_DEPTH_HINT",
    "LINEAR",
    "MANY_ROWS",
    "ROWS_HINT",
    "ROWS_MOST",
    "TWO_LEVEL",
    "MatmulSpec",
    "depth_hint",
    "element_of",
]


@record
class MatmulSpec(Problem):
    """C[M,N] = A[M,K] · B[N,K]ᵀ: sizes, types and layouts.

    Layouts: `a_major` is "k" (A stored M×K) or "m" (K×M), and `b_major` is "k" (B stored N×K) or
    "n" (K×N). C is stored M×N. `lda`, `ldb` and `ldc` are leading dimensions, the elements from one
    stored row to the next; 0 means that there is no padding.

    Batches: with a `batch` other than 0, C is a stack of that many matrices, and so are A and B,
    unless one matrix is shared by all (`a_stacked`, `b_stacked`). `stride_a`, `stride_b` and
    `stride_c` are the elements from one matrix to the next; 0 means that there is no padding.

    Types: `a_dtype`, `b_dtype`, `c_dtype` and `acc_dtype`, the type of the accumulator, have the
    names of `dialects.dtypes`. tf32 operands are f32 in memory, and a tensor core multiplies them.
    f32 and f64 operands are multiplied in full precision, by FMA of threads. Two 8-bit types may
    differ if both are floats or both are integers. Integers accumulate in s32, which C may be too;
    f64 accumulates in f64, which C must be.

    Sizes that a launch gives: with `dynamic_m` it gives M, and `m` is only the M for which the
    schedule is chosen. M is at least `least_m` and at most `most_m`, unless these are 0, and a
    multiple of `multiple_m`. If A has M contiguous, its rows are then without padding; the matrices
    of a batch are in any case. A dynamic M may be divided into groups, but not gathered. With
    `dynamic_batch` a launch gives the number of matrices, and `batch` is the hint. With `dynamic_k`
    it gives K, and `k` is the hint; this is for one product of matrices with M and N contiguous, as
    in gradients of weights, or for groups of K.

    Outputs: `further` are the types of outputs besides C, each of the size of C. They are the
    accumulator converted to that type, unless an epilogue computes them. `neighbours` is the number
    of adjacent elements of a row that an epilogue reduces to one element of an output; a tile
    consists of whole such groups. With two `products` the kernel takes a second B like the first,
    and C is the one product times the other, unless an epilogue computes it.

    Groups: with `groups` the rows of A and C are divided into that many groups, by offsets that the
    kernel takes, and B is a stack with one matrix per group. With `group_axis` "k", K is divided
    instead: A and B are stored with K as their rows, and C is a stack with one matrix per group.
    With `gathered` A has that many rows, and the kernel takes the indices of the M rows that the
    groups consist of. Groups of K that are `ordered` are computed in the order that the kernel
    takes as one index per group.

    Hints for the schedule: `epilogue_instructions` is the approximate number of instructions per
    element of C. `beside` has the types of other operands of the size of C, `beside_columns` of
    those with one element per column, `beside_rows` of those with one per row or a single one.

    Block scales: with types of `OPERAND_FORMATS`, such as mxfp8, values of A and B are elements
    times scales. `scale_layout` is the layout of the scales, "blocked" or "linear"; scales of 128
    elements are always linear. C may have a type of `SCALED_FORMATS`: the kernel then quantizes
    blocks of each row and writes their scales, blocked, after all other outputs. `scale_rounding`
    says how a scale follows from the largest magnitude of its block: one of `SCALE_ROUNDINGS`, or
    "" for the first of the format.

    Scales in f32 of 128 elements along K: `a_scales` and `b_scales` are "1x128" for one per row, or
    "128x128" for one per 128 rows; one of them is "1x128". With `sums` "two-level" the tensor core
    accumulates up to 128 elements of K, and threads add the results in f32. With such scales they
    always do.

    Narrow weights: B may be narrower than an A of bf16 or f16: s8, e4m3, e5m2, s4 or u4. Two
    elements of 4 bits share a byte along K, the first in the low bits. Threads convert all of them
    exactly. With a `group_size`, 32, 64, 128 or all of K, that many elements along K share a scale
    of type `scale_dtype`, [N, K / group_size]. u4 weights with `zero_points` have as many u8 values
    from 0 to 15, which are subtracted first.

    Raises `OptionError` if the matmul cannot be built.
    """

    @staticmethod
    def of_type(m: int, n: int, k: int, dtype: str) -> MatmulSpec:
        """Operands of one type with K contiguous, and a C of the type that goes with it."""
        if dtype not in OPERAND_DTYPES:
            known = ", ".join(OPERAND_DTYPES)
            raise OptionError(f"spec: type must be one of {known}, got {dtype!r}")
        found = DTYPES[dtype]
        return MatmulSpec(m, n, k, dtype, dtype, found.result, found.accumulator)

    def __post_init__(self) -> None:
        check(self)

    def of_rows(self, m: int) -> MatmulSpec:
        """The same with a known M."""
        return replace(self, m=m, dynamic_m=False, least_m=0, most_m=0, multiple_m=0)

    def of_batch(self, batch: int) -> MatmulSpec:
        """The same with a known batch."""
        return replace(self, batch=batch, dynamic_batch=False)

    def of_depth(self, k: int) -> MatmulSpec:
        """The same with a known K."""
        return replace(self, k=k, dynamic_k=False)

    @property
    def open_sizes(self) -> tuple[str, ...]:
        """The names of the sizes that a launch gives."""
        opened = {"m": self.dynamic_m, "batch": self.dynamic_batch, "k": self.dynamic_k}
        return tuple(name for name, is_open in opened.items() if is_open)

    def of_sizes(self, *sizes: int) -> MatmulSpec:
        """The same with known sizes, as many as are open."""
        known = dict(zip(self.open_sizes, sizes, strict=True))
        found = self.of_rows(known["m"]) if "m" in known else self
        found = found.of_batch(known["batch"]) if "batch" in known else found
        return found.of_depth(known["k"]) if "k" in known else found

    def mlir_text(self, epilogue: Epilogue | None = None) -> str:
        """The module that computes this matmul: linalg on tensors, or an op of `tile`.

        epilogue: makes C of the sums, instead of the conversion to C's type.
        """
        return module_text(self, epilogue)
