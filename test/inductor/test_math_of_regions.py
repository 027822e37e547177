"""How exact the functions of a region are: what its call asks for, or what all regions have."""

import pytest
import torch
import torch.nn.functional as F
from graphs import draw, regions

from tilewright import matmul
from tilewright.compiler.calls.kernels.kernel_cache import cached_bundle
from tilewright.compiler.inductor.graph_pass import compiled_regions
from tilewright.compiler.inductor.products import Product, product_of
from tilewright.compiler.inductor.settings import Settings
from tilewright.compiler.inductor.source import prepare

A, B = draw(24, 32), draw(16, 32)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "of_call, of_all, said",
    [
        (None, "", "fast"),
        (None, "exact", "exact"),
        ("exact", "", "exact"),
        ("exact", "fast", "exact"),
        ("fast", "", "fast"),
        ("fast", "exact", "exact"),
    ],
)
@pytest.mark.usefixtures("fresh_cache")
def test_a_call_in_a_graph_says_how_exact_its_functions_are(of_call, of_all, said):
    """Dynamo takes a call apart into the product and the function, which the provider fuses."""
    graphs = []

    def keep(graph, _given):
        graphs.append(graph)
        return graph

    def layer(a, b):
        return matmul(a, b, math=of_call, epilogue=lambda acc: torch.tanh(acc))

    torch._dynamo.reset()
    wanted = torch.tanh(A.double() @ B.double().T).bfloat16()
    assert (torch.compile(layer, backend=aot(keep))(A, B) - wanted).abs().max() <= 2**-8
    products = [each for node in graphs[0].graph.nodes if (each := product_of(node))]
    assert all(isinstance(each, Product) for each in products)
    settings = Settings("emulator", "sm_90a", math=of_all, processes=1)
    found, bundles = compiled_regions(graphs[0].graph, products, "sm_90a", settings)
    assert [bundles[each.prepared.key].manifest["math"] for each in found] == [said]


def aot(keep):
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table

    return aot_autograd(fw_compiler=keep, decompositions=select_decomp_table())


@pytest.mark.parametrize("behind", [torch.relu, lambda h: h * 2 + 1])
@pytest.mark.parametrize("policy", ["fast", "exact"])
@pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
def test_a_policy_for_all_regions_is_none_for_those_without_a_function(behind, policy):
    (region,) = regions(lambda a, b: behind(F.linear(a, b)), A, B)
    prepared = prepare(region, "sm_90a", policy)
    assert prepared.math == ""
    bundle = cached_bundle(prepared.source, prepared.target, prepared.pipeline, prepared.math)
    assert "math" not in bundle.manifest
