"""Tensors on a GPU, and the judge of their products."""

from types import SimpleNamespace

import pytest
import torch

GUARD = 512  # elements
HALF_ULP = {torch.bfloat16: 2**-8, torch.float16: 2**-11, torch.float32: 2**-24}


@pytest.fixture(autouse=True)
def _cache(fresh_cache):
    """Every test here compiles into a folder of its module's own."""


@pytest.fixture(scope="module")
def draws():
    """normal(*shape), transposed(*shape), integers(*shape): random tensors on the GPU."""
    generator = torch.Generator().manual_seed(29)

    def normal(*shape, dtype=torch.bfloat16, place="cuda:0"):
        return torch.randn(shape, generator=generator).to(dtype).to(place)

    def transposed(*shape, **how):
        return normal(*reversed(shape), **how).T

    def integers(*shape, dtype=torch.bfloat16, place="cuda:0"):
        return torch.randint(-4, 5, shape, generator=generator).to(dtype).to(place)

    return SimpleNamespace(normal=normal, transposed=transposed, integers=integers)


@pytest.fixture(scope="session")
def assert_product():
    """assert_product(c, a, b): c is a·bᵀ but for float32 sums of any order and its own rounding.

    The bound: k·u·(|a|·|b|ᵀ) with u = 2^-24 for the sums (Higham, Accuracy and Stability of
    Numerical Algorithms, §4.2), then half a unit in the last place of c.
    """

    def check(c, a, b):
        a, b = a.detach().double(), b.detach().double()
        exact, magnitude = a @ b.T, a.abs() @ b.abs().T
        sums = 1.01 * a.shape[1] * 2**-24 * magnitude
        allowed = sums + HALF_ULP[c.dtype] * 1.001 * (exact.abs() + sums) + 2**-25
        assert (c.shape, c.device) == (exact.shape, exact.device)
        wrong = ~((c.double() - exact).abs() <= allowed)
        assert not wrong.any(), f"{int(wrong.sum())} of {wrong.numel()} elements are wrong"

    return check


@pytest.fixture
def poisoned():
    """poisoned(m, n): a row-major tensor of NaN between guards; .check() tells if they changed."""

    def make(m, n, dtype=torch.bfloat16, place="cuda:0"):
        memory = torch.full((m * n + 2 * GUARD,), torch.nan, dtype=dtype, device=place)
        tensor = memory[GUARD : GUARD + m * n].view(m, n)

        def check():
            assert memory[:GUARD].isnan().all() and memory[GUARD + m * n :].isnan().all()
            assert not tensor.isnan().any()

        return SimpleNamespace(tensor=tensor, check=check)

    return make
