"""softmax(q · kᵀ / √d, causal) · v through descriptors: first the keys that all rows of a tile see,
of which the first tile has none, then those across the diagonal."""

import triton
import triton.language as tl
from cases import Case, Constant, Descriptor, Tensor, normal

LENGTH, WIDTH, TILE, STEP = 128, 64, 64, 32


@triton.jit
def add_keys(total, most, weight, queries, k, v, start, scale, row, STEP: tl.constexpr):
    score = tl.dot(queries, k.load([start, 0]).T) * scale
    score = tl.where(row[:, None] >= (start + tl.arange(0, STEP))[None, :], score, float("-inf"))
    highest = tl.maximum(most, tl.max(score, 1))
    p = tl.exp2(score - highest[:, None])
    shrink = tl.exp2(most - highest)
    total = tl.dot(p.to(tl.float16), v.load([start, 0]), total * shrink[:, None])
    return total, highest, weight * shrink + tl.sum(p, 1)


@triton.jit
def causal_attention(
    q, k, v, out, scale, TILE: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr
):
    first = tl.program_id(0) * TILE
    row = first + tl.arange(0, TILE)
    queries = q.load([first, 0])
    most = tl.full((TILE,), float("-inf"), tl.float32)
    weight = tl.zeros((TILE,), tl.float32)
    total = tl.zeros((TILE, WIDTH), tl.float32)
    for start in tl.range(0, first, STEP):
        total, most, weight = add_keys(total, most, weight, queries, k, v, start, scale, row, STEP)
    for start in tl.range(first, first + TILE, STEP):
        total, most, weight = add_keys(total, most, weight, queries, k, v, start, scale, row, STEP)
    out.store([first, 0], total / weight[:, None])


CASE = Case(
    causal_attention,
    targets=(90, 100),
    grid=(LENGTH // TILE,),
    arguments=dict(
        q=Descriptor(Tensor("f16", (LENGTH, WIDTH), normal(1)), (TILE, WIDTH)),
        k=Descriptor(Tensor("f16", (LENGTH, WIDTH), normal(2)), (STEP, WIDTH)),
        v=Descriptor(Tensor("f16", (LENGTH, WIDTH), normal(3)), (STEP, WIDTH)),
        out=Descriptor(Tensor("f32", (LENGTH, WIDTH)), (TILE, WIDTH)),
        scale=1.4426950408889634 / WIDTH**0.5,
        TILE=Constant(TILE),
        STEP=Constant(STEP),
        WIDTH=Constant(WIDTH),
    ),
    options=dict(num_warps=4, num_stages=2),
)
