"""out[to[i]] = table[from[i]]: rows gathered into shared memory and scattered from it."""

from cases import Case, Constant, Descriptor, Tensor, integers, normal
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import mbarrier, tma

ROWS, COUNT, WIDTH = 50, 32, 64


@gluon.jit
def gluon_gather(
    table, out, sources, targets, COUNT: gl.constexpr, WIDTH: gl.constexpr, layout: gl.constexpr
):
    rows = gl.allocate_shared_memory(table.dtype, [COUNT, WIDTH], table.layout)
    loaded = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    which = gl.arange(0, COUNT, gl.SliceLayout(0, layout))
    mbarrier.expect(loaded, COUNT * WIDTH * 4)
    tma.async_gather(table, gl.load(sources + which), 0, loaded, rows)
    mbarrier.wait(loaded, 0)
    tma.async_scatter(out, gl.load(targets + which), 0, rows)
    tma.store_wait(0)


LAYOUT = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
CASE = Case(
    gluon_gather,
    targets=(100,),
    grid=(1,),
    arguments=dict(
        table=Descriptor(Tensor("f32", (ROWS, WIDTH), normal(1)), (1, WIDTH), LAYOUT),
        out=Descriptor(Tensor("f32", (COUNT, WIDTH)), (1, WIDTH), LAYOUT),
        sources=Tensor("s32", (COUNT,), integers(2, 0, ROWS - 1)),
        targets=Tensor("s32", (COUNT,), {"ramp": COUNT - 1, "step": -1}),
        COUNT=Constant(COUNT),
        WIDTH=Constant(WIDTH),
        layout=Constant(gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0])),
    ),
    options=dict(num_warps=4),
)
