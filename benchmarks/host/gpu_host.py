"""What a matmul on this GPU costs the host, by each way to call it, beside torch's own.

    python benchmarks/host/gpu_host.py [--size 512] [--json PATH] [--eager]

Needs the compiler and a GPU. First calls are measured in processes of their own: one that compiles
into an empty cache, one that finds the bundle on disk; then the second call, until its output is
there. Calls after that: microseconds of the host for one call, the median of 15 rounds of up to 200
calls, in which all ways take turns, while the GPU's queue has room. Every way's output is compared
with float64 first. Where the extension in C launches, another process then measures the calls that
nothing compiled, with torch's, as Python launches them. --eager prints those calls alone, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from tilewright import matmul
from tilewright.compiler.calls.kernels.kernel_cache import VARIABLE, cache_folder
from tilewright.runtime import load
from tilewright.runtime.gpu.timing import batch_us, host_us
from tilewright.runtime.launch.comparison import ERROR_MAX, machine
from tilewright.runtime.launch.devices import why_no_gpu
from tilewright.runtime.relaunch import VARIABLE as LAUNCH
from tilewright.runtime.relaunch import extension

Call = Callable[[], torch.Tensor]
Ways = dict[str, dict[str, Call]]
Figures = dict[str, dict[str, float]]
OURS, TORCH = "tilewright", "torch"
DRIVER = "cuLaunchKernelEx of cuda-python"
WARM_CALLS = 5
ROUNDS = 15
FIRST_CALL = """
import sys, time
import torch
a, b = (torch.randn({size}, {size}, device="cuda").bfloat16() for _ in range(2))
torch.mm(a, b)
torch.cuda.synchronize()
times = [time.perf_counter()]
from tilewright import matmul
times.append(time.perf_counter())
for _ in range(2):
    matmul(a, b)
    torch.cuda.synchronize()
    times.append(time.perf_counter())
print(*(after - before for before, after in zip(times, times[1:])))
"""


def main() -> None:
    options = parse_options()
    reason = why_no_gpu()
    if reason:
        sys.exit(f"error: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        if options.eager:
            print(json.dumps(host_costs(options.size, eager_ways)))
            return
        first = {name: first_calls(options.size) for name in ("compiled", "from disk")}
        calls = host_costs(options.size, ways)
        python = host_costs_in_python(options.size) if extension() else {}
    print(as_text(options.size, first, calls, python))
    if options.json:
        result = {**machine(), "size": options.size, "first_calls_s": first, "host_us": calls}
        options.json.write_text(json.dumps({**result, "host_us_python": python}, indent=1))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=512, help="M = N = K (default 512)")
    parser.add_argument("--eager", action="store_true", help="calls that nothing compiled, as JSON")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    return parser.parse_args()


def first_calls(size: int) -> dict[str, float]:
    """Seconds of a new process, where torch is ready: import, first call, second call."""
    command = [sys.executable, "-c", FIRST_CALL.format(size=size)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = map(float, done.stdout.split())
    return dict(zip(("import", "first call", "second call"), seconds, strict=True))


def host_costs_in_python(size: int) -> Figures:
    """The same of what nothing compiled, in a process without the extension."""
    command = [sys.executable, __file__, "--size", str(size), "--eager"]
    environment = {**os.environ, LAUNCH: "python"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def host_costs(size: int, ways: Callable[..., Ways]) -> Figures:
    """Microseconds of the host for each way to call, ours and torch's."""
    torch.manual_seed(1)
    a, b = (torch.randn(size, size, device="cuda").bfloat16() for _ in range(2))
    found = ways(a, b)
    for way, calls in found.items():
        for call in calls.values():
            check(way, call, a, b)
    medians = in_turns([call for calls in found.values() for call in calls.values()])
    return {
        way: {name: medians[call] for name, call in calls.items()} for way, calls in found.items()
    }


def in_turns(calls: Sequence[Call]) -> dict[Call, float]:
    """Median microseconds of the host of each; they take turns and so meet the same noise."""
    gpu_us = {call: batch_us(lambda _, call=call: call(), 20, 1) for call in calls}
    times: dict[Call, list[float]] = {call: [] for call in calls}
    for _ in range(ROUNDS):
        for call in calls:
            times[call].append(host_us(call, gpu_us[call], rounds=1))
    return {call: statistics.median(found) for call, found in times.items()}


def ways(a: torch.Tensor, b: torch.Tensor) -> Ways:
    """Each way to multiply, ours and torch's, for [m, k] and [n, k]."""
    compiled = [compiled_ways(a, b, mode) for mode in ("default", "reduce-overhead")]
    return {**eager_ways(a, b), **compiled[0], **compiled[1]}


def eager_ways(a: torch.Tensor, b: torch.Tensor) -> Ways:
    kernel, out, transposed = load_kernel(a, b), torch.empty_like(a), b.T
    weight = b.clone().requires_grad_()
    linear = torch.nn.functional.linear
    return {
        "a loaded bundle, `out=`": {
            OURS: lambda: kernel(a, b, out=out),
            TORCH: lambda: torch.mm(a, transposed, out=out),
        },
        "a loaded bundle": {OURS: lambda: kernel(a, b), TORCH: lambda: torch.mm(a, transposed)},
        "`matmul`, `out=`": {OURS: lambda: matmul(a, b, out=out)},
        "`matmul`": {OURS: lambda: matmul(a, b), TORCH: lambda: linear(a, b)},
        "`matmul`, gradients": {OURS: lambda: matmul(a, weight), TORCH: lambda: linear(a, weight)},
        DRIVER: {OURS: driver_alone(kernel, a, b, out)},
    }


def driver_alone(kernel: Any, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> Call:
    """The driver's call that is in each launch of a bundle, by cuda-python."""
    kernel(a, b, out=out)
    (program,) = kernel._programs.values()
    (known,) = program._launches.values()
    launch, function = program.gpu.driver.api.cuLaunchKernelEx, program._function

    def call() -> torch.Tensor:
        launch(known.config, function, known.parameters, 0)
        return out

    return call


def compiled_ways(a: torch.Tensor, b: torch.Tensor, mode: str) -> Ways:
    """A relu of the product, with which torch.compile has something to do."""
    ours = torch.compile(lambda a, b: torch.relu(matmul(a, b)), fullgraph=True, mode=mode)
    theirs = torch.compile(lambda a, b: torch.relu(a @ b.T), fullgraph=True, mode=mode)
    calls: dict[str, Call] = {OURS: lambda: ours(a, b), TORCH: lambda: theirs(a, b)}
    return {f'`matmul` and relu, `torch.compile(mode="{mode}")`': calls}


def load_kernel(a: torch.Tensor, b: torch.Tensor) -> Callable[..., torch.Tensor]:
    """The kernel that `matmul` has left in the cache, loaded from there."""
    matmul(a, b)
    (path,) = cache_folder().glob("*.zip")
    return load(path)


def check(way: str, call: Call, a: torch.Tensor, b: torch.Tensor) -> None:
    """Compare with float64, after as many calls as torch needs to make its graphs."""
    for _ in range(WARM_CALLS):
        result = call().detach()
    exact = a.double() @ b.double().T
    if "relu" in way:
        exact = exact.relu()
    error = ((result.double() - exact).norm() / exact.norm()).item()
    if not error < ERROR_MAX:
        sys.exit(f"error: {way}: relative error must be below {ERROR_MAX}, got {error:.3g}")


def as_text(size: int, first: Figures, calls: Figures, python: Figures) -> str:
    """Two tables in Markdown."""
    way = "Python" if extension() is None else "C"
    facts = {**machine(), "launches by": way}
    lines = [", ".join(f"{key} {value}" for key, value in facts.items())]
    lines += ["", f"| {size}³, bf16 | import s | first call s | second call µs |", "|---" * 4 + "|"]
    for name, seconds in first.items():
        begin, first_call, second = seconds.values()
        lines.append(f"| {name} | {begin:.2f} | {first_call:.2f} | {second * 1e6:.0f} |")
    tables = [calls, python] if python else [calls]
    heads = ["tilewright | torch | part of torch's", "launches by Python | torch beside it | part"]
    heads = heads[: len(tables)]
    lines += ["", f"| host, µs a call | {' | '.join(heads)} |", "|---" * (1 + 3 * len(heads)) + "|"]
    for name in calls:
        cells = " | ".join(_cells(table.get(name, {})) for table in tables)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def _cells(found: dict[str, float]) -> str:
    """Ours, torch's, and what part of torch's ours is, as far as there are both."""
    ours, theirs = found.get(OURS), found.get(TORCH)
    texts = [f"{us:.1f}" if us else "" for us in (ours, theirs)]
    return " | ".join([*texts, f"{ours / theirs:.2f}" if ours and theirs else ""])


if __name__ == "__main__":
    main()
