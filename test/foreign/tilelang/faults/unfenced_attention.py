"""TileLang leaves out the proxy fences before the last products of a pipeline that cp.async fills,
as in unfenced_drain.py, here of the keys and values of an attention."""

import tilelang.language as T

QUERIES, KEYS, WIDTH = 128, 192, 64
ROWS = T.GemmWarpPolicy.FullRow
LOG2_E_BY_8 = 1.4426950408889634 / 8


@T.prim_func
def unfenced_attention(
    q: T.Tensor((QUERIES, WIDTH), "float16"),
    k: T.Tensor((KEYS, WIDTH), "float16"),
    v: T.Tensor((KEYS, WIDTH), "float16"),
    out: T.Tensor((QUERIES, WIDTH), "float32"),
):
    with T.Kernel(QUERIES // 64, threads=128) as block:
        queries = T.alloc_shared((64, WIDTH), "float16")
        keys = T.alloc_shared((64, WIDTH), "float16")
        values = T.alloc_shared((64, WIDTH), "float16")
        scores = T.alloc_fragment((64, 64), "float32")
        weights = T.alloc_fragment((64, 64), "float16")
        total = T.alloc_fragment((64, WIDTH), "float32")
        greatest = T.alloc_fragment((64,), "float32")
        before = T.alloc_fragment((64,), "float32")
        factor = T.alloc_fragment((64,), "float32")
        added = T.alloc_fragment((64,), "float32")
        norm = T.alloc_fragment((64,), "float32")
        T.copy(q[block * 64, 0], queries)
        T.clear(total)
        T.clear(norm)
        T.fill(greatest, -T.infinity("float32"))
        for step in T.Pipelined(KEYS // 64, num_stages=2):
            T.copy(k[step * 64, 0], keys)
            T.clear(scores)
            T.gemm(queries, keys, scores, transpose_B=True, policy=ROWS)
            T.copy(greatest, before)
            T.reduce_max(scores, greatest, dim=1, clear=False)
            for i in T.Parallel(64):
                factor[i] = T.exp2((before[i] - greatest[i]) * LOG2_E_BY_8)
            for i, j in T.Parallel(64, 64):
                scores[i, j] = T.exp2((scores[i, j] - greatest[i]) * LOG2_E_BY_8)
            T.reduce_sum(scores, added, dim=1)
            for i in T.Parallel(64):
                norm[i] = norm[i] * factor[i] + added[i]
            T.copy(scores, weights)
            for i, j in T.Parallel(64, WIDTH):
                total[i, j] *= factor[i]
            T.copy(v[step * 64, 0], values)
            T.gemm(weights, values, total, policy=ROWS)
        for i, j in T.Parallel(64, WIDTH):
            total[i, j] /= norm[i]
        T.copy(total, out[block * 64, 0])


KERNEL = unfenced_attention

OPTIONS = {"tl.disable_warp_specialized": True}
