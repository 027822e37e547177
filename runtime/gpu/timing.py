"""Times of GPU work by CUDA events, and clocks under load.

A batch of launches is enqueued while the GPU still waits, so that it then runs without gaps and the
host's time for launching isn't measured:

    wait, event, launch × n, event   →   milliseconds between the events, over n
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

Launch = Callable[[int], Any]  # of the index of an input set
Name = TypeVar("Name", bound=Hashable)

HOST_SECONDS_A_LAUNCH = 100e-6  # more than any contender takes, so that the backlog lasts
CYCLES_A_SECOND = 2.0e9
BATCH_SECONDS = 4e-3
BATCH_LAUNCHES = (4, 200)
HOST_BATCH_SECONDS = 0.1
HOST_CALLS = (20, 200)
CLOCK_BATCHES = 16
CLOCK_FIELDS = {
    "sm_mhz": "clocks.sm",
    "highest_mhz": "clocks.max.sm",
    "memory_mhz": "clocks.mem",
    "watts": "power.draw.instant",
    "celsius": "temperature.gpu",
}


def interleaved(
    launches: Mapping[Name, Launch], sets: int, rounds: int, rest: float = 0
) -> dict[Name, list[float]]:
    """Microseconds a launch for each name, `rounds` of them, taken in turns as `in_turn` says.

    rest: how many times as long as a batch took the GPU then has nothing to do, so that it is not
        at its limit of power; batches may then be of one launch.
    """
    least = 1 if rest else BATCH_LAUNCHES[0]
    sizes = {name: batch_size(launch, sets, least) for name, launch in launches.items()}
    times: dict[Name, list[float]] = {name: [] for name in launches}
    for turn in range(rounds):
        for name in in_turn(list(launches), turn):
            found = batch_us(launches[name], sizes[name], sets)
            times[name].append(found)
            time.sleep(rest * found * sizes[name] * 1e-6)
    return times


def in_turn(names: list[Name], turn: int) -> list[Name]:
    """The order of contenders in a turn: every second one is the one before, backwards.

    What goes before heats the GPU, and its clock falls: nobody may always have the same one there.
    """
    first = turn // 2 % len(names)
    order = names[first:] + names[:first]
    return order[::-1] if turn % 2 else order


def batch_size(launch: Launch, sets: int, least: int = BATCH_LAUNCHES[0]) -> int:
    """How many launches make a batch of `BATCH_SECONDS`, `least` at least, after three that warm
    up."""
    batch_us(launch, 3, sets)
    wanted = BATCH_SECONDS * 1e6 / batch_us(launch, 3, sets)
    return int(min(max(wanted, least), BATCH_LAUNCHES[1]))


def batch_us(launch: Launch, count: int, sets: int) -> float:
    """Microseconds a launch in a batch of `count`, which go through the input sets."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    torch.cuda._sleep(int(count * HOST_SECONDS_A_LAUNCH * CYCLES_A_SECOND))
    start.record()
    for i in range(count):
        launch(i % sets)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / count


def host_us(call: Callable[[], Any], gpu_us: float, rounds: int = 11) -> float:
    """Median microseconds of the host for one call, while the GPU's queue has room.

    `gpu_us` is how long the GPU works on it: fewer calls are made in a row of one that takes long.
    """
    import torch

    least, most = HOST_CALLS
    count, times = int(min(max(HOST_BATCH_SECONDS * 1e6 / gpu_us, least), most)), []
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - started) * 1e6 / count)
    return sorted(times)[rounds // 2]


def clocks_under(launch: Launch, launches: int, sets: int) -> dict[str, float]:
    """What nvidia-smi says while the GPU works, `launches` of it before; empty without it.

    The queue is kept short: nvidia-smi takes longer than a full one of short kernels, and a full
    one of long kernels takes many seconds.
    """
    _work(launch, launches, sets)
    query = f"--query-gpu={','.join(CLOCK_FIELDS.values())}"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits", "-i", "0"]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except OSError:
        return {}
    while process.poll() is None:
        _work(launch, launches // CLOCK_BATCHES + 1, sets)
    printed, _ = process.communicate()
    if process.returncode:
        return {}
    return dict(zip(CLOCK_FIELDS, parse_numbers(printed.split(",")), strict=True))


def _work(launch: Launch, launches: int, sets: int) -> None:
    import torch

    for i in range(launches):
        launch(i % sets)
    torch.cuda.synchronize()


def parse_numbers(texts: Sequence[str]) -> list[float]:
    """Numbers, NaN for what isn't one ("[N/A]")."""
    values = []
    for text in texts:
        try:
            values.append(float(text))
        except ValueError:
            values.append(float("nan"))
    return values
