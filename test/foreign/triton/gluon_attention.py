"""out = softmax(q · kᵀ / √d) · v for one head by hand: the weights go back to tensor memory in f16
and are the first operand of the second product."""

from cases import Case, Descriptor, Tensor, normal
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)

ROWS, KEYS, WIDTH = 256, 64, 32


@gluon.jit
def gluon_attention(q, k, v, out, scale):
    rows: gl.constexpr = q.block_shape[0]
    keys: gl.constexpr = k.block_shape[0]
    width: gl.constexpr = v.block_shape[1]
    q_tile = gl.allocate_shared_memory(q.dtype, q.block_shape, q.layout)
    k_tile = gl.allocate_shared_memory(k.dtype, k.block_shape, k.layout)
    v_tile = gl.allocate_shared_memory(v.dtype, v.block_shape, v.layout)
    loaded = mbarrier.allocate_mbarrier()
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)
    first = gl.program_id(0) * rows
    mbarrier.expect(loaded, q.nbytes_per_cta + k.nbytes_per_cta + v.nbytes_per_cta)
    tma.async_load(q, [first, 0], loaded, q_tile)
    tma.async_load(k, [0, 0], loaded, k_tile)
    tma.async_load(v, [0, 0], loaded, v_tile)
    mbarrier.wait(loaded, 0)
    wide: gl.constexpr = TensorMemoryLayout([rows, keys], col_stride=1)
    score = allocate_tensor_memory(gl.float32, [rows, keys], wide)
    tcgen05_mma(q_tile, k_tile.permute((1, 0)), score, use_acc=False)
    tcgen05_commit(done)
    mbarrier.wait(done, 0)
    x = score.load() * scale
    p = gl.exp2(x - gl.max(x, 1)[:, None])
    weight = gl.sum(p, 1)
    p_tile = score.reinterpret(gl.float16, [rows, 2 * keys]).slice(0, keys)
    p_tile.store(gl.convert_layout(p.to(gl.float16), p_tile.get_reg_layout()))
    narrow: gl.constexpr = TensorMemoryLayout([rows, width], col_stride=1)
    total = allocate_tensor_memory(gl.float32, [rows, width], narrow)
    tcgen05_mma(p_tile, v_tile, total, use_acc=False)
    tcgen05_commit(done)
    mbarrier.wait(done, 1)
    values = total.load()
    layout: gl.constexpr = values.type.layout
    row = gl.arange(0, rows, gl.SliceLayout(1, layout))
    column = gl.arange(0, width, gl.SliceLayout(0, layout))
    weight = gl.convert_layout(weight, gl.SliceLayout(1, layout))
    gl.store(out + (first + row)[:, None] * width + column[None, :], values / weight[:, None])


def tile(tensor: Tensor, block: tuple[int, int]) -> Descriptor:
    """A matrix of f16 by blocks in the widest swizzle."""
    return Descriptor(tensor, block, gl.NVMMASharedLayout.get_default_for(block, gl.float16))


CASE = Case(
    gluon_attention,
    targets=(100,),
    grid=(2,),
    arguments=dict(
        q=tile(Tensor("f16", (ROWS, WIDTH), normal(1)), (128, WIDTH)),
        k=tile(Tensor("f16", (KEYS, WIDTH), normal(2)), (KEYS, WIDTH)),
        v=tile(Tensor("f16", (KEYS, WIDTH), normal(3)), (KEYS, WIDTH)),
        out=Tensor("f32", (ROWS, WIDTH)),
        scale=1.4426950408889634 / WIDTH**0.5,
    ),
    options=dict(num_warps=4),
)
