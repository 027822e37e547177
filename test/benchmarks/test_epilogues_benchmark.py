"""The epilogues that are compared with torch are what torch computes."""

import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def epilogues(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import epilogues

    yield epilogues
    del sys.modules["epilogues"]


def test_the_gradient_of_gelu_is_torchs(epilogues):
    acc, x = torch.randn(2, 1000)
    expected = torch.ops.aten.gelu_backward(acc, x, approximate="tanh")
    torch.testing.assert_close(epilogues.gelu_tanh_gradient(acc, x), expected)


def test_every_epilogue_runs_beside_torchs_own_operators(epilogues):
    x, w = torch.randn(8, 16), torch.randn(4, 16)
    for name, function in epilogues.epilogues().items():
        beside = [torch.randn(size) for size in epilogues.sizes_of(name, 8, 4)]
        torch.testing.assert_close(
            epilogues.torchs(name)(x, w, *beside), function(x @ w.T, *beside)
        )
