"""Times of launches captured in a CUDA graph and replayed, as in serving.

    chain   the kernels of one contender follow each other, each on other inputs
    apart   a kernel of one element comes after each, as norms and activations do in a model

A chain favours a kernel that starts before its predecessor has ended (programmatic dependent
launch); apart, its predecessor is torch's kernel, which lets nobody start early. The small kernel
is part of every time of `apart`, for all contenders alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from .timing import Launch, batch_us, interleaved

if TYPE_CHECKING:
    from collections.abc import Hashable

LEAST_LAUNCHES = 16
GRAPH_US, RESTING_US = 20e3, 4e3
CHAIN, APART = "chain", "apart"
Name = TypeVar("Name", bound="Hashable")


def measure_in_graphs(
    launches: Mapping[Name, Launch],
    sets: int,
    rounds: int,
    clocks: Sequence[str] = (CHAIN, APART),
    rest: float = 0,
) -> dict[str, dict[Name, float]]:
    """Median microseconds a launch of each name, for each of the clocks.

    A graph has a launch for each input set, so that a replay touches all the inputs, and at least
    `LEAST_LAUNCHES` where they take no longer than `GRAPH_US`. Graphs take turns as `interleaved`
    says.

    rest: as `interleaved` has it, with graphs of `RESTING_US` at most: long products in a row run
        at the limit of power, where other kernels are the fastest than between those of a model.
    """
    one_us = batch_us(next(iter(launches.values())), sets, sets)
    most_us = RESTING_US if rest else GRAPH_US
    count = max(sets, min(LEAST_LAUNCHES, int(most_us / one_us)))
    found = {}
    for clock in clocks:
        behind = _small_kernel() if clock == APART else None
        graphs = {name: _replay(each, sets, count, behind) for name, each in launches.items()}
        times = interleaved(graphs, 1, rounds, rest)
        found[clock] = {name: statistics.median(each) / count for name, each in times.items()}
    return found


def _small_kernel() -> Callable[[], None]:
    import torch

    one = torch.zeros(1, device="cuda")

    def add() -> None:
        one.add_(1)

    return add


def _replay(launch: Launch, sets: int, count: int, behind: Callable[[], None] | None) -> Launch:
    """A replay of a graph of `count` launches, which is the launch of `interleaved`."""
    import torch

    for _ in range(2):
        launch(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(count):
            launch(number % sets)
            if behind:
                behind()
    return lambda _: graph.replay()
