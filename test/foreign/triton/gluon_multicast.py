"""c[m, n] = a[m, k] · b[n, k]ᵀ by a cluster of four CTAs: each has its rows of a, all get the same
columns of b by one multicast copy, and tell each other when they have used them."""

from cases import Case, Constant, Descriptor, Tensor, integers
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    cluster,
    mbarrier,
    tcgen05_mma,
    tcgen05_mma_barrier_count,
    tma,
)

CTAS = 4
M, N, K = 64 * CTAS, 32, 192
STEP = 64


@gluon.jit
def gluon_multicast(a, b, c, n, k, STEP: gl.constexpr, split: gl.constexpr):
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    loaded = mbarrier.allocate_mbarrier()
    used = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(used, count=tcgen05_mma_barrier_count([a_tile, b_tile], True, False))
    cluster.barrier()
    rows: gl.constexpr = a.block_shape[0]
    columns: gl.constexpr = b.block_shape[0]
    own: gl.constexpr = TensorMemoryLayout([64, columns], col_stride=1, cga_layout=split)
    total = allocate_tensor_memory(gl.float32, [rows, columns], own)
    for step in range(k // STEP):
        mbarrier.expect(loaded, a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [0, step * STEP], loaded, a_tile)
        tma.async_load(b, [0, step * STEP], loaded, b_tile, multicast=True)
        mbarrier.wait(loaded, step & 1)
        b_view = b_tile.permute((1, 0))
        tcgen05_mma(a_tile, b_view, total, use_acc=step > 0, multicast=True, mbarriers=[used])
        mbarrier.wait(used, step & 1)
    values = total.load()
    layout: gl.constexpr = values.type.layout
    row = gl.arange(0, rows, gl.SliceLayout(1, layout))
    column = gl.arange(0, columns, gl.SliceLayout(0, layout))
    gl.store(c + row[:, None] * n + column[None, :], values)
    cluster.barrier()


SPLIT = [[1, 0], [2, 0]]


def tile(tensor: Tensor, cga_layout: list[list[int]]) -> Descriptor:
    """STEP columns of a tensor, spread over the cluster or the same everywhere."""
    block = (tensor.shape[0], STEP)
    layout = gl.NVMMASharedLayout.get_default_for(block, gl.float16, cga_layout=cga_layout)
    return Descriptor(tensor, block, layout)


CASE = Case(
    gluon_multicast,
    targets=(100,),
    grid=(1,),
    arguments=dict(
        a=tile(Tensor("f16", (M, K), integers(1, -4, 4)), SPLIT),
        b=tile(Tensor("f16", (N, K), integers(2, -4, 4)), [[0, 0], [0, 0]]),
        c=Tensor("f32", (M, N)),
        n=N,
        k=K,
        STEP=Constant(STEP),
        split=Constant(SPLIT),
    ),
    options=dict(num_warps=4, num_ctas=CTAS),
)
