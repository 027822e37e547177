"""y[i] = x[(5 i + 3) mod n], and counts[v] = how often v is among the keys: copies by threads that
signal a barrier, reads at computed places, atomics in shared memory."""

from cases import Case, Constant, Tensor, integers, normal
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mbarrier

COUNT, BINS = 256, 32


@gluon.jit
def gluon_shared(
    x, keys, y, counts,
    COUNT: gl.constexpr, BINS: gl.constexpr, pairs: gl.constexpr, single: gl.constexpr,
    shared: gl.constexpr,
):  # fmt: skip
    at = gl.arange(0, COUNT, pairs)
    values = gl.allocate_shared_memory(gl.float32, [COUNT], shared)
    copied = mbarrier.allocate_mbarrier()
    mbarrier.init(copied, count=COUNT // 2)
    async_copy.async_load(values, x + at)
    async_copy.mbarrier_arrive(copied, increment_count=False)
    mbarrier.wait(copied, 0)
    gl.store(y + at, values.gather((at * 5 + 3) % COUNT, axis=0))
    found = gl.allocate_shared_memory(gl.int32, [BINS], shared)
    found.store(gl.zeros([BINS], gl.int32, single))
    gl.barrier()
    found.atomic_scatter_add(gl.full([COUNT], 1, gl.int32, pairs), gl.load(keys + at), axis=0)
    gl.barrier()
    gl.store(counts + gl.arange(0, BINS, single), found.load(single))


CASE = Case(
    gluon_shared,
    targets=(80, 90, 100),
    grid=(1,),
    arguments=dict(
        x=Tensor("f32", (COUNT,), normal(1)),
        keys=Tensor("s32", (COUNT,), integers(2, 0, BINS - 1)),
        y=Tensor("f32", (COUNT,)),
        counts=Tensor("s32", (BINS,)),
        COUNT=Constant(COUNT),
        BINS=Constant(BINS),
        pairs=Constant(gl.BlockedLayout([2], [32], [4], [0])),
        single=Constant(gl.BlockedLayout([1], [32], [4], [0])),
        shared=Constant(gl.SwizzledSharedLayout(1, 1, 1, order=[0])),
    ),
    options=dict(num_warps=4),
)
