"""Torch modules as one kernel on a GPU, and in a CUDA graph."""

import copy

import pytest
import torch
from torch import nn

from tilewright import compile_module

pytestmark = pytest.mark.usefixtures("gpu")


def layer(k, n):
    module = nn.Sequential(nn.Linear(k, n), nn.GELU())
    return module.to("cuda:0", torch.bfloat16)


def in_float64(module, x):
    with torch.no_grad():
        return copy.deepcopy(module).double()(x.double())


@pytest.mark.parametrize(("m", "n", "k"), [(300, 520, 264), (77, 34, 51), (1024, 1024, 1024)])
def test_a_module_runs_on_the_gpu_of_its_inputs(draws, m, n, k):
    module, x = layer(k, n), draws.normal(m, k)
    fused = compile_module(module, x)
    with torch.no_grad():
        module[0].bias += 1
        result, expected = fused(x), in_float64(module, x)
    assert result.device == x.device
    assert (result.double() - expected).abs().max() <= 2**-7 * expected.abs().max()


def test_a_captured_module_reads_the_parameters_of_each_replay(draws):
    module, x = layer(128, 64), draws.normal(96, 128)
    fused = compile_module(module, x)
    out = torch.full((96, 64), float("nan"), dtype=torch.bfloat16, device="cuda:0")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        fused(x, out=out)
        with torch.cuda.graph(graph):
            fused(x, out=out)
        module[0].weight *= 2
        graph.replay()
        expected = in_float64(module, x)
    assert (out.double() - expected).abs().max() <= 2**-7 * expected.abs().max()
