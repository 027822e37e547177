"""Of each row: running sums, sorted values, where the greatest is, and a histogram of all rows."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, integers, normal

ROWS, COLUMNS, BINS = 4, 128, 16


@triton.jit
def scans(x, keys, sums, ordered, greatest, counts, COLUMNS: tl.constexpr, BINS: tl.constexpr):
    row = tl.program_id(0)
    at = row * COLUMNS + tl.arange(0, COLUMNS)
    values = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(values, 0))
    tl.store(ordered + at, tl.sort(values, descending=True))
    tl.store(greatest + row, tl.argmax(values, 0))
    found = tl.histogram(tl.load(keys + at), BINS)
    tl.atomic_add(counts + tl.arange(0, BINS), found)


CASE = Case(
    scans,
    targets=(80, 90, 100),
    grid=(ROWS,),
    arguments=dict(
        x=Tensor("f32", (ROWS, COLUMNS), normal(1)),
        keys=Tensor("s32", (ROWS, COLUMNS), integers(2, 0, BINS - 1)),
        sums=Tensor("f32", (ROWS, COLUMNS)),
        ordered=Tensor("f32", (ROWS, COLUMNS)),
        greatest=Tensor("s32", (ROWS,)),
        counts=Tensor("s32", (BINS,), {"constant": 0}, role="inout"),
        COLUMNS=Constant(COLUMNS),
        BINS=Constant(BINS),
    ),
    options=dict(num_warps=4),
)
