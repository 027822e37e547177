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
    """C[M,N] = A[M,K] · B[N,K]ᵀ with static shapes, or of each of `batch` such matrices.

    With `dynamic_m` the kernel takes any M, and each launch says it; `m` is a hint, the M that the
    schedule is chosen for. Where A has M contiguous its rows in memory are then without gaps. M is
    from `least_m` to `most_m` where those are not 0, and a multiple of `multiple_m`. With
    `dynamic_batch` likewise the kernel takes stacks of any number of matrices, and `batch` is the
    hint. A launch says either or both; matrices of a dynamic M lie one after the other. A dynamic M
    may be cut into groups, whose rows are not gathered. With `dynamic_k` a launch says K, and `k`
    is the hint: of one product of matrices that have M and N contiguous, as in gradients of
    weights, or of groups of K.

    `a_major` is "k" (A stored M×K) or "m" (stored K×M). `b_major` is "k" (B stored N×K) or "n"
    (stored K×N). C is stored M×N. With a `batch` C is a stack of as many matrices, one after the
    other, and so is each of A and B unless it is one matrix that all share (`a_stacked`,
    `b_stacked`). A batch of 0 means that there is none.

    `lda`, `ldb` and `ldc` are leading dimensions, elements from a stored row to the next, and
    `stride_a`, `stride_b` and `stride_c` the elements from a matrix of a stack to the next. 0 means
    that there is no gap.

    `a_dtype`, `b_dtype`, `c_dtype` and `acc_dtype`, the type of the sums, have the names of
    `dialects.dtypes`. Operands of tf32 are f32 in memory, multiplied by a
    tensor core; those of f32 and f64 are multiplied as they are, by the threads' fma. Two types of
    8 bits may differ if both are floats or both are integers. Sums of integers are s32, and so may
    C be; sums of f64 are f64, and so is C.

    `further` are the types of further outputs, each as large as C: the sums converted to that type,
    unless an epilogue makes them. `neighbours` is how many in a row of C an epilogue reduces to one
    element of an output; tiles are whole such groups.

    With `groups` the rows of A and C are cut into as many, by offsets that the kernel takes, and B
    is a stack with a matrix for each. With `group_axis` "k" K is cut into them instead, A and B are
    matrices with K as their rows, and C is a stack with a matrix for each. With `gathered` A has so
    many rows, and the rows of groups are those that numbers say which the kernel takes, M of them.
    Groups of K that are `ordered` are computed in the order that numbers say, one for each group.

    With two `products` the kernel takes a second B, as the first, and C is made of A's products
    with both: one times the other, unless an epilogue makes it.

    `epilogue_instructions`, `beside`, `beside_columns` and `beside_rows` are hints for the
    schedule: about how many instructions the epilogue takes for an element of C, and the types of
    operands that it reads: as large as C, with an element a column, and with one a row or for all.

    A and B of `OPERAND_FORMATS`, such as mxfp8, have block scales beside them: values are elements
    times scales. `scale_layout` is how they lie, "blocked" or "linear", which those of 128 elements
    always are. C may be of one of `SCALED_FORMATS`, too: the kernel then quantises blocks of each
    row, and writes blocked scales after all other outputs. `scale_rounding` says how a scale is
    made of the largest magnitude of its block, one of `SCALE_ROUNDINGS`, "" for the first.

    `a_scales` and `b_scales` are forms of scales in f32 that 128 elements along K share: "1x128"
    of each row by itself, "128x128" of 128 rows; one of them is "1x128". With `sums` "two-level"
    threads add what a tensor core sums of up to 128 elements of K, in f32, and they do so where
    there are such scales.

    B may be narrower than an A of bf16 or f16: s8, e4m3, e5m2, or s4 and u4, of which two lie in a
    byte along K, the first in the low bits. Threads widen it exactly. With a `group_size` so many
    elements along K share a scale of type `scale_dtype`, [N, K / group_size]: 32, 64, 128 or all of
    K. Weights of u4 with `zero_points` have as many u8 of 0 to 15, which are subtracted first.

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
        """The names of the sizes that a launch says."""
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
