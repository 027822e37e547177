"""Rules by which DTensor cuts products, and modules that two processes train together."""

import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch
from torch import nn

from tilewright.compiler.calls.operators.sharding import (
    shardings,
    shardings_of_input_gradient,
    shardings_of_layer,
    shardings_of_weight_gradient,
)

RANKS = 2
SHAPES = {
    "matrices": ((8, 12), (6, 12)),
    "stacks": ((4, 8, 12), (4, 6, 12)),
    "a matrix with a stack": ((8, 12), (4, 6, 12)),
}


def pieces(whole, placement):
    """What each rank holds."""
    if placement.is_shard():
        return whole.chunk(RANKS, placement.dim)
    return [whole] * RANKS


def joined(parts, placement):
    if placement.is_partial():
        return sum(parts)
    if placement.is_shard():
        return torch.cat(parts, placement.dim)
    assert all(torch.equal(part, parts[0]) for part in parts)
    return parts[0]


@pytest.mark.parametrize("kind", SHAPES)
def test_every_rule_gives_the_whole_product(kind):
    a, b = (torch.randint(-8, 8, shape).double() for shape in SHAPES[kind])
    rules = shardings(SimpleNamespace(ndim=a.dim()), SimpleNamespace(ndim=b.dim()), "f32", "")
    assert len(rules) == (5 if b.dim() == 3 else 4)
    for (of_c,), (of_a, of_b, *rest) in rules:
        assert rest == [None, None]
        locals_ = zip(pieces(a, of_a), pieces(b, of_b), strict=True)
        assert torch.equal(joined([x @ y.mT for x, y in locals_], of_c), a @ b.mT)


def test_every_rule_gives_the_whole_layer():
    x, weight, bias = (
        torch.randint(-8, 8, shape).double() for shape in ((2, 8, 12), (6, 12), (6,))
    )
    rules = shardings_of_layer(x, weight, bias)
    assert len(rules) == 5
    for (of_c,), of_inputs in rules:
        parts = zip(*map(shares, (x, weight, bias), of_inputs), strict=True)
        assert torch.equal(joined([layer(*part) for part in parts], of_c), layer(x, weight, bias))
        assert ([of_c], [*of_inputs[:2], None]) in shardings_of_layer(x, weight, None)


@pytest.mark.parametrize("dims", [(8,), (2, 8), (2, 4, 8)], ids=len)
def test_every_rule_gives_the_whole_gradients(dims):
    gradient, x, weight = (
        torch.randint(-8, 8, shape).double() for shape in ((*dims, 6), (*dims, 12), (6, 12))
    )
    rules = shardings_of_input_gradient(gradient, weight)
    assert len(rules) == len(dims) + 3
    for (of_c,), of_inputs in rules:
        parts = zip(*map(shares, (gradient, weight), of_inputs), strict=True)
        assert torch.equal(joined([a @ b for a, b in parts], of_c), gradient @ weight)

    def of_weight(a, b):
        return a.reshape(-1, a.shape[-1]).mT @ b.reshape(-1, b.shape[-1])

    rules = shardings_of_weight_gradient(gradient, x)
    assert len(rules) == len(dims) + 3
    for (of_c,), of_inputs in rules:
        parts = zip(*map(shares, (gradient, x), of_inputs), strict=True)
        assert torch.equal(
            joined([of_weight(*each) for each in parts], of_c), of_weight(gradient, x)
        )


def layer(x, weight, bias):
    return nn.functional.linear(x, weight, bias)


def shares(whole, placement):
    """What each rank holds; of what is added up a part of the sum."""
    if placement.is_partial():
        return [whole / RANKS] * RANKS
    return pieces(whole, placement)


def run(rank, path):
    """One process: a block cut by columns, then rows, compiled before any product ran outside of a
    graph; the same without torch.compile, each layer one operator; then by FSDP."""
    store, limit = f"file://{path}/store", timedelta(seconds=200)
    torch.distributed.init_process_group(
        "gloo", rank=rank, world_size=RANKS, init_method=store, timeout=limit
    )
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    from tilewright import matmul
    from tilewright.compiler.calls.dense.fused import two_steps
    from tilewright.nn import replace

    mesh = init_device_mesh("cpu", (RANKS,))
    torch.manual_seed(7)
    x = torch.randn(2, 16, 64).bfloat16()
    cuts = {"0": ColwiseParallel(), "2": RowwiseParallel()}

    def by_columns_and_rows(each):
        return parallelize_module(each, mesh, cuts)

    def compiled(each):
        return torch.compile(by_columns_and_rows(each), backend="aot_eager")

    def shared(each):
        return fully_shard(each, mesh=mesh)  # which would take a GPU by itself

    for cut in (compiled, by_columns_and_rows, shared):
        block = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).bfloat16()
        exact = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).double()
        exact.load_state_dict(block.state_dict())
        with patch(
            "tilewright.compiler.calls.dense.fused.two_steps", cut is compiled and two_steps
        ):
            ready = cut(replace(block))
            first, found, expected = ready(x), ready(x), exact(x.double())
        assert torch.equal(first, found)  # by torch's DTensor, then what is remembered
        assert_close(found, expected)
        found.float().sum().backward()
        expected.sum().backward()
        for mine, theirs in zip(block.parameters(), exact.parameters(), strict=True):
            assert_close(mine.grad.full_tensor(), theirs.grad)
    dtensor = torch.distributed.tensor.distribute_tensor(x[0], mesh)
    dtypes = [matmul(dtensor, dtensor, out_dtype=each).dtype for each in (None, "f32")]
    assert dtypes == [torch.bfloat16, torch.float32]
    torch.distributed.destroy_process_group()


def assert_close(found, expected):
    assert (found.double() - expected).norm() <= 2**-6 * expected.norm()


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_cache", "ptxas_for_a_share")
def test_two_processes_train_a_block_as_one_does(tmp_path, monkeypatch):
    """This one and another, both on the emulator; gloo's interface is that of the loopback device.

    One more that imported torch would take as long as all of the rest.
    """
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    other = subprocess.Popen([sys.executable, __file__, str(tmp_path), "1"])
    try:
        run(0, tmp_path)
        assert other.wait(timeout=200) == 0
    finally:
        other.kill()
        other.wait()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(int(sys.argv[2]), sys.argv[1])
