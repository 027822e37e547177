"""A .pt2 file is held to torch: what its linalg says counts only where torch may have said it."""

import numpy as np
import pytest
import torch
from torch import nn

from tilewright.compiler.importers.torch_module import import_module
from tilewright.runtime.judge.intervals import Interval
from tilewright.runtime.judge.reference import compare
from tilewright.tools.oracle.torch_program import TorchProgram, held_to


class Layer(nn.Module):
    """Products and a residual, as torch writes them."""

    def __init__(self, dtype, activation):
        super().__init__()
        self.fc = nn.Linear(24, 16, dtype=dtype)
        self.activation = activation

    def forward(self, x, residual):
        return self.activation(self.fc(x)) + residual


def program(module, *inputs, text=None):
    imported = import_module(module, *inputs)
    return TorchProgram(module, imported.arguments[len(inputs) :], text or imported.text, "f.pt2")


def layer(dtype, activation):
    inputs = torch.zeros(8, 24, dtype=dtype), torch.zeros(8, 16, dtype=dtype)
    return Layer(dtype, activation), inputs


@pytest.mark.parametrize(
    ("dtype", "activation"),
    [(torch.bfloat16, nn.GELU()), (torch.float16, nn.SiLU()), (torch.float32, nn.Softsign())],
    ids=["bf16-gelu", "f16-silu", "f32-softsign"],
)
def test_torchs_own_result_passes_and_a_changed_one_does_not(dtype, activation):
    module, inputs = layer(dtype, activation)
    reference = program(module, *inputs)
    arguments = reference.arguments(seed=1)
    x, residual, weight, bias = arguments
    actual = activation(nn.functional.linear(x, weight, bias)) + residual
    expected = reference.evaluate(arguments, hopper_gpu=False)
    assert np.array_equal(expected.middle, actual.double().numpy())
    assert (expected.low <= expected.high).all()
    wrong = activation(x.double() @ weight.double().T) + residual.double()
    assert compare(expected, wrong.to(dtype).double().numpy()).mismatches > 80


def test_an_import_that_says_something_else_is_held_to_torch():
    module, inputs = layer(torch.float32, nn.ReLU())
    other = import_module(*_with(module, nn.LeakyReLU(0.5), inputs)).text
    reference = program(module, *inputs, text=other)
    arguments = reference.arguments(seed=2)
    x, residual, weight, bias = arguments
    sums = x @ weight.T + bias
    right, wrong = (each(sums) + residual for each in (nn.ReLU(), nn.LeakyReLU(0.5)))
    expected = reference.evaluate(arguments, hopper_gpu=False)
    assert compare(expected, wrong.double().numpy()).mismatches > 40
    negative = (sums < -1e-3).numpy()
    found = compare(expected, np.where(negative, right.double(), expected.middle))
    assert found.passed


def test_limits_stay_where_torchs_result_is_possible_and_are_its_own_elsewhere():
    """NaN is possible where the linalg says so."""
    actual = np.array([1.0, 4.0, np.nan, np.nan])
    limits, wide = (
        Interval(np.full(4, 1 - width), np.ones(4), np.full(4, 1 + width), nan)
        for width, nan in ((0.1, np.zeros(4, bool)), (0.5, np.array([0, 0, 1, 0], bool)))
    )
    found = held_to(actual, limits, wide)
    assert np.array_equal(found.low, [0.9, 4.0, 0.9, np.nan], equal_nan=True)
    assert np.array_equal(found.high, [1.1, 4.0, 1.1, np.nan], equal_nan=True)
    assert found.nan.tolist() == [False, False, False, True]


def _with(module, activation, inputs):
    changed, _ = layer(torch.float32, activation)
    changed.load_state_dict(module.state_dict())
    return changed, *inputs
