"""Which calls torch must see as an operator; the others go straight to the kernel."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from tilewright.runtime.tracing import is_traced, is_watched


def test_tensors_with_memory_of_their_own_are_not_watched():
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    assert not is_watched(torch.zeros(2, 3), weight, np.zeros(3), [1.0])
    with torch.no_grad():
        assert not is_watched(weight.T)
    assert not is_watched(np.zeros(3))


def test_fake_tensors_are_watched_wherever_they_come():
    fake = FakeTensorMode().from_tensor(torch.zeros(2, 3))
    assert is_watched(torch.zeros(2, 3), fake)


def test_a_mode_watches_every_tensor():
    with FlopCounterMode(display=False):
        assert is_watched(torch.zeros(2, 3))
        assert not is_watched(np.zeros(3))


@pytest.mark.parametrize("transform", [torch.vmap, torch.func.grad])
def test_the_wrappers_of_torch_func_are_watched(transform):
    def function(x):
        assert is_watched(x)
        return x.sum()

    transform(function)(torch.ones(3))


def test_only_torch_compile_reads_a_call_as_traced():
    assert not is_traced()
    compiled = torch.compile(
        lambda x: x + 1 if is_traced() else x - 1, backend="eager", fullgraph=True
    )
    assert compiled(torch.zeros(2)).equal(torch.ones(2))


def test_tensors_on_meta_are_watched_where_all_are():
    of_meta = torch.zeros(2, 3, device="meta")
    assert is_watched(of_meta, of_meta.T, 1.0)
    assert not is_watched(of_meta, torch.zeros(2, 3))
