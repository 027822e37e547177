"""softmax(q · kᵀ / √d, causal) · v, one pass over the keys with a running maximum and sum."""

import triton
import triton.language as tl
from cases import Case, Constant, Tensor, normal

HEADS, LENGTH, WIDTH = 1, 128, 32


@triton.jit
def attention(
    q, k, v, out, length, scale, TILE: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr
):
    first = tl.program_id(0) * TILE
    head = tl.program_id(1) * length * WIDTH
    row = first + tl.arange(0, TILE)
    key = tl.arange(0, STEP)
    depth = tl.arange(0, WIDTH)
    q_tile = tl.load(q + head + row[:, None] * WIDTH + depth[None, :])
    most = tl.full((TILE,), float("-inf"), tl.float32)
    weight = tl.zeros((TILE,), tl.float32)
    total = tl.zeros((TILE, WIDTH), tl.float32)
    for start in range(0, first + TILE, STEP):
        at = head + (start + key) * WIDTH
        k_tile = tl.load(k + at[None, :] + depth[:, None])
        score = tl.dot(q_tile, k_tile) * scale
        score = tl.where(row[:, None] >= (start + key)[None, :], score, float("-inf"))
        highest = tl.maximum(most, tl.max(score, 1))
        p = tl.exp2(score - highest[:, None])
        shrink = tl.exp2(most - highest)
        weight = weight * shrink + tl.sum(p, 1)
        v_tile = tl.load(v + at[:, None] + depth[None, :])
        total = tl.dot(p.to(tl.float16), v_tile, total * shrink[:, None])
        most = highest
    tl.store(out + head + row[:, None] * WIDTH + depth[None, :], total / weight[:, None])


CASE = Case(
    attention,
    targets=(80, 90, 100),
    grid=(LENGTH // 64, HEADS),
    arguments=dict(
        q=Tensor("f16", (HEADS, LENGTH, WIDTH), normal(1)),
        k=Tensor("f16", (HEADS, LENGTH, WIDTH), normal(2)),
        v=Tensor("f16", (HEADS, LENGTH, WIDTH), normal(3)),
        out=Tensor("f32", (HEADS, LENGTH, WIDTH)),
        length=LENGTH,
        scale=1.4426950408889634 / WIDTH**0.5,
        TILE=Constant(64),
        STEP=Constant(32),
        WIDTH=Constant(WIDTH),
    ),
    options=dict(num_warps=4, num_stages=3),
)
