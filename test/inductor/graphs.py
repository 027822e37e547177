"""Graphs as Inductor's passes see them: aten operators on fake values, taken apart as it does."""

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright.compiler.inductor.grow import regions_of
from tilewright.compiler.inductor.products import Product, product_of


def draw(*shape, dtype=torch.bfloat16, seed=5):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) / 4).to(dtype)


def aten_graph(function, *fakes):
    """The graph of a function of fake tensors, traced as torch.compile does: with the dispatcher of
    Python, without which older releases of torch know no symbols in some of their operators."""
    with torch.no_grad(), enable_python_dispatcher():
        module = make_fx(function, decomposition_table=select_decomp_table())(*fakes)
    module.graph.eliminate_dead_code()
    return module


def graph_of(function, *values):
    """The graph of a function of tensors, a module that can be run."""
    with torch.no_grad():
        traced = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode="fake")
        module = traced(*values)
    module.graph.eliminate_dead_code()
    return module


def taken_apart(function):
    """What this release of torch makes of an elementwise function, without its conversions."""
    nodes = graph_of(lambda x: function(x), draw(4, 8)).graph.nodes
    names = [each.target.overloadpacket.__name__ for each in nodes if each.op == "call_function"]
    return [each for each in names if each not in ("convert_element_type", "_to_copy")]


def regions(function, *values):
    graph = graph_of(function, *values).graph
    found = [product_of(node) for node in graph.nodes]
    return regions_of(graph, [each for each in found if isinstance(each, Product)])
