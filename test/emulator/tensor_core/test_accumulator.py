"""Sums of products that wait are those of an accumulation one by one."""

import numpy as np
import pytest

from tilewright.runtime.emulator.tensor.accumulator import Accumulator, Products
from tilewright.runtime.emulator.tensor.descriptor import decode_instruction
from tilewright.runtime.emulator.tensor.tensor_core import data_path

_WORD = 1 << 4 | 1 << 7 | 1 << 10 | 64 >> 3 << 17 | 128 >> 4 << 24
"""f32 sums of bf16 operands, M=128, N=64 (PTX ISA, "Instruction descriptor")."""


def words(matrix: np.ndarray) -> np.ndarray:
    """Small integers as bf16, which is the upper half of f32, four to a word."""
    halves = np.ascontiguousarray(matrix, np.float32).view(np.uint32) >> 16
    return halves.astype(np.uint16).view(np.uint64)


@pytest.mark.parametrize("looks_after", [(), (1,), (0, 2, 3)])
@pytest.mark.parametrize("replaced", [0, 2])
def test_it_does_not_matter_when_somebody_looks_at_the_sums(looks_after, replaced):
    rng = np.random.default_rng(0)
    old, expected = (np.full((128, 64), 5, np.float32) for _ in range(2))
    sums, (block,) = Accumulator(old.view(np.uint32)), data_path("D", 64)
    descriptor = decode_instruction(_WORD, "f16", 1)
    for number in range(6):
        a, b = rng.integers(-8, 8, (128, 16)), rng.integers(-8, 8, (64, 16))
        expected = a @ b.T + (0 if number == replaced else expected)
        products = sums.waiting
        if number == replaced or not products or not products.takes(descriptor, products.blocks):
            products = Products(descriptor, (block,))
            sums.await_products(products, block, add=number != replaced)
        products.join([words(a)], [words(b)])
        if number in looks_after:
            assert (sums.words().view(np.float32) == expected).all()
    assert (sums.words().view(np.float32) == expected).all()
