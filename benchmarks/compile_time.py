"""How long a spec takes to become a cubin, stage by stage: in a cold process and in a warm one.

    python benchmarks/compile_time.py [--m 512 --n 768 --k 320] [--repeat 5] [--json]

Every figure is the median of the repeats, in milliseconds of wall time. "cold" is one whole
`tilewright compile --emit cubin` process, from exec to exit; "warm" is the same compilation in a
process that has done it before. "other" is what no stage counts: in a cold process mostly imports.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Stages = dict[str, float]


def main() -> None:
    options = parse_options()
    cold = [cold_stages(options) for _ in range(options.repeat)]
    result = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "spec": [options.m, options.n, options.k],
        "repeat": options.repeat,
        "cold_ms": medians(cold),
        "warm_ms": medians(warm_stages(options)),
    }
    print(json.dumps(result) if options.json else as_text(result))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, size in (("m", 512), ("n", 768), ("k", 320)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def cold_stages(options: argparse.Namespace) -> Stages:
    """Milliseconds of each stage, and "total", of one process from spec to a written cubin."""
    sizes = [f"--{name}={getattr(options, name)}" for name in ("m", "n", "k")]
    command = [sys.executable, "-m", "tilewright.tools.main", "compile", *sizes, "--json"]
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "kernel.cubin")
        started = time.perf_counter()
        done = subprocess.run(
            [*command, "--emit", "cubin", "-o", output], check=True, capture_output=True, text=True
        )
        total = time.perf_counter() - started
    return in_milliseconds(json.loads(done.stdout)["stages_seconds"], total)


def warm_stages(options: argparse.Namespace) -> list[Stages]:
    """The same of compilations in this process, after a first one."""
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec

    spec = MatmulSpec(options.m, options.n, options.k)
    compile_matmul(spec)
    return [timed(lambda: compile_matmul(spec)) for _ in range(options.repeat)]


def timed(compilation: Any) -> Stages:
    started = time.perf_counter()
    compiled = compilation()
    return in_milliseconds(dict(compiled.stages), time.perf_counter() - started)


def in_milliseconds(stages: Stages, total: float) -> Stages:
    rest = {"other": total - sum(stages.values()), "total": total}
    return {name: seconds * 1e3 for name, seconds in {**stages, **rest}.items()}


def medians(runs: list[Stages]) -> Stages:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def as_text(result: dict[str, Any]) -> str:
    size = "×".join(str(extent) for extent in result["spec"])
    lines = [f"{size} bf16, median of {result['repeat']}, {result['machine']}", ""]
    lines += [f"{'stage':20} {'cold ms':>8} {'warm ms':>8}"]
    for name, cold in result["cold_ms"].items():
        lines.append(f"{name:20} {cold:8.1f} {result['warm_ms'][name]:8.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
