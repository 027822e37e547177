"""Checks on this GPU that launches which may overlap read and write in order.

    python benchmarks/gpu_chains.py FOLDER [--launches 4000]

FOLDER holds bundles of square matmuls whose A, B and C have one shape and type. Each launch reads
what the one before it wrote: x ← x·qᵀ with an orthogonal q, so that values keep their size. Every
chain is run once with a synchronization after each step and once without any, queued up behind a
kernel that only waits, so that launches follow at once; both must give the same bits. Chains differ
in what else is in the stream:

    two buffers    each launch overwrites what the one before it still reads
    fresh outputs  the allocator hands out memory that a launch before has just let go
    other kernels  torch scales, copies and clears between the launches
    streams        every second launch is on another stream, ordered by events
    graphs         all but fresh outputs, captured and replayed
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from tilewright.runtime import load

Step = Callable[[int], None]
GRAPH_LAUNCHES = 200
BACKLOG_CYCLES = 40_000_000  # 20 ms, in which the host launches more than that
CAPTURED = ("two_buffers", "other_kernels", "streams")


class Chain:
    """x ← x·qᵀ over and over; `steps` names the ways to do it."""

    def __init__(self, kernel: Any):
        self.kernel = kernel
        size = kernel.manifest["tensors"][0]["shape"][0]
        generator = torch.Generator("cuda").manual_seed(1)
        square = torch.randn(size, size, device="cuda", generator=generator)
        self.q = torch.linalg.qr(square).Q.to(torch.bfloat16).contiguous()
        self.start = torch.randn(size, size, device="cuda", generator=generator).bfloat16()
        self.side = torch.cuda.Stream()
        self.reset()

    def reset(self) -> None:
        """The first x, in both buffers' first; the second holds NaN."""
        self.x = self.start.clone()
        self.spare = torch.full_like(self.x, torch.nan)
        torch.cuda.synchronize()

    def two_buffers(self, _: int) -> None:
        self.kernel(self.x, self.q, out=self.spare)
        self.x, self.spare = self.spare, self.x

    def fresh_outputs(self, _: int) -> None:
        self.x = self.kernel(self.x, self.q)

    def other_kernels(self, number: int) -> None:
        self.two_buffers(number)
        if number % 3 == 0:
            self.spare.fill_(torch.nan)
        if number % 5 == 0:
            self.x.mul_(-1)
        if number % 7 == 0:
            self.spare.copy_(self.x)
            self.x.zero_()
            self.x, self.spare = self.spare, self.x

    def streams(self, number: int) -> None:
        current = torch.cuda.current_stream()
        if number % 2 == 0:
            self.side.wait_stream(current)
        with torch.cuda.stream(current if number % 2 else self.side):
            self.two_buffers(number)
        if number % 2 == 0:
            current.wait_stream(self.side)

    def run(self, step: Step, launches: int, serialized: bool) -> torch.Tensor:
        """The last x."""
        self.reset()
        for number in range(launches):
            if number % GRAPH_LAUNCHES == 0 and not serialized:
                torch.cuda._sleep(BACKLOG_CYCLES)
            step(number % GRAPH_LAUNCHES)
            if serialized:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        return self.x

    def replayed(self, step: Step, launches: int) -> torch.Tensor:
        """The last x of `launches` in graphs of `GRAPH_LAUNCHES`, which end where they start."""
        self.reset()
        x, graph = self.x, torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for number in range(GRAPH_LAUNCHES):
                step(number)
            if self.x is not x:
                x.copy_(self.x)
        x.copy_(self.start)
        for _ in range(launches // GRAPH_LAUNCHES):
            graph.replay()
        torch.cuda.synchronize()
        return x


def differing(chain: Chain, launches: int) -> Iterator[tuple[str, int]]:
    """(name, elements that differ from the serialized chain) of every chain."""
    for name in ("two_buffers", "fresh_outputs", "other_kernels", "streams"):
        step = getattr(chain, name)
        wanted = chain.run(step, launches, serialized=True).clone()
        yield name.replace("_", " "), _differences(chain.run(step, launches, False), wanted)
        if name in CAPTURED:
            found = chain.replayed(step, launches)
            yield f"graph of {name.replace('_', ' ')}", _differences(found, wanted)


def _differences(found: torch.Tensor, wanted: torch.Tensor) -> int:
    if not wanted.isfinite().all() or wanted.float().std() < 0.1:
        raise SystemExit("error: the chain must keep finite values of about one")
    return int((found.view(torch.int16) != wanted.view(torch.int16)).sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--launches", type=int, default=4000, help="of a chain (default 4000)")
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.zip"))
    if not paths or options.launches % GRAPH_LAUNCHES:
        parser.error(f"must have bundles, and launches a multiple of {GRAPH_LAUNCHES}")
    wrong = 0
    for path in paths:
        chain = Chain(load(path))
        for name, count in differing(chain, options.launches):
            wrong += count
            print(f"{path.name}, {name}: {options.launches} launches, {count} elements differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
