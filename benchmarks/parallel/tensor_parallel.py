"""A transformer's MLP by tensor parallelism on the GPUs of one host, beside torch's products.

    python benchmarks/parallel/tensor_parallel.py [--gpus 2] [--rows 8192] [--hidden 4096]
                                                  [--inner 14336] [--rounds 15] [--bias]
                                                  [--json PATH]

The block is down(silu(gate(x)) * up(x)) in bf16. gate and up are cut by columns, down by rows
(`ColwiseParallel`, `RowwiseParallel`), and NCCL adds up what the ranks have. Every rank runs this
file; the first prints. The same block with `tilewright.nn.replace` and with torch's linear layers
takes turns on the same inputs, forward and backward. Before anything is timed, the output and all
gradients of both are compared with those of one GPU in float32: the distance of ours may not exceed
that of torch's by more than a tenth. Times are medians of rounds, of the slowest rank.

Small sizes on one GPU, as `--gpus 1 --rows 64 --hidden 512 --inner 1024`, show what the host takes.

It needs a compiler on the machine, as the kernels are made when they first come, or a cache
(`TILEWRIGHT_CACHE`) that holds them. With --device cpu everything runs on the emulator through
gloo, on small sizes, and no time is given.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import distributed, multiprocessing, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from tilewright.nn import replace
from tilewright.runtime.atomic import write_file

SLACK = 1.1
OURS, TORCHS = "tilewright", "torch"


class Mlp(nn.Module):
    """[rows, hidden] → [rows, hidden]."""

    def __init__(self, hidden: int, inner: int, bias: bool):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=bias)
        self.up = nn.Linear(hidden, inner, bias=bias)
        self.down = nn.Linear(inner, hidden, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


CUTS = {"gate": ColwiseParallel, "up": ColwiseParallel, "down": RowwiseParallel}


def main() -> None:
    on_each_gpu(run, parse_options())


def on_each_gpu(run: Callable[..., None], options: argparse.Namespace) -> None:
    """run(rank, options, folder) in a process for each GPU; they meet by a file in the folder."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(run, (options, folder), options.gpus)


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__, rows=8192, hidden=4096, inner=14336, rounds=15)
    parser.add_argument("--bias", action="store_true", help="layers that add one")
    return parser.parse_args()


def parser_of(documented: str | None, **sizes: int) -> argparse.ArgumentParser:
    """Flags of a comparison on several GPUs: a number for each size, with its default."""
    parser = argparse.ArgumentParser(description=(documented or "").split("\n", 1)[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--gpus", type=int, default=2)
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    return parser


def run(rank: int, options: argparse.Namespace, folder: str) -> None:
    """One process, for one GPU."""
    mesh = join(rank, options, folder)
    torch.manual_seed(1)
    with torch.device(options.device):
        whole = Mlp(options.hidden, options.inner, options.bias).float()
        x = torch.randn(options.rows, options.hidden).bfloat16()
        weight = torch.randn(options.rows, options.hidden).bfloat16()
    exact = _outcome(whole, x.float(), weight.float())
    blocks = {OURS: replace(_cut(whole, mesh)), TORCHS: _cut(whole, mesh)}
    distances = {
        name: distances_of(_outcome(block, x, weight), exact) for name, block in blocks.items()
    }
    for what, far in distances[TORCHS].items():
        if distances[OURS][what] > SLACK * far:
            sys.exit(f"{what}: {distances[OURS][what]:.2e} off, torch's {far:.2e}")
    del whole, exact
    us = {} if options.device == "cpu" else _times(blocks, x, weight, options.rounds)
    if rank == 0:
        _print(options, distances, us)
    distributed.destroy_process_group()


def join(rank: int, options: argparse.Namespace, folder: str) -> DeviceMesh:
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # NVLink multicast is left alone
    if options.device == "cuda":
        torch.cuda.set_device(rank)
        backend = "nccl"
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        backend = "gloo"
    distributed.init_process_group(
        backend, rank=rank, world_size=options.gpus, init_method=f"file://{folder}/store"
    )
    return init_device_mesh(options.device, (options.gpus,))


def _cut(whole: Mlp, mesh: DeviceMesh) -> nn.Module:
    block = copy.deepcopy(whole).bfloat16()
    return parallelize_module(block, mesh, {name: cut() for name, cut in CUTS.items()})


def _outcome(block: nn.Module, x: torch.Tensor, weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """The output and every gradient, whole."""
    x = x.detach().requires_grad_()
    block.zero_grad(set_to_none=True)
    y = block(x)
    (y * weight).sum().backward()
    found = {"output": y, "gradient of x": x.grad}
    found |= {f"gradient of {name}": each.grad for name, each in block.named_parameters()}
    return {name: whole_of(each).detach() for name, each in found.items()}


def whole_of(tensor: Any) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distances_of(
    found: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]
) -> dict[str, float]:
    """‖found − exact‖ / ‖exact‖ of each."""
    names = zip(found.items(), exact.values(), strict=True)
    return {name: float((mine.float() - full).norm() / full.norm()) for (name, mine), full in names}


def _times(
    blocks: dict[str, nn.Module], x: torch.Tensor, weight: torch.Tensor, rounds: int
) -> dict[str, dict[str, float]]:
    """Microseconds of forward alone and of both ways, of the slowest rank."""
    found: dict[str, dict[str, list[float]]] = {
        name: {"forward": [], "forward and backward": []} for name in blocks
    }
    for number in range(rounds + 2):
        for name, block in blocks.items():
            for way, times in found[name].items():
                took = time_of(block, x, weight, backward=way != "forward")
                if number >= 2:
                    times.append(took)
    return {
        name: {way: statistics.median(times) for way, times in ways.items()}
        for name, ways in found.items()
    }


def time_of(block: nn.Module, x: torch.Tensor, weight: torch.Tensor, backward: bool) -> float:
    x = x.detach().requires_grad_(backward)
    block.zero_grad(set_to_none=True)
    distributed.barrier()
    with torch.set_grad_enabled(backward), _clock() as took:
        y = block(x)
        if backward:
            y.backward(weight)
    slowest = torch.tensor(took[0], device=x.device)
    distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
    return float(slowest)


@contextmanager
def _clock() -> Iterator[list[float]]:
    """Microseconds of the GPU between entry and exit, in a list of one."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    took = [0.0]
    torch.cuda.synchronize()
    first.record()
    yield took
    last.record()
    torch.cuda.synchronize()
    took[0] = 1e3 * first.elapsed_time(last)


def _print(
    options: argparse.Namespace,
    distances: dict[str, dict[str, float]],
    us: dict[str, dict[str, float]],
) -> None:
    sizes = f"{options.rows}×{options.hidden}×{options.inner}"
    print(f"MLP {sizes} on {options.gpus} × {options.device}")
    print("| | distance, ours | distance, torch's |\n|---|---|---|")
    for what, far in distances[TORCHS].items():
        print(f"| {what} | {distances[OURS][what]:.2e} | {far:.2e} |")
    if us:
        print("\n| | ours, µs | torch's, µs | torch's / ours |\n|---|---|---|---|")
        for way, ours in us[OURS].items():
            theirs = us[TORCHS][way]
            print(f"| {way} | {ours:.0f} | {theirs:.0f} | {theirs / ours:.3f} |")
    if options.json:
        found = {"sizes": sizes, "distances": distances, "us": us}
        write_file(options.json, json.dumps(found, indent=1).encode())


if __name__ == "__main__":
    main()
