"""A plain Triton matmul for any strides, as tutorials have it; for `tilewright conform` on a GPU.

    tilewright conform test/conformance/triton_gemm.py:gemm --device cuda --large
    tilewright conform test/conformance/triton_gemm.py:gemm_64 --device cuda --large

`gemm` computes addresses in 32 bits, as Triton does unless told otherwise; `gemm_64` in 64.
"""

import torch
import triton
import triton.language as tl

TILE_M, TILE_N, TILE_K = 64, 64, 32


@triton.jit
def _kernel(
    a, b, c, m, n, k, a_m, a_k, b_k, b_n, c_m,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    if WIDE:
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        a_tile = tl.load(
            a + rows[:, None] * a_m + inner[None, :] * a_k,
            mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0,
        )  # fmt: skip
        b_tile = tl.load(
            b + inner[:, None] * b_k + columns[None, :] * b_n,
            mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0,
        )  # fmt: skip
        total = tl.dot(a_tile, b_tile, total, input_precision="ieee")
    place = c + rows[:, None] * c_m + columns[None, :]
    tl.store(place, total, mask=(rows[:, None] < m) & (columns[None, :] < n))


def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C[m, n] = A[m, k] · B[k, n]."""
    return _product(a, b, wide=False)


def gemm_64(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same with addresses of 64 bits."""
    return _product(a, b, wide=True)


def _product(a: torch.Tensor, b: torch.Tensor, wide: bool) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"B must be [{k}, n], got {tuple(b.shape)}")
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if c.numel():
        grid = (triton.cdiv(m, TILE_M), triton.cdiv(n, TILE_N))
        _kernel[grid](
            a, b, c, m, n, k, *a.stride(), *b.stride(), c.stride(0), TILE_M, TILE_N, TILE_K, wide
        )
    return c
