"""Tensors of one form are recognized, others are not; with torch's guards and without them."""

import sys

import numpy as np
import pytest
import torch

from tilewright.runtime.gpu.operands import nothing, recognizer


@pytest.fixture(params=["guards", "python"])
def recognizes(request, monkeypatch):
    """The recognizer of a row-major, a transposed and a parameter tensor."""
    if request.param == "python":
        monkeypatch.setitem(sys.modules, "torch._C._dynamo.guards", None)
    return recognizer(tensors())


def tensors():
    weight = torch.nn.Parameter(torch.zeros(4, 6), requires_grad=True)
    return [torch.zeros(6, 16, dtype=torch.bfloat16), torch.zeros(16, 4).T, weight]


def test_tensors_of_the_same_form_are_recognized(recognizes):
    assert recognizes(*tensors())
    assert recognizes(*tensors())


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (0, torch.zeros(6, 15, dtype=torch.bfloat16)),
        (0, torch.zeros(6, 16, dtype=torch.float16)),
        (0, torch.zeros(16, 6, dtype=torch.bfloat16).T),
        (0, torch.zeros(96, dtype=torch.bfloat16)),
        (0, torch.zeros(6, 32, dtype=torch.bfloat16)[:, ::2]),
        (0, torch.zeros(6, 16, dtype=torch.bfloat16, device="meta")),
        (0, np.zeros((6, 16), np.uint16)),
        (1, torch.zeros(4, 16)),
        (2, None),
    ],
)
def test_another_form_is_not_recognized(recognizes, place, other):
    given = tensors()
    given[place] = other
    assert not recognizes(*given)


def test_arrays_that_are_not_torchs_are_never_recognized():
    assert recognizer([torch.zeros(3), np.zeros(3)]) is nothing
    assert not nothing(torch.zeros(3))


@pytest.mark.parametrize("guards", [True, False])
def test_a_tensor_that_is_given_twice_is_recognized_where_it_is_again(guards, monkeypatch):
    """As both sides of x · xᵀ, which torch's guards never take."""
    if not guards:
        monkeypatch.setitem(sys.modules, "torch._C._dynamo.guards", None)
    x, out, other = (torch.zeros(4, 4) for _ in range(3))
    recognizes = recognizer([x, x, out])
    assert recognizes(x, x, out) and recognizes(other, other, x)
    assert not recognizes(x, other, out)
    assert not recognizes(x, x, torch.zeros(4, 5)) and not recognizes(*[torch.zeros(5, 4)] * 2, out)
    assert not recognizes(x, x) and not recognizes(x, x, out, out)
