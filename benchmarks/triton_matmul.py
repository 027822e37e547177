"""A matmul in Triton to compare with: C[M,N] = A[M,K] · B[N,K]ᵀ, tuned for each shape.

Tensor descriptors (TMA) where the rows of A, B and C are multiples of 16 bytes, else pointers with
masks. Programs go down groups of rows of tiles, so that neighbours share operands in L2.

`compile_for(80)` lets Triton write PTX for an older chip, with mma.sync and cp.async, which ptxas
then assembles for the GPU at hand: what its kernel for that chip does on this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import triton
import triton.language as tl
from triton.backends.nvidia.compiler import CUDABackend
from triton.tools.tensor_descriptor import TensorDescriptor

TILES = (
    # rows, columns, K step, stages, warps
    (128, 256, 64, 3, 8),
    (128, 256, 64, 4, 8),
    (256, 128, 64, 3, 8),
    (128, 128, 64, 4, 4),
    (128, 128, 64, 4, 8),
    (128, 64, 64, 4, 4),
    (64, 128, 64, 4, 4),
    (64, 64, 64, 5, 4),
    (64, 32, 128, 5, 4),
)

OLDER_TILES = (
    *((128, 128, 32, 3, 4), (128, 128, 32, 4, 4), (128, 128, 64, 3, 4), (128, 128, 64, 3, 8)),
    *((128, 256, 32, 3, 8), (256, 128, 32, 3, 8), (128, 256, 64, 3, 8), (256, 128, 64, 3, 8)),
    *((128, 64, 32, 4, 4), (64, 128, 32, 4, 4), (64, 64, 64, 4, 4), (64, 32, 64, 5, 2)),
)
"""Those that Triton's own tutorial tunes over for chips without TMA, and some deeper ones."""
compiled_for: int | None = None


def compile_for(capability: int) -> None:
    """From here on compile PTX for sm_`capability`, and assemble it for the GPU at hand."""
    global compiled_for
    if compiled_for == capability:
        return
    compiled_for = capability
    major, minor = torch.cuda.get_device_capability()
    triton.knobs.runtime.override_arch = f"sm{capability}"
    assemble = CUDABackend.make_cubin
    CUDABackend.make_cubin = lambda self, ptx, metadata, options, _: assemble(
        self, ptx, metadata, options, 10 * major + minor
    )
    by_pointer.configs = _configurations(tiles=OLDER_TILES)


def prepare(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Callable[[], Any]:
    """A call that writes a [m, k] · b [n, k]ᵀ to c [m, n]; all row-major, of one 16-bit type."""
    (m, k), n = a.shape, b.shape[0]

    def grid(meta: dict[str, Any]) -> tuple[int]:
        return (triton.cdiv(m, meta["ROWS"]) * triton.cdiv(n, meta["COLUMNS"]),)

    plain, described_by = cast("tuple[Any, Any]", (by_pointer, by_descriptor))
    if compiled_for or k % 8 or n % 8:
        return lambda: plain[grid](a, b, c, m, n, k)
    blank = [1, 1]  # the tile's sizes are filled in for each configuration
    described = [TensorDescriptor.from_tensor(each, blank) for each in (a, b, c)]
    return lambda: described_by[grid](*described, m, n, k)


def _configurations(hook: Any = None, tiles: Any = TILES) -> list[triton.Config]:
    return [
        triton.Config(
            {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "GROUP": 8},
            num_stages=stages,
            num_warps=warps,
            pre_hook=hook,
        )
        for rows, columns, depth, stages, warps in tiles
    ]


def _fill_in_tiles(arguments: dict[str, Any]) -> None:
    rows, columns, depth = (arguments[name] for name in ("ROWS", "COLUMNS", "DEPTH"))
    arguments["a"].block_shape = [rows, depth]
    arguments["b"].block_shape = [columns, depth]
    arguments["c"].block_shape = [rows, columns]


@triton.jit
def _tile(m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    """The tile of this program: down GROUP rows of tiles, then one column on."""
    down, across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    program = tl.program_id(0)
    group = program // (GROUP * across)
    height = min(down - group * GROUP, GROUP)
    inside = program % (GROUP * across)
    return group * GROUP + inside % height, inside // height


@triton.autotune(_configurations(_fill_in_tiles), key=["m", "n", "k"])
@triton.jit
def by_descriptor(
    a,
    b,
    c,
    m,
    n,
    k,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
):
    row, column = _tile(m, n, ROWS, COLUMNS, GROUP)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        left = a.load([row * ROWS, start])
        right = b.load([column * COLUMNS, start])
        total = tl.dot(left, right.T, total)
    c.store([row * ROWS, column * COLUMNS], total.to(c.dtype))


@triton.autotune(_configurations(), key=["m", "n", "k"])
@triton.jit
def by_pointer(
    a,
    b,
    c,
    m,
    n,
    k,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
):
    row, column = _tile(m, n, ROWS, COLUMNS, GROUP)
    rows = row * ROWS + tl.arange(0, ROWS)
    columns = column * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        inside = start + depth < k
        left = tl.load(
            a + rows[:, None] * k + (start + depth)[None, :],
            mask=(rows < m)[:, None] & inside[None, :],
            other=0.0,
        )
        right = tl.load(
            b + columns[None, :] * k + (start + depth)[:, None],
            mask=(columns < n)[None, :] & inside[:, None],
            other=0.0,
        )
        total = tl.dot(left, right, total)
    places = c + rows[:, None] * n + columns[None, :]
    inside_c = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(places, total.to(c.dtype.element_ty), mask=inside_c)
