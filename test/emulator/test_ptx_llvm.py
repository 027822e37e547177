"""Kernels compiled by LLVM's NVPTX back end (source and PTX in ptx/), against numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.emulator import LaunchError, launch

PTX = (Path(__file__).parent / "ptx" / "llvm_kernels.ptx").read_text()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def test_256_bit_loads_packed_fma_and_bf16_stores(rng):
    a, b = (rng.normal(size=(96, 8)).astype(np.float32) for _ in range(2))
    out = np.full((96, 8), 0x7FC0, np.uint16)
    launch(PTX, "epilogue", grid=3, block=32, params=[a, b, out, 0.125])
    exact = np.maximum(a.astype(np.float64) * b + 0.125, 0).astype(np.float32)
    bits = exact.view(np.uint32)
    np.testing.assert_array_equal(out, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def test_the_256_bit_load_needs_32_byte_alignment(rng):
    from tilewright.runtime.emulator import GlobalArray, Trap

    a = rng.normal(size=(32, 8)).astype(np.float32)
    out = np.zeros((32, 8), np.uint16)
    with pytest.raises(Trap) as caught:
        launch(PTX, "epilogue", grid=1, block=32, params=[GlobalArray(a, offset=16), a, out, 0.0])
    assert caught.value.category == "misaligned"


@pytest.mark.parametrize("threads, shift", [(32, 1), (128, 37), (96, 95)])
def test_dynamic_shared_memory_and_a_byval_structure(rng, threads, shift):
    a, out = rng.normal(size=threads).astype(np.float32), np.full(threads, np.nan, np.float32)
    factors = np.array([0.5, -2.0, 0.25], np.float32)
    job = np.array([shift], np.int32).tobytes() + factors.tobytes()
    launch(PTX, "rotate", grid=1, block=threads, shared_bytes=4 * threads, params=[a, out, job])
    index = np.arange(threads)
    terms = [f * a[(index + k * shift) % threads].astype(np.float64) for k, f in enumerate(factors)]
    np.testing.assert_allclose(out, sum(terms), rtol=2e-6, atol=2e-6)


def expected_integer(x: int, t: int) -> int:
    memory = {x & 7: x}
    memory[x + 1 & 7] = t
    y = memory[x & 7]
    bits = y & 0xFFFFFFFF
    leading = 32 - bits.bit_length()
    rotated = ((bits << 32 | t) << (leading & 31) >> 32) & 0xFFFFFFFF
    quotient = abs(y) // 7 * (1 if y >= 0 else -1)
    chosen = [bits.bit_count(), quotient, 7, y >> 3][t & 3]
    return (chosen + rotated ^ (y**3 >> 64)) & 0xFFFFFFFF


def test_integers_switch_and_local_array(rng):
    a = rng.integers(-(2**31), 2**31, 64).astype(np.int32)
    a[:4] = [0, -1, 2**31 - 1, -(2**31)]
    out = np.zeros(64, np.uint32)
    launch(PTX, "integers", grid=1, block=64, params=[a, out])
    np.testing.assert_array_equal(out, [expected_integer(int(x), t) for t, x in enumerate(a)])


def test_an_unknown_kernel_is_named_with_those_there_are():
    with pytest.raises(LaunchError) as caught:
        launch(PTX, "rotatee", grid=1, block=32)
    assert str(caught.value) == (
        "the module has no kernel `rotatee`, it has epilogue, rotate, integers"
    )
