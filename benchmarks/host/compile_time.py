"""How long a spec takes to become a cubin, stage by stage: in a cold process and in a warm one.

    python benchmarks/host/compile_time.py [--m 512 --n 768 --k 320] [--repeat 5] [--json]
    python benchmarks/host/compile_time.py --passes
    python benchmarks/host/compile_time.py --calls

Without a flag every figure is the median of the repeats, in milliseconds of wall time. "cold" is
one whole `tilewright compile --emit cubin` process, from exec to exit; "warm" is the same
compilation in a process that has done it before. "other" is what no stage counts: in a cold process
mostly imports. "CPU" is the CPU time of it all, that of ptxas included; on a machine that other
work shares it says more than the wall.

With --passes it is the least of the repeats, in milliseconds of CPU time in a warm process, of each
pass and its checks, for the kernels of `KERNELS` from spec to PTX.

With --calls it is what the first call of a shape takes before the launch, in a process that has
compiled others: the schedule is chosen, and the bundle is compiled into an empty cache, or read
from there by a process that does not remember it. Medians of as many shapes, in milliseconds of
wall time and of CPU time, that of ptxas included.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Stages = dict[str, float]
KERNELS = {
    "v1a": {"preset": "v1a"},
    "v6": {"preset": "v6"},
    "kernel8": {"preset": "kernel8"},
    "sm_100a": {"target": "sm_100a"},
    "sm_90a": {"target": "sm_90a"},
    "in turns": {
        "target": "sm_90a",
        "pipeline": "normalize,tiling{tile=128x128x64},tma-insertion{box=2d},swizzle-selection,"
        "epilogue-staging{columns=32 buffers=4},pipelining{stages=6},warp-specialization,"
        "persistence{order=grouped group=8},ping-pong,lower-to-nvvm",
    },
}
CHIPS = ("sm_90a", "sm_100a")
BEFORE, AFTER = "context to normalize", "LLVM IR and PTX"


def main() -> None:
    options = parse_options()
    if options.calls:
        result = {**conditions(options), "call_ms": first_calls(options)}
        print(json.dumps(result) if options.json else calls_as_text(result))
        return
    if options.passes:
        result = {**conditions(options), "cpu_ms": pass_columns(options)}
        print(json.dumps(result) if options.json else passes_as_text(result))
        return
    cold = [cold_stages(options) for _ in range(options.repeat)]
    figures = {"cold_ms": medians(cold), "warm_ms": medians(warm_stages(options))}
    result = {**conditions(options), **figures}
    print(json.dumps(result) if options.json else as_text(result))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, size in (("m", 512), ("n", 768), ("k", 320)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--passes", action="store_true", help="a table of passes and kernels")
    parser.add_argument("--calls", action="store_true", help="first calls of shapes")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def conditions(options: argparse.Namespace) -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "spec": [options.m, options.n, options.k],
        "repeat": options.repeat,
    }


def pass_columns(options: argparse.Namespace) -> dict[str, Stages]:
    """For each kernel the CPU milliseconds of its passes, the least of rounds over all kernels."""
    from tilewright.compiler.spec import MatmulSpec

    spec = MatmulSpec(options.m, options.n, options.k)
    rounds = [
        {name: cpu_of_passes(spec, how) for name, how in KERNELS.items()}
        for _ in range(options.repeat + 1)
    ][1:]
    return {name: least([one[name] for one in rounds]) for name in KERNELS}


def cpu_of_passes(spec: Any, how: dict[str, str]) -> Stages:
    """CPU milliseconds from the end of one pass to that of the next, and the total."""
    from tilewright.compiler.driver import compile_matmul

    marks = [("", time.process_time())]

    def passed(event: Any) -> None:
        marks.append((event.name, time.process_time()))

    compile_matmul(spec, until="ptx", observer=passed, **how)
    marks.append((AFTER, time.process_time()))
    spans = itertools.pairwise(marks)
    found = {name: (end - start) * 1e3 for (_, start), (name, end) in spans}
    total = sum(found.values())
    return {BEFORE: found.pop("normalize"), **found, "total": total}


def least(runs: list[Stages]) -> Stages:
    return {name: min(run[name] for run in runs) for name in runs[0]}


def passes_as_text(result: dict[str, Any]) -> str:
    """A row for each pass in the order of pipelines, a column for each kernel."""
    from tilewright.passes import PASSES

    columns = result["cpu_ms"]
    rows = [BEFORE, *PASSES, AFTER, "total"]
    lines = [headline(result, "CPU ms, the least"), "", f"| pass | {' | '.join(columns)} |"]
    lines.append("|---" * (1 + len(columns)) + "|")
    for row in rows:
        cells = [f"{column[row]:.1f}" if row in column else "" for column in columns.values()]
        if any(cells):
            lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def first_calls(options: argparse.Namespace) -> dict[str, dict[str, Stages]]:
    """For each chip, wall and CPU milliseconds of shapes that are compiled, and read again."""
    from tilewright.compiler.calls.kernels import kernel_cache, lookup
    from tilewright.compiler.spec import MatmulSpec

    def find(spec: MatmulSpec, chip: str) -> None:
        pipeline = lookup.pipeline_of(spec, chip, lookup.How())
        kernel_cache.cached_bundle(spec, chip, pipeline)

    found: dict[str, dict[str, Stages]] = {}
    sizes = [options.m + 64 * number for number in range(options.repeat + 1)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ[kernel_cache.VARIABLE] = folder
        for chip in CHIPS:
            specs, found[chip] = [MatmulSpec(m, options.n, options.k) for m in sizes], {}
            for way in ("compiled", "from disk"):
                kernel_cache.cached_bundle.cache_clear()
                lookup.choose_pipeline.cache_clear()
                runs = [both_clocks(functools.partial(find, spec, chip)) for spec in specs]
                found[chip][way] = medians(runs[1:])
    return found


def both_clocks(call: Callable[[], None]) -> Stages:
    """Wall and CPU milliseconds of a call, its processes included."""
    usage, started = cpu_seconds(), time.perf_counter()
    call()
    return {
        "wall": (time.perf_counter() - started) * 1e3,
        "cpu": (cpu_seconds() - usage) * 1e3,
    }


def cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def calls_as_text(result: dict[str, Any]) -> str:
    lines = [headline(result, "median"), "", "| first call of a shape | wall ms | CPU ms |"]
    lines.append("|---" * 3 + "|")
    for chip, ways in result["call_ms"].items():
        for way, found in ways.items():
            lines.append(f"| {chip}, {way} | {found['wall']:.1f} | {found['cpu']:.1f} |")
    return "\n".join(lines)


def cold_stages(options: argparse.Namespace) -> Stages:
    """Milliseconds of each stage, "total" and "CPU", of one process from spec to a cubin."""
    sizes = [f"--{name}={getattr(options, name)}" for name in ("m", "n", "k")]
    command = [sys.executable, "-m", "tilewright.tools.main", "compile", *sizes, "--json"]
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "kernel.cubin")

        def run() -> Stages:
            done = subprocess.run(
                [*command, "--emit", "cubin", "-o", output],
                check=True,
                capture_output=True,
                text=True,
            )
            return json.loads(done.stdout)["stages_seconds"]

        return timed(run)


def warm_stages(options: argparse.Namespace) -> list[Stages]:
    """The same of compilations in this process, after a first one."""
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec

    spec = MatmulSpec(options.m, options.n, options.k)
    compile_matmul(spec)
    return [timed(lambda: dict(compile_matmul(spec).stages)) for _ in range(options.repeat)]


def timed(compilation: Callable[[], Stages]) -> Stages:
    """Milliseconds of the stages that a compilation gives the seconds of, and of all of it."""
    stages: Stages = {}
    clocks = both_clocks(lambda: stages.update(compilation()))
    found = {name: seconds * 1e3 for name, seconds in stages.items()}
    other = clocks["wall"] - sum(found.values())
    return {**found, "other": other, "total": clocks["wall"], "CPU": clocks["cpu"]}


def medians(runs: list[Stages]) -> Stages:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def as_text(result: dict[str, Any]) -> str:
    lines = [headline(result, "median"), ""]
    lines += [f"{'stage':20} {'cold ms':>8} {'warm ms':>8}"]
    for name, cold in result["cold_ms"].items():
        lines.append(f"{name:20} {cold:8.1f} {result['warm_ms'][name]:8.1f}")
    return "\n".join(lines)


def headline(result: dict[str, Any], figure: str) -> str:
    size = "×".join(str(extent) for extent in result["spec"])
    return f"{size} bf16, {figure} of {result['repeat']}, {result['machine']}"


if __name__ == "__main__":
    main()
