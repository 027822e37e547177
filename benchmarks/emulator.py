"""How fast the emulator runs our kernels, and what they execute.

    python benchmarks/emulator.py [--sizes 256x256x256,512x512x512] [--repeat 3] [--json]

For each size and each prefix of the pipeline: the median wall seconds of one launch (compilation,
inputs and the comparison with torch are not counted), warp instructions, and how many of them a
second. Every run is compared with torch; a wrong result is an error, not a figure.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from typing import Any

PREFIXES = ("tiling", "tma-insertion", "swizzle-selection")


def main() -> None:
    options = parse_options()
    rows = [
        measure(size, prefix, options.repeat)
        for size in parse_sizes(options.sizes)
        for prefix in PREFIXES
    ]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    result = {"machine": machine, "repeat": options.repeat, "rows": rows}
    print(json.dumps(result) if options.json else as_text(result))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="256x256x256,512x512x512")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def parse_sizes(text: str) -> list[tuple[int, ...]]:
    return [tuple(int(extent) for extent in size.split("x")) for size in text.split(",")]


def measure(size: tuple[int, ...], prefix: str, repeat: int) -> dict[str, Any]:
    """Compile once, launch `repeat` times with different seeds."""
    from tilewright.compiler.driver import compile_matmul
    from tilewright.compiler.spec import MatmulSpec
    from tilewright.runtime.bundle import Bundle, seal

    compiled = compile_matmul(MatmulSpec(*size), stop_after=prefix)
    cubin = compiled.assembled.cubin
    bundle = Bundle(seal(compiled.manifest, compiled.ptx, cubin), compiled.ptx, cubin)
    runs = [launch(bundle, seed) for seed in range(repeat)]
    seconds = statistics.median(run[0] for run in runs)
    instructions = sum(runs[0][1]["instructions"].values())
    return {
        "size": list(size),
        "prefix": prefix,
        "seconds": seconds,
        "instructions": instructions,
        "instructions_per_second": instructions / seconds,
    }


def launch(bundle: Any, seed: int) -> tuple[float, dict[str, Any]]:
    """Wall seconds and the report of one launch whose result was compared with torch."""
    from tilewright.runtime.devices import open_device
    from tilewright.runtime.reference import compare, expected_output, to_float64
    from tilewright.tools.inputs import make_tensors

    tensors = make_tensors(bundle.manifest, seed)
    started = time.perf_counter()
    report = open_device("emulator").launch(bundle, tensors, seed)
    seconds = time.perf_counter() - started
    c_dtype = bundle.manifest["tensors"][-1]["dtype"]
    comparison = compare(
        expected_output(bundle.manifest, tensors), to_float64(tensors["c"], c_dtype), c_dtype
    )
    assert comparison.passed, comparison
    return seconds, report.as_dict()


def as_text(result: dict[str, Any]) -> str:
    lines = [f"bf16, median of {result['repeat']}, {result['machine']}", ""]
    lines += [f"{'size':16} {'prefix':20} {'s':>7} {'instructions':>13} {'a second':>10}"]
    for row in result["rows"]:
        size = "×".join(str(extent) for extent in row["size"])
        lines.append(
            f"{size:16} {row['prefix']:20} {row['seconds']:7.2f} {row['instructions']:13d}"
            f" {row['instructions_per_second']:10.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
