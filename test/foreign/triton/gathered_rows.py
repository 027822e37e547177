"""out[to[i]] = table[from[i]] · weight[k, n]: rows gathered and scattered by tensor copies."""

import triton
import triton.language as tl
from cases import Case, Constant, Descriptor, Tensor, integers

ROWS, COUNT, K, N = 40, 64, 64, 32


@triton.jit
def gathered_rows(
    table, weight, out, sources, targets, COUNT: tl.constexpr, K: tl.constexpr, N: tl.constexpr
):
    which = tl.arange(0, COUNT)
    rows = table.gather(tl.load(sources + which), 0)
    inner = tl.arange(0, K)[:, None]
    product = tl.dot(rows, tl.load(weight + inner * N + tl.arange(0, N)[None, :]))
    out.scatter(product.to(tl.float16), tl.load(targets + which), 0)


CASE = Case(
    gathered_rows,
    targets=(100,),
    grid=(1,),
    arguments=dict(
        table=Descriptor(Tensor("f16", (ROWS, K), integers(1, -4, 4)), (1, K)),
        weight=Tensor("f16", (K, N), integers(2, -4, 4)),
        out=Descriptor(Tensor("f16", (COUNT, N)), (1, N)),
        sources=Tensor("s32", (COUNT,), integers(3, 0, ROWS - 1)),
        targets=Tensor("s32", (COUNT,), {"ramp": COUNT - 1, "step": -1}),
        COUNT=Constant(COUNT),
        K=Constant(K),
        N=Constant(N),
    ),
    options=dict(num_warps=4),
)
