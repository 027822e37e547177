"""How fast the emulator runs our kernels, how much memory it takes, and what they execute.

    python benchmarks/emulator.py [--sizes 256x256x256,512x512x512] [--repeat 3] [--json]
    python benchmarks/emulator.py --preset v6 --size 1024

For each size and each prefix of the schedule that is chosen for it, or the preset: the median wall
seconds of one launch (compilation, inputs and the comparison with torch are not counted), the peak
memory that the process ever held during it, warp instructions, and how many of them a second. Every
run is compared with torch; a wrong result is an error, not a figure.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import time
from pathlib import Path
from typing import Any

SIZES = "256x256x256,512x512x512"
PEAK_RESET = Path("/proc/self/clear_refs")  # writing 5 starts the peak anew (proc(5))


def main() -> None:
    options = parse_options()
    rows = [
        measure(size, kernel, options.repeat)
        for size in parse_sizes(options.size or options.sizes)
        for kernel in kernels(size, options.preset)
    ]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    result = {"machine": machine, "repeat": options.repeat, "rows": rows}
    print(json.dumps(result) if options.json else as_text(result))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES, help=f"MxNxK,… (default {SIZES})")
    parser.add_argument("--size", help="one size instead: MxNxK, or S for S×S×S")
    parser.add_argument("--preset", help="this preset instead of every prefix of the pipeline")
    parser.add_argument("--repeat", type=int, help="launches (default 3; 1 with --size)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.repeat = options.repeat or (1 if options.size else 3)
    return options


def parse_sizes(text: str) -> list[tuple[int, ...]]:
    """M, N and K of each size; one number stands for all three."""
    sizes = [tuple(int(extent) for extent in size.split("x")) for size in text.split(",")]
    return [size * 3 if len(size) == 1 else size for size in sizes]


def kernels(size: tuple[int, ...], preset: str | None) -> list[dict[str, str]]:
    """The preset, or every prefix of the chosen schedule, as keywords of compile_matmul."""
    from tilewright.compiler.driver import choose_pipeline
    from tilewright.compiler.pipeline import parse_pipeline
    from tilewright.compiler.spec import MatmulSpec

    if preset:
        return [{"preset": preset}]
    chosen = choose_pipeline(MatmulSpec(*size), "sm_100a")
    return [{"stop_after": call.name} for call in parse_pipeline(chosen)]


def measure(size: tuple[int, ...], kernel: dict[str, str], repeat: int) -> dict[str, Any]:
    """Compile once, launch `repeat` times with different seeds."""
    from tilewright.compiler.bundle_writer import as_bundle
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec

    bundle = as_bundle(compile_matmul(MatmulSpec(*size), **kernel))
    reset_peak()
    runs = [launch(bundle, seed) for seed in range(repeat)]
    seconds = statistics.median(run[0] for run in runs)
    instructions = sum(runs[0][2]["instructions"].values())
    return {
        "size": list(size),
        "kernel": next(iter(kernel.values())),
        "seconds": seconds,
        "peak_bytes": max(run[1] for run in runs),
        "instructions": instructions,
        "instructions_per_second": instructions / seconds,
    }


def launch(bundle: Any, seed: int) -> tuple[float, int, dict[str, Any]]:
    """Wall seconds, peak memory and the report of one launch whose result is right."""
    from tilewright.runtime.devices import open_device
    from tilewright.tools.inputs import make_tensors
    from tilewright.tools.run import compare_output

    tensors = make_tensors(bundle.manifest, seed)
    started = time.perf_counter()
    report = open_device("emulator").launch(bundle, tensors, seed)
    seconds, peak = time.perf_counter() - started, peak_bytes()
    comparison = compare_output(bundle, tensors)
    assert comparison.passed, comparison
    return seconds, peak, report.as_dict()


def reset_peak() -> None:
    """Forget the peak so far, where the system can."""
    if PEAK_RESET.exists():
        PEAK_RESET.write_text("5")


def peak_bytes() -> int:
    """The most memory that the process held since `reset_peak`, in bytes."""
    status = Path("/proc/self/status")
    if PEAK_RESET.exists() and status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else peak * 1024


def as_text(result: dict[str, Any]) -> str:
    lines = [f"bf16, median of {result['repeat']}, {result['machine']}", ""]
    head = (
        f"{'size':16} {'kernel':20} {'s':>7} {'peak MB':>8} {'instructions':>13} {'a second':>10}"
    )
    lines.append(head)
    for row in result["rows"]:
        size = "×".join(str(extent) for extent in row["size"])
        lines.append(
            f"{size:16} {row['kernel']:20} {row['seconds']:7.2f} {row['peak_bytes'] / 1e6:8.0f}"
            f" {row['instructions']:13d} {row['instructions_per_second']:10.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
