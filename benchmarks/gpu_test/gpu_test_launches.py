"""Launches that share a GPU: kernels that exchange sums in a workspace must not meet in it.

behind    launches of one stream, none waited for
streams   launches on two streams at once
graphs    a graph of launches, replayed on one stream while launches run on another
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

LAUNCHES, REPLAYS = 8, 4


def judge_launches(
    kernel: Any, inputs: Mapping[str, torch.Tensor], right: torch.Tensor
) -> list[str]:
    """The ways of launching in which some output has other bits than `right`."""
    ways: dict[str, Callable[..., list[torch.Tensor]]] = {
        "behind each other": _behind,
        "on two streams": _on_two_streams,
        "in a graph beside others": _in_a_graph,
    }
    declared = [each for each in kernel.manifest["tensors"] if each["role"] == "input"]
    values = [_as_declared(each, inputs[each["name"]]) for each in declared]
    problems = []
    for name, launch in ways.items():
        outputs = launch(lambda: kernel(*values))
        torch.cuda.synchronize()
        wrong = sum(not torch.equal(each.cpu(), right) for each in outputs)
        if wrong:
            rule = f"together: launches {name} must give the bits of one alone"
            problems.append(f"{rule}, got {wrong} others of {len(outputs)}")
    return problems


def _as_declared(declared: Mapping[str, Any], value: torch.Tensor) -> torch.Tensor:
    strided = torch.empty_strided(declared["shape"], declared["strides"], dtype=value.dtype)
    return strided.copy_(value).cuda()


def _behind(launch: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    return [launch() for _ in range(LAUNCHES)]


def _on_two_streams(launch: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    outputs = []
    for number in range(2 * LAUNCHES):
        with torch.cuda.stream(streams[number % 2]):
            outputs.append(launch())
    torch.cuda.synchronize()
    return outputs


def _in_a_graph(launch: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    launch()
    torch.cuda.synchronize()
    graph, other = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        captured = _behind(launch)
    outputs = []
    for _ in range(REPLAYS):
        for each in captured:
            each.zero_()
        torch.cuda.synchronize()
        graph.replay()
        with torch.cuda.stream(other):
            outputs += _behind(launch)
        torch.cuda.synchronize()
        outputs += [each.clone() for each in captured]
    return outputs
