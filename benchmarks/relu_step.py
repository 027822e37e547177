"""A step of training with ReLU: eager torch, Inductor, ours, and ours where forward saves bools.

    python benchmarks/relu_step.py [--rows 8192] [--hidden 1024] [--inner 4096] [--layers 4]
    python benchmarks/relu_step.py --device emulator --rows 64 --hidden 64 --inner 96   no times

Layers x + down(relu(up(norm(x)))) in bf16, of rows in eight batches. Backward of ours compares the
matrix that forward saves anyway; the last line leaves that pass out. Times are medians of replays
of CUDA graphs that take turns, forward and backward in one. "off" is the relative distance of one
weight's gradient from eager's, "peak" the most memory beyond what was allocated before the step.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any
from unittest import mock

import model_times
import torch
from torch import nn

import tilewright
from tilewright.compiler.inductor import joint_pass
from tilewright.compiler.inductor.report import reset

BATCHES = 8
SAVES_BOOLS = "ours, saving bools"
CONTENDERS = ("eager", "inductor", "ours", SAVES_BOOLS)


class Layer(nn.Module):
    """[…, hidden] → […, hidden]."""

    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


def main() -> None:
    options = arguments()
    on_gpu = options.device == "cuda"
    torch.manual_seed(1)
    with torch.device("cuda" if on_gpu else "cpu"):
        layers = (Layer(options.hidden, options.inner) for _ in range(options.layers))
        model = nn.Sequential(*layers).bfloat16()
        x = torch.randn(BATCHES, options.rows // BATCHES, options.hidden).bfloat16()
        gradient = torch.randn_like(x)
    replays = model_times.Replays()
    eager: torch.Tensor | None = None
    for name in CONTENDERS:
        step = first_step(name, model, (x, gradient), options.device)
        made = step().double()
        eager = made if eager is None else eager
        off = torch.linalg.vector_norm(made - eager) / torch.linalg.vector_norm(eager)
        print(f"{name:20} off {float(off):.4f}", end="")
        if on_gpu:
            print(f"  peak {peak_mib(step)} MiB  us {replays.with_another(name, step)}", end="")
        print(f"\n{tilewright.torch.report()}" if name.startswith("ours") else "", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "emulator"), default="cuda")
    for name, size in {"rows": 8192, "hidden": 1024, "inner": 4096, "layers": 4}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    options = parser.parse_args()
    if options.rows % BATCHES:
        parser.error(f"--rows must be a multiple of {BATCHES}, got {options.rows}")
    return options


def first_step(
    name: str, model: nn.Sequential, given: tuple[torch.Tensor, torch.Tensor], device: str
) -> Callable[[], torch.Tensor]:
    """A step, which has run once, so that all is compiled; nothing of another one is kept."""
    torch._dynamo.reset()
    reset()
    call = model
    if name == "inductor":
        call = torch.compile(model, dynamic=False)
    elif name != "eager":
        options = {"device": device}
        call = torch.compile(model, dynamic=False, backend="tilewright", options=options)
    x, gradient = given
    weight: Any = model[0].up.weight

    def step() -> torch.Tensor:
        model.zero_grad(set_to_none=True)
        call(x).backward(gradient)
        return weight.grad

    left_out = mock.patch.object(joint_pass, "compare_what_is_saved", lambda graph: None)
    # Graphs that torch keeps would be those of the pass that is left out.
    with torch._inductor.config.patch(force_disable_caches=True):
        with left_out if name == SAVES_BOOLS else contextlib.nullcontext():
            step()
    return step


def peak_mib(step: Callable[[], object]) -> int:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) >> 20


if __name__ == "__main__":
    main()
