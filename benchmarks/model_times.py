"""Times of a model's steps on a GPU: in CUDA graphs that take turns, also among processes."""

from __future__ import annotations

import contextlib
import fcntl
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import torch

from tilewright.runtime.gpu.timing import in_turn

ROUNDS = 15
LOADERS = 16
Step = Callable[[], Any]
TUNERS = (
    ("torch._inductor.select_algorithm", "AlgorithmSelectorCache", "benchmark_in_current_process"),
    ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner", "benchmark_all_configs"),
    ("torch._inductor.runtime.benchmarking", "InductorBenchmarker", "benchmark_gpu"),
)
"""Where Inductor measures what it tunes."""


class Replays:
    """Steps captured in CUDA graphs, which are replayed in turns."""

    def __init__(self) -> None:
        self._graphs: dict[str, torch.cuda.CUDAGraph] = {}

    def with_another(self, name: str, step: Step) -> dict[str, float | str]:
        """Median microseconds of all steps so far and this one; or why it has no time."""
        try:
            self._graphs[name] = captured(step)
        except Exception as error:  # of any kind; the reason stands in the table
            return {name: short(error)}
        times = {each: list[float]() for each in self._graphs}
        for turn in range(ROUNDS):
            for each in in_turn(list(self._graphs), turn):
                times[each].append(replay_us(self._graphs[each]))
        return {each: statistics.median(found) for each, found in times.items()}


def short(error: Exception) -> str:
    """The kind of an error and its first line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:120]


def captured(step: Step) -> torch.cuda.CUDAGraph:
    """A step in a CUDA graph that was replayed before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(2):
        graph.replay()
    return graph


def replay_us(graph: torch.cuda.CUDAGraph, count: int = 3) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(count):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / count


def unfused_attention(step: Step) -> str:
    """Why torch's attention in a step has no fused kernel; "" where it has one or there is none."""
    from torch.nn.attention import sdpa_kernel

    with warnings.catch_warnings(record=True) as said, sdpa_kernel(fused_attention()):
        warnings.simplefilter("always")
        try:
            step()
        except RuntimeError as error:
            return "; ".join([short(error), *(str(each.message) for each in said)])
    return ""


def fused_attention() -> list[Any]:
    """The kernels of torch that compute attention as one."""
    from torch.nn.attention import SDPBackend

    return [
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.CUDNN_ATTENTION,
    ]


def load_candidates_ahead() -> None:
    """Let threads load the candidates of a product before Inductor measures one after the other.

    It compiles them in several processes, but loads each, for a quarter to a whole second, where it
    is measured. What is measured, and how, stays.
    """
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    measure: Any = vars(AlgorithmSelectorCache)["benchmark_in_current_process"].__func__

    def loaded_first(cls: Any, choices: Sequence[Any], *given: Any, **named: Any) -> Any:
        with ThreadPoolExecutor(LOADERS, initializer=_in_context) as pool:
            list(pool.map(_load, choices))
        return measure(cls, choices, *given, **named)

    AlgorithmSelectorCache.benchmark_in_current_process = classmethod(loaded_first)  # type: ignore[method-assign]


def _in_context() -> None:
    if torch.cuda.is_available():
        torch.cuda.set_device(torch.cuda.current_device())
        torch.zeros(1, device="cuda")


def _load(choice: Any) -> None:
    with contextlib.suppress(Exception):  # Inductor meets it again, and leaves the candidate out
        getattr(choice, "precompile", int)()


def take_turns(path: str) -> Callable[[], AbstractContextManager[None]]:
    """Let this process measure only while no other with the same file does: models and regions,
    and Inductor what it tunes. Within what it gives, which may be entered again, the turn is this
    process's; as a decorator it lets a function wait for it."""
    import importlib

    from tilewright.compiler.inductor import race

    file = open(path, "w")  # held until the process ends
    depth = [0]

    @contextlib.contextmanager
    def turn() -> Iterator[None]:
        if not depth[0]:
            fcntl.flock(file, fcntl.LOCK_EX)
        depth[0] += 1
        try:
            yield
        finally:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            depth[0] -= 1
            if not depth[0]:
                fcntl.flock(file, fcntl.LOCK_UN)

    race.measure_in_graphs = turn()(race.measure_in_graphs)
    Replays.with_another = turn()(Replays.with_another)
    for module, name, method in TUNERS:
        tuner = getattr(importlib.import_module(module), name)
        found = vars(tuner).get(method)
        if isinstance(found, classmethod | staticmethod):
            setattr(tuner, method, type(found)(turn()(found.__func__)))
        elif found is not None:
            setattr(tuner, method, turn()(found))
    return turn
