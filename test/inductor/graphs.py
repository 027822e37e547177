"""Graphs as Inductor's passes see them: aten operators on fake values, taken apart as it does."""

import torch
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright.compiler.inductor.grow import regions_of
from tilewright.compiler.inductor.products import Product, product_of


def draw(*shape, dtype=torch.bfloat16, seed=5):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) / 4).to(dtype)


def graph_of(function, *values):
    """The graph of a function of tensors, a module that can be run."""
    with torch.no_grad():
        traced = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode="fake")
        module = traced(*values)
    module.graph.eliminate_dead_code()
    return module


def regions(function, *values):
    graph = graph_of(function, *values).graph
    found = [product_of(node) for node in graph.nodes]
    return regions_of(graph, [each for each in found if isinstance(each, Product)])
