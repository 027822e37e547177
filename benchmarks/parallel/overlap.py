"""How much of the collectives' time runs behind compute, with our kernels and with torch's.

    python benchmarks/parallel/overlap.py [--gpus 2] [--rows 4096] [--hidden 4096] [--inner 14336]
                                          [--layers 3] [--cuts tensor,fsdp] [--overlap nodes]
                                          [--rounds 7] [--report] [--json PATH]

A chain of layers x + down(silu(gate(norm(x))) * up(norm(x))) in bf16, cut in one of two ways:

    tensor   gate and up by columns, down by rows, and norms by rows (sequence parallel); the
             rows of a rank are two batches, of which one is computed while the other is sent
    fsdp     `fully_shard` of each layer, with other rows on each rank

Each is run by eager torch, Inductor and backend="tilewright". With `tensor` the whole chain is one
graph, in which Inductor orders the collectives: by its scheduler's nodes, by the graph, or, with
`none`, as they stand. With `fsdp` each layer is a graph, and torch sends ahead between them.

Before anything is timed, outputs and all gradients are compared with those of one process in
float32: the distance of ours may not exceed that of Inductor by more than a tenth. Then stand, of a
step with backward: its time, and of the time in which NCCL's kernels run the part in which others
run as well, by torch's profiler. Times are medians of rounds, of the slowest rank.

It needs a compiler on the machine. With --device cpu everything runs on the emulator through gloo,
on small sizes, and no time is given. Without a C++ compiler leave Inductor's kernels out there:
--contenders eager,tilewright still has it make those of the norms.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch
from tensor_parallel import (
    SLACK,
    distances_of,
    join,
    on_each_gpu,
    parser_of,
    time_of,
    whole_of,
)
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.profiler import ProfilerActivity, profile

import tilewright
from tilewright.runtime.atomic import write_file

EAGER, INDUCTOR, OURS = "eager", "inductor", "tilewright"
CUTS = ("tensor", "fsdp")
OVERLAPS: dict[str, dict[str, Any]] = {
    "none": {},
    "nodes": {
        "reorder_for_compute_comm_overlap": True,
        "reorder_for_compute_comm_overlap_passes": ["reorder_compute_for_overlap"],
    },
    "graph": {"aten_distributed_optimizations.enable_overlap_scheduling": True},
}
BATCHES = 2


class Layer(nn.Module):
    """[rows, hidden] → [rows, hidden]."""

    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.norm = nn.RMSNorm(hidden)
        self.mlp = Mlp(hidden, inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mlp(self.norm(x))


class Mlp(nn.Module):
    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Chain(nn.Module):
    """Layers one after the other, of rows that need not be of one batch.

    mesh: across which the rows of each batch are cut; None for rows that are all here.
    """

    def __init__(self, hidden: int, inner: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer(hidden, inner) for _ in range(layers))
        self.mesh: DeviceMesh | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mesh is None:
            return self._through(x)
        pieces = [DTensor.from_local(each, self.mesh, [Shard(0)]) for each in x.chunk(BATCHES)]
        return torch.cat([self._through(each).to_local() for each in pieces])  # type: ignore[attr-defined]

    def _through(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def main() -> None:
    on_each_gpu(run, parse_options())


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__, rows=4096, hidden=4096, inner=14336, layers=3, rounds=7)
    parser.add_argument("--cuts", default=",".join(CUTS), help="tensor, fsdp or both")
    parser.add_argument("--contenders", default=f"{EAGER},{INDUCTOR},{OURS}")
    parser.add_argument("--overlap", choices=tuple(OVERLAPS), default="nodes")
    parser.add_argument("--report", action="store_true", help="print what was taken, and why")
    return parser.parse_args()


def run(rank: int, options: argparse.Namespace, folder: str) -> None:
    """One process, for one GPU."""
    os.environ.setdefault("LOCAL_WORLD_SIZE", str(options.gpus))  # of processors it takes its part
    mesh = join(rank, options, folder)
    found = {}
    for cut in options.cuts.split(","):
        found[cut] = _measured(cut, rank, options, mesh)
        if rank == 0:
            _print(cut, options, found[cut])
    if rank == 0 and options.report:
        print(tilewright.torch.report())
    if rank == 0 and options.json:
        write_file(options.json, json.dumps(found, indent=1).encode())
    distributed.barrier()
    distributed.destroy_process_group()


def _measured(
    cut: str, rank: int, options: argparse.Namespace, mesh: DeviceMesh
) -> dict[str, dict[str, Any]]:
    """Of each contender the distances, and on GPUs its times and the part that is hidden."""
    torch.manual_seed(1)
    with torch.device(options.device):
        exact = Chain(options.hidden, options.inner, options.layers).float()
        x, weight = (torch.randn(options.rows, options.hidden).bfloat16() for _ in range(2))
    expected = _outcome(exact, x.float(), weight.float())
    mine = [_rows_of(cut, each, rank, options.gpus) for each in (x, weight)]
    for name in ("output", "gradient of x"):
        expected[name] = _rows_of(cut, expected[name], rank, options.gpus)
    found: dict[str, dict[str, Any]] = {}
    for name in options.contenders.split(","):
        torch._dynamo.reset()
        model = _cut(cut, name, copy.deepcopy(exact).bfloat16(), mesh, options)
        outcome = _outcome(model, *mine)
        if cut == "fsdp":  # which takes the mean over ranks
            outcome = {
                key: value * (options.gpus if key.startswith("gradient of layers") else 1)
                for key, value in outcome.items()
            }
        found[name] = {"distances": distances_of(outcome, expected)}
        if options.device == "cuda":
            found[name] |= _timed(model, *mine, options.rounds)
    _check(found)
    return found


def _rows_of(cut: str, tensor: torch.Tensor, rank: int, ranks: int) -> torch.Tensor:
    """A rank's rows: its part of each batch, or of all."""
    batches = tensor.chunk(BATCHES) if cut == "tensor" else [tensor]
    return torch.cat([each.chunk(ranks)[rank] for each in batches])


def _cut(
    cut: str, name: str, chain: Chain, mesh: DeviceMesh, options: argparse.Namespace
) -> nn.Module:
    compiling = _compiling(name, options)
    if cut == "tensor":
        for layer in chain.layers:
            _cut_layer(layer, mesh)
        chain.mesh = mesh
        return torch.compile(chain, **compiling) if compiling else chain  # type: ignore[return-value]
    for layer in chain.layers:
        if compiling:
            layer.compile(**compiling)
        fully_shard(layer, mesh=mesh)
    return fully_shard(chain, mesh=mesh)


def _cut_layer(layer: nn.Module, mesh: DeviceMesh) -> None:
    gathered = PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=_everywhere())
    plan = {
        "norm": SequenceParallel(sequence_dim=0),
        "mlp": gathered,
        "mlp.gate": ColwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=Shard(0), use_local_output=False),
    }
    parallelize_module(layer, mesh, plan)


def _everywhere() -> Any:
    from torch.distributed.tensor import Replicate

    return Replicate()


def _compiling(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What torch.compile is told; nothing for eager torch."""
    if name == EAGER:
        return {}
    ours = {"device": "emulator"} if name == OURS and options.device == "cpu" else {}
    return {"backend": name, "dynamic": False, "options": {**OVERLAPS[options.overlap], **ours}}


def _outcome(model: nn.Module, x: torch.Tensor, weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """The output and every gradient, those of weights whole."""
    x = x.detach().requires_grad_()
    model.zero_grad(set_to_none=True)
    y = model(x)
    y.backward(weight)
    found = {"output": y, "gradient of x": x.grad}
    for name, each in model.named_parameters():
        found[f"gradient of {name.removeprefix('_orig_mod.')}"] = each.grad
    return {name: whole_of(each).detach() for name, each in found.items()}


def _check(found: dict[str, dict[str, Any]]) -> None:
    """Whether ours is as near as another that rounds like it."""
    others = [each for name, each in found.items() if name != OURS]
    for what, far in found.get(OURS, {}).get("distances", {}).items():
        nearest = max((each["distances"][what] for each in others), default=far)
        if far > SLACK * nearest:
            sys.exit(f"{what}: {far:.2e} off, others {nearest:.2e}")


def _timed(
    model: nn.Module, x: torch.Tensor, weight: torch.Tensor, rounds: int
) -> dict[str, float]:
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds + 2):
        for backward, kept in times.items():
            took = time_of(model, x, weight, backward)
            if number >= 2:
                kept.append(took)
    hidden, sent = _hidden(lambda: time_of(model, x, weight, backward=True), rounds)
    return {
        "forward us": statistics.median(times[False]),
        "both us": statistics.median(times[True]),
        "collectives us": sent,
        "hidden": hidden,
    }


def _hidden(step: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """The part of NCCL's time in which other kernels run too, and that time, of a step."""
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(rounds):
            step()
    kernels = [each for each in trace.events() if str(each.device_type).endswith("CUDA")]
    sent = [_span(each) for each in kernels if _is_sent(each.name)]
    computed = [_span(each) for each in kernels if "nccl" not in each.name.lower()]
    total = sum(end - begin for begin, end in sent)
    return covered(sent, computed) / max(total, 1e-9), total / rounds


def _is_sent(name: str) -> bool:
    """Whether a kernel is a collective of the model, and not that by which ranks wait or compare
    times, an all_reduce of one number."""
    return "nccl" in name.lower() and "allreduce" not in name.lower()


def _span(event: Any) -> tuple[float, float]:
    return event.time_range.start, event.time_range.end


def covered(spans: list[tuple[float, float]], others: list[tuple[float, float]]) -> float:
    """How much of the spans is covered by others, which may overlap each other."""
    joined: list[list[float]] = []
    for begin, end in sorted(others):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([begin, end])
    return sum(
        max(0.0, min(end, last) - max(begin, first))
        for begin, end in spans
        for first, last in joined
    )


def _print(cut: str, options: argparse.Namespace, found: dict[str, dict[str, Any]]) -> None:
    sizes = f"{options.layers} layers of {options.hidden} and {options.inner}"
    cards = f"{options.gpus} × {options.device}"
    print(f"{cut}: {sizes}, {options.rows} rows on {cards}, order: {options.overlap}")
    print("| | output off | gradients off at most | forward, µs | forward and backward, µs |"
          " collectives, µs | hidden |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for name, each in found.items():
        output, *gradients = each["distances"].values()
        line = f"| {name} | {output:.2e} | {max(gradients):.2e} |"
        if "hidden" in each:
            line += f" {each['forward us']:.0f} | {each['both us']:.0f} |"
            line += f" {each['collectives us']:.0f} | {100 * each['hidden']:.0f} % |"
        print(line)


if __name__ == "__main__":
    main()
