"""Kernels compiled by nvcc (source and PTX in ptx/), optimised and not, against numpy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

FOLDER = Path(__file__).parent / "ptx"


@pytest.fixture(params=["o3", "o0"])
def ptx(request) -> str:
    return (FOLDER / f"cuda_kernels_{request.param}.ptx").read_text()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


@pytest.mark.parametrize("n", [1, 33, 1000])
def test_saxpy(ptx, rng, n):
    x, y = rng.normal(size=n).astype(np.float32), rng.normal(size=n).astype(np.float32)
    wanted = 1.5 * x.astype(np.float64) + y
    launch(ptx, "saxpy", grid=3, block=64, params=[n, 1.5, x, y])
    np.testing.assert_allclose(y, wanted, rtol=2.0**-22, atol=2.0**-22)


@pytest.mark.parametrize("seed", range(2))
def test_transpose_through_shared_memory(ptx, rng, seed):
    a = rng.normal(size=(45, 70)).astype(np.float32)
    out = np.full((70, 45), np.nan, np.float32)
    launch(ptx, "transpose", grid=(3, 2), block=(32, 8), params=[a, out, 45, 70], seed=seed)
    np.testing.assert_array_equal(out, a.T)


def test_block_sum_with_shuffles_and_dynamic_shared_memory(ptx, rng):
    a = rng.integers(-50, 50, (3, 500)).astype(np.float32)
    out = np.full(3, np.nan, np.float32)
    launch(ptx, "block_sum", grid=3, block=128, shared_bytes=16, params=[a, out, 500])
    np.testing.assert_array_equal(out, a.sum(axis=1))


def test_tiled_matmul_of_ragged_bf16(ptx, rng):
    m, n, k = 19, 12, 21
    a, b = to_bf16(rng.normal(size=(m, k))), to_bf16(rng.normal(size=(k, n)))
    c = np.full((m, n), 0x7FC0, np.uint16)
    launch(ptx, "matmul", grid=(1, 2), block=(16, 16), params=[a, b, c, m, n, k])
    wanted = from_bf16(a).astype(np.float64) @ from_bf16(b).astype(np.float64)
    np.testing.assert_allclose(from_bf16(c), wanted, rtol=2.0**-8, atol=1e-4)


def test_softmax_in_half_precision(ptx, rng):
    a = rng.normal(size=(4, 77)).astype(np.float16)
    out = np.full(a.shape, np.nan, np.float16)
    launch(ptx, "softmax", grid=4, block=32, params=[a, out, 77])
    powers = np.exp(a.astype(np.float64))
    np.testing.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=2e-3)


def reference_dispatch(x: float, lane: int, kind: int, scale: float, offsets: list[int]) -> float:
    cases = [
        lambda: x * scale,
        lambda: x / scale,
        lambda: x + offsets[lane % 6],
        lambda: math.sqrt(abs(x)),
        lambda: x * scale + scale,
        lambda: math.floor(x),
        lambda: x - scale,
        lambda: -x,
    ]
    number = kind + lane % 7
    return cases[number]() if number < len(cases) else float(np.float32(x))


@pytest.mark.parametrize("kind", [0, 3])
def test_a_switch_inside_a_called_function(ptx, rng, kind):
    a, out = rng.normal(size=64) * 10, np.full(64, np.nan)
    offsets = [5, -7, 11, 0, 300, -301]
    job = np.zeros(
        1, [("kind", "i4"), ("pad", "i4"), ("scale", "f8"), ("offsets", "i2", 6), ("tail", "i4")]
    )
    job["kind"], job["scale"], job["offsets"] = kind, 0.75, offsets
    launch(ptx, "dispatch", grid=2, block=32, params=[a, out, job.tobytes()])
    wanted = [reference_dispatch(x, i % 32, kind, 0.75, offsets) for i, x in enumerate(a)]
    np.testing.assert_allclose(out, wanted, rtol=1e-15)


def test_histogram_with_shared_and_global_atomics(ptx, rng):
    data = rng.integers(0, 256, 3000, np.uint8)
    bins = np.zeros(256, np.uint32)
    launch(ptx, "histogram", grid=3, block=96, params=[data, 3000, bins])
    np.testing.assert_array_equal(bins, np.bincount(data, minlength=256))


def wrap(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def reference_permute(key: int, divisor: int) -> int:
    stack = [wrap(key * (j + 1), 32) for j in range(16)]
    for j in range(16):
        k = key + j & 15
        stack[j], stack[k] = stack[k], stack[j]
    result = 0
    for value in stack:
        result = wrap(result * 31 + value)
    quotient = abs(result) // abs(divisor) * (-1 if (result < 0) != (divisor < 0) else 1)
    bits = key & 0xFFFFFFFF
    return wrap(
        quotient
        + result
        - quotient * divisor
        + bits.bit_count()
        + 32
        - bits.bit_length()
        + (result * divisor >> 64)
        + int(f"{bits:032b}"[::-1], 2)
        + ((bits & -bits).bit_length())
    )


@pytest.mark.parametrize("divisor", [7, -123456789012])
def test_local_arrays_and_64_bit_integers(ptx, rng, divisor):
    keys = rng.integers(-(2**31), 2**31, 64).astype(np.int32)
    keys[:2] = [0, -1]
    out = np.zeros(64, np.int64)
    launch(ptx, "permute", grid=1, block=64, params=[keys, out, divisor])
    unsigned_reverse = [reference_permute(int(key), divisor) for key in keys]
    np.testing.assert_array_equal(out, unsigned_reverse)


def test_constant_memory_and_transcendental_functions(ptx, rng):
    n = 50
    a, out = rng.normal(size=n).astype(np.float32), np.full(n, np.nan, np.float32)
    launch(ptx, "filter", grid=2, block=32, params=[a, out, n])
    weights = [0.5, -1.25, 2.0, 0.125, 3.0, -0.75, 1.5, 0.0625]
    padded = np.concatenate([a.astype(np.float64), np.zeros(8)])
    total = sum(w * padded[j : j + n] for j, w in enumerate(weights))
    wanted = np.tanh(total) + np.sin(total) + np.log(np.abs(total) + 1) + 1 / np.sqrt(total**2 + 1)
    np.testing.assert_allclose(out, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("seed", range(2))
def test_a_lock_taken_by_every_thread_of_two_blocks(ptx, seed):
    slots = np.full(20, -1, np.int32)
    lock, length = np.zeros(1, np.uint32), np.zeros(1, np.int32)
    launch(ptx, "locked_append", grid=2, block=10, params=[slots, lock, length], seed=seed)
    assert length[0] == 20 and lock[0] == 0
    assert sorted(slots.tolist()) == list(range(20))


def test_clusters_exchange_shared_memory(ptx, rng):
    a, out = rng.integers(0, 1000, (4, 64)).astype(np.int32), np.zeros((4, 64), np.int32)
    launch(ptx, "exchange", grid=4, block=64, params=[a, out])
    np.testing.assert_array_equal(out, a[[1, 0, 3, 2], ::-1])
