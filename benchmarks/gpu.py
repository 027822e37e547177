"""How fast bundles run on this GPU, beside cuBLAS (torch) and Triton.

    python benchmarks/gpu.py FOLDER [--rounds 15] [--no-triton] [--json PATH]

FOLDER holds bundles that were made beforehand (benchmarks/gpu_bundles.py), bf16; `runtime` must be
importable as tilewright.runtime, and torch, numpy and cuda-python installed; Triton is measured
where it is. For each bundle the contenders take turns on the same normally distributed inputs,
several sets of them, which together exceed L2. Times are medians of batches that are enqueued
behind a backlog (runtime/gpu/timing.py). Every contender's output is compared with float64 first,
and a wrong one is an error. Also: the host's time for a call that is given its output, and that of
torch.mm; the first call of each kernel, with loading; clocks and power under load.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from tilewright.runtime.gpu import comparison
from tilewright.runtime.gpu.comparison import check, count_sets, make_set
from tilewright.runtime.gpu.timing import Launch, clocks_under, host_us, interleaved

OURS, CUBLAS, TRITON = "tilewright", "cublas", "triton"


@dataclass
class Row:
    """One bundle: sizes, medians in microseconds, what the host took, clocks under load."""

    bundle: str
    m: int
    n: int
    k: int
    us: dict[str, float]
    spread: dict[str, float]
    host_us: dict[str, float]
    first_call_ms: float
    clocks: dict[str, float]
    pipeline: str

    def tflops(self, name: str) -> float:
        """10¹² floating-point operations a second."""
        return 2 * self.m * self.n * self.k / self.us[name] / 1e6

    def ratio(self, other: str) -> float:
        """How many times as fast as another contender ours is."""
        return self.us[other] / self.us[OURS]


def main() -> None:
    options = parse_options()
    paths = sorted(options.folder.glob("*.zip"), key=sizes_of)
    if not paths:
        sys.exit(f"error: {options.folder}: must hold bundles, got none; see gpu_bundles.py")
    rows = []
    for path in paths:
        rows.append(measure(path, options))
        print(as_line(rows[-1]), file=sys.stderr)
    print(as_text(rows))
    if options.json:
        result = {**machine(), "rounds": options.rounds, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps({**result, "geometric_mean": means(rows)}, indent=1))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=15, help="batches a contender (default 15)")
    parser.add_argument("--no-triton", action="store_true", help="leave Triton out")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write everything here")
    return parser.parse_args()


def sizes_of(path: Path) -> tuple[int, str]:
    """Sorts bundles by the work that their names MxNxK say, else by name."""
    try:
        return math.prod(int(size) for size in path.stem.split("x")), path.stem
    except ValueError:
        return 0, path.stem


def measure(path: Path, options: argparse.Namespace) -> Row:
    """Check and time one bundle and its rivals."""
    from tilewright.runtime import load

    kernel = load(path)
    a, b, c = kernel.manifest["tensors"]
    sets = [make_set((a, b, c), seed) for seed in range(count_sets((a, b, c)))]
    first_call_ms = first_call(kernel, *sets[0])
    launches = contenders(kernel, sets, options)
    for name, launch in launches.items():
        check(f"{path.name}: {name}", launch, sets[-1], len(sets) - 1)
    times = interleaved(launches, len(sets), options.rounds)
    medians = {name: statistics.median(found) for name, found in times.items()}
    third_of_a_second = int(3e5 / medians[OURS]) + 1
    return Row(
        path.stem,
        *(*c["shape"], a["shape"][1]),
        us=medians,
        spread={name: statistics.stdev(found) / medians[name] for name, found in times.items()},
        host_us=host_costs(kernel, *sets[0], medians[OURS]),
        first_call_ms=first_call_ms,
        clocks=clocks_under(launches[OURS], third_of_a_second, len(sets)),
        pipeline=kernel.manifest["pipeline"],
    )


def first_call(kernel: Any, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> float:
    """Milliseconds of a kernel's first call, which loads it, until its output is there."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    kernel(a, b, out=out)
    torch.cuda.synchronize()
    return (time.perf_counter() - started) * 1e3


def host_costs(
    kernel: Any, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, gpu_us: float
) -> dict[str, float]:
    """Microseconds of the host for a call of ours and of torch's."""
    transposed = b.T
    return {
        OURS: host_us(lambda: kernel(a, b, out=out), gpu_us),
        CUBLAS: host_us(lambda: torch.mm(a, transposed, out=out), gpu_us),
    }


def contenders(
    kernel: Any, sets: list[list[torch.Tensor]], options: argparse.Namespace
) -> dict[str, Launch]:
    """What is timed, by name; each takes the index of an input set."""

    def ours(i: int) -> None:
        a, b, c = sets[i]
        kernel(a, b, out=c)

    def cublas(i: int) -> None:
        a, b, c = sets[i]
        torch.mm(a, b.T, out=c)

    found: dict[str, Launch] = {OURS: ours, CUBLAS: cublas}
    if not options.no_triton and all(each.is_contiguous() for each in sets[0]):
        found |= triton_contender(sets)
    return found


def triton_contender(sets: list[list[torch.Tensor]]) -> dict[str, Launch]:
    """Triton's matmul where it is installed."""
    try:
        from triton_matmul import prepare
    except ImportError as error:
        print(f"Triton is left out: {error}", file=sys.stderr)
        return {}
    prepared = [prepare(*each) for each in sets]
    return {TRITON: lambda i: prepared[i]()}


def means(rows: list[Row]) -> dict[str, float]:
    """Geometric means of the ratios to each rival that all rows have."""
    rivals = [name for name in (CUBLAS, TRITON) if all(name in row.us for row in rows)]
    return {name: statistics.geometric_mean(row.ratio(name) for row in rows) for name in rivals}


def machine() -> dict[str, str]:
    """What was measured on, and when."""
    found = comparison.machine()
    if "triton" in sys.modules:
        found["triton"] = sys.modules["triton"].__version__
    return found


def as_line(row: Row) -> str:
    found = ", ".join(f"{name} {row.tflops(name):.0f}" for name in row.us)
    return f"{row.m}×{row.n}×{row.k}: TFLOP/s {found}; ×{row.ratio(CUBLAS):.3f} of cuBLAS"


def as_text(rows: list[Row]) -> str:
    """A table in Markdown with the geometric means."""
    head = "| M×N×K | µs | TFLOP/s | cuBLAS | Triton | of cuBLAS | of Triton | host µs | torch µs |"
    lines = [", ".join(f"{key} {value}" for key, value in machine().items()), "", head]
    lines.append("|---" * 9 + "|")
    for row in rows:
        rival = f"{row.tflops(TRITON):.0f} | " if TRITON in row.us else "— | "
        of_rival = f"{row.ratio(TRITON):.3f}" if TRITON in row.us else "—"
        host = " | ".join(f"{row.host_us[name]:.1f}" for name in (OURS, CUBLAS))
        lines.append(
            f"| {row.m}×{row.n}×{row.k} | {row.us[OURS]:.1f} | {row.tflops(OURS):.0f}"
            f" | {row.tflops(CUBLAS):.0f} | {rival}{row.ratio(CUBLAS):.3f} | {of_rival} | {host} |"
        )
    found = ", ".join(f"{mean:.3f} of {name}" for name, mean in means(rows).items())
    return "\n".join([*lines, "", f"geometric mean: {found}"])


if __name__ == "__main__":
    main()
