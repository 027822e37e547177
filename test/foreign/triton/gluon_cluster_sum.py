"""sums[column] += Σ over rows of x: the CTAs of a cluster of two take half of the rows each, read
each other's sums, and add them to global memory by a reducing tensor copy."""

from cases import Case, Constant, Descriptor, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    cluster,
    fence_async_shared,
    tma,
)

ROWS, COLUMNS = 64, 128


@gluon.jit
def gluon_cluster_sum(
    x, sums, ROWS: gl.constexpr, COLUMNS: gl.constexpr, split: gl.constexpr, kept: gl.constexpr
):
    row = gl.program_id(0) * ROWS + gl.arange(0, ROWS, gl.SliceLayout(1, split))
    column = gl.arange(0, COLUMNS, gl.SliceLayout(0, split))
    values = gl.load(x + row[:, None] * COLUMNS + column[None, :])
    total = gl.sum(values, 0)
    staging = gl.allocate_shared_memory(gl.float32, [COLUMNS], sums.layout)
    staging.store(gl.convert_layout(total, kept))
    fence_async_shared()
    tma.async_atomic_add(sums, [0], staging)
    tma.store_wait(0)
    cluster.barrier()


CASE = Case(
    gluon_cluster_sum,
    targets=(90, 100),
    grid=(2,),
    arguments=dict(
        x=Tensor("f32", (2 * ROWS, COLUMNS), integers(1, -8, 8)),
        sums=Descriptor(
            Tensor("f32", (COLUMNS,), integers(2, -8, 8), role="inout"),
            (COLUMNS,),
            gl.NVMMASharedLayout(0, 32, 1, cga_layout=[[1]]),
        ),
        ROWS=Constant(ROWS),
        COLUMNS=Constant(COLUMNS),
        split=Constant(gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0], cga_layout=[[1, 0]])),
        kept=Constant(gl.BlockedLayout([1], [32], [4], [0], cga_layout=[[1]])),
    ),
    options=dict(num_warps=4, num_ctas=2),
)
