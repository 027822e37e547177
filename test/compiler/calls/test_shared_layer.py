"""Operators of DTensors that are remembered as the rank's own product, on a mesh without others."""

from unittest.mock import Mock

import pytest
import torch
from torch import distributed
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from tilewright.compiler.calls.layers import shared_layer

RULES = [
    ([Replicate()], [Replicate(), Replicate()]),
    ([Shard(0)], [Shard(0), Replicate()]),
    ([Shard(1)], [Replicate(), Shard(1)]),
    ([Partial()], [Shard(1), Shard(0)]),
]


@pytest.fixture
def mesh():
    """Of 2 × 3 ranks, of which this is one and the others never answer."""
    distributed.init_process_group("fake", rank=1, world_size=6, store=FakeStore())
    yield init_device_mesh("cpu", (2, 3), mesh_dim_names=("row", "column"))
    shared_layer._cuts.clear()
    distributed.destroy_process_group()


@pytest.fixture
def product():
    """`call` of the product that torch knows how to cut, and how often torch itself did it."""
    operator = Mock(side_effect=torch.ops.aten.mm.default)
    compute = Mock(side_effect=torch.mm)
    call = shared_layer.call

    def multiply(*operands):
        return call(operator, compute, lambda *_: RULES, *operands)

    multiply.by_torch, multiply.at_once = operator, compute
    return multiply


def local(mesh, rows, columns, *placements):
    return DTensor.from_local(torch.randn(rows, columns), mesh, placements, run_check=False)


LOCAL = {
    "rows": ((Shard(0), Replicate()), (Replicate(), Replicate())),
    "rows and columns": ((Shard(0), Replicate()), (Replicate(), Shard(1))),
    "depth": ((Shard(1), Replicate()), (Shard(0), Shard(1))),
}


@pytest.mark.parametrize("cuts", LOCAL)
def test_the_second_call_is_the_ranks_own_product_with_the_cut_of_the_first(mesh, product, cuts):
    of_a, of_b = LOCAL[cuts]
    for number in range(3):
        a, b = local(mesh, 4, 8, *of_a), local(mesh, 8, 6, *of_b)
        found, expected = product(a, b), torch.mm(a, b)
        assert type(found) is DTensor and found._spec == expected._spec
        assert found.shape == expected.shape and found.stride() == expected.stride()
        assert torch.equal(found.to_local(), a.to_local() @ b.to_local())
        assert product.by_torch.call_count == 1 and product.at_once.call_count == number


EXCHANGED = {
    "depth of one alone": ((Shard(1), Replicate()), (Replicate(), Replicate())),
    "rows of both": ((Shard(0), Replicate()), (Shard(0), Replicate())),
    "sums of both": ((Partial(), Replicate()), (Partial(), Replicate())),
}


@pytest.mark.parametrize("cuts", EXCHANGED)
def test_what_must_be_exchanged_is_left_to_torch(mesh, product, cuts):
    of_a, of_b = EXCHANGED[cuts]
    depth = {"depth of one alone": 4, "rows of both": 16, "sums of both": 8}[cuts]
    for _ in range(2):
        product(local(mesh, 4, depth, *of_a), local(mesh, 8, 6, *of_b))
    assert product.by_torch.call_count == 2 and not product.at_once.called


def test_other_sizes_and_cuts_are_other_results(mesh, product):
    first = product(local(mesh, 4, 8, Shard(0), Replicate()), local(mesh, 8, 6, *[Replicate()] * 2))
    other = product(local(mesh, 5, 8, Shard(0), Replicate()), local(mesh, 8, 6, *[Replicate()] * 2))
    whole = product(local(mesh, 4, 8, *[Replicate()] * 2), local(mesh, 8, 6, *[Replicate()] * 2))
    assert (first.shape, other.shape, whole.shape) == ((8, 6), (10, 6), (4, 6))
    assert product.by_torch.call_count == 3 and not product.at_once.called


def test_what_a_collective_has_yet_to_bring_is_left_to_torch(mesh, product):
    b = local(mesh, 8, 6, Replicate(), Replicate())
    for _ in range(2):
        a = local(mesh, 4, 8, Shard(0), Replicate())
        a._local_tensor = AsyncCollectiveTensor(a._local_tensor)
        product(a, b)
    assert product.by_torch.call_count == 2 and not product.at_once.called


def test_plain_tensors_are_left_to_torch(product):
    a, b = torch.randn(4, 8), torch.randn(8, 6)
    assert torch.equal(product(a, b), a @ b)
    assert product.by_torch.call_count == 1 and not product.at_once.called


def test_nothing_is_recorded_where_only_the_local_part_requires_gradients(mesh, product):
    """As `distribute_tensor` leaves the local part of a parameter that is frozen afterwards."""
    b = local(mesh, 8, 6, Replicate(), Replicate())
    b._local_tensor.requires_grad_()
    for _ in range(2):
        found = product(local(mesh, 4, 8, Shard(0), Replicate()), b)
    assert product.at_once.called and not found.requires_grad
    assert not found._local_tensor.requires_grad
