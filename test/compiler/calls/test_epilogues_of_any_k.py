"""Functions of the sums by kernels for any K, of matrices whose rows in memory are along K."""

import pytest
import torch

from tilewright import matmul
from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.schedule.any_size.buckets import Bucket
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError, OptionError

M, N = 72, 40


def two_kernels(spec: MatmulSpec, target: str) -> list[Bucket]:
    """One for all K, or for all rows."""
    return [Bucket(spec, choose_pipeline(spec, target))]


def drawn(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def is_close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    bound = 2**-7 * wanted.abs() + 2e-2
    return found.shape == wanted.shape and bool(((found.double() - wanted).abs() <= bound).all())


def step(acc, rate, before, row):
    """A step of SGD, and its gradient."""
    return before - rate * acc * row, acc


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_new_depth_compiles_nothing(compiled, target):
    """Every depth within one range of kernels; without rows the function is of zeros."""
    rate, before = torch.tensor(0.5), drawn(M, N)
    row = drawn(M, 1, dtype=torch.float32)
    beside, found = (rate, before, row), set()
    for k in (5, 64, M, N, 130, 0):
        x, y = drawn(k, M), drawn(k, N)
        made = matmul(x.T, y.T, k="dynamic", target=target, epilogue=step, operands=beside)
        wanted = step(x.double().T @ y.double(), *(each.double() for each in beside))
        assert all(map(is_close, made, wanted))
        found.add(len(compiled))
    assert found == {1}


def test_rows_with_gaps_and_given_outputs(compiled):
    """Other gaps are another kernel, since tensor maps have them."""
    bias, out = drawn(N, dtype=torch.float32), torch.zeros(M, N)
    for k, gap in ((30, 8), (90, 8), (90, 16)):
        x, y = drawn(k, M + gap)[:, :M], drawn(k, N)
        how = {"k": "dynamic", "out_dtype": torch.float32}
        matmul(x.T, y.T, **how, epilogue=torch.add, operands=(bias,), out=out)
        assert is_close(out, x.double().T @ y.double() + bias.double())
    assert len(compiled) == 2


def test_gradients_are_those_of_two_steps():
    x, y = drawn(24, M).requires_grad_(), drawn(24, N)
    matmul(x.T, y.T, k="dynamic", target="sm_90a", epilogue=torch.relu).sum().backward()
    sums = x.double().T @ y.double()
    assert is_close(x.grad, y.double() @ (sums > 0).double().T)


@pytest.mark.parametrize(
    ("b", "function", "said"),
    [
        (drawn(16, N), lambda acc: (acc, acc.sum(-1)), "got one with k='dynamic'"),
        ((drawn(16, N).T, drawn(16, N).T), lambda g, u: g * u, "b must be one matrix with k="),
        (drawn(N, 16).T, torch.relu, "b must be a matrix with n contiguous where k is dynamic"),
        (drawn(17, N), torch.relu, r"must be \[m, k\] and \[n, k\], got \[72, 16\] and \[40, 17\]"),
    ],
)
def test_what_no_such_kernel_computes_is_refused(compiled, b, function, said):
    given = b if isinstance(b, tuple) else b.T
    with pytest.raises((CompileError, OptionError), match=said):
        matmul(drawn(16, M).T, given, k="dynamic", epilogue=function)
    assert not compiled
