"""Matmul kernels for sm_80 and sm_90a as nvcc compiles them; sources and command in compiled/."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

COMPILED = Path(__file__).parent / "compiled"
KERNELS = {"warpgroup_gemm": (64, 16, 128), "warp_gemm": (16, 8, 32)}


def ptx(name: str) -> str:
    return (COMPILED / f"{name}.ptx").read_text()


def matrices(m: int, n: int, k: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [(rng.integers(-8, 9, (rows, k)) / 4).astype(ml_dtypes.bfloat16) for rows in (m, n)]


def run(text: str, name: str, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    m, n, threads = KERNELS[name]
    a, b = matrices(m, n, k, seed)
    c = np.full((m, n), np.nan, np.float32)
    params = [a.view(np.uint16), b.view(np.uint16), c, k]
    launch(text, name, grid=1, block=threads, params=params, seed=seed)
    return c, a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", list(KERNELS))
def test_compiled_kernels_give_the_product_in_every_schedule(name, seed):
    c, wanted = run(ptx(name), name, 64 * (seed % 3 + 1), seed)
    np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize(("name", "line", "category"), [
    ("warpgroup_gemm", "wgmma.fence.sync.aligned;", "missing-fence"),
    ("warpgroup_gemm", "wgmma.wait_group.sync.aligned 0;", "race"),
    ("warpgroup_gemm", "fence.proxy.async;", "proxy-fence"),
    ("warpgroup_gemm", "cp.async.wait_group 0;", "uninitialised-read"),
    ("warp_gemm", "cp.async.wait_group 1;", "uninitialised-read"),
])  # fmt: skip
def test_a_line_left_out_of_a_compiled_kernel_is_named(name, line, category):
    text = ptx(name)
    assert line in text
    found = set()
    for seed in range(6):
        try:
            run(text.replace(line, ""), name, 128, seed)
        except Trap as trap:
            found.add(trap.category)
    assert category in found, found
